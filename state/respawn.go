package state

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// Respawn runs write, which is to start a pane's command again, in the one way
// that cannot crash tmux up to 3.7c (control-mode 12.1): a client of ours that
// has output of the old process still to get would make the server read beyond
// the new one's. So the pane is paused on all of our clients, one more round trip
// lets the server drop what it had queued, and only after write does the output
// flow again, in a new epoch. It blocks while others change what is watched. The
// error is write's, or says that write was not called (controlmode.ErrNotSent).
func (m *Mirror) Respawn(ctx context.Context, id controlmode.PaneID, write func() error) error {
	w := &m.watches
	turn, cancel := context.WithTimeoutCause(ctx, m.cfg.Timeout+attachLimit, controlmode.ErrTimeout)
	defer cancel()
	if err := w.take(turn); err != nil {
		return fmt.Errorf("%w: %w", err, controlmode.ErrNotSent)
	}
	defer w.give()
	w.mu.Lock()
	streams := maps.Clone(w.streams)
	w.mu.Unlock()
	for _, s := range streams {
		err := s.pauseNow(turn, id)
		if err == nil {
			_, err = s.proc.Do(turn, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
		}
		if err != nil && !lostStream(err) { // a client that is gone gets nothing
			return fmt.Errorf("pause %s: %w: %w", id, err, controlmode.ErrNotSent)
		}
	}
	err := write()
	// Whatever came of it, the pane was paused and is to be heard again.
	w.hearAgain(context.WithoutCancel(turn), id, err == nil)
	return err
}

// hearAgain begins a new epoch of a pane that was paused, if it is watched. The
// caller holds the turn.
func (w *watches) hearAgain(ctx context.Context, id controlmode.PaneID, respawned bool) {
	w.mu.Lock()
	p := w.panes[id]
	w.mu.Unlock()
	if p == nil || !p.out.known() {
		return
	}
	mod, err := w.m.onePane(ctx, id)
	if err != nil {
		if !errors.Is(err, ErrNotFound) {
			w.m.log.Info("after a respawn", zap.Stringer("pane", id), zap.Error(err))
		}
		nudge(w.m.hint)
		return
	}
	pane := mod.Panes[0]
	switch {
	case pane.Dead && p.out.live(0):
		err = w.died(ctx, mod, p, pane)
	case pane.Dead && respawned: // over again already; tmux 3.8 does not tell the two apart
		err = w.bury(ctx, mod, p, pane, GapRespawned)
	case pane.Dead:
		err = w.m.deadPane(ctx, mod, p, pane, GapRespawned)
	case respawned:
		w.rejoin(ctx, mod, p, pane, GapRespawned)
	default:
		w.rejoin(ctx, mod, p, pane, GapPaused)
	}
	if err != nil {
		w.m.log.Info("dead pane", zap.Stringer("pane", id), zap.Error(err))
	}
}
