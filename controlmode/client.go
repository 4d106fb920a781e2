package controlmode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultTimeout = 10 * time.Second
	// maxInFlight bounds the requests that wait for their answer, abandoned
	// ones included.
	maxInFlight = 4096
	// maxExtra bounds the blocks that a fenced request may get beyond its
	// commands before its fence (an alias that stands for several commands).
	maxExtra  = 64
	readSize  = 64 << 10
	writeSize = 64 << 10
)

// Errors of the connection that callers branch on.
var (
	// ErrClosed is returned for requests on a connection that has ended or that
	// ended before the answer was complete.
	ErrClosed = errors.New("control connection closed")
	// ErrTimeout is returned when tmux did not answer a request by its deadline.
	// The connection is then closed: nothing can unblock a queue from inside it.
	ErrTimeout = errors.New("tmux is not answering")
	// ErrBusy: too many requests wait for their answers already.
	ErrBusy = errors.New("too many tmux requests in flight")
	// ErrNotSent accompanies another error: tmux never saw the request, so it
	// was certainly not executed.
	ErrNotSent = errors.New("not sent to tmux")
	// ErrBlocks: tmux answered a fenced request with another number of blocks
	// than it has commands, as it does when a command alias of the user stands
	// for one of them. The connection stays in step.
	ErrBlocks = errors.New("tmux ran other commands than were sent (a command-alias?)")
)

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

// Options configure a Client.
type Options struct {
	// Event receives pane output and notifications (everything but BlockBegin
	// and BlockEnd) in order, on the reader goroutine, in order with the Begin
	// callbacks too; when Do returns, Event has seen all that tmux wrote before
	// the end of the answer. It must not block. *Output is valid only during
	// the call. It is not called before Run, nor after Run has returned.
	Event func(Event)
	// Harmless, if set, is called on the reader goroutine with the item number of
	// every command of this client that changes no session, window or pane: lists,
	// captures, and input to programs. It is called before Do returns the answer and
	// must not block.
	//
	// tmux numbers all that it runs, for whomever: each command of every client,
	// each key, and up to 3.7c each notification (cmd-queue.c, cmdq_next; seen on
	// 3.3a, 3.5a, 3.7c). So where all items between two answers were harmless ones
	// of our clients, no command, key or notification has changed anything in
	// between. What programs print is no item, and from 3.8 on the end of a
	// process is none.
	Harmless func(item uint64)
	// Timeout is the deadline of a request that names none, and of becoming
	// ready; 0 for 10 s.
	Timeout time.Duration
	// MaxBody bounds one reply body, 0 for 64 MiB.
	MaxBody int64
	// Record is how many bytes the recorder keeps per direction, 0 for 64 KiB,
	// negative for none.
	Record int
}

// Client is one control connection. Do may be called by any goroutine;
// requests are pipelined and answered in order. Nothing is sent before Ready.
type Client struct {
	conn  io.ReadWriteCloser
	opts  Options
	rec   recorder
	wake  chan struct{} // a token when the writer has something to look at
	ready chan struct{}
	shut  chan struct{} // closed when the connection is given up
	done  chan struct{}
	stats counters

	// Owned by the reader goroutine.
	parser      Parser
	attached    bool
	sawSession  bool
	current     *call // whose block is open
	gap         gap   // what may come before the next block
	failedNonce string

	handled atomic.Uint64 // bytes that the reader is done with
	running atomic.Bool

	mu sync.Mutex // guards the fields that follow; never held across I/O or callbacks
	// calls are the unfinished requests in order; the first sent of them have
	// been handed to the writer.
	calls     []*call
	sent      int
	cause     error // why the connection ended or is ending; nil while it lives
	exit      *Exit
	attachErr error
}

