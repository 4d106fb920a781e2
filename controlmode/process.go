package controlmode

import (
	"context"
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

// Process is a tmux control client started as a child process.
type Process struct {
	// Client is the connection; Run of the Process runs it.
	*Client
}

// AttachConfig says how to start a control client.
type AttachConfig struct {
	Bin       string // tmux binary, "" for "tmux" from PATH
	Socket    Socket
	Session   SessionID
	Flags     []string // client flags, e.g. "ignore-size", "no-output"
	Transport Transport
	Options   Options
	// Grace is how long the process may take to leave by itself after its
	// connection ended, 0 for 2 s; then it is killed.
	Grace time.Duration
}

// Attach starts tmux -N -u -C ... attach-session -E -t '$N' -f flags. The
// child is running when it returns; Run must be called to reap it.
func Attach(cfg AttachConfig) (*Process, error) { panic("skeleton") }

// PID is the process id of the tmux client, equal to #{client_pid}.
func (p *Process) PID() int { panic("skeleton") }

// Run runs the connection and returns when it has ended and the child has been
// reaped. The error carries what tmux printed before the protocol began, if
// attaching failed.
func (p *Process) Run(ctx context.Context) error { panic("skeleton") }
