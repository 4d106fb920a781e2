package controlmode

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// call is a request on its way.
type call struct {
	line     []byte
	commands []Command
	nonce    string // "" without a fence

	// Owned by the reader goroutine until done is closed.
	blocks []BlockEnd
	extra  int  // blocks beyond the commands
	loud   bool // a command so far may have changed something

	timer   *time.Timer
	expired atomic.Bool

	mu    sync.Mutex // guards begin
	begin func(i int)

	done chan struct{}
	err  error // set before done is closed
}

// finish ends a call. Whoever has taken the call out of Client.calls calls it,
// and so it is called once.
func (a *call) finish(err error, sent bool) {
	if err != nil && !sent {
		err = fmt.Errorf("%w: %w", err, ErrNotSent)
	}
	a.err = err
	a.timer.Stop()
	close(a.done)
}

// forget makes sure that begin is not running and is not called any more.
func (a *call) forget() {
	a.mu.Lock()
	a.begin = nil
	a.mu.Unlock()
}

func (a *call) runBegin(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begin != nil {
		a.begin(i)
	}
}

// Do sends a request and waits for its whole answer, its deadline, or the end
// of the connection. A Reply with a failed command is returned with a nil
// error: see Reply.Err. If ctx ends first, Do returns its error at once; a
// request that tmux has seen keeps its place in the order and its answer is
// dropped when it comes, one that it has not is withdrawn and the error is also
// ErrNotSent. If the deadline passes, Do returns ErrTimeout and the connection
// is closed; the other requests in flight fail with ErrClosed wrapping
// ErrTimeout. Further errors: ErrBusy, ErrBlocks, and those of Request.Check.
func (c *Client) Do(ctx context.Context, req Request) (Reply, error) {
	a := &call{commands: req.Commands, begin: req.Begin, done: make(chan struct{})}
	if req.Fence {
		a.nonce = newNonce()
	}
	var err error
	if a.line, err = req.line(a.nonce); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", err, ErrNotSent)
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", err, ErrNotSent)
	}
	timeout := req.Timeout
	if timeout <= 0 {
		timeout = c.opts.Timeout
	}
	if err := c.queue(a, timeout); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", err, ErrNotSent)
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		a.forget()
		if c.withdraw(a) {
			return Reply{}, fmt.Errorf("%w: %w", ctx.Err(), ErrNotSent)
		}
		return Reply{}, ctx.Err()
	}
	a.forget()
	if a.err != nil {
		return Reply{}, a.err
	}
	return Reply{Blocks: a.blocks}, nil
}

func (c *Client) queue(a *call, timeout time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.closedLocked()
	}
	if len(c.calls) >= maxInFlight {
		return ErrBusy
	}
	a.timer = time.AfterFunc(timeout, func() {
		a.expired.Store(true)
		if !closed(a.done) {
			c.fail(fmt.Errorf("%s: %w", a.commands[0].words[0], ErrTimeout))
		}
	})
	c.calls = append(c.calls, a)
	c.poke()
	return nil
}