// NewClient makes a client on a connection to a tmux control client's standard
// input and output. It starts nothing. Close of conn must end a blocked Read
// and Write.
func NewClient(conn io.ReadWriteCloser, opts Options) *Client {
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.Event == nil {
		opts.Event = func(Event) {}
	}
	if opts.Harmless == nil {
		opts.Harmless = func(uint64) {}
	}
	c := &Client{
		conn:  conn,
		opts:  opts,
		wake:  make(chan struct{}, 1),
		ready: make(chan struct{}),
		shut:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	c.parser.MaxBody = opts.MaxBody
	c.rec.init(opts.Record)
	return c
}

// errEnd is the cause of an orderly end: %exit, end of file or Close.
var errEnd = errors.New("end")

// Run reads and writes until the connection ends or ctx is done, and returns
// when every goroutine it started has ended. The error is nil after %exit, end
// of file or Close once the client was ready; before that it says why
// attaching failed (a *CommandError if tmux said so). It must be called once.
func (c *Client) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("controlmode: Run called twice")
	}
	defer close(c.done)
	var wg sync.WaitGroup
	wg.Go(c.write)
	wg.Go(func() { c.watch(ctx) })
	c.read()
	wg.Wait()
	return c.result()
}

// watch ends the connection when ctx is done or the attach takes too long.
func (c *Client) watch(ctx context.Context) {
	slow := time.NewTimer(c.opts.Timeout)
	defer slow.Stop()
	for {
		select {
		case <-c.shut:
			return
		case <-ctx.Done():
			c.fail(context.Cause(ctx))
			return
		case <-slow.C:
			if !closed(c.ready) {
				c.fail(fmt.Errorf("attach: %w", ErrTimeout))
				return
			}
		}
	}
}

func (c *Client) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.attachErr != nil:
		return c.attachErr
	case c.cause != errEnd:
		return c.cause
	case !closed(c.ready) && c.exit != nil:
		return refusal([]string{"attach-session"}, cmp.Or(c.exit.Reason, "tmux left at once"))
	case !closed(c.ready):
		return errors.New("attach: the connection ended before tmux answered")
	}
	return nil
}

// read is the reader: bytes in, events out, answers to their callers.
func (c *Client) read() {
	buf := make([]byte, readSize)
	for {
		n, err := c.conn.Read(buf)
		if n > 0 {
			c.stats.bytesIn.Add(uint64(n))
			c.rec.add(&c.rec.in, buf[:n])
			if perr := c.parser.Feed(buf[:n], c.event); perr != nil {
				c.fail(perr)
			}
			c.handled.Add(uint64(n))
		}
		if err == nil && !closed(c.shut) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
			c.fail(fmt.Errorf("reading from tmux: %w", err))
		}
		c.fail(errEnd)
		return
	}
}

// event handles one event on the reader goroutine.
func (c *Client) event(ev Event) {
	if closed(c.shut) {
		return
	}
	switch ev := ev.(type) {
	case BlockBegin:
		c.blockBegin(ev)
		return
	case BlockEnd:
		c.blockEnd(ev)
		return
	}
	if !c.gap.allows(ev) {
		// So this is the rest of a body that forged its own end.
		c.violated("a line between the blocks of one request")
		return
	}
	c.deliver(ev)
}

// gap says what may come between two blocks of a fenced request. tmux runs the
// commands of one line without reading panes in between, and what changes on
// the way it tells after the line (up to 3.7c) or after the command's block
// (3.8). So there is nothing to tell between commands that change nothing, but
// for what a hook of theirs did, whose own block (flags 0) then comes first.
type gap int

const (
	gapAny  gap = iota // everything; also outside of requests
	gapHook            // structure that a hook may have changed
	gapNone            // nothing but blocks
)

func (g gap) allows(ev Event) bool {
	if g == gapHook {
		switch ev.(type) {
		case *Output, Pause, Continue, Exit, Unknown, Stray:
			return false
		}
	}
	return g != gapNone
}

func (c *Client) deliver(ev Event) {
	switch ev := ev.(type) {
	case Unknown:
		c.stats.unknown.Add(1)
	case Stray:
		c.stats.stray.Add(1)
	case SessionChanged:
		c.sawSession = true
		defer c.becomeReady()
	case Exit:
		// The last line: no answer comes any more, so nobody has to wait for
		// the end of file.
		c.mu.Lock()
		c.exit = &ev
		c.mu.Unlock()
		defer c.fail(errEnd)
	}
	c.opts.Event(ev)
}

func (c *Client) becomeReady() {
	if c.attached && c.sawSession && !closed(c.ready) {
		close(c.ready)
		c.poke()
	}
}

func (c *Client) violated(what string) {
	c.fail(&ProtocolError{Offset: c.parser.Offset(), What: what})
}

