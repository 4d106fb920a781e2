package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

const (
	helloMethod     = "notifications/tmux-mcpd/hello"
	cancelledMethod = "notifications/cancelled"
	initMethod      = "initialize"
	initedMethod    = "notifications/initialized"
	callMethod      = "tools/call"
	listenMethod    = "subscriptions/listen"

	// readBuffer is the largest part of an idle session.
	readBuffer = 8 << 10
	// maxHelloBytes bounds what a connection remembers of its bridge.
	maxHelloBytes = 256 << 10
	// drainPoll is how often a half-closed connection is asked whether its
	// peer has gone altogether.
	drainPoll = 50 * time.Millisecond
)

// conn is one accepted connection: the SDK's transport and connection in one.
// The SDK reads from one goroutine and writes from any; Write blocks only the
// answers of this very connection, never a notification.
//
// It exists because the SDK's own line transport ends the session on the first
// bad line, truncates odd ids, drops a duplicate without a word, answers
// cancelled requests, and loses answers on a half-close.
type conn struct {
	nc     net.Conn
	r      *bufio.Reader
	limits connLimits
	log    *zap.Logger
	since  time.Time
	// stop is done when the daemon has waited long enough for calls to end.
	stop context.Context

	// caller is complete before the first request is handed to the SDK; the
	// reader alone writes it until then.
	caller  Caller
	inits   int  // notifications/initialized passed on
	spoken  bool // a request was accepted: too late for a hello
	greeted bool

	subs subscriptions

	selectOnce sync.Once
	selectErr  error

	// mu guards the fields that follow.
	mu       sync.Mutex
	inflight map[jsonrpc.ID]*pending
	byExtra  map[*sdk.RequestExtra]*pending
	pending  int  // calls whose answer has not left yet, without streams
	streams  int  // streams whose answer has not left yet
	opened   bool // initialize has been answered
	leaving  bool // shutting down: nothing new
	queue    []frame
	queued   int  // bytes in queue and being written
	writing  bool // somebody is writing
	closed   bool
	failure  error         // why we closed, if the peer did not
	wake     chan struct{} // closed at the next change, nil if nobody waits
}

func newConn(nc net.Conn, lim connLimits, log *zap.Logger, stop context.Context, caller Caller) *conn {
	return &conn{
		nc: nc, r: bufio.NewReaderSize(nc, readBuffer), limits: lim, log: log, stop: stop,
		caller: caller, since: time.Now(),
		inflight: map[jsonrpc.ID]*pending{}, byExtra: map[*sdk.RequestExtra]*pending{},
	}
}

// Connect implements sdk.Transport.
func (c *conn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements sdk.Connection. A socket has no session id; we have our
// own connection number.
func (c *conn) SessionID() string { return "" }

// Read implements sdk.Connection: the next message that concerns the SDK. All
// else is answered or dropped here. The error is always io.EOF, and then every
// accepted call has been answered or has nobody left to answer to.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if !c.awaitRoom() {
			return nil, io.EOF
		}
		line, long, err := c.readLine()
		var msg jsonrpc.Message
		if long {
			err = c.answer(refuse(readableID(line), jsonrpc.CodeInvalidRequest,
				"message longer than %d bytes", c.limits.line))
		} else if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 {
			msg, err = c.receive(line)
		}
		if msg != nil {
			return msg, nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				c.drain()
			}
			return nil, io.EOF
		}
	}
}

// readLine reads up to the next newline or the end. The line is the caller's
// to keep. Of one that is too long only the start is kept, the rest is read
// and forgotten, so that the next line is found.
func (c *conn) readLine() (line []byte, long bool, err error) {
	for {
		part, err := c.r.ReadSlice('\n')
		if !long && len(line)+len(part) > c.limits.line+1 { // the newline is not counted
			line, long = append(line, part...)[:min(len(line)+len(part), readBuffer)], true
			line = bytes.Clone(line) // let go of the rest
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(line) > 0 && errors.Is(err, io.EOF):
			// printf without a final newline; the next read reports the end.
			return line, long, nil
		default:
			return nil, false, err
		}
	}
}

