package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"golang.org/x/sys/unix"

	"tmux-mcpd/state"
)

// Config is what the connection side may be told. The zero value of each
// field stands for the default named with it.
type Config struct {
	Version string      // of the daemon, told to clients
	Log     *zap.Logger // nil for none
	// Audit takes one record for each tool call, without anything of what was
	// said; nil for none.
	Audit *zap.Logger

	// AllowUIDs are users besides our own whose processes may connect through
	// any socket. Its mode must let them in as well.
	AllowUIDs []int

	MaxConnections int           // connections at once, 256
	MaxInFlight    int           // requests in flight per connection, 64
	MaxLine        int           // bytes of one incoming message, 16 MiB
	MaxQueue       int           // bytes of waiting answers per connection, 8 MiB
	WriteTimeout   time.Duration // for each 256 KiB a client is to read, 10 s
	DrainTimeout   time.Duration // for answers after a half-close, 60 s
	Grace          time.Duration // for calls to end by themselves at shutdown, 500 ms
	Settle         time.Duration // for cancelled calls and their answers at shutdown, 1 s
}

// connLimits are the numbers of Config that one connection needs.
type connLimits struct {
	inflight, line, queue int
	write, drain          time.Duration
}

// Server serves MCP sessions from one tool table. Its methods may be called by
// any goroutine.
type Server struct {
	cfg    Config
	limits connLimits
	log    *zap.Logger
	reg    registry
	sdk    *sdk.Server
	impl   json.RawMessage // our name and version, encoded

	// ordinary answers tool calls through the SDK's own encoding instead of
	// ours. Tests compare the two.
	ordinary bool
	// peerOf and parentOf are the kernel's answers, replaceable by tests.
	peerOf   func(*net.UnixConn) (peer, error)
	parentOf func(int) int

	auditKey auditKey

	number    atomic.Uint64
	calls     atomic.Uint64
	latencies latencies
	panics    atomic.Uint64

	// mu guards the fields that follow.
	mu    sync.Mutex
	conns map[*conn]struct{}
	taken int       // connections, also those whose conn is not made yet
	empty time.Time // since when there has been no connection
}

// New makes a Server that answers with the tools of a mirror. It starts
// nothing. A faulty selection of tools is an error that names the variable.
func New(cfg Config, mirror *state.Mirror, tools ToolConfig) (*Server, error) {
	t, err := newTable(mirror, tools)
	if err != nil {
		return nil, err
	}
	return newServer(cfg, t), nil
}

// newServer makes a Server that answers with the tools of reg.
func newServer(cfg Config, reg registry) *Server {
	setDefault(&cfg.MaxConnections, 256)
	setDefault(&cfg.MaxInFlight, 64)
	setDefault(&cfg.MaxLine, 16<<20)
	setDefault(&cfg.MaxQueue, 8<<20)
	setDefault(&cfg.WriteTimeout, 10*time.Second)
	setDefault(&cfg.DrainTimeout, 60*time.Second)
	setDefault(&cfg.Grace, 500*time.Millisecond)
	setDefault(&cfg.Settle, time.Second)
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, reg: reg, conns: map[*conn]struct{}{}, empty: time.Now(),
		peerOf: peerOf, parentOf: parentOf, auditKey: newAuditKey(),
		limits: connLimits{
			inflight: cfg.MaxInFlight, line: cfg.MaxLine, queue: cfg.MaxQueue,
			write: cfg.WriteTimeout, drain: cfg.DrainTimeout,
		},
	}
	impl := &sdk.Implementation{Name: "tmux-mcpd", Title: "tmux", Version: cfg.Version}
	s.impl, _ = json.Marshal(impl) // three strings: cannot fail
	// Set, so that the SDK does not advertise its default, logging.
	offers := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}
	if _, ok := reg.(capable); ok {
		offers.Resources = &sdk.ResourceCapabilities{ListChanged: true}
	}
	options := &sdk.ServerOptions{
		Instructions: reg.instructions(),
		Logger:       slog.New(floor{zapslog.NewHandler(cfg.Log.Core(), zapslog.WithName("mcp"))}),
		Capabilities: offers,
		SetCacheable: private,
	}
	if _, ok := reg.(resourceful); ok {
		offers.Completions = &sdk.CompletionCapabilities{} // answerResource completes, before the SDK would
		options.SubscribeHandler, options.UnsubscribeHandler = s.listened, s.unlistened
	}
	s.sdk = sdk.NewServer(impl, options)
	s.sdk.AddTool(ordinaryTool, answerOrdinary)
	// Only a standard method's name would be an error.
	_ = sdk.AddReceivingCustomMethod(s.sdk, plainMethod, refusePlain)
	s.addCapabilities()
	s.sdk.AddReceivingMiddleware(s.protect, clamp, s.intercept)
	return s
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// private marks lists as good for one client only: which tools there are
// depends on the connection.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = cachePrivate }

