package state

import (
	"context"
	"errors"
	"fmt"
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
	Shown  string    `json:"shown"` // all that tmux tells of its grid
	Width  int       `json:"width"`
	Height int       `json:"height"`
	Since  time.Time `json:"since"`
	done   bool      // it is gone, or somebody's
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
		if j.resting.done = r.reapPane(ctx, j, now); j.resting.done {
			r.files.remove(j.now.ID)
		}
	}
}

// rests is rest for a run that has just ended.
func (r *runs) rests(j *run) {
	r.reaping.Lock()
	defer r.reaping.Unlock()
	if !j.resting.done {
		j.rest()
	}
}

// rest writes down, for the next daemon, that a run has ended in a pane of its own
// that is to be removed. Files of any other run are deleted. The caller holds
// runs.reaping, or nobody else knows the run.
func (j *run) rest() {
	v := j.view()
	if !v.NewPane {
		j.files.remove(v.ID)
		return
	}
	rec := j.record()
	rec.Ended, rec.State, rec.Began, rec.Status, rec.Rests = v.EndedAt, v.State, v.Began, v.ExitStatus, j.resting
	if err := j.files.keep(v.ID, rec); err != nil {
		j.m.log.Warn("the pane of a run may stay", zap.Error(err))
	}
}

// record is what a later daemon must know of a run.
func (j *run) record() runRecord {
	v := j.view()
	rec := runRecord{
		Pane: v.Pane, PanePID: j.panePID, Server: j.server.ID, Shell: v.Shell, ShellPID: j.shell, TTY: j.tty, Same: j.same,
		NewPane: v.NewPane, Typed: j.typed,
	}
	if v.Cursor != nil {
		rec.Cursor = v.Cursor.String()
	}
	return rec
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
	rest, shown := &j.resting, fmt.Sprintf("%+v", g)
	switch {
	case !g.found, server.ID != j.server.ID, g.pid != 0 && g.pid != j.panePID:
		return true // gone, or another program's
	case rest.Width != g.width || rest.Height != g.height:
		*rest = restingPane{Shown: shown, Width: g.width, Height: g.height, Since: now}
		j.rest()
		return false
	case shown != rest.Shown:
		return true // somebody uses it
	case now.Sub(rest.Since) < ownPaneKept:
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
