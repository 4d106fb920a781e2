package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// watches are the panes whose output is received, and the stream clients that
// receive it: one per session with a watched pane, and for every pane exactly
// one owner among them.
type watches struct {
	m     *Mirror
	wake  chan struct{} // capacity 1: something to tend to
	told  chan struct{} // capacity 1: a pane has news of its commands
	turn  chan struct{} // capacity 1: whoever holds its token may change what is watched
	by    maker         // of the streams of this life of the daemon
	bytes atomic.Int64  // of memory in all logs, within a step of each

	followers atomic.Int64
	lag       atomic.Int64 // nanoseconds
	looks     atomic.Uint64

	mu      sync.Mutex // guards the fields that follow
	life    ServerID   // the outputs are of this server
	panes   map[controlmode.PaneID]*watch
	streams map[controlmode.SessionID]*stream
	wg      sync.WaitGroup // the clients' goroutines
	ctx     context.Context
	earlier resumable           // what an earlier daemon has left
	resumed map[Stream]struct{} // streams of an earlier daemon that were gone on with
}

// watch is one watched pane.
type watch struct {
	out    *Output
	stream *stream   // its owner; nil while none is attached
	began  time.Time // when the newest epoch was, or its death was asked for: older models say nothing of it
	forget func()    // ends the wait for the process's end, nil for none
}

// stream is one stream client.
type stream struct {
	session controlmode.SessionID
	proc    *controlmode.Process
	ended   chan struct{} // closed when its process has ended
	server  Server
	// routes is replaced whole; the reader goroutine loads it for every line.
	routes  atomic.Pointer[map[controlmode.PaneID]*Output]
	layouts atomic.Uint64           // layouts told, see Shown
	heard   atomic.Int64            // when output came last, see WriteAt
	told    atomic.Uint64           // notifications, see still
	sleep   atomic.Pointer[sleeper] // nil until the client is ready

	mu     sync.Mutex                      // guards the fields that follow
	muted  map[controlmode.PaneID]bool     // paused by us: nobody watches them here
	noisy  map[controlmode.PaneID]struct{} // sent output that nobody watches
	paused map[controlmode.PaneID]struct{} // watched, and paused by tmux
	// compared is never changed, only replaced.
	compared compared
}

func (w *watches) init(m *Mirror) {
	w.m, w.wake, w.turn, w.told = m, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	w.panes, w.streams = map[controlmode.PaneID]*watch{}, map[controlmode.SessionID]*stream{}
	w.resumed = map[Stream]struct{}{}
	rand.Read(w.by[:])
}

func (w *watches) poke() { nudge(w.wake) }

// demandLinger is how long a pane stays watched after its last use if the user
// wants watching on demand only: long enough for a reader to come back.
const demandLinger = time.Minute

// linger is how long a pane stays watched after its last use: short where an
// output-receiving client can crash the server when a pane is respawned
// (control-mode fault fixed in tmux 3.8; "next-3.8" counts as before).
func (m WatchMode) linger(version string) time.Duration {
	if m == WatchDemand {
		return demandLinger
	}
	if v, err := controlmode.ParseVersion(version); err == nil && v.AtLeast("3.8") {
		return 2 * time.Hour
	}
	return 15 * time.Minute
}

// take waits for the right to change what is watched.
func (w *watches) take(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *watches) give() { <-w.turn }

// run tends to the watches until ctx is done, then ends every stream client.
func (w *watches) run(ctx context.Context) {
	earlier, err := loadResumable(w.m.cfg.CursorFile)
	if err != nil {
		w.m.log.Warn("cursors of an earlier daemon are lost", zap.Error(err))
	}
	// The clients outlive ctx: where they stand is saved at the end.
	clients, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w.mu.Lock()
	w.ctx, w.earlier = clients, earlier
	w.mu.Unlock()
	w.wg.Go(func() { w.tellCommands(clients) })
	const slow, saves = 5 * time.Second, 12
	tick := time.NewTicker(slow)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if n++; n%saves == 0 {
				w.saveNow(ctx)
			}
		case <-w.wake:
		}
		if ctx.Err() == nil && w.take(ctx) == nil {
			w.tend(ctx)
			w.give()
		}
	}
	last, cancel := context.WithTimeout(clients, time.Second)
	defer cancel()
	w.saveNow(last)
	w.mu.Lock()
	for _, s := range w.streams {
		s.proc.Close()
	}
	w.mu.Unlock()
	end() // the waits for the ends of processes
	w.wg.Wait()
}