const cachePrivate = "private"

// ToolsChanged tells clients that the list of tools has changed, and those that
// know of resources if their list has. It does not block; several changes within 10 ms become one notification.
func (s *Server) ToolsChanged() {
	// The SDK has no call for this, but replacing a tool does it.
	s.sdk.AddTool(ordinaryTool, answerOrdinary)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.subs.nudge() // another policy has other resources
	}
}

// Status is a snapshot of the connections.
type Status struct {
	Connections []ConnStatus
	InFlight    int    // requests in flight, streams included
	Calls       uint64 // tool calls ended since the start
	Panics      uint64 // of these, ended in a panic
	Latencies   []CallStats
	IdleSince   time.Time // since when nobody has been connected, zero if somebody is
}

// ConnStatus is one connection.
type ConnStatus struct {
	Conn     uint64
	UID, PID int
	Bridge   string // the bridge's version, "" for a raw client
	Since    time.Time
	InFlight int
}

// Status does not block on any client.
func (s *Server) Status() Status {
	st := Status{Calls: s.calls.Load(), Panics: s.panics.Load(), Latencies: s.latencies.stats()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.IdleSince = s.empty
	for c := range s.conns {
		cs := c.status()
		st.InFlight += cs.InFlight
		st.Connections = append(st.Connections, cs)
	}
	slices.SortFunc(st.Connections, func(a, b ConnStatus) int { return int(a.Conn) - int(b.Conn) })
	return st
}

func (c *conn) status() ConnStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ConnStatus{
		Conn: c.caller.Conn, UID: c.caller.UID, PID: c.caller.PID,
		Bridge: c.caller.Hello.Version, Since: c.since, InFlight: len(c.inflight),
	}
}

// serving is one run of Serve.
type serving struct {
	*Server
	ctx  context.Context
	stop context.Context // cancels what the grace has not ended
	wg   sync.WaitGroup

	// mu guards the fields that follow.
	mu      sync.Mutex
	conns   map[*conn]struct{}
	leaving bool
}

// Serve accepts and serves connections until ctx is done or accepting fails
// for good. It then takes no more connections, removes the socket, gives
// running calls the grace to end by themselves, cancels the rest, lets the
// answers out and closes the connections: every accepted call is answered or
// failed. It returns when all it started has ended, or with an error when
// calls that ignore their cancellation still run. It blocks. The listener's
// lock stays with the caller, who closes the listener last of all.
//
// It may run for several listeners at once.
func (s *Server) Serve(ctx context.Context, l *Listener) error {
	stop, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	v := &serving{Server: s, ctx: ctx, stop: stop, conns: map[*conn]struct{}{}}
	defer context.AfterFunc(ctx, func() { l.stop() })()
	acceptErr := v.accept(l)
	l.stop()
	return errors.Join(acceptErr, v.shutdown(func() { cancel(errShutdown) }))
}

// accept runs until ctx is done, or returns the error that ended it.
func (v *serving) accept(l *Listener) error {
	pause := time.Duration(0)
	for {
		nc, err := l.ln.AcceptUnix()
		if v.ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return nil
		}
		if err != nil {
			if !temporary(err) {
				return fmt.Errorf("accepting: %w", err)
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			v.log.Warn("accept failed, waiting", zap.Error(err), zap.Duration("wait", pause))
			select {
			case <-time.After(pause):
			case <-v.ctx.Done():
			}
			continue
		}
		pause = 0
		if !v.take() {
			turnAway(nc, fmt.Sprintf("%d connections are open, the most allowed", v.cfg.MaxConnections))
			continue
		}
		v.wg.Add(1)
		go func() {
			defer v.wg.Done()
			defer v.give()
			v.session(l, nc)
		}()
	}
}

// temporary reports whether accepting can succeed later: the process or the
// machine is short of something, or the client was gone already.
func temporary(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EINTR, unix.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// take reserves a place for a connection, give returns it.
func (s *Server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.cfg.MaxConnections {
		return false
	}
	s.taken++
	s.empty = time.Time{}
	return true
}

func (s *Server) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken--; s.taken == 0 {
		s.empty = time.Now()
	}
}

