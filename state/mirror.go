package state

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// Errors callers branch on.
var (
	// ErrNotFound: the named session, window or pane does not exist on this server.
	ErrNotFound = errors.New("not found")
	// ErrNoServer: no tmux server is running on the socket.
	ErrNoServer = controlmode.ErrNoServer
	// ErrOtherServer: the cursor or id belongs to another life of the tmux server.
	ErrOtherServer = errors.New("the tmux server was restarted")
	// ErrOtherPane: the cursor names another pane.
	ErrOtherPane = errors.New("the cursor belongs to another pane")
	// ErrDetached: the daemon is not attached to tmux at the moment.
	ErrDetached = errors.New("not attached to tmux")
)

// WatchMode is when panes are watched (their output received).
type WatchMode string

// The watch modes: what somebody needs and a while longer (auto), every pane
// (all), or what somebody needs and a minute longer (demand).
const (
	WatchAuto   WatchMode = "auto"
	WatchAll    WatchMode = "all"
	WatchDemand WatchMode = "demand"
)

// Config configures a Mirror. The zero value serves the user's default server.
type Config struct {
	Bin       string // tmux binary, "" for tmux from PATH
	Socket    controlmode.Socket
	Transport controlmode.Transport
	Watch     WatchMode
	Timeout   time.Duration // per tmux command, 0 for 10 s
	PaneBytes int           // byte log per watched pane, 0 for 1 MiB
	AllBytes  int64         // all byte logs together, 0 for 256 MiB
	// CursorFile is where it is kept, from one daemon to the next, at which
	// places cursors stand; "" for nowhere. Its directory must exist.
	CursorFile string
	// RunDir is where commands of runs are staged, a directory of mode 0700 on a
	// local file system, its path without special characters; "" for
	// RunDirectory. It is made when the first run needs it.
	RunDir string
	// Server is for the server that Start starts.
	Server ServerConfig
	Log    *zap.Logger // nil for none
}

// Mirror keeps in step with one tmux server. All methods may be called by any
// goroutine while Run runs.
type Mirror struct {
	cfg     Config
	log     *zap.Logger
	path    string // absolute path of the tmux socket
	reads   refresher
	places  known // the refresher's
	model   atomic.Pointer[Model]
	hint    chan struct{} // capacity 1: something structural changed
	kick    chan struct{} // capacity 1: a read wants to be attached now
	unknown atomic.Uint64
	stirred atomic.Int64 // when tmux last told what can crash it: see awaitCalm
	door    door
	watches watches
	journal Journal
	looks   looks
	recall  recall
	runs    runs

	channels channels

	mu       sync.Mutex // guards the fields that follow
	att      *attachment
	changed  chan struct{} // closed and replaced when att or reason changes
	reason   error         // why att is nil
	since    time.Time
	lastErr  string
	own      map[int]ownClient // by pid
	lastLife ServerID          // of the newest attachment, also while detached
	items    *items            // harmless ones of the server itemLife
	itemLife ServerID
	ended    bool
}

// attachment is one life of the structure client.
type attachment struct {
	proc   *controlmode.Process
	server Server
}

// New makes a Mirror. It starts nothing.
func New(cfg Config) *Mirror {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.PaneBytes <= 0 {
		cfg.PaneBytes = 1 << 20
	}
	if cfg.AllBytes <= 0 {
		cfg.AllBytes = 256 << 20
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	m := &Mirror{
		cfg: cfg, log: cfg.Log, path: cfg.Socket.Abs(os.Getenv, os.Getuid()),
		hint: make(chan struct{}, 1), kick: make(chan struct{}, 1), door: make(door, 1),
		changed: make(chan struct{}), reason: ErrDetached, since: time.Now(), own: map[int]ownClient{},
	}
	m.reads.ask, m.reads.publish, m.reads.started = m.ask, m.publish, make(chan struct{})
	m.watches.init(m)
	m.runs.init(m, cfg.RunDir)
	m.channels.m = m
	rand.Read(m.journal.name[:])
	m.model.Store(&Model{superseded: make(chan struct{})})
	return m
}

// Run attaches, stays attached, re-attaches, and returns when ctx is done and
// everything it started has ended. It never starts a tmux server; see Start.
func (m *Mirror) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	m.reads.start(ctx, &wg)
	wg.Go(func() { m.watches.run(ctx) })
	wg.Go(func() { m.follow(ctx) })
	m.runs.start(ctx)
	m.stayAttached(ctx)
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.setDetached(ErrDetached)
	m.runs.wait()
	m.channels.end()
	wg.Wait()
	return ctx.Err()
}