// saveNow saves where the watched panes stand.
func (w *watches) saveNow(ctx context.Context) {
	if err := w.save(ctx, w.m.cfg.CursorFile); err != nil && ctx.Err() == nil {
		w.m.log.Warn("cursors will not outlive the daemon", zap.Error(err))
	}
}

// saved takes what an earlier daemon knew of a pane, once.
func (w *watches) saved(life ServerID, id controlmode.PaneID) (savedPane, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, ok := w.earlier.panes[id]
	delete(w.earlier.panes, id)
	return was, ok && w.earlier.life == life
}

// entry finds or makes a pane's watch. A new life of the server voids all.
func (w *watches) entry(server ServerID, id controlmode.PaneID) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life != server {
		for _, s := range w.streams {
			s.proc.Close()
		}
		for _, p := range w.panes {
			if p.forget != nil {
				p.forget()
			}
		}
		clear(w.panes)
		clear(w.streams)
		w.life = server
		w.bytes.Store(0)
	}
	p := w.panes[id]
	if p == nil {
		now := time.Now()
		p = &watch{out: newOutput(id, w.m.cfg.PaneBytes), began: now}
		p.out.by, p.out.commands.tell = w.by, w.told
		p.out.touch(now)
		w.panes[id] = p
	}
	return p
}

// streamTimeout is the longest deadline of a request on a stream client. An
// answer waits behind output for 3 s at most, until tmux pauses the pane. But a
// pause that finds an answer queued leaves a client of tmux 3.3a stuck for good
// (control.c, control_write_callback: it discards the output that it was about
// to write, stops writing, and nothing starts it again), so what is late is not
// waited for.
const streamTimeout = 8 * time.Second

// lostStream tells that a stream client cannot be used any more; another one may
// do better. A request that is late closes its connection.
func lostStream(err error) bool {
	return errors.Is(err, controlmode.ErrClosed) || errors.Is(err, controlmode.ErrTimeout)
}

