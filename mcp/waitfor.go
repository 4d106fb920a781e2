package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// Kinds of conditions that are told by a pane's output, and by what it waits for.
const (
	kindText     = "text"
	kindSettled  = "settled"
	kindOutput   = "output"
	kindRunEnded = "run_ended"
	kindPrompt   = "prompt"
	kindPassword = "password"
)

// waitKinds are the kinds of wait_for, in the order they are listed.
var waitKinds = slices.Concat(
	[]string{kindText, kindSettled, kindOutput, string(state.PaneDied), kindRunEnded, kindPrompt, kindPassword},
	kindNames([]state.ChangeKind{
		state.CommandChanged, state.TitleChanged, state.Bell, state.ModeChanged,
		state.PaneCreated, state.PaneClosed, state.WindowCreated, state.WindowClosed, state.SessionCreated, state.SessionClosed,
		state.PersonAttached, state.PersonLeft, state.ServerGone,
	}))

// How wait_for ends besides the ways of wait_for_text.
const (
	outcomeServerGone = "server_gone"
	outcomeGap        = "gap"
)

const (
	maxConditions  = 64
	defaultIdle    = time.Second
	stateLookApart = time.Second           // between looks at what a silent pane waits for
	stateLookDelay = 30 * time.Millisecond // after output, which comes before what it leads to
)

func conditionParams() []param {
	return []param{
		{name: "kind", required: true, enum: waitKinds, doc: "What to wait for."},
		paneParam(false),
		windowParam("windowId", false),
		{name: "session", doc: "Session id such as $1, or an exact name.", want: "a session id such as $1, or an exact session name"},
		{name: "runId", doc: "For run_ended: the run."},
		{name: "pattern", minLen: 1, doc: "For text: what to wait for, in one line."},
		{name: "regex", kind: kindBoolean, doc: "Take pattern as a regular expression (RE2 syntax)."},
		{name: "idleMs", kind: kindInteger, positive: true, doc: "For settled: how long the pane must print nothing. Default 1000."},
		cursorParam("For what a pane prints: start from here instead of now."),
	}
}

// waitForAny is the row of wait_for.
func waitForAny() *tool {
	conditions := conditionParams()
	decode := newDecoder(conditions)
	bind := binding[conditionArgs]("wait_for condition", conditions)
	return define(tool{
		name: "wait_for", title: "Wait for any of many things", toolset: inspect, tables: state.Full,
		doc: "Waits until one of 1 to 64 conditions holds, or all of them, on any panes: text, no output for a while " +
			"(settled), any output, a process that ended (pane_died), a shell at its prompt, a password that is asked for, a " +
			"changed command, title or mode, a bell, panes, windows and sessions that come or go, people who attach or leave, " +
			"the tmux server gone. paneId, windowId and session say where; without them anywhere. Text and echo count as in " +
			"wait_for_text. It also ends when a pane that is waited for dies or its output is lost. Always comes back in time, " +
			"with what each pane printed and the cursors to go on from.",
		params: []param{
			{
				name: "conditions", kind: kindObjects, required: true, minItems: 1, maxItems: maxConditions,
				items: inputSchema(conditions).with("additionalProperties", false), doc: "What to wait for.",
			},
			{name: "mode", enum: []string{"any", "all"}, doc: "Whether one condition is enough (default) or each must have held once."},
			timeoutParam(), maxLinesParam(),
		},
		output: output(map[string]schema{
			"effectiveTimeoutMs": integerOut(),
			"matched": arrayOut(objectOut(map[string]schema{
				"evidence": stringOut(), "index": countOut().with("description", "Of the condition."),
				"kind": enumOut(waitKinds...), "paneId": orNull(patternOut(panePattern)),
			})),
			"outcome": enumOut(outcomeMatched, outcomeTimedOut, outcomeCancelled, outcomeServerGone, outcomePaneDied, outcomeGap),
			"panes": arrayOut(objectOut(map[string]schema{
				"cursor":       orNull(patternOut(state.CursorPattern)).with("description", "Go on from here."),
				"droppedLines": integerOut(), "gap": gapOut(), "missedBytes": integerOut(),
				"paneId": patternOut(panePattern), "text": stringOut().with("description", "The newest part of what it printed."),
			})),
		}), reach: reachNone, effects: []string{effectObserve}, classes: []string{classMetadata, classTerminal},
	}, func(ctx context.Context, c *call, a waitForArgs) (*toolResult, error) {
		w := &manyWait{c: c, all: a.Mode != nil && *a.Mode == "all", limit: c.lines(a.MaxLines), wake: make(chan struct{}, 1)}
		for i, raw := range a.Conditions {
			values, err := decode.decode(raw)
			if err != nil {
				return nil, prefixed(fmt.Sprintf("conditions[%d]", i), err)
			}
			cond := &condition{index: i}
			bind(reflect.ValueOf(&cond.args).Elem(), values)
			w.conditions = append(w.conditions, cond)
		}
		p := c.clock(a.TimeoutMs)
		defer p.end()
		defer w.close()
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
		if err := w.run(ctx, p); err != nil {
			return nil, err
		}
		return w.result(p), nil
	})
}

