package controlmode

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Transport is how the tmux process is connected.
type Transport string

// The two transports. PTY is a raw pseudo terminal (the default); Pipe is a
// socket pair, which tmux serves equally well and the kernel moves faster.
const (
	PTY  Transport = "pty"
	Pipe Transport = "pipe"
)

// Socket chooses a tmux server: at most one field is set; none is the user's
// default server.
type Socket struct {
	Name string // tmux -L
	Path string // tmux -S, absolute
}

// Args returns the tmux options that select the server.
func (s Socket) Args() []string {
	switch {
	case s.Path != "":
		return []string{"-S", s.Path}
	case s.Name != "":
		return []string{"-L", s.Name}
	}
	return nil
}

const defaultGrace = 2 * time.Second

// Process is a tmux control client started as a child process.
type Process struct {
	// Client is the connection; Run of the Process runs it.
	*Client

	cmd    *exec.Cmd
	stderr *bounded // complete once the child is reaped
	grace  time.Duration
	reaped chan struct{}
}

// AttachConfig says how to start a control client.
type AttachConfig struct {
	Bin       string // tmux binary, "" for "tmux" from PATH
	Socket    Socket
	Session   SessionID
	Flags     []string // client flags, e.g. "ignore-size", "no-output"
	Transport Transport
	Options   Options
	// Env is added to the child's environment, "NAME=value" each. tmux does not
	// take it over (-E); other processes of the user can read it.
	Env []string
	// Grace is how long the process may take to leave by itself after its
	// connection ended, 0 for 2 s; then it is killed.
	Grace time.Duration
}

// Attach starts tmux -N -u -C ... attach-session -E -t '$N' -f flags. The
// child is running when it returns; Run must be called to reap it. The error is
// ErrNoBinary if there is no tmux; whether there is a server and the session,
// Run tells.
//
// The child ends when this process does, however it does: its terminal hangs up
// (see startPipe for what a pipe needs).
func Attach(cfg AttachConfig) (*Process, error) {
	path, err := lookBinary(cfg.Bin)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-N", "-u", "-C"}, cfg.Socket.Args()...)
	args = append(args, "attach-session", "-E", "-t", cfg.Session.String())
	if len(cfg.Flags) > 0 {
		args = append(args, "-f", strings.Join(cfg.Flags, ","))
	}
	p := &Process{cmd: exec.Command(path, args...), stderr: &bounded{limit: maxStderr}, grace: cfg.Grace, reaped: make(chan struct{})}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	p.cmd.Env, p.cmd.Dir = append(environment(os.Environ()), cfg.Env...), "/"
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = time.Second // should a descendant hold stderr open
	var conn io.ReadWriteCloser
	switch cfg.Transport {
	case PTY, "":
		conn, err = startPTY(p.cmd)
	case Pipe:
		conn, err = startPipe(p.cmd)
	default:
		err = fmt.Errorf("unknown transport %q", cfg.Transport)
	}
	if err != nil {
		return nil, fmt.Errorf("starting tmux: %w", err)
	}
	p.Client = NewClient(conn, cfg.Options)
	return p, nil
}

// PID is the process id of the tmux client, equal to #{client_pid}.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Terminal is the path of the terminal that the tmux client runs on, equal to
// #{client_tty}; "" for a Pipe.
func (p *Process) Terminal() string {
	t, _ := p.conn.(terminal)
	return t.name
}

// Done is closed when Run is about to return: the connection has ended and the
// child is reaped.
func (p *Process) Done() <-chan struct{} { return p.reaped }

// Ended tells whether the connection has been given up. While it has not, the
// client's terminal is held open, so that no other client can have the name by
// which tmux knows this one. A nil Process has ended.
func (p *Process) Ended() bool { return p == nil || closed(p.shut) }

// Run runs the connection and returns when it has ended and the child has been
// reaped. The error is that of Client.Run; if attaching failed, it carries what
// tmux said: ErrNoServer, ErrNoSessions, or a *CommandError.
func (p *Process) Run(ctx context.Context) error {
	defer close(p.reaped)
	exited := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(exited)
		p.cmd.Wait() // the exit status says nothing that the protocol does not
	})
	wg.Go(func() { p.guard(exited) })
	err := p.Client.Run(ctx)
	wg.Wait()
	if err != nil && !closed(p.Ready()) {
		if text := strings.TrimSpace(p.stderr.kept.String()); text != "" && ctx.Err() == nil {
			return refusal([]string{"attach-session"}, text)
		}
	}
	return err
}

// guard makes sure that neither side outlives the other by more than the grace:
// a child that does not leave is killed, and a connection whose child is gone
// (a stopped server keeps our terminal open) is closed.
func (p *Process) guard(exited <-chan struct{}) {
	select {
	case <-exited:
		left := time.NewTimer(p.grace)
		defer left.Stop()
		select {
		case <-p.shut:
		case <-left.C: // the rest of its output should have come by now
			p.Close()
		}
		return
	case <-p.shut:
	}
	left := time.NewTimer(p.grace)
	defer left.Stop()
	select {
	case <-exited:
	case <-left.C:
		p.cmd.Process.Signal(syscall.SIGKILL)
		<-exited
	}
}
