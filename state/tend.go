package state

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// tend brings the watches in line with the newest model. The caller holds the turn.
func (w *watches) tend(ctx context.Context) {
	mod := w.m.Model()
	w.mu.Lock()
	panes := maps.Clone(w.panes)
	streams := maps.Clone(w.streams)
	current := w.life == mod.Server.ID
	w.mu.Unlock()
	if current {
		for id, p := range panes {
			w.tendPane(ctx, mod, id, p)
		}
	}
	w.evict()
	if w.m.cfg.Watch == WatchAll {
		w.tendAll(ctx, mod)
	}
	for _, s := range streams {
		w.tendStream(ctx, s, mod)
	}
}

func (w *watches) tendPane(ctx context.Context, mod *Model, id controlmode.PaneID, p *watch) {
	now := time.Now()
	w.mu.Lock()
	s, began := p.stream, p.began
	w.mu.Unlock()
	if mod.Asked.Before(began) {
		return
	}
	pane, ok := mod.Pane(id)
	idle := w.m.cfg.Watch != WatchAll && now.Sub(p.out.lastUse()) > w.m.cfg.Watch.linger(mod.Server.Version)
	if !ok || idle {
		w.drop(ctx, id, p, ok)
		return
	}
	switch {
	case pane.Dead: // an unsure death is told best while nobody has changed the pane's size
		if p.out.live(0) || pane.PID == 0 && p.out.deathUnsure() {
			if err := w.m.deadPane(ctx, mod, p, pane, GapPaneDied); err != nil && ctx.Err() == nil {
				w.m.log.Info("dead pane", zap.Stringer("pane", id), zap.Error(err))
			}
		}
		return
	case s == nil:
		w.rejoin(ctx, mod, p, pane, GapAttached)
	case s.session != pane.Links[0].Session:
		w.rejoin(ctx, mod, p, pane, GapOwnerChanged)
	case !p.out.live(0):
		reason := GapPaused
		if !p.out.sameProcess(pane.PID) {
			reason = GapRespawned
		}
		w.rejoin(ctx, mod, p, pane, reason)
	case !p.out.live(pane.PID):
		w.rejoin(ctx, mod, p, pane, GapRespawned)
	case !p.out.fits(pane):
		if err := w.reseed(ctx, s, p.out, transcript.Rewrapped); err != nil && ctx.Err() == nil && !errors.Is(err, controlmode.ErrClosed) {
			w.m.log.Info("transcript", zap.Stringer("pane", id), zap.Error(err))
		}
	}
}

// tendAll watches every pane that is not watched yet, a few at a time, so that
// readers get their turn in between.
func (w *watches) tendAll(ctx context.Context, mod *Model) {
	const atOnce = 16
	n := 0
	for _, pane := range mod.Panes {
		p := w.entry(mod.Server.ID, pane.ID)
		if pane.Dead || p.out.known() {
			continue
		}
		if n++; n > atOnce {
			w.poke()
			return
		}
		w.rejoin(ctx, mod, p, pane, GapAttached)
	}
}

// died ends the log of a pane whose process has ended. The pane is paused at
// once: a respawn by the user is then safe (control-mode 12.1). What tmux still
// delivers comes before the answer to that.
func (w *watches) died(ctx context.Context, mod *Model, p *watch, pane *Pane) error {
	w.mu.Lock()
	s := p.stream
	w.mu.Unlock()
	if s != nil {
		s.pauseNow(ctx, pane.ID) // an error means that the client has ended, which is as good
		s.route(pane.ID, nil)
	}
	return w.bury(ctx, mod, p, pane, GapPaneDied)
}

// rejoin begins a new epoch of a pane on the session that owns it now.
func (w *watches) rejoin(ctx context.Context, mod *Model, p *watch, pane *Pane, reason GapReason) {
	s, err := w.open(ctx, mod.Server, pane.Links[0].Session)
	if err == nil {
		err = w.begin(ctx, s, p, pane.PID, reason)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, controlmode.ErrClosed) {
		w.m.log.Info("watch again", zap.Stringer("pane", pane.ID), zap.Error(err))
	}
}