// receive handles one line: a message for the SDK, or nil when the line has
// been dealt with. The error says that the connection is at its end.
func (c *conn) receive(line []byte) (jsonrpc.Message, error) {
	e, r := parseEnvelope(line)
	if r != nil {
		if !e.call && (e.result != nil || e.err != nil) {
			return nil, nil // an odd response: answering could go on for ever
		}
		return nil, c.answer(r)
	}
	switch {
	case !e.call:
		return response(e), nil
	case e.id == nil:
		return c.notified(e), nil
	}
	call, r := c.admit(e)
	if r != nil {
		return nil, c.answer(r)
	}
	return call.request(e.key), nil
}

// response passes on the answer to a request of ours. One without an id is a
// complaint about something we sent: there is nobody to tell.
func response(e envelope) jsonrpc.Message {
	if !e.key.IsValid() {
		return nil
	}
	m := &jsonrpc.Response{ID: e.key, Result: e.result}
	if e.err != nil {
		werr := &jsonrpc.Error{}
		if json.Unmarshal(e.err, werr) != nil {
			werr = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "unreadable error response"}
		}
		m.Error = werr
	}
	return m
}

// notified handles a notification. Only what the SDK acts on is passed on,
// and that a bounded number of times, because its queue has no bound.
func (c *conn) notified(e envelope) jsonrpc.Message {
	m := &jsonrpc.Request{Method: e.method, Params: e.params}
	switch e.method {
	case helloMethod:
		c.hello(e.params)
	case cancelledMethod:
		if c.cancel(e.params) {
			return m
		}
	case initedMethod:
		if c.inits++; c.inits <= 4 {
			return m
		}
	}
	return nil
}

// hello notes what the bridge says about itself. It counts once, and before
// the first request: what a connection may do never changes under its calls.
func (c *conn) hello(params json.RawMessage) {
	if c.spoken || c.greeted || len(params) > maxHelloBytes {
		c.log.Warn("hello ignored", zap.Bool("late", c.spoken), zap.Bool("again", c.greeted))
		return
	}
	var h Hello
	if err := json.Unmarshal(params, &h); err != nil {
		c.log.Warn("hello ignored: not readable")
		return
	}
	for k := range h.Env {
		if !strings.HasPrefix(k, "LIBTMUX_") {
			delete(h.Env, k)
		}
	}
	c.greeted = true
	c.mu.Lock()
	c.caller.Hello = h // Status may be looking
	c.mu.Unlock()
}

// admit takes a request in, or says why not.
func (c *conn) admit(e envelope) (*pending, *refusal) {
	if strings.HasPrefix(e.method, "notifications/") {
		return nil, refuse(e.id, jsonrpc.CodeInvalidRequest, "a notification carries no id")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inflight[e.key] != nil:
		return nil, refuse(e.id, jsonrpc.CodeInvalidRequest, "this id is still in use by a request in flight")
	case c.leaving:
		return nil, refuse(e.id, codeRefused, "%s", errShutdown)
	case len(c.inflight) >= c.limits.inflight:
		return nil, refuse(e.id, codeRefused, "%d requests are in flight on this connection, the most allowed: wait for one to end", c.limits.inflight)
	}
	c.spoken = true
	cl := &pending{id: e.id, method: e.method, params: e.params}
	if e.method == callMethod && e.params != nil {
		cl.takeCall(e.params, c.opened)
	}
	c.inflight[e.key] = cl
	c.byExtra[&cl.extra] = cl
	c.countLocked(cl, 1)
	return cl, nil
}

// cancel notes that nobody wants the answer of a request any more. It reports
// whether the SDK should hear of it: only for a request in flight, once, and
// not for initialize, which the protocol says cannot be cancelled. (The SDK
// would round an id like 1.5 and cancel another request.)
func (c *conn) cancel(params json.RawMessage) bool {
	var e envelope
	visitMembers(params, func(key string, value []byte) bool {
		if key == "requestId" {
			e.id = value
		}
		return true
	})
	if e.id == nil || e.readID() != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.inflight[e.key]
	if cl == nil || cl.cancelled || cl.method == initMethod {
		return false
	}
	cl.cancelled = true
	return true
}

// Write implements sdk.Connection.
func (c *conn) Write(_ context.Context, msg jsonrpc.Message) error {
	if r, ok := msg.(*jsonrpc.Response); ok {
		return c.writeResponse(r)
	}
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.enqueue(frame{b: append(b, '\n')}, false)
}

