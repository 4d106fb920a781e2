package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tmux-mcpd/controlmode"
)

// runFiles is the private directory of staged commands. Its files are named
// after their runs: ID is what the shell reads, ID.c the command if it stands
// alone, ID.s the exit status, ID.r what a later daemon must know. They go when the
// run ends, but for the last of a run that had a pane made: it stays as long as
// that pane. An id begins
// with a digest of the tmux socket, so that daemons of several tmux servers
// share the directory and tell their own files from the others'.
type runFiles struct {
	dir    string
	digest string // 6 hex digits
}

// runIDPattern is what the id of a run looks like.
var runIDPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// runRecord is what ID.r holds.
type runRecord struct {
	Pane     controlmode.PaneID `json:"pane"`
	PanePID  int                `json:"panePid"`
	Server   ServerID           `json:"server"`
	Shell    Shell              `json:"shell"`
	ShellPID int                `json:"shellPid"`
	TTY      string             `json:"tty"`
	Same     bool               `json:"same,omitempty"`
	NewPane  bool               `json:"newPane,omitempty"`
	Typed    time.Time          `json:"typed"`
	Cursor   string             `json:"cursor"`

	// Of one that has ended: how, and what its own pane showed then.
	Ended  time.Time   `json:"ended,omitzero"`
	State  RunState    `json:"state,omitempty"`
	Began  bool        `json:"began,omitempty"`
	Status *int        `json:"status,omitempty"`
	Rests  restingPane `json:"rests,omitzero"`
}

func newRunFiles(dir, socket string) *runFiles {
	h := fnv.New32a()
	h.Write([]byte(socket))
	return &runFiles{dir, fmt.Sprintf("%06x", h.Sum32()&0xffffff)}
}

// RunDirectory is where commands are staged if Config does not say: below
// XDG_RUNTIME_DIR, else below the directory for temporary files.
func RunDirectory(getenv func(string) string, uid int) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && plainPath.MatchString(dir) {
		return filepath.Join(dir, "tmcp")
	}
	return fmt.Sprintf("/tmp/tmcp-%d", uid)
}

// ready makes the directory, and refuses one that others could write to or read.
func (f *runFiles) ready() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("directory of runs: %w", err)
	}
	st, err := os.Lstat(f.dir)
	if err != nil {
		return fmt.Errorf("directory of runs: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("directory of runs %s must be a directory of our own with mode 0700, not %s", f.dir, st.Mode())
	}
	return nil
}

func (f *runFiles) path(id string) string { return filepath.Join(f.dir, id) }

// stage writes the files of a run; none exists before. On an error none is left.
func (f *runFiles) stage(id string, st staged, rec runRecord) error {
	err := f.ready()
	if err == nil {
		err = f.create(id+".s", "") // private from the start, whatever the command's umask is
	}
	if err == nil {
		err = f.create(id, st.file)
	}
	if err == nil && st.more != "" {
		err = f.create(id+".c", st.more)
	}
	if err == nil {
		var b []byte
		if b, err = json.Marshal(rec); err == nil {
			err = f.create(id+".r", string(b))
		}
	}
	if err != nil {
		f.remove(id)
		return fmt.Errorf("stage the command: %w", err)
	}
	return nil
}

func (f *runFiles) create(name, text string) error {
	file, err := os.OpenFile(f.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// status reads the status that a run has left; ok is false while there is none.
func (f *runFiles) status(id string) (status int, when time.Time, ok bool) {
	b, err := f.read(id+".s", 16)
	if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
		return 0, when, false
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil || n < 0 {
		return 0, when, false
	}
	if st, err := os.Lstat(f.path(id + ".s")); err == nil {
		when = st.ModTime()
	}
	return n, when, true
}

// read reads a regular file of ours, at most limit bytes.
func (f *runFiles) read(name string, limit int) ([]byte, error) {
	fd, err := os.OpenFile(f.path(name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	if st, err := fd.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	b := make([]byte, limit)
	n, err := fd.Read(b)
	return b[:n], err
}

// keep replaces the files of a run by a record alone.
func (f *runFiles) keep(id string, rec runRecord) error {
	f.delete(id, ".n")
	b, err := json.Marshal(rec)
	if err == nil {
		err = f.create(id+".n", string(b))
	}
	if err == nil {
		err = os.Rename(f.path(id+".n"), f.path(id+".r"))
	}
	if err != nil {
		f.remove(id)
		return fmt.Errorf("keep the record of run %s: %w", id, err)
	}
	f.delete(id, "", ".c", ".s")
	return nil
}

// remove deletes the files of a run, regular ones only.
func (f *runFiles) remove(id string) { f.delete(id, "", ".c", ".s", ".r", ".n") }

func (f *runFiles) delete(id string, suffixes ...string) {
	if !runIDPattern.MatchString(id) {
		return
	}
	for _, suffix := range suffixes {
		if st, err := os.Lstat(f.path(id + suffix)); err == nil && st.Mode().IsRegular() {
			os.Remove(f.path(id + suffix))
		}
	}
}

// leftovers lists the runs of an earlier daemon on this tmux socket.
func (f *runFiles) leftovers() map[string]runRecord {
	if _, err := os.Lstat(f.dir); err != nil || f.ready() != nil {
		return nil
	}
	names, _ := os.ReadDir(f.dir)
	found := map[string]runRecord{}
	for _, e := range names {
		id, _, _ := strings.Cut(e.Name(), ".")
		if _, seen := found[id]; seen || !runIDPattern.MatchString(id) || !strings.HasPrefix(id, f.digest) {
			continue
		}
		var rec runRecord
		if b, err := f.read(id+".r", 4<<10); err == nil {
			json.Unmarshal(b, &rec) // a record that cannot be read says nothing
		}
		found[id] = rec
	}
	return found
}
