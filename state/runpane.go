package state

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// ownPaneKept is how long the pane of a run that had one made stays after its
// end, if nobody uses it. Whoever has read the output removes it before. The
// output stays readable without it.
const ownPaneKept = time.Hour

// restingPane is what a run's own pane showed when the run had ended.
type restingPane struct {
	grid  grid
	since time.Time
	done  bool // it is gone, or somebody's
}

// reapPanes removes the panes that were made for runs and that nobody has used or
// looked at for long.
func (r *runs) reapPanes(ctx context.Context, now time.Time) {
	r.reaping.Lock()
	defer r.reaping.Unlock()
	r.mu.Lock()
	var all []*run
	for _, j := range r.byID {
		if v := j.view(); v.NewPane && v.Ended() && !j.resting.done {
			all = append(all, j)
		}
	}
	r.mu.Unlock()
	for _, j := range all {
		j.resting.done = r.reapPane(ctx, j, now)
	}
}

// reapPane looks at one of them, and tells whether that was the last time.
func (r *runs) reapPane(ctx context.Context, j *run, now time.Time) (done bool) {
	m, id := r.m, j.now.Pane
	server, blocks, err := m.query(ctx, controlmode.Request{Commands: []controlmode.Command{gridCmd(id)}, Fence: true})
	if err != nil {
		return errors.Is(err, ErrNoServer)
	}
	g, err := readGrid(blocks[0].Body)
	if err != nil {
		return false
	}
	rest := &j.resting
	switch sized := g.width == rest.grid.width && g.height == rest.grid.height; {
	case !g.found, server.ID != j.server.ID, g.pid != 0 && g.pid != j.panePID:
		return true // gone, or another program's
	case !rest.grid.found, !sized:
		rest.grid, rest.since = g, now
		return false
	case g != rest.grid:
		return true // somebody uses it
	case now.Sub(rest.since) < ownPaneKept:
		return false
	}
	if w, err := m.Waiting(ctx, id); err != nil || w.For != WaitsPrompt && w.For != WaitsDead {
		return err == nil
	}
	p, err := m.Preflight(ctx, PaneScope(id), EndSignature)
	if err != nil {
		return false
	}
	if pane, ok := p.Model.Pane(id); !ok || p.Model.Attended(pane) || len(p.Model.Panes) == 1 {
		return false // the last pane of a window takes that with it
	}
	if err := m.Write(ctx, p, controlmode.Cmd("kill-pane", "-t", id.String())); err != nil {
		return errors.Is(err, ErrUnknown)
	}
	m.log.Info("removed the pane of a run", zap.String("run", j.now.ID), zap.Stringer("pane", id))
	return true
}