// writeResponse frees the id first: a client may use it again as soon as it
// has the answer. The call counts as pending until the answer has left.
func (c *conn) writeResponse(r *jsonrpc.Response) error {
	c.mu.Lock()
	cl := c.inflight[r.ID]
	if cl == nil { // a request that was never admitted: cannot happen
		c.mu.Unlock()
		return nil
	}
	delete(c.inflight, r.ID)
	delete(c.byExtra, &cl.extra)
	if cl.method == initMethod && r.Error == nil {
		c.opened = true
	}
	if cl.cancelled {
		c.doneLocked(cl)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()

	f := frame{call: cl}
	switch {
	case r.Error != nil:
		f.b = errorFrame(cl.id, r.Error)
	case cl.frame != nil:
		f.b, cl.frame = cl.frame, nil
	default:
		f.b = resultFrame(cl.id, r.Result)
	}
	return c.enqueue(f, true)
}

// answer sends a refusal.
func (c *conn) answer(r *refusal) error {
	return c.enqueue(frame{b: r.frame()}, true)
}

// doneLocked counts a call as ended.
func (c *conn) doneLocked(cl *pending) {
	if cl != nil {
		c.countLocked(cl, -1)
	}
	c.changedLocked()
}

func (c *conn) countLocked(cl *pending, n int) {
	if cl.stream() {
		c.streams += n
	} else {
		c.pending += n
	}
}

// awaitRoom holds the reader back while too many answers wait to leave: a
// client that does not read them gets no more work done. It reports whether
// the connection is still open. The writer's deadline ends the wait.
func (c *conn) awaitRoom() bool {
	return c.await(nil, func() bool { return c.pending < 2*c.limits.inflight })
}

// idle waits until every accepted call has been answered and the answers have
// left; streams are not waited for. It reports whether that came before done,
// or before the end of the connection, which leaves nothing to wait for.
func (c *conn) idle(done <-chan struct{}) bool {
	return c.await(done, c.idleLocked) || c.isClosed()
}

// ended is idle with the streams.
func (c *conn) ended(done <-chan struct{}) bool {
	return c.await(done, func() bool { return c.streams == 0 && c.idleLocked() }) || c.isClosed()
}

func (c *conn) idleLocked() bool { return c.pending == 0 && !c.writing && len(c.queue) == 0 }

// await waits until ok, which is called with mu held, or until done or the end
// of the connection. It reports ok.
func (c *conn) await(done <-chan struct{}, ok func() bool) bool {
	for {
		c.mu.Lock()
		if c.closed || ok() {
			open := !c.closed
			c.mu.Unlock()
			return open
		}
		ch := c.changeLocked()
		c.mu.Unlock()
		select {
		case <-ch:
		case <-done:
			return false
		}
	}
}

// changeLocked returns a channel that is closed at the next change.
func (c *conn) changeLocked() <-chan struct{} {
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	return c.wake
}

func (c *conn) changedLocked() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// settle waits until nobody writes any more, after the connection has ended.
func (c *conn) settle() {
	for {
		c.mu.Lock()
		if !c.writing {
			c.mu.Unlock()
			return
		}
		ch := c.changeLocked()
		c.mu.Unlock()
		<-ch
	}
}

// drain is what the end of the peer's sending half asks for. The SDK cancels
// every call when Read reports the end, so that is put off until the answers
// are out, unless the peer is gone or takes too long.
func (c *conn) drain() {
	done := make(chan struct{})
	limit := time.AfterFunc(c.limits.drain, func() { close(done) })
	defer limit.Stop()
	for !hungUp(c.nc) {
		tick := make(chan struct{})
		t := time.AfterFunc(drainPoll, func() { close(tick) })
		idle := c.idle(tick)
		t.Stop()
		if idle {
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// leave makes the connection refuse new requests.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// Close implements sdk.Connection. It may be called by any goroutine and does
// not block.
func (c *conn) Close() error {
	c.fail(nil)
	return nil
}

// fail closes the connection because of err, nil for no fault. What is still
// queued is lost: after a write that failed half way nothing can follow.
func (c *conn) fail(err error) {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed, c.failure = true, err
		c.queue = nil
		c.changedLocked()
	}
	c.mu.Unlock()
	if first {
		c.nc.Close()
	}
}
