package controlmode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrClosed is returned for requests on a connection that has ended or that
// ended before the answer was complete.
var ErrClosed = errors.New("control connection closed")

// ErrTimeout is returned when tmux did not answer a request by its deadline.
// The connection is then closed: nothing can unblock a queue from inside it.
var ErrTimeout = errors.New("tmux is not answering")

// CommandError is a command that tmux refused.
type CommandError struct {
	Words []string // the command as sent; never contains pane content of tmux
	Text  string   // tmux's own message
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %s", e.Words[0], e.Text) }

// ProtocolError is a violation of the protocol by the peer. It never carries
// pane content.
type ProtocolError struct {
	Offset int64
	What   string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("control mode protocol violated at byte %d: %s", e.Offset, e.What)
}

// Request is one input line: one command, or several that must run at one
// instant (joined with ';').
type Request struct {
	Commands []Command
	// Begin, if set, is called on the reader goroutine when the block of
	// Commands[i] opens. All output tmux wrote before that command ran has
	// been handed to the event callback by then. It must not block.
	Begin func(i int)
	// Fence appends display-message -p NONCE and ends the request only with
	// that block, so that neither pane text nor a command alias can shift or
	// forge the answer.
	Fence bool
	// Timeout is the deadline for the whole answer, counted from Do; 0 for
	// Options.Timeout. When it passes the connection is closed.
	Timeout time.Duration
}

// Reply is the answer to a Request: one block per command in order, fewer when
// one failed (the last block then has Error set and tmux ran nothing after it).
// The fence block is not included.
type Reply struct {
	Blocks []BlockEnd
}

// Err returns the first failed block as a *CommandError.
func (r Reply) Err(req Request) error {
	panic("skeleton")
}

// Client is one control connection. Do may be called by any goroutine once Run
// has been started; requests are pipelined and answered in order.
type Client struct{}

// Options configure a Client.
type Options struct {
	// Event receives every event in order, on the reader goroutine. It must
	// not block. *Output is valid only during the call.
	Event func(Event)
	// Timeout is the deadline of a request that names none, 0 for 10 s.
	Timeout time.Duration
	// MaxBody bounds one reply body, 0 for 64 MiB.
	MaxBody int64
	// Record is how many bytes the recorder keeps per direction, 0 for 64 KiB.
	Record int
}

// NewClient makes a client on a connection to a tmux control client's standard
// input and output. It starts nothing.
func NewClient(conn io.ReadWriteCloser, opts Options) *Client { panic("skeleton") }

// Run reads and writes until the connection ends or ctx is done, and returns
// when every goroutine it started has ended. The error is nil after %exit or
// end of file.
func (c *Client) Run(ctx context.Context) error { panic("skeleton") }

// Ready is closed when the attach command's own block (the first, flags 0) has
// ended without an error and %session-changed was seen.
func (c *Client) Ready() <-chan struct{} { panic("skeleton") }

// Done is closed when Run is about to return.
func (c *Client) Done() <-chan struct{} { panic("skeleton") }

// Do sends a request and waits for its whole answer, its deadline, or the end
// of the connection. A Reply with a failed command is returned with a nil
// error: see Reply.Err. If ctx ends first, Do returns its error at once, the
// request keeps its place in the order and its answer is dropped when it comes.
// If the deadline passes, Do returns ErrTimeout and the connection is closed;
// the other requests in flight fail with ErrClosed wrapping ErrTimeout.
func (c *Client) Do(ctx context.Context, req Request) (Reply, error) { panic("skeleton") }

// Close ends the connection; Run then returns. It may be called repeatedly.
func (c *Client) Close() error { panic("skeleton") }