// drop stops watching a pane.
func (w *watches) drop(ctx context.Context, id controlmode.PaneID, p *watch, exists bool) {
	w.mu.Lock()
	s, life := p.stream, w.life
	delete(w.panes, id)
	if p.forget != nil {
		p.forget()
	}
	w.mu.Unlock()
	if s != nil && !exists {
		// The pane may have gone before all it printed has come: two connections
		// tell of the two.
		s.ask(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
	}
	p.out.finish(life, GapNotWatched)
	if s == nil {
		return
	}
	s.route(id, nil)
	if exists {
		s.mute(ctx, []controlmode.PaneID{id})
	}
}

// evict gives back the logs that were not used for longest while all together
// are over the budget. A reader goroutine that goes over it calls it at once: a
// flood does not wait for anybody's turn.
func (w *watches) evict() {
	w.mu.Lock()
	byUse := make([]*Output, 0, len(w.panes))
	for _, p := range w.panes {
		byUse = append(byUse, p.out)
	}
	w.mu.Unlock()
	total := int64(0)
	for _, out := range byUse {
		total += out.measure()
	}
	if total > w.m.cfg.AllBytes {
		slices.SortFunc(byUse, func(a, b *Output) int { return a.lastUse().Compare(b.lastUse()) })
		for _, out := range byUse {
			total -= out.measure()
			out.shrink()
			if total += out.measure(); total <= w.m.cfg.AllBytes {
				break
			}
		}
	}
	w.bytes.Store(total)
}

// tendStream mutes the panes of a client that nobody watches and ends a client
// that no watched pane needs. Panes are muted when they are seen, whether they
// have spoken or not: one that has printed and died at once may have output left
// that is never delivered, and its respawn can crash tmux (control-mode 12.1).
func (w *watches) tendStream(ctx context.Context, s *stream, mod *Model) {
	routes := *s.routes.Load()
	if len(routes) == 0 && !w.owns(s) {
		w.end(ctx, s)
		return
	}
	s.mu.Lock()
	noisy := make([]controlmode.PaneID, 0, len(s.noisy))
	for id := range s.noisy {
		noisy = append(noisy, id)
	}
	for _, p := range mod.Panes {
		_, spoke := s.noisy[p.ID]
		if routes[p.ID] == nil && !s.muted[p.ID] && !spoke && p.in(s.session) && mod.Server.ID == s.server.ID {
			noisy = append(noisy, p.ID)
		}
	}
	s.mu.Unlock()
	if err := s.mute(ctx, noisy); err != nil && ctx.Err() == nil && !errors.Is(err, controlmode.ErrClosed) {
		w.m.log.Info("mute", zap.Stringer("session", s.session), zap.Error(err))
	}
}

// in tells whether the pane's window is linked into a session.
func (p *Pane) in(id controlmode.SessionID) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool { return l.Session == id })
}

// owns tells whether any watch, also a dead pane's, belongs to the client.
func (w *watches) owns(s *stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.panes {
		if p.stream == s {
			return true
		}
	}
	return false
}

// end ends a stream client. A fragile server tells every control client that
// this one has left, which is what must not happen while another attaches: the
// door stays shut until tmux has noticed. The caller holds the turn.
func (w *watches) end(ctx context.Context, s *stream) {
	if !fragile(s.server.Version) {
		s.proc.Close()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attachLimit)
	defer cancel()
	leave, err := w.m.door.pass(ctx)
	s.proc.Close()
	if err != nil {
		return
	}
	defer leave()
	select {
	case <-s.ended:
	case <-ctx.Done():
		return
	}
	pid := strconv.Itoa(s.proc.PID())
	for {
		blocks, err := w.m.onStructure(ctx, controlmode.Request{
			Commands: []controlmode.Command{controlmode.Cmd("list-clients", "-F", "#{client_pid}")}, Fence: true,
		})
		if err != nil || !slices.Contains(fields(blocks[0].Body), pid) || !pause(ctx, time.Millisecond) {
			return
		}
	}
}
