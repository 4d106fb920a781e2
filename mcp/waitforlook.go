package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/state"
)

// run waits to the end.
func (w *manyWait) run(ctx context.Context, p *clock) error {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		if err := w.look(ctx); err != nil || w.outcome != "" {
			return err
		}
		next.Reset(w.soonest())
		select {
		case <-w.wake:
		case <-next.C:
		case <-p.tick:
			p.tell(w.newest())
		case <-p.late:
			for _, f := range w.follows {
				if err := f.CatchUp(ctx); err != nil && !errors.Is(err, state.ErrNoServer) {
					return err
				}
			}
			if err := w.look(ctx); err != nil {
				return err
			}
			if w.outcome == "" {
				w.outcome = outcomeTimedOut
				w.read(ctx)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// soonest is how long nothing needs to be looked at unless there is news.
func (w *manyWait) soonest() time.Duration {
	wait, now := time.Hour, time.Now()
	for _, d := range w.conditions {
		switch {
		case d.matched:
		case d.args.Kind == kindSettled:
			wait = min(wait, d.quiet.Sub(now))
		case d.args.Kind == kindPrompt || d.args.Kind == kindPassword:
			if f := w.of(d); f != nil {
				wait = min(wait, f.dirty.Sub(now))
			}
		}
	}
	return max(wait, time.Millisecond)
}

// of is the follow of a condition's pane.
func (w *manyWait) of(d *condition) *followed {
	for _, f := range w.follows {
		if d.pane != nil && f.id == *d.pane && (d.args.Cursor == nil && f.from == "" || d.args.Cursor != nil && f.from == *d.args.Cursor) {
			return f
		}
	}
	return nil
}

func (w *manyWait) newest() string {
	for _, f := range slices.Backward(w.follows) {
		if line := w.c.redactLine(f.Newest(), f.Start(), f.Printed); line != "" {
			return f.id.String() + ": " + line
		}
	}
	return ""
}

// look looks at everything once.
func (w *manyWait) look(ctx context.Context) error {
	for _, d := range w.conditions {
		d.lookAtRun()
	}
	broken, why, err := w.lookAtOutput(ctx)
	if err != nil {
		return err
	}
	w.events()
	if err := w.states(ctx); err != nil {
		return err
	}
	if why == state.WhyServerGone || w.c.table.mirror.Gone(w.life) {
		w.gone()
	}
	if broken != nil && why == state.WhyPaneDied {
		for _, d := range w.conditions {
			if d.pane != nil && *d.pane == broken.id && d.args.Kind == string(state.PaneDied) {
				d.holds(d.pane, "its process has ended, or the pane is gone")
			}
		}
	}
	switch {
	case w.enough():
		w.outcome = outcomeMatched
	case why == state.WhyServerGone || w.c.table.mirror.Gone(w.life):
		w.outcome = outcomeServerGone
	case broken != nil && why == state.WhyPaneDied && w.needs(broken):
		w.outcome = outcomePaneDied
	case broken != nil && why == state.WhyGap:
		w.outcome = outcomeGap
	default:
		return nil
	}
	w.read(ctx)
	return ctx.Err()
}

// enough tells whether the conditions that hold end the wait.
func (w *manyWait) enough() bool {
	for _, d := range w.conditions {
		if d.matched != w.all {
			return !w.all
		}
	}
	return w.all
}

// needs tells whether a condition that does not hold yet needs the pane alive.
func (w *manyWait) needs(f *followed) bool {
	return slices.ContainsFunc(w.conditions, func(d *condition) bool { return !d.matched && d.run == nil && d.pane != nil && *d.pane == f.id })
}

// lookAtOutput looks at what the panes have printed, and answers the first whose
// output is lost or has ended, and why.
func (w *manyWait) lookAtOutput(ctx context.Context) (broken *followed, why state.Why, err error) {
	for _, f := range w.follows {
		if f.lost {
			continue
		}
		s := f.Look()
		w.output(f, &s)
		if !s.Over && s.Gap == nil && !s.Lost || broken != nil {
			continue
		}
		if s.Gap != nil {
			f.gap = s.Gap
		} else if s.Lost {
			f.gap = &state.Gap{Reason: state.GapEvicted}
		}
		broken, why = f, state.WhyGap
		if s.Over {
			if why, err = f.Why(ctx); err != nil {
				return nil, "", err
			}
		}
		if why != state.WhyServerGone && w.runsOnly(f) {
			f.lost, broken, why = true, nil, ""
		}
	}
	return broken, why, nil
}

// runsOnly tells whether a pane is only followed for the end of runs, which is
// told without its output, and even after the pane's end.
func (w *manyWait) runsOnly(f *followed) bool {
	return !slices.ContainsFunc(w.conditions, func(d *condition) bool { return d.run == nil && d.pane != nil && *d.pane == f.id })
}

// lookAtRun looks at whether the run of a condition has ended.
func (d *condition) lookAtRun() {
	if d.run == nil || d.matched {
		return
	}
	v := d.run.Now()
	if !v.Ended() {
		return
	}
	facts := runNotices(v, 0)
	for i := range facts {
		facts[i] = strings.Trim(facts[i], "[]")
	}
	d.holds(&v.Pane, "run %s %s: %s", v.ID, v.State, strings.Join(facts, "; "))
}

// output looks at what a pane has printed.
func (w *manyWait) output(f *followed, s *state.Sight) {
	now := time.Now()
	if s.Moved && f.dirty.After(now.Add(stateLookDelay)) {
		f.dirty = now.Add(stateLookDelay)
	}
	for _, d := range w.conditions {
		if w.of(d) != f || d.matched {
			continue
		}
		switch d.args.Kind {
		case kindText:
			for i := range s.Lines {
				if s.Lines[i].Has(&d.pattern) {
					d.holds(&f.id, "%s", s.Lines[i].Text)
					break
				}
			}
		case kindOutput:
			for i := range s.Lines {
				if s.Lines[i].Any() {
					d.holds(&f.id, "%s", s.Lines[i].Text)
					break
				}
			}
		case kindSettled:
			switch {
			case s.Moved:
				d.quiet = now.Add(d.idle)
			case !now.Before(d.quiet):
				d.holds(&f.id, "nothing printed for %d ms", d.idle.Milliseconds())
			}
		}
	}
}

// events looks at what has changed.
func (w *manyWait) events() {
	all, _ := w.c.table.mirror.Journal().Since(w.seq)
	for _, ch := range all {
		w.seq = ch.Seq
		seen, ok := w.c.change(ch)
		if !ok {
			continue
		}
		for _, d := range w.conditions {
			if !d.matched && d.args.Kind != kindRunEnded && d.scope.of(&seen) {
				d.holds(seen.Pane, "%s", eventText(&seen))
			}
		}
	}
}

// states looks at what panes wait for, after they have printed and now and then.
func (w *manyWait) states(ctx context.Context) error {
	now := time.Now()
	for _, f := range w.follows {
		var asked []*condition
		for _, d := range w.conditions {
			if !d.matched && w.of(d) == f && (d.args.Kind == kindPrompt || d.args.Kind == kindPassword) {
				asked = append(asked, d)
			}
		}
		if len(asked) == 0 || f.dirty.After(now) {
			continue
		}
		f.dirty = now.Add(stateLookApart)
		found, err := w.c.table.mirror.Waiting(ctx, f.id)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, d := range asked {
			if err == nil && found.Settled && string(found.For) == d.args.Kind {
				d.holds(&f.id, "%s", found.Evidence)
			}
		}
	}
	return nil
}

// gone notes that there is no tmux server any more.
func (w *manyWait) gone() {
	for _, d := range w.conditions {
		if d.args.Kind == string(state.ServerGone) {
			d.holds(nil, "the tmux server is gone")
		}
	}
}

// read reads what each pane has printed.
func (w *manyWait) read(ctx context.Context) {
	bytes := viewCeiling / 2 / max(len(w.follows), 1)
	opt := state.SinceOptions{MaxLines: w.limit, MaxBytes: bytes}
	for _, f := range w.follows {
		f.since, _ = w.c.redactSince(f.Start(), opt, f.Printed)
		if w.outcome == outcomeGap && f.gap != nil {
			if again, err := w.c.readSince(ctx, f.id, f.Start(), opt); err == nil {
				f.since = again // the cursor is of a stream that goes on
			}
		}
		if f.gap == nil && f.since != nil {
			f.gap = f.since.Gap
		}
	}
}

func (w *manyWait) result(p *clock) *toolResult {
	var matched, panes [][]byte
	n := notices{}
	n.add(true, "%s", w.outcome)
	for _, d := range w.conditions {
		if !d.matched {
			continue
		}
		evidence := w.evidence(d)
		var o object
		o.open()
		o.string("evidence", evidence)
		o.int("index", d.index)
		o.string("kind", d.args.Kind)
		if d.on != nil {
			o.string("paneId", d.on.String())
		} else {
			o.null("paneId")
		}
		o.close()
		matched = append(matched, o.b)
		n.add(true, "condition %d, %s: %s", d.index, d.args.Kind, evidence)
	}
	n.add(w.outcome == outcomeTimedOut, "timed out after %d ms; call again with the cursors to go on waiting", p.effective.Milliseconds())
	var text strings.Builder
	for _, f := range w.follows {
		panes = append(panes, w.pane(f, &text))
	}
	var o object
	o.open()
	o.int("effectiveTimeoutMs", int(p.effective.Milliseconds()))
	o.array("matched", matched)
	o.string("outcome", w.outcome)
	o.array("panes", panes)
	o.close()
	return &toolResult{Structured: o.b, Text: n.over(strings.TrimRight(text.String(), "\n"))}
}

// evidence is why a condition holds.
func (w *manyWait) evidence(d *condition) string {
	if f := w.of(d); f != nil && (d.args.Kind == kindText || d.args.Kind == kindOutput) {
		return w.c.redactLine(d.evidence, f.Start(), f.Printed)
	}
	return w.c.redactText(d.evidence)
}

// pane is one pane's part of the answer.
func (w *manyWait) pane(f *followed, text *strings.Builder) []byte {
	s := f.since
	if s == nil {
		s = &state.Since{}
	}
	var o object
	o.open()
	if w.outcome == outcomeServerGone || s.Cursor == (state.Cursor{}) {
		o.null("cursor")
	} else {
		o.string("cursor", s.Cursor.String())
	}
	o.int("droppedLines", s.DroppedLines)
	o.gap("gap", f.gap)
	o.int("missedBytes", int(s.Missed))
	o.string("paneId", f.id.String())
	o.string("text", s.Text)
	o.close()
	fmt.Fprintf(text, "%s printed %s\n%s", f.id, plural(len(s.Text), "byte"), s.Text)
	if s.Text != "" && !strings.HasSuffix(s.Text, "\n") {
		text.WriteByte('\n')
	}
	if s.Cursor != (state.Cursor{}) {
		text.WriteString("[cursor " + s.Cursor.String() + "]\n")
	}
	return o.b
}
