package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// Kinds of conditions that are told by a pane's output, and by what it waits for.
const (
	kindText     = "text"
	kindSettled  = "settled"
	kindOutput   = "output"
	kindRunEnded = string(state.RunEnded)
	kindPrompt   = "prompt"
	kindPassword = "password"
)

// waitKinds are the kinds of wait_for, in the order they are listed.
var waitKinds = slices.Concat(
	[]string{kindText, kindSettled, kindOutput, string(state.PaneDied), kindRunEnded, kindPrompt, kindPassword},
	kindNames([]state.ChangeKind{
		state.CommandEnded, state.CommandChanged, state.TitleChanged, state.Bell, state.ModeChanged,
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
		{name: "runId", max: 64, doc: "For run_ended: the run. Without it, the run that has the pane paneId now."},
		{name: "pattern", minLen: 1, doc: "For text: what to wait for, in one line."},
		{name: "regex", kind: kindBoolean, doc: "Take pattern as a regular expression (RE2 syntax)."},
		{name: "idleMs", kind: kindInteger, positive: true, doc: "For settled: how long the pane must print nothing. Default 1000."},
		cursorParam("For what a pane prints: start from here instead of now."),
	}
}

// waitForAny is the row of wait_for.
func waitForAny() *tool {
	conditions := conditionParams()
	read := conditionReader(conditions)
	return define(tool{
		name: "wait_for", title: "Wait for any of many things", toolset: inspect, tables: state.Full,
		doc: "Waits until one of 1 to 64 conditions holds, or all of them, on any panes: text, no output for a while " +
			"(settled), any output, a process that ended (pane_died), a run of run_shell_command that ended, a command that " +
			"the shell of the pane marks (command_ended, see list_commands), a shell at its prompt, a password that is asked for, a changed command, title or mode, a bell, panes, windows and sessions that " +
			"come or go, people who attach or leave, the tmux server gone. paneId, windowId and session say where; without them anywhere. Text and echo count as in " +
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
		var err error
		if w.conditions, err = read(a.Conditions); err != nil {
			return nil, err
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

// conditionReader returns the strict reading of the items of conditions. An
// error names the first item that is wrong.
func conditionReader(params []param) func([]json.RawMessage) ([]*condition, error) {
	decode := newDecoder(params)
	bind := binding[conditionArgs]("wait_for condition", params)
	return func(raws []json.RawMessage) ([]*condition, error) {
		conditions := make([]*condition, len(raws))
		for i, raw := range raws {
			values, err := decode.decode(raw)
			if err != nil {
				return nil, prefixed(fmt.Sprintf("conditions[%d]", i), err)
			}
			conditions[i] = &condition{index: i}
			bind(reflect.ValueOf(&conditions[i].args).Elem(), values)
		}
		return conditions, nil
	}
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
	run     *state.RunFollow

	matched  bool
	on       *controlmode.PaneID
	evidence string
}

func (d *condition) holds(on *controlmode.PaneID, format string, a ...any) {
	if !d.matched {
		d.matched, d.on, d.evidence = true, on, abridged(inline(fmt.Sprintf(format, a...)), 300)
	}
}

// followed is one pane that is followed, from one place.
type followed struct {
	*state.Follow
	id    controlmode.PaneID
	from  string // the cursor given, "" for none
	gap   *state.Gap
	since *state.Since
	lost  bool      // its output is over or has a hole, which ends no wait for a run
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
	for _, d := range w.conditions {
		if d.run != nil {
			d.run.Close()
		}
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
		if d.args.Kind != string(state.PaneDied) {
			continue
		}
		if p, ok := m.Pane(*d.pane); ok && p.Dead {
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
		return w.prepareRun(ctx, d)
	case kindOutput, kindPrompt, kindPassword, string(state.CommandEnded): // told of watched panes only
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
		if d.run != nil && ctx.Err() == nil && (opt.From == nil || errors.Is(err, state.ErrNotFound)) {
			d.pane = nil // the end of a run is told without its pane, which may be gone
			return nil
		}
		if opt.From != nil {
			err = cursorProblem(err, *d.pane, *opt.From)
		}
		return w.c.missing(ctx, noStream(err), d.pane.String())
	}
	w.follows = append(w.follows, &followed{Follow: f, id: *d.pane, from: from, dirty: time.Now()})
	return nil
}

// prepareRun reads the rest of a condition for the end of a run. The run's pane
// is followed unless it has become somebody else's.
func (w *manyWait) prepareRun(ctx context.Context, d *condition) error {
	mirror, id := w.c.table.mirror, ""
	switch {
	case d.args.RunID != nil:
		id = *d.args.RunID
	case d.pane == nil:
		return &problem{reason: "kind run_ended needs a runId or a paneId", hint: "list_runs shows the runs."}
	default:
		v, ok := mirror.ActiveRun(*d.pane)
		if !ok {
			return &problem{
				reason: fmt.Sprintf("no run has pane %s now", d.pane),
				hint:   "list_runs shows the runs, also those that have ended: give the runId.",
			}
		}
		id = v.ID
	}
	v, err := w.c.run(ctx, id)
	if err != nil {
		return err
	}
	if d.pane != nil && *d.pane != v.Pane {
		return &problem{reason: fmt.Sprintf("run %s is in pane %s, not %s", id, v.Pane, d.pane), hint: "Give the runId alone."}
	}
	if d.run, err = mirror.FollowRun(id, w.wake); err != nil {
		return w.c.noRun(ctx, id)
	}
	d.pane = nil
	if mirror.SameProcess(ctx, id) {
		d.pane = &v.Pane
	}
	return nil
}
