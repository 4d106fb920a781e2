// Command record records what real programs print in a tmux pane, for the
// agreement test of package transcript. It types into each program at two
// sizes, through pipe-pane -O of a private tmux server, in a directory of its
// own with neutral names, and writes NAME-WIDTHxHEIGHT.gz files.
//
//	go run ./state/transcript/internal/record [-out DIR] [NAME...]
//
// Programs that are not installed are left out. Look at what was recorded
// before committing it: nothing of the machine or its user belongs there.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// demo is the neutral directory that everything runs in.
const demo = "/tmp/demo"

var sizes = [][2]int{{80, 24}, {50, 12}}

type recorder struct {
	socket string
	dir    string
}

func main() {
	log.SetFlags(0)
	out := flag.String("out", "state/transcript/testdata/recordings", "directory for the recordings")
	flag.Parse()
	if err := record(*out, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func record(out string, names []string) error {
	if err := prepare(); err != nil {
		return fmt.Errorf("preparing %s: %w", demo, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rec")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := recorder{socket: filepath.Join(dir, "s"), dir: dir}
	if _, err := r.tmux("new-session", "-d", "-s", "keep", "sleep 36000"); err != nil {
		return err
	}
	defer r.tmux("kill-server")
	if _, err := r.tmux("set-option", "-g", "status", "off"); err != nil {
		return err
	}
	for _, p := range programs {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if p.needs != "" {
			if _, err := exec.LookPath(p.needs); err != nil {
				log.Printf("%s: no %s", p.name, p.needs)
				continue
			}
		}
		for _, size := range sizes {
			b, err := r.program(p, size[0], size[1])
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			name := fmt.Sprintf("%s-%dx%d.gz", p.name, size[0], size[1])
			if err := write(filepath.Join(out, name), b); err != nil {
				return err
			}
			log.Printf("%s: %d bytes", name, len(b))
		}
	}
	return nil
}

func write(path string, b []byte) error {
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, z.Bytes(), 0o644)
}

func (r recorder) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", r.socket, "-f", "/dev/null"}, args...)...)
	cmd.Dir = demo
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + demo, "USER=demo", "LOGNAME=demo",
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh", "PS1=$ ", "HISTFILE=/dev/null", "GIT_PAGER=less -R", "PAGER=less",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("tmux %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// program runs one program and types into it.
func (r recorder) program(p program, width, height int) ([]byte, error) {
	raw := filepath.Join(r.dir, "raw")
	_ = os.Remove(raw)
	id, err := r.tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		"stty -echo; read x; stty echo; cd "+demo+"; "+p.command)
	if err != nil {
		return nil, err
	}
	id = strings.TrimSpace(id)
	defer r.tmux("kill-session", "-t", id)
	if _, err := r.tmux("pipe-pane", "-O", "-t", id, "cat > "+raw); err != nil {
		return nil, err
	}
	for quiet(raw, 300*time.Millisecond); ; {
		if _, err := os.Stat(raw); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := r.tmux("send-keys", "-t", id, "Enter"); err != nil {
		return nil, err
	}
	quiet(raw, 700*time.Millisecond)
	for _, keys := range p.keys {
		if strings.HasPrefix(keys, "=") {
			_, err = r.tmux("send-keys", "-t", id, "-l", keys[1:])
		} else {
			_, err = r.tmux(append([]string{"send-keys", "-t", id}, strings.Fields(keys)...)...)
		}
		if err != nil {
			break // the program has ended, and with it the pane
		}
		quiet(raw, 250*time.Millisecond)
	}
	_, _ = r.tmux("pipe-pane", "-t", id)
	b, err := os.ReadFile(raw)
	return scrub(b), err
}

// scrub replaces the names of the machine and the user by others of the same
// length, so that nothing moves on the screen.
func scrub(b []byte) []byte {
	host, _ := os.Hostname()
	other := strings.Repeat("h", len(host))
	for _, form := range []string{"@%s", `"%s"`, "  %s: ", " %s\r"} {
		b = bytes.ReplaceAll(b, fmt.Appendf(nil, form, host), fmt.Appendf(nil, form, other))
	}
	return bytes.ReplaceAll(b, []byte("root@"), []byte("demo@"))
}

// quiet waits until the file has not grown for a while, five seconds at most.
func quiet(path string, idle time.Duration) {
	size, since := int64(-1), time.Now()
	for start := time.Now(); time.Since(start) < 5*time.Second && time.Since(since) < idle; {
		time.Sleep(20 * time.Millisecond)
		if s, err := os.Stat(path); err == nil && s.Size() != size {
			size, since = s.Size(), time.Now()
		}
	}
}