// open finds or attaches the stream client of a session. The caller holds the
// turn, so clients attach one at a time (tmux before 3.7 could be crashed by
// notifying a half-initialised one), and only to a server that the structure
// client is attached to: attaching to a server that has just started and has no
// session yet makes tmux 3.3a exit, whatever its first client wanted.
func (w *watches) open(ctx context.Context, server Server, id controlmode.SessionID) (*stream, error) {
	w.mu.Lock()
	s := w.streams[id]
	w.mu.Unlock()
	if s != nil {
		return s, nil
	}
	if w.m.Model().unwelcome(id) {
		return nil, fmt.Errorf("session %s: %w: %w", id, ErrDetached, errUnwelcome)
	}
	err := w.alive(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	if fragile(server.Version) {
		w.m.awaitCalm(ctx)
	}
	leave, err := w.m.door.pass(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := w.alive(ctx, server); err != nil { // it may have been a while
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	s = &stream{
		session: id, server: server, ended: make(chan struct{}), muted: map[controlmode.PaneID]bool{},
		noisy: map[controlmode.PaneID]struct{}{}, paused: map[controlmode.PaneID]struct{}{},
	}
	s.routes.Store(&map[controlmode.PaneID]*Output{})
	proc, err := w.m.startClient(id, "pause-after=3", min(w.m.cfg.Timeout, streamTimeout),
		func(e controlmode.Event) { w.event(s, e) }, w.m.itemsOf(s.server.ID).add)
	if err != nil {
		return nil, err
	}
	s.proc = proc
	w.mu.Lock()
	runCtx := w.ctx
	w.streams[id] = s
	w.wg.Go(func() {
		err := w.m.runClient(runCtx, proc)
		close(s.ended)
		s.sleep.Load().close()
		w.closed(s, err)
	})
	w.mu.Unlock()
	err = s.awaitReady(ctx)
	leave()
	if err == nil {
		s.watchSleep()
		err = w.muteOthers(ctx, s)
	}
	if err != nil {
		w.closed(s, nil)
		proc.Close()
		return nil, fmt.Errorf("attach to %s for its output: %w", id, err)
	}
	return s, nil
}

func (s *stream) awaitReady(ctx context.Context) error {
	limit := time.NewTimer(attachLimit)
	defer limit.Stop()
	select {
	case <-s.proc.Ready():
		return nil
	case <-s.proc.Done():
		return controlmode.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return controlmode.ErrTimeout
	}
}

// muteOthers pauses the panes of the session that nobody watches.
func (w *watches) muteOthers(ctx context.Context, s *stream) error {
	reply, err := s.proc.Do(ctx, controlmode.Request{Commands: []controlmode.Command{
		controlmode.Cmd("list-panes", "-s", "-t", s.session.String(), "-F", "#{pane_id}"),
		controlmode.Cmd("refresh-client", "-B", "dead:%*:#{pane_dead} #{pane_pid}"),
	}, Fence: true})
	if err != nil {
		return err
	}
	if len(reply.Blocks) != 2 || reply.Blocks[0].Error {
		return fmt.Errorf("panes of %s: %w", s.session, ErrNotFound)
	}
	var ids []controlmode.PaneID
	for _, f := range fields(reply.Blocks[0].Body) {
		if id, err := controlmode.ParsePaneID(f); err == nil {
			ids = append(ids, id)
		}
	}
	return s.mute(ctx, ids)
}

// event routes what a stream client is told. It runs on the client's reader
// goroutine, so that an offset taken when a reply begins is exact (P2).
func (w *watches) event(s *stream, e controlmode.Event) {
	if _, ok := e.(*controlmode.Output); !ok {
		s.told.Add(1)
	}
	switch e := e.(type) {
	case *controlmode.Output:
		s.heard.Store(time.Now().UnixNano())
		if out := (*s.routes.Load())[e.Pane]; out != nil {
			w.lag.Store(int64(e.Age))
			if grew := out.append(e.Data); grew != 0 && w.bytes.Add(grew) > w.m.cfg.AllBytes {
				w.evict()
			}
			if bytes.IndexByte(e.Data, '\a') >= 0 && out.newBell() {
				w.m.bell(e.Pane)
			}
			return
		}
		s.mu.Lock()
		_, known := s.noisy[e.Pane]
		if !known && !s.muted[e.Pane] {
			s.noisy[e.Pane] = struct{}{}
		}
		s.mu.Unlock()
		if !known {
			w.poke()
		}
	case controlmode.Pause:
		out := (*s.routes.Load())[e.Pane]
		s.mu.Lock()
		ours := s.muted[e.Pane]
		if !ours && out != nil {
			s.paused[e.Pane] = struct{}{}
		}
		s.mu.Unlock()
		if !ours && out != nil {
			out.finish(s.server.ID, GapPaused)
			w.poke()
		}
	case controlmode.LayoutChange:
		s.layouts.Add(1)
		nudge(w.m.hint) // a watched pane may have another size
	case controlmode.SubscriptionChanged:
		nudge(w.m.hint) // a watched pane may have ended
	case controlmode.Unknown:
		w.m.unknown.Add(1)
	default:
		w.m.noteStir(e)
	}
}

// closed notes that a stream client has ended.
func (w *watches) closed(s *stream, err error) {
	w.m.stirred.Store(time.Now().UnixNano()) // tmux is about to tell of it
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[s.session] == s {
		delete(w.streams, s.session)
	}
	for _, p := range w.panes {
		if p.stream == s {
			p.stream = nil
			p.out.finish(s.server.ID, GapAttached)
		}
	}
	if err != nil {
		w.m.log.Info("stream client ended", zap.Stringer("session", s.session), zap.Error(err))
	}
	w.poke()
}

// alive tells whether the server is there at this moment and is the one meant.
func (w *watches) alive(ctx context.Context, server Server) error {
	att := w.m.attachedNow()
	if att == nil || att.server.ID != server.ID {
		return ErrDetached
	}
	_, err := att.proc.Do(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}})
	return err
}

func (w *watches) status(s *Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.StreamsOpen, s.WatchedPanes, s.LogBytes = len(w.streams), len(w.panes), w.bytes.Load()
	s.Lag = time.Duration(w.lag.Load())
	s.Followers, s.Looks = int(w.followers.Load()), w.looks.Load()
}