// fail ends the connection. The first cause wins; every request in flight fails
// with it.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = cause
	calls, sent := c.calls, c.sent
	c.calls, c.sent = nil, 0
	err := c.closedLocked()
	c.mu.Unlock()
	close(c.shut)
	c.conn.Close() // its error would tell nothing that cause does not
	for i, call := range calls {
		e := err
		if call.expired.Load() {
			e = fmt.Errorf("%s: %w", call.commands[0].words[0], ErrTimeout)
		}
		call.finish(e, i < sent)
	}
}

// closedLocked is the error for requests that find the connection ended.
func (c *Client) closedLocked() error {
	switch {
	case c.cause != errEnd:
		return fmt.Errorf("%w: %w", ErrClosed, c.cause)
	case c.attachErr != nil:
		return fmt.Errorf("%w: %w", ErrClosed, c.attachErr)
	case c.exit != nil && c.exit.Reason != "":
		return fmt.Errorf("%w: tmux: %s", ErrClosed, c.exit.Reason)
	}
	return ErrClosed
}

// Ready is closed when the attach command's own block (the first, flags 0) has
// ended without an error and %session-changed was seen.
func (c *Client) Ready() <-chan struct{} { return c.ready }

// Done is closed when Run is about to return.
func (c *Client) Done() <-chan struct{} { return c.done }

// Exit tells whether tmux said %exit, and its reason (mostly empty).
func (c *Client) Exit() (reason string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return "", false
	}
	return c.exit.Reason, true
}

// Close ends the connection; Run then returns. It may be called repeatedly and
// does not block.
func (c *Client) Close() error {
	c.fail(errEnd)
	return nil
}

// Drained tells whether all that tmux has written to this client so far has been
// handled: Event has seen it. false may also mean that it cannot be told, as on
// macOS. Any goroutine may call it; it does not block.
func (c *Client) Drained() bool {
	in, ok := c.conn.(interface {
		empty() (taken uint64, ok bool)
	})
	if !ok {
		return false
	}
	taken, ok := in.empty()
	return ok && c.handled.Load() == taken
}

// Dump is the recorder's content, readable, with every letter and digit of pane
// text, names and arguments masked: for the log when the protocol was violated.
func (c *Client) Dump() []byte { return c.rec.dump() }

// Stats are counters of a connection.
type Stats struct {
	BytesIn  uint64 // read from tmux
	BytesOut uint64 // written to tmux
	Unknown  uint64 // notifications that were not understood
	Stray    uint64 // lines outside blocks that are no notification
	Requests uint64 // handed to the writer
	InFlight int    // requests without a complete answer, queued ones included
}

type counters struct {
	bytesIn, bytesOut, unknown, stray, requests atomic.Uint64
}

// Stats may be called by any goroutine and does not block.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	n := len(c.calls)
	c.mu.Unlock()
	return Stats{
		BytesIn:  c.stats.bytesIn.Load(),
		BytesOut: c.stats.bytesOut.Load(),
		Unknown:  c.stats.unknown.Load(),
		Stray:    c.stats.stray.Load(),
		Requests: c.stats.requests.Load(),
		InFlight: n,
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// lines counts the lines of a body.
func lines(body []byte) int { return bytes.Count(body, []byte{'\n'}) }

// quiet tells commands that change nothing and can print text of panes.
func quiet(words []string) bool {
	switch words[0] {
	case "capture-pane", "list-buffers", "list-clients", "list-panes", "list-sessions", "list-windows",
		"show-buffer", "show-environment", "show-options":
		return true
	case "display-message":
		return slices.Contains(words, "-p")
	}
	return false
}

// harmless tells commands that change no session, window or pane: quiet ones, input
// to the program in a pane, and what only concerns buffers or this client. A key
// that is bound in the pane's mode runs its command as an item of its own (tmux
// 3.2a to 3.8, cmd-send-keys.c cmd_send_keys_inject_key).
func harmless(words []string) bool {
	switch words[0] {
	case "set-buffer", "load-buffer", "delete-buffer", "paste-buffer":
		return true
	case "refresh-client":
		return slices.Contains(words, "-A") || slices.Contains(words, "-B")
	case "send-keys":
		return !slices.ContainsFunc(words[1:], func(w string) bool { return w == "-R" || w == "-X" || w == "-K" })
	}
	return quiet(words)
}
