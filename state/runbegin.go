package state

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"tmux-mcpd/controlmode"
)

// RunOptions say how a command is run.
type RunOptions struct {
	Command string
	// Same runs it in the pane's own shell instead of a subshell: cd and export
	// last, and an interrupt can cost the exit status.
	Same bool
	// NewPane is remembered: the pane was made for the run.
	NewPane bool
	// Ready is how long to wait for the prompt, 0 for 2 s: a shell that has just
	// run something needs a moment.
	Ready time.Duration
}

// PreparedRun is a run whose line has not been typed yet. Exactly one of Typed
// and Cancel must be called.
type PreparedRun struct {
	// Line is to be typed into the pane, with Enter behind it, once.
	Line string
	// Cursor is the place in the pane's output before the line.
	Cursor Cursor
	r      *runs
	run    *run
}

// PrepareRun gets a pane ready for a command: it must wait for a command line
// of a known shell (NotReadyError) with nothing on it (LeftoverError) and have no
// other run (ErrBusy); it is watched from here on, and the command staged.
// ErrNotFound, ErrNoServer.
func (m *Mirror) PrepareRun(ctx context.Context, id controlmode.PaneID, opt RunOptions) (*PreparedRun, error) {
	r := &m.runs
	j := &run{
		m: r.m, files: r.files, same: opt.Same, changed: make(chan struct{}),
		now: Run{ID: r.newID(), Pane: id, State: RunRunning, NewPane: opt.NewPane, OutputComplete: true},
	}
	if err := r.claim(j); err != nil {
		return nil, err
	}
	p, err := r.prepare(ctx, j, opt)
	if err != nil {
		r.forget(j)
		return nil, err
	}
	return p, nil
}

func (r *runs) prepare(ctx context.Context, j *run, opt RunOptions) (*PreparedRun, error) {
	m, id := r.m, j.now.Pane
	mod, err := m.onePane(ctx, id)
	if err != nil {
		return nil, err
	}
	w, err := r.prompt(ctx, mod.Panes[0], opt.Ready)
	if err != nil {
		return nil, err
	}
	_, out := m.watches.liveStream(id)
	if out == nil || !out.live(mod.Panes[0].PID) {
		if _, out, err = m.watch(ctx, id, GapAttached); err != nil {
			return nil, err
		}
	}
	out.touch(time.Now())
	if err := m.emptyLine(ctx, id, out); err != nil {
		return nil, err
	}
	pane := mod.Panes[0]
	j.server, j.panePID, j.width, j.height = mod.Server, pane.PID, pane.Width, pane.Height
	j.shell, j.tty, j.typed, j.jobs = w.pid, w.tty, time.Now(), jobsOf(w.pid)
	st, err := wrap(w.Shell, j.now.ID, r.files.path(j.now.ID), opt.Command, opt.Same)
	if err != nil {
		return nil, err
	}
	j.out, j.tap = out, newTap(j.now.ID, runOutput)
	cursor, _ := out.tap(j.tap)
	j.change(func(v *Run) { v.Shell, v.Cursor, v.StartedAt = w.Shell, &cursor, j.typed })
	if err := r.files.stage(j.now.ID, st, j.record()); err != nil {
		return nil, err
	}
	return &PreparedRun{Line: st.line, Cursor: cursor, r: r, run: j}, nil
}

// prompt waits until a pane is at the prompt of a known shell. A pane seen so
// before, in the same shell, need not be looked at twice.
func (r *runs) prompt(ctx context.Context, p *Pane, limit time.Duration) (Waiting, error) {
	m := r.m
	w := m.lookAt(p)
	if w.For == WaitsPrompt && (m.looks.note(p.ID, w, time.Now()) || w.Settled) {
		return w, nil
	}
	patient := limit > 0
	if !patient {
		limit = readyLimit
	}
	var since time.Time
	var first Waiting
	w, err := m.AwaitWaiting(ctx, p.ID, limit, func(w Waiting) bool {
		if !w.same(first) {
			first, since = w, time.Now()
		}
		switch w.For {
		case WaitsPrompt, WaitsDead, WaitsMode, WaitsPassword:
			return true
		case WaitsBusy:
			return !patient && time.Since(since) >= busyLimit
		}
		return time.Since(since) >= busyLimit
	})
	switch {
	case err != nil:
		return w, err
	case w.For != WaitsPrompt:
		return w, &NotReadyError{p.ID, w}
	}
	m.looks.note(p.ID, w, time.Now())
	return w, nil
}

// newID makes the id of a run. It is random, so that no mark of another run and
// no old text can be taken for its own.
func (r *runs) newID() string {
	var b [5]byte
	rand.Read(b[:])
	return r.files.digest + hex.EncodeToString(b[:])
}

// claim takes the pane for a run.
func (r *runs) claim(j *run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.active[j.now.Pane]; other != nil {
		return fmt.Errorf("%w: pane %s has the run %s", ErrBusy, j.now.Pane, other.now.ID)
	}
	if r.ctx == nil {
		return ErrDetached
	}
	if len(r.active) >= maxRuns {
		return fmt.Errorf("%w: %d runs are under way", ErrBusy, len(r.active))
	}
	r.active[j.now.Pane] = j
	return nil
}

// forget drops a run that was never typed, with all it has made.
func (r *runs) forget(j *run) {
	r.mu.Lock()
	if r.active[j.now.Pane] == j {
		delete(r.active, j.now.Pane)
	}
	delete(r.byID, j.now.ID)
	r.mu.Unlock()
	if j.tap != nil {
		j.out.untap(j.tap)
	}
	r.files.remove(j.now.ID)
}

// Cancel drops the run: its line was not typed.
func (p *PreparedRun) Cancel() { p.r.forget(p.run) }

// Typed tells that the line was typed, or may have been: the run exists from
// here on, whatever happens to the caller. It answers its id.
func (p *PreparedRun) Typed() string {
	r, j := p.r, p.run
	r.mu.Lock()
	r.byID[j.now.ID] = j
	ctx := r.ctx
	if ctx != nil {
		r.wg.Go(func() { r.follow(ctx, j) })
	}
	r.prune()
	r.mu.Unlock()
	return j.now.ID
}
