package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// idleExitOnDemand is when a daemon that nobody started by hand ends itself.
	idleExitOnDemand = 10 * time.Minute
	// maxStderr is what the file of a background daemon's standard error may
	// have grown to before a start empties it. Only crashes make it grow.
	maxStderr = 1 << 20
)

// detach starts the daemon of c in a session of its own and returns when it can
// be reached, or with what it said when it could not start.
func detach(ctx context.Context, c *config) error {
	conn, err := dial(ctx, c.main.path)
	if err == nil {
		return conn.Close()
	}
	if !absent(err) {
		return err
	}
	prog, err := self()
	if err != nil {
		return err
	}
	stderr, start, err := openStderr(c.stateFile(".err"))
	if err != nil {
		return err
	}
	defer stderr.Close()
	closeOnExec()
	cmd := exec.Command(prog, c.detachedArgs()...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(os.Environ())
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	return awaitDaemon(ctx, c.main.path, cmd, func() string { return lastLine(stderr, start) })
}

// detachedArgs are serveArgs for a daemon without anybody to watch it.
func (c *config) detachedArgs() []string {
	idle := idleExitOnDemand
	if c.idleExitSet {
		idle = c.idleExit
	}
	args := append(c.serveArgs(), "--idle-exit", idle.String())
	log := c.logFile
	if log == "" {
		log = c.stateFile(".log")
	}
	if log != "" {
		args = append(args, "--log-file", log)
	}
	return args
}

// awaitDaemon waits until somebody serves path: the child, or whoever was
// faster. A child that gives up for another reason ends the wait with said().
func awaitDaemon(ctx context.Context, path string, cmd *exec.Cmd, said func() string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Ends with the child. A child that lives is the daemon, and this process
	// is then about to end.
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		conn, err := dial(ctx, path)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-ended:
			if err != nil {
				return startError(err, said())
			}
			ended = nil // it left the field to another one
		case <-time.After(dialPause):
		case <-ctx.Done():
			if ended != nil {
				// Best effort: it may serve one day, unasked.
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			return coded(exitUnreachable, "the daemon was not ready within %v (%w)", startTimeout, err)
		}
	}
}

// startError passes on a daemon's exit code and last words.
func startError(err error, said string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || said == "" {
		return coded(exitUnreachable, "the daemon ended at once: %w", err)
	}
	code := exit.ExitCode()
	if code <= exitFailure {
		code = exitUnreachable
	}
	return coded(code, "%s", strings.TrimPrefix(said, "tmux-mcpd: "))
}

// stateFile names a file for the daemon of this socket in
// $XDG_STATE_HOME/tmux-mcpd, with ~/.local/state for an unset variable, and
// makes the directory. It is "" if there is no such place: a daemon must start
// for users without a home, too.
func (c *config) stateFile(suffix string) string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(base, "tmux-mcpd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	name := strings.TrimSuffix(filepath.Base(c.main.path), ".sock")
	if c.listenGiven {
		// Sockets of one name in different directories are different daemons.
		sum := sha256.Sum256([]byte(c.main.path))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	return filepath.Join(dir, name+suffix)
}

// openStderr opens the file that takes what a background daemon says outside of
// its log: why it does not start, a crash. It returns where new text starts.
// Without such a file the text goes to an unnamed one, to be read by detach.
func openStderr(path string) (*os.File, int64, error) {
	if path != "" {
		flags := os.O_RDWR | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
		if f, err := os.OpenFile(path, flags, 0o600); err == nil {
			if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
				size := fi.Size()
				if size > maxStderr && f.Truncate(0) == nil {
					size = 0
				}
				return f, size, nil
			}
			f.Close()
		}
	}
	f, err := os.CreateTemp("", "tmux-mcpd-")
	if err != nil {
		return nil, 0, fmt.Errorf("a place for the daemon's messages: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("a place for the daemon's messages: %w", err)
	}
	return f, 0, nil
}

// lastLine is the last line written to f after start, at most 4 KiB of it.
func lastLine(f *os.File, start int64) string {
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	start = max(start, fi.Size()-4096)
	b := make([]byte, max(0, fi.Size()-start))
	n, _ := f.ReadAt(b, start)
	b = bytes.TrimSpace(b[:n])
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

// closeOnExec marks every descriptor above the standard three: those we
// inherited from an MCP client without knowing would otherwise stay open in
// the daemon for ever, pipes the client waits on among them.
func closeOnExec() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		for fd := 3; fd < 1024; fd++ { // no /dev or /proc here: the usual range
			syscall.CloseOnExec(fd)
		}
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
