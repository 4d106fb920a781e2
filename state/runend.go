package state

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// How often a run is looked at. Its marks wake the follower; looking finds what
// prints no mark: a stopped or killed command, a pane that has gone, a status on
// record whose mark was lost.
const (
	followFast   = 50 * time.Millisecond
	followSlow   = time.Second
	followOften  = 2 * time.Second        // after which it is looked at slowly
	forgedAfter  = 100 * time.Millisecond // a job that has the terminal so long after its end mark has not printed it
	quietTime    = 200 * time.Millisecond // without output, before a lost mark is believed
	markLimit    = 10 * time.Second       // the same where no output is known to be missing
	goingOn      = 2 * time.Second        // at the prompt, before a job that lives is taken for one in the background
	unstartedEnd = 30 * time.Second       // after which a shell that does nothing has not run the line
)

// follower follows one run to its end.
type follower struct {
	r       *runs
	j       *run
	seen    int64 // end of the log at the last look
	changed time.Time
	prompt  time.Time // since when the shell's prompt was seen, zero if it is not
	settled time.Time // since when it was there, and tmux had nothing to deliver
	dead    time.Time // since when the pane has been dead
	wait    time.Duration
}

// follow runs until the run has ended or ctx is done: then the run goes on
// without us, and its files tell the next daemon.
func (r *runs) follow(ctx context.Context, j *run) {
	if j.out == nil && !r.rejoin(ctx, j) {
		return
	}
	f := &follower{r: r, j: j, changed: time.Now()}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if f.look(ctx) {
			return
		}
		timer.Reset(f.wait)
		select {
		case <-j.tap.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// look looks at the run once and tells whether it has ended.
func (f *follower) look(ctx context.Context) (ended bool) {
	j := f.j
	h, now := j.out.heard(j.tap), time.Now() // in this order: no mark is of later than now
	j.out.touch(now)
	if h.end != f.seen {
		f.seen, f.changed = h.end, now
	}
	f.wait = followFast
	if now.Sub(j.typed) > followOften && !h.gap && h.live {
		f.wait = followSlow
	}
	if h.from >= 0 {
		f.begun(h)
	}
	switch {
	case len(h.ends) > 0 && f.believe(h, now):
		return true
	case f.paneDied(h, now):
		return true
	case len(h.ends) > 0 && now.Sub(h.newest().when) < forgedAfter:
		return false // its job needs a moment to end
	case h.from < 0 && len(h.ends) == 0:
		return f.unstarted(ctx, h, now)
	}
	return f.running(ctx, h, now)
}

// begun notes that the command has started, and its process group: the one that
// has the terminal, or if it was stopped before we looked, the shell's new job.
func (f *follower) begun(h heard) {
	if f.group() == 0 {
		fg, own, ok := foregroundOf(f.j.shell)
		if ok && fg == own {
			fg = f.j.newJob()
		}
		if ok && fg != 0 {
			f.j.mu.Lock()
			f.j.group = fg
			f.j.mu.Unlock()
		}
	}
	if v := f.j.view(); v.Began {
		return
	}
	f.j.change(func(v *Run) {
		v.Began, v.StartedAt = true, h.began
		at := f.j.out.place(h.from)
		v.Cursor = &at
	})
}

// newJob is a job that the run's shell has now and had not before, 0 if there is
// none.
func (j *run) newJob() int {
	for _, job := range jobsOf(j.shell) {
		if !slices.Contains(j.jobs, job) {
			return job
		}
	}
	return 0
}

// group is the run's process group, 0 if unknown.
func (f *follower) group() int {
	f.j.mu.Lock()
	defer f.j.mu.Unlock()
	return f.j.group
}

// believe decides whether the newest end mark is the run's own: by the status on
// record, which the wrapper writes just before it, and by the terminal, which
// has gone back to the shell. What the terminal says is newer than the marks that
// were heard, since tmux may be late with them: so without such a record it
// decides nothing here, and running looks longer.
func (f *follower) believe(h heard, now time.Time) bool {
	e := h.newest()
	status, written, recorded := f.j.files.status(f.j.now.ID)
	fg, own, ok := foregroundOf(f.j.shell)
	back := !ok || fg == own || f.group() != 0 && fg != f.group()
	late := now.Sub(e.when) >= forgedAfter
	switch {
	case recorded && status == e.status && !e.when.Before(written) && (back || late):
	case !recorded && !ok && now.Sub(f.changed) >= quietTime: // nothing else can be told here
	default:
		if f.wait = lookSoon(now.Sub(e.when)); !back && late {
			f.j.mark(func(v *Run) { v.Foreign = true })
			f.wait = followFast
		}
		return false
	}
	f.finishAt(e, h)
	return true
}

// lookSoon is how long to wait before the next look at a job that ends, so long
// after its end mark.
func lookSoon(since time.Duration) time.Duration {
	return time.Millisecond << max(0, min(6, since/(2*time.Millisecond)))
}

// finishAt ends the run with an end mark.
func (f *follower) finishAt(e endedAt, h heard) {
	f.finish(RunCompleted, &e.status, e.at, h.from >= 0 && !h.gap, e.when, len(h.ends) > 1)
}

// paneDied ends the run of a pane that is dead or has gone. What the pane has
// left to say is waited for.
func (f *follower) paneDied(h heard, now time.Time) bool {
	const lastWords = time.Second
	// A server that is killed tells nobody: then the shell is gone, and no output comes.
	if !f.j.paneGone(f.r.m) && (h.live || processExists(f.j.shell)) {
		f.dead = time.Time{}
		return false
	}
	if f.dead.IsZero() {
		f.dead = now
	}
	if h.live && now.Sub(f.dead) < lastWords || !f.j.paneGone(f.r.m) && now.Sub(f.dead) < 2*lastWords {
		f.wait = followFast
		return false
	}
	if status, when, ok := f.j.files.status(f.j.now.ID); ok {
		f.finish(RunCompleted, &status, math.MaxInt64, false, when, false)
	} else {
		f.finish(RunPaneDied, nil, math.MaxInt64, false, now, false)
	}
	return true
}

// paneGone tells whether the pane that the run was typed into has ended, as of
// the newest model.
func (j *run) paneGone(m *Mirror) bool {
	mod := m.Model()
	if mod.Rev == 0 || mod.Asked.Before(j.typed) {
		return false
	}
	p, ok := mod.Pane(j.now.Pane)
	return mod.Server.ID != j.server.ID || !ok || p.Dead || p.PID != 0 && p.PID != j.panePID
}

// unstarted deals with a run whose start has not been seen.
func (f *follower) unstarted(ctx context.Context, h heard, now time.Time) bool {
	if h.gap || !h.live { // its start may be what is missing
		if status, when, ok := f.j.files.status(f.j.now.ID); ok {
			f.finish(RunCompleted, &status, math.MaxInt64, false, when, false)
			return true
		}
	}
	waited := now.Sub(f.j.typed)
	if waited < startLimit {
		return false
	}
	if f.settledAtPrompt(ctx, now) {
		state := RunNotStarted
		if h.gap {
			state = RunUnknown
		}
		f.finish(state, nil, h.end, false, now, false)
		return true
	}
	if waited >= unstartedEnd && !h.gap {
		f.finish(RunNotStarted, nil, h.end, false, now, false)
		return true
	}
	return false
}

// running deals with a run that has started and printed no end mark that can be
// believed.
func (f *follower) running(ctx context.Context, h heard, now time.Time) bool {
	j := f.j
	fg, own, ok := foregroundOf(j.shell)
	status, when, recorded := 0, time.Time{}, false
	if h.gap || !h.live || !ok || !f.prompt.IsZero() {
		status, when, recorded = j.files.status(j.now.ID)
	}
	silent := now.Sub(f.changed)
	if recorded && silent >= quietTime && (h.gap || !h.live || !ok && silent >= markLimit) {
		f.finish(RunCompleted, &status, math.MaxInt64, false, when, len(h.ends) > 0)
		return true
	}
	if ok && fg != own && j.view().State == RunStopped && fg == f.group() { // fg
		f.r.resume(j)
	}
	if !f.settledAtPrompt(ctx, now) {
		f.settled = time.Time{}
		return false
	}
	if f.settled.IsZero() {
		f.settled = time.Now()
	}
	e, marked := h.newest(), len(h.ends) > 0
	if silent < quietTime || marked && now.Sub(f.settled) < quietTime { // tmux can answer before it reads the pane
		return false
	}
	switch {
	case recorded && marked && e.status == status: // the clock of the record's disk is ahead
		f.finishAt(e, h)
		return true
	case recorded && !h.gap && h.live && silent < markLimit:
		return false // the mark is on its way: tmux is busy
	case recorded:
		f.finish(RunCompleted, &status, math.MaxInt64, false, when, marked)
		return true
	case stoppedIn(f.group(), j.shell):
		f.r.suspend(j)
		f.wait = followFast
		return false
	case f.groupLives() && now.Sub(f.prompt) < goingOn:
		return false // fg: mksh and ksh93 continue a job before they give it the terminal
	case marked: // the status could not be written
		f.finishAt(e, h)
		return true
	}
	f.finish(RunUnknown, nil, f.beforePrompt(), false, now, false)
	return true
}

// groupLives tells whether a process of the run's group is left.
func (f *follower) groupLives() bool {
	g := f.group()
	return g > 1 && !errors.Is(syscall.Kill(-g, 0), syscall.ESRCH)
}

// atPrompt tells whether the run's shell reads a command line at this moment.
func (f *follower) atPrompt() bool {
	s := look(f.j.shell, f.j.tty)
	w := classify(s)
	return w.For == WaitsPrompt && w.pid == f.j.shell
}

// settledAtPrompt tells whether the shell has been at its prompt for two looks,
// and all that tmux had from the pane has been delivered since.
func (f *follower) settledAtPrompt(ctx context.Context, now time.Time) bool {
	if !f.atPrompt() {
		f.prompt = time.Time{}
		return false
	}
	if f.prompt.IsZero() {
		f.prompt, f.wait = now, lookApart+time.Millisecond
		return false
	}
	f.wait = followFast
	if now.Sub(f.prompt) < lookApart || now.Sub(f.changed) < lookApart {
		return false
	}
	_, err := f.r.m.caughtUp(ctx, f.j.now.Pane, GapAttached)
	h := f.j.out.heard(f.j.tap)
	return err == nil && h.end == f.seen
}

// beforePrompt is, roughly, where the prompt begins that is shown now.
func (f *follower) beforePrompt() int64 {
	b, from := f.j.out.taken(f.j.tap, math.MaxInt64)
	if i := bytes.LastIndex(b, []byte("\x1b[?2004h")); i >= 0 {
		b = b[:i]
	}
	return from + int64(bytes.LastIndexByte(b, '\n')+1)
}

// mark changes the run without waking anybody.
func (j *run) mark(f func(*Run)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&j.now)
}

// suspend notes that the command was stopped: the pane is free, and what it
// prints is not the run's any more.
func (r *runs) suspend(j *run) {
	if j.view().State == RunStopped {
		return
	}
	j.out.hush(j.tap)
	r.release(j)
	j.change(func(v *Run) { v.State, v.OutputComplete = RunStopped, false })
}

// resume notes that a stopped command goes on.
func (r *runs) resume(j *run) {
	r.mu.Lock()
	if r.active[j.now.Pane] == nil {
		r.active[j.now.Pane] = j
	}
	r.mu.Unlock()
	j.change(func(v *Run) { v.State = RunRunning })
}

// release gives the pane of a run back.
func (r *runs) release(j *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[j.now.Pane] == j {
		delete(r.active, j.now.Pane)
	}
}

// finish ends the run. Its output ends at an offset; complete tells whether
// that and its beginning are exact and nothing is missing between.
func (f *follower) finish(state RunState, status *int, end int64, complete bool, when time.Time, foreign bool) {
	j, o := f.j, f.j.out
	o.untap(j.tap)
	h := o.heard(j.tap)
	j.mu.Lock()
	if state == RunNotStarted || !j.now.Began {
		j.early = h.early
	}
	if h.from >= 0 {
		j.kept.raw, j.kept.from = o.taken(j.tap, end)
		j.kept.lost = j.kept.from - h.from
	}
	j.kept.epochs = o.epochsCopy()
	j.tap.kept = ring{}
	j.mu.Unlock()
	f.r.release(j)
	if !j.view().NewPane {
		j.files.remove(j.now.ID)
	}
	if status != nil {
		n := statusOf(*status)
		status = &n
	}
	if when.IsZero() {
		when = time.Now()
	}
	j.change(func(v *Run) {
		v.State, v.ExitStatus, v.EndedAt = state, status, when
		v.OutputComplete = v.OutputComplete && complete && j.kept.lost == 0
		v.Foreign = v.Foreign || foreign
	})
	if j.view().NewPane {
		f.r.rests(j)
	}
	f.r.m.log.Debug("run ended", zap.String("run", j.now.ID), zap.String("state", string(state)))
}

// place names an offset of the log.
func (o *Output) place(at int64) Cursor {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streamLocked(at)
}

func (o *Output) epochsCopy() []epoch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]epoch(nil), o.epochs...)
}