// follow refreshes the published model when tmux hints at a change, and at a
// slow period for the changes tmux keeps silent about.
func (m *Mirror) follow(ctx context.Context) {
	const settle, slow = 5 * time.Millisecond, 10 // seconds between looks while nobody waits for changes
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if n++; n%slow == 0 {
				m.runs.reapPanes(ctx, time.Now())
			} else if !m.journal.awaited() {
				continue
			}
		case <-m.hint:
			if !pause(ctx, settle) {
				return
			}
			select { // what came meanwhile is covered
			case <-m.hint:
			default:
			}
		}
		if m.attachedNow() == nil && (m.Model().Server.ID == (ServerID{}) || m.serverListens()) {
			continue // else tmux has ended, which is a change
		}
		mod, err := m.reads.read(ctx, Full)
		switch {
		case err == nil:
			m.leave(ctx, mod)
		case ctx.Err() == nil:
			m.log.Info("refresh", zap.Error(err))
		}
	}
}

// SocketPath is the absolute path of the tmux socket that is served.
func (m *Mirror) SocketPath() string { return m.path }

// Life is the life of the tmux server that the Mirror is attached to, or was
// last; the zero ServerID before the first. It does not ask tmux.
func (m *Mirror) Life() ServerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastLife
}

// publish makes a full model the newest one. Only the refresher calls it, one
// call at a time.
func (m *Mirror) publish(next *Model) {
	old := m.model.Load()
	m.journal.add(changes(old, next))
	next.Rev = old.Rev + 1
	next.superseded = make(chan struct{})
	m.model.Store(next)
	close(old.superseded)
	m.watches.poke()
}

// bell tells that a pane has rung.
func (m *Mirror) bell(id controlmode.PaneID) { m.note(Bell, id, time.Now(), "", "") }

// note puts a change of a pane that no model shows into the journal.
func (m *Mirror) note(kind ChangeKind, id controlmode.PaneID, at time.Time, before, after string) {
	c := Change{Kind: kind, Time: at, Pane: &id, Before: before, After: after}
	if p, ok := m.Model().Pane(id); ok {
		c.Window, c.Session, c.Was, c.Is = &p.Window, firstSession(p.Links), p.Links, p.Links
	}
	m.journal.add([]Change{c})
}

// Model is the newest published model; one atomic load. It can be stale: reads
// go through Arrive.
func (m *Mirror) Model() *Model { return m.model.Load() }

// nudge fills a channel of capacity 1 without waiting.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, and tells whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Status is what `tmux-mcpd status` shows of a Mirror.
type Status struct {
	Attached     bool
	Degraded     bool      // reads are answered by tmux processes
	Since        time.Time // of the present attachment, or of being detached
	Reason       string    // why not attached, "" while attached
	Server       Server
	Refreshes    uint64
	StreamsOpen  int
	WatchedPanes int
	Followers    int           // waits for output that are under way
	Looks        uint64        // how often they have looked at output
	Channels     int           // processes that wait for a channel
	Runs         int           // runs that go on
	Lag          time.Duration // how long tmux held the newest output before it came
	LogBytes     int64         // bytes held in byte logs
	Unknown      uint64
	LastError    string
}

// Status reports the state of the Mirror without asking tmux.
func (m *Mirror) Status() Status {
	s := Status{Refreshes: m.reads.count.Load(), Unknown: m.unknown.Load()}
	m.watches.status(&s)
	s.Channels, s.Runs = m.channels.count(), m.runs.going()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Attached, s.Since, s.LastError = m.att != nil, m.since, m.lastErr
	if m.att != nil {
		s.Server = m.att.server
	} else if m.reason != nil {
		s.Reason, s.Degraded = m.reason.Error(), degraded(m.reason)
	}
	return s
}