type waitForArgs struct {
	Conditions []json.RawMessage `arg:"conditions"`
	Mode       *string           `arg:"mode"`
	TimeoutMs  *int64            `arg:"timeoutMs"`
	MaxLines   *int64            `arg:"maxLines"`
}

type conditionArgs struct {
	Kind     string  `arg:"kind"`
	PaneID   *string `arg:"paneId"`
	WindowID *string `arg:"windowId"`
	Session  *string `arg:"session"`
	RunID    *string `arg:"runId"`
	Pattern  *string `arg:"pattern"`
	Regex    bool    `arg:"regex"`
	IdleMs   *int64  `arg:"idleMs"`
	Cursor   *string `arg:"cursor"`
}

// condition is one thing that is waited for.
type condition struct {
	index   int
	args    conditionArgs
	pane    *controlmode.PaneID
	scope   scope
	pattern state.Pattern
	idle    time.Duration
	quiet   time.Time // settled: when it will have been silent for long enough

	matched  bool
	on       *controlmode.PaneID
	evidence string
}

func (d *condition) holds(on *controlmode.PaneID, format string, a ...any) {
	if !d.matched {
		d.matched, d.on, d.evidence = true, on, head(inline(fmt.Sprintf(format, a...)), 300)
	}
}

// followed is one pane that is followed, from one place.
type followed struct {
	*state.Follow
	id    controlmode.PaneID
	from  string // the cursor given, "" for none
	gap   *state.Gap
	since *state.Since
	dirty time.Time // when to look at what it waits for
}

// manyWait is one running wait_for.
type manyWait struct {
	c          *call
	all        bool
	limit      int
	conditions []*condition
	follows    []*followed
	wake       chan struct{}
	seq        uint64 // changes up to this one were looked at
	life       state.ServerID

	outcome string
}

func (w *manyWait) close() {
	w.c.table.mirror.Journal().Leave(w.wake)
	for _, f := range w.follows {
		f.Close()
	}
}

// begin checks the conditions and starts to follow their panes.
func (w *manyWait) begin(ctx context.Context) error {
	journal := w.c.table.mirror.Journal()
	journal.Join(w.wake)
	m, err := w.c.model(ctx, state.Full)
	if err != nil {
		return err
	}
	w.seq, w.life = journal.Seq(), m.Server.ID
	for _, d := range w.conditions {
		if err := w.prepare(ctx, d, m); err != nil {
			return prefixed(fmt.Sprintf("conditions[%d]", d.index), err)
		}
	}
	for _, d := range w.conditions {
		if d.pane == nil {
			continue
		}
		if err := w.follow(ctx, d); err != nil {
			return err
		}
		if p, ok := m.Pane(*d.pane); ok && p.Dead && d.args.Kind == string(state.PaneDied) {
			d.holds(d.pane, "dead already: %s", state.Death(p))
		}
	}
	if m.Server.ID == (state.ServerID{}) {
		w.gone()
	}
	return nil
}

