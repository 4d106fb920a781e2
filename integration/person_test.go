package integration

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// person is a person at a terminal: a plain tmux client on a pty, which draws.
type person struct {
	t    testing.TB
	x    *tmux
	cmd  *exec.Cmd
	pty  *os.File
	name string        // of the client, in tmux's words
	done chan struct{} // closed when the terminal has been read to its end
	once sync.Once
}

// person attaches a terminal of that size to a session and returns when tmux
// lists it. The terminal is read and what it shows is dropped.
func (x *tmux) person(session string, cols, rows uint16) *person {
	x.t.Helper()
	cmd := exec.Command(x.bin, "-N", "-u", "-S", x.sock, "attach-session", "-t", session)
	cmd.Env = append(slices.Clone(x.env), "TERM=xterm")
	cmd.Dir = x.dir
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		x.t.Fatal(err)
	}
	terminal, err := pollable(f)
	if err != nil {
		x.t.Fatal(err)
	}
	p := &person{t: x.t, x: x, cmd: cmd, pty: terminal, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		io.Copy(io.Discard, terminal) // ends with EIO when the client has left
	}()
	x.t.Cleanup(p.leave)
	until(x.t, "the person's client", func() bool {
		for line := range strings.Lines(x.run("list-clients", "-F", "#{client_pid} #{client_name}")) {
			if pid, name, _ := strings.Cut(strings.TrimSpace(line), " "); pid == strconv.Itoa(cmd.Process.Pid) {
				p.name = name
			}
		}
		return p.name != ""
	})
	return p
}

// pollable makes a file of a pty that can be closed while it is read. Setting
// the size (File.Fd) puts a file into blocking mode, and Close then waits for
// the read to return.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// types sends keys as from a keyboard.
func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.pty, keys); err != nil {
		p.t.Fatal(err)
	}
}

// leave closes the terminal, as a closed window does, and waits until the
// client has ended. It may be called again.
func (p *person) leave() {
	p.once.Do(func() {
		// Closing our end hangs the line up; tmux's client ends at that. A
		// server that is stopped does not answer it, hence the deadline.
		p.pty.Close()
		<-p.done
		left := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
		p.cmd.Wait()
		if !left.Stop() {
			p.t.Errorf("the person's client had to be killed")
		}
	})
}