// withdraw takes a call back that has not been handed to the writer.
func (c *Client) withdraw(a *call) bool {
	c.mu.Lock()
	i := slices.Index(c.calls[c.sent:], a)
	if i >= 0 {
		c.calls = slices.Delete(c.calls, c.sent+i, c.sent+i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		a.finish(context.Canceled, false)
	}
	return i >= 0
}

func (c *Client) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write is the writer. It is a goroutine of its own because a write can block
// as long as tmux is stopped, and the reader must go on meanwhile.
func (c *Client) write() {
	var buf []byte
	for {
		select {
		case <-c.shut:
			return
		case <-c.wake:
		}
		for {
			buf = c.take(buf[:0])
			if len(buf) == 0 {
				break
			}
			c.rec.add(&c.rec.out, buf)
			n, err := c.conn.Write(buf)
			c.stats.bytesOut.Add(uint64(n))
			if err != nil {
				c.writeFailed(err)
				return
			}
		}
	}
}

// writeFailed lets the reader say first why the connection ended: when tmux has
// left, its %exit and the end of file are there to be read.
func (c *Client) writeFailed(err error) {
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	select {
	case <-c.shut:
	case <-wait.C:
		c.fail(fmt.Errorf("writing to tmux: %w", err))
	}
}

// take moves waiting lines to buf and marks their calls as sent, before the
// write, so that the reader finds them whenever the answer comes.
func (c *Client) take(buf []byte) []byte {
	if !closed(c.ready) {
		return buf
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.sent < len(c.calls) && len(buf) < writeSize {
		a := c.calls[c.sent]
		buf = append(buf, a.line...)
		a.line = nil
		c.sent++
		c.stats.requests.Add(1)
	}
	return buf
}

// head is the oldest call that was sent.
func (c *Client) head() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == 0 {
		return nil
	}
	return c.calls[0]
}

// complete ends the oldest call, unless the connection has just ended.
func (c *Client) complete(a *call, err error) {
	c.mu.Lock()
	mine := c.sent > 0 && c.calls[0] == a
	if mine {
		c.calls[0] = nil
		c.calls = c.calls[1:]
		c.sent--
	}
	c.mu.Unlock()
	if mine {
		a.finish(err, true)
	}
}

func (c *Client) blockBegin(ev BlockBegin) {
	if ev.Guard.Flags&1 == 0 { // the attach command, a hook, somebody else's command
		c.gap = min(c.gap, gapHook)
		return
	}
	c.gap = gapAny
	a := c.head()
	if a == nil {
		c.violated("a reply where no request is pending")
		return
	}
	c.current = a
	if i := len(a.blocks); i < len(a.commands) {
		a.runBegin(i)
	}
}

func (c *Client) blockEnd(ev BlockEnd) {
	if ev.Guard.Flags&1 == 0 {
		if !c.attached {
			c.attachBlock(ev)
		}
		return
	}
	a := c.current
	c.current = nil
	if a == nil {
		return // the connection ended at its %begin
	}
	i := len(a.blocks)
	var words []string
	if i < len(a.commands) {
		words = a.commands[i].words
	}
	switch {
	case isNonce(ev.Body, c.failedNonce):
		c.violated("the fence of a request that had failed")
	case ev.Error:
		c.blockFailed(a, ev, words)
	case isNonce(ev.Body, a.nonce):
		c.opts.Harmless(ev.Guard.Number)
		var err error
		if i+a.extra != len(a.commands) {
			err = fmt.Errorf("%s: %w: %d blocks for %d commands", a.commands[0].words[0], ErrBlocks, i+a.extra, len(a.commands))
		}
		c.complete(a, err)
	case words == nil:
		a.extra++
		if a.extra > maxExtra || bytes.Contains(ev.Body, []byte(a.nonce)) {
			c.violated("a fence that is not the one sent")
		}
	default:
		ev.Body = c.pauseLines(words, ev.Body)
		a.blocks = append(a.blocks, ev)
		if harmless(words) {
			c.opts.Harmless(ev.Guard.Number)
		}
		if a.nonce == "" && len(a.blocks) == len(a.commands) {
			c.complete(a, nil)
		} else {
			a.loud = a.loud || !quiet(words)
			if a.nonce != "" && !a.loud {
				c.gap = gapNone
			}
		}
	}
}

// blockFailed ends a call at its %error. tmux drops the rest of the line then,
// the fence with it; what is left to check is that the error looks like one.
func (c *Client) blockFailed(a *call, ev BlockEnd, words []string) {
	if a.nonce != "" && words != nil && quiet(words) && lines(ev.Body) > 1 {
		// The errors of these commands are one line (tmux 3.2a to 3.8, their
		// cmd-*.c): the end was forged by text in the body.
		c.violated("an error with more than one line")
		return
	}
	c.failedNonce = a.nonce
	a.blocks = append(a.blocks, ev)
	c.complete(a, nil)
}

func (c *Client) attachBlock(ev BlockEnd) {
	if !ev.Error {
		c.attached = true
		c.becomeReady()
		return
	}
	err := refusal([]string{"attach-session"}, errorText(ev.Body))
	c.mu.Lock()
	c.attachErr = err
	c.mu.Unlock()
}

// pauseLines takes %pause and %continue out of the body of our own
// refresh-client -A and delivers them: tmux 3.2a to 3.7c writes them inside the
// block of the command, 3.8 after it (control.c control_set_pane_off and
// neighbours). The command prints nothing else, so no pane can forge them; the
// pane must be one that the command names all the same.
func (c *Client) pauseLines(words []string, body []byte) []byte {
	if words[0] != "refresh-client" || !slices.Contains(words, "-A") || len(body) == 0 {
		return body
	}
	var rest []byte
	for line := range bytes.Lines(body) {
		word, args, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
		var ev Event
		if w := string(word); w == "%pause" || w == "%continue" {
			ev = parseNotification(w, args)
		}
		if pane := string(args) + ":"; ev == nil || !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, pane) }) {
			rest = append(rest, line...)
			continue
		}
		c.deliver(ev)
	}
	return rest
}

// isNonce tells whether a body is the one line that a fence prints.
func isNonce(body []byte, nonce string) bool {
	return nonce != "" && len(body) == len(nonce)+1 && string(body[:len(nonce)]) == nonce
}