// turnAway tells a client in one line why it is not served. A fresh socket has
// room for the line, so this does not wait.
func turnAway(nc *net.UnixConn, reason string) {
	nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	nc.Write(refuse(nil, codeRefused, "%s", reason).frame())
	nc.Close()
}

// session serves one connection from the first byte to the last.
func (v *serving) session(l *Listener, nc *net.UnixConn) {
	p, err := v.peerOf(nc)
	if err != nil {
		v.log.Warn("connection refused: peer unknown", zap.Error(err))
		nc.Close()
		return
	}
	if p.uid != os.Geteuid() && !slices.Contains(v.cfg.AllowUIDs, p.uid) && !l.policy.admits(p.uid) {
		v.log.Warn("connection refused: not our user", zap.Int("uid", p.uid), zap.Int("pid", p.pid))
		turnAway(nc, fmt.Sprintf("this socket does not serve uid %d", p.uid))
		return
	}
	caller := Caller{
		Conn: v.number.Add(1), UID: p.uid, PID: p.pid, Ancestors: ancestorsOf(p.pid, v.parentOf),
		policy: l.policy, socket: l.path, known: new(knownLife),
	}
	log := v.log.With(zap.Uint64("conn", caller.Conn), zap.Int("pid", p.pid))
	c := newConn(nc, v.limits, log, v.stop, caller)
	if !v.enter(c) {
		nc.Close()
		return
	}
	defer v.exit(c)
	defer context.AfterFunc(v.stop, c.cancelCalls)()
	log.Debug("connected")
	// The values of this context reach every call, its end does not.
	ss, err := v.sdk.Connect(context.WithValue(context.Background(), connKey{}, c), c, nil)
	if err != nil { // only our own Connect could fail, and does not
		c.fail(err)
		return
	}
	err = ss.Wait()
	c.Close()
	c.settle()
	c.subs.close()
	if c.failure != nil {
		err = c.failure
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		log.Warn("connection closed", zap.Error(err))
		return
	}
	log.Debug("disconnected")
}

// enter registers a connection, unless the shutdown has begun.
func (v *serving) enter(c *conn) bool {
	v.mu.Lock()
	if v.leaving {
		v.mu.Unlock()
		return false
	}
	v.conns[c] = struct{}{}
	v.mu.Unlock()
	v.Server.mu.Lock()
	v.Server.conns[c] = struct{}{}
	v.Server.mu.Unlock()
	return true
}

func (v *serving) exit(c *conn) {
	v.mu.Lock()
	delete(v.conns, c)
	v.mu.Unlock()
	v.Server.mu.Lock()
	delete(v.Server.conns, c)
	v.Server.mu.Unlock()
}

// shutdown ends the sessions without losing an answer. The order matters: the
// SDK drops the answers of calls that outlive its session's Close, so calls
// end first, then their answers leave, then the connections are closed.
func (v *serving) shutdown(cancelCalls func()) error {
	v.mu.Lock()
	v.leaving = true
	conns := make([]*conn, 0, len(v.conns))
	for c := range v.conns {
		conns = append(conns, c)
	}
	v.mu.Unlock()
	for _, c := range conns {
		c.leave()
	}
	within(conns, v.cfg.Grace, (*conn).idle)
	cancelCalls()
	within(conns, v.cfg.Settle, (*conn).ended)
	for _, c := range conns {
		c.Close()
	}
	ended := make(chan struct{})
	go func() { // ends with the last session
		v.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(v.cfg.Settle):
		return fmt.Errorf("%d calls still run after they were cancelled", v.running())
	}
}

// running counts the calls in flight.
func (v *serving) running() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for c := range v.conns {
		n += c.status().InFlight
	}
	return n
}

// within waits for each connection to become what is asked, at most d for all.
func within(conns []*conn, d time.Duration, wait func(*conn, <-chan struct{}) bool) {
	done := make(chan struct{})
	defer time.AfterFunc(d, func() { close(done) }).Stop()
	for _, c := range conns {
		if !wait(c, done) {
			return
		}
	}
}

// floor drops what the SDK logs below warnings: it has a line for every
// connect and every resource update.
type floor struct{ slog.Handler }

func (f floor) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && f.Handler.Enabled(ctx, l)
}
func (f floor) WithAttrs(a []slog.Attr) slog.Handler { return floor{f.Handler.WithAttrs(a)} }
func (f floor) WithGroup(n string) slog.Handler      { return floor{f.Handler.WithGroup(n)} }