// prepare reads one condition.
func (w *manyWait) prepare(ctx context.Context, d *condition, m *state.Model) error {
	a := &d.args
	if a.PaneID != nil {
		id, err := w.c.paneID(ctx, *a.PaneID)
		if err != nil {
			return err
		}
		if _, ok := m.Pane(id); !ok {
			return w.c.noPane(ctx, *a.PaneID)
		}
		d.pane = &id
	}
	d.scope = scope{kinds: []string{a.Kind}, pane: d.pane}
	if a.WindowID != nil {
		win, err := w.c.window(ctx, m, *a.WindowID)
		if err != nil {
			return err
		}
		d.scope.window = &win.ID
	}
	if a.Session != nil {
		s, err := w.c.session(ctx, m, sessionArgs{Session: a.Session})
		if err != nil {
			return err
		}
		d.scope.session = &s.ID
	}
	switch a.Kind {
	case kindText:
		if a.Pattern == nil {
			return &problem{reason: "kind text needs a pattern"}
		}
		var err error
		if d.pattern, err = state.NewPattern(*a.Pattern, a.Regex); err != nil {
			return badPattern(*a.Pattern, err)
		}
	case kindSettled:
		d.idle = defaultIdle
		if a.IdleMs != nil {
			d.idle = time.Duration(min(*a.IdleMs, 1<<40)) * time.Millisecond
		}
	case kindRunEnded:
		return &problem{reason: "run_ended: this daemon keeps no runs yet", hint: "Wait for prompt on the run's pane instead."}
	case kindOutput, kindPrompt, kindPassword:
	case string(state.PaneDied):
		d.scope.kinds = append(d.scope.kinds, string(state.PaneClosed)) // without remain-on-exit a dead pane is closed at once
		return nil
	default:
		return nil
	}
	if d.pane == nil {
		return &problem{reason: "kind " + a.Kind + " needs a paneId"}
	}
	d.quiet = time.Now().Add(d.idle)
	return nil
}

// follow starts to follow the pane of a condition, if it is not yet from there.
func (w *manyWait) follow(ctx context.Context, d *condition) error {
	from := ""
	if d.args.Cursor != nil {
		from = *d.args.Cursor
	}
	for _, f := range w.follows {
		if f.id == *d.pane && f.from == from {
			return nil
		}
	}
	var opt state.FollowOptions
	if from != "" {
		cursor, err := w.c.cursor(ctx, *d.pane, from)
		if err != nil {
			return err
		}
		opt.From = &cursor
	}
	f, err := w.c.table.mirror.Follow(ctx, *d.pane, opt, w.wake)
	if err != nil {
		if opt.From != nil {
			err = cursorProblem(err, *d.pane, *opt.From)
		}
		return w.c.missing(ctx, noStream(err), d.pane.String())
	}
	w.follows = append(w.follows, &followed{Follow: f, id: *d.pane, from: from, dirty: time.Now()})
	return nil
}

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
		if line := f.Newest(); line != "" {
			return f.id.String() + ": " + line
		}
	}
	return ""
}

// look looks at everything once.
func (w *manyWait) look(ctx context.Context) error {
	var broken *followed
	var why state.Why
	for _, f := range w.follows {
		s := f.Look()
		w.output(f, &s)
		if (s.Over || s.Gap != nil || s.Lost) && broken == nil {
			if s.Gap != nil {
				f.gap = s.Gap
			} else if s.Lost {
				f.gap = &state.Gap{Reason: state.GapEvicted}
			}
			broken, why = f, state.WhyGap
			if s.Over {
				var err error
				if why, err = f.Why(ctx); err != nil {
					return err
				}
			}
		}
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

// needs tells whether a condition that does not hold yet is about the pane.
func (w *manyWait) needs(f *followed) bool {
	return slices.ContainsFunc(w.conditions, func(d *condition) bool { return !d.matched && d.pane != nil && *d.pane == f.id })
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
			if !d.matched && d.scope.of(&seen) {
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
		f.since, _ = f.Printed(opt)
		if w.outcome == outcomeGap && f.gap != nil {
			if again, err := w.c.table.mirror.Since(ctx, f.id, f.Start(), opt); err == nil {
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
		var o object
		o.open()
		o.string("evidence", d.evidence)
		o.int("index", d.index)
		o.string("kind", d.args.Kind)
		if d.on != nil {
			o.string("paneId", d.on.String())
		} else {
			o.null("paneId")
		}
		o.close()
		matched = append(matched, o.b)
		n.add(true, "condition %d, %s: %s", d.index, d.args.Kind, d.evidence)
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
