package controlmode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// Child is a tmux command that runs in a process of its own for as long as it
// takes: for what would block a control client.
type Child struct {
	cmd   *exec.Cmd
	words []string
	leash *os.File
	errs  bounded
	done  chan struct{}
	err   error // set before done is closed
}

// Spawn starts a command that prints nothing. The process ends with the command,
// by Kill, and when this process ends, however it does: its terminal, which it
// has for nothing else, hangs up then. It never starts a tmux server. Its end
// must be waited for.
func (b Binary) Spawn(cmd Command) (*Child, error) {
	path, err := lookBinary(b.Path)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-N", "-u"}, b.Socket.Args()...)
	for _, w := range cmd.words {
		if strings.IndexByte(w, 0) >= 0 {
			return nil, fmt.Errorf("%s: %w", cmd.words[0], ErrNUL)
		}
		args = append(args, argvWord(w))
	}
	leash, end, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.words[0], err)
	}
	defer end.Close()
	c := &Child{
		cmd: exec.Command(path, args...), words: cmd.words, leash: leash,
		errs: bounded{limit: maxStderr}, done: make(chan struct{}),
	}
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = environment(os.Environ()), "/", &c.errs
	c.cmd.ExtraFiles = []*os.File{end}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3} // 3 is ExtraFiles[0] in the child
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		leash.Close()
		return nil, fmt.Errorf("starting tmux: %w", err)
	}
	go c.wait()
	return c, nil
}

func (c *Child) wait() {
	defer close(c.done)
	defer c.leash.Close()
	if err := c.cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		c.err = failure(c.words, c.errs.kept.String(), err)
	}
}

// PID is the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended and is reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how it ended, nil if the command succeeded. It may be called after
// Done: ErrNoServer, or an error with tmux's words.
func (c *Child) Err() error { return c.err }

// Kill ends the process. It does not wait for it.
func (c *Child) Kill() { c.cmd.Process.Kill() }
