package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// eventKinds are the kinds of what_changed, in the order they are listed.
var eventKinds = []state.ChangeKind{
	state.PaneDied, state.RunStarted, state.RunEnded, state.CommandStarted, state.CommandEnded, state.CommandChanged, state.TitleChanged, state.Bell, state.ModeChanged,
	state.PaneCreated, state.PaneClosed, state.WindowCreated, state.WindowClosed, state.SessionCreated, state.SessionClosed,
	state.PersonAttached, state.PersonLeft, state.ServerGone,
	state.Renamed, state.Moved, state.Resized, state.Selected, state.PaneRespawned,
}

func kindNames(kinds []state.ChangeKind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// whatChanged is the row of what_changed.
func whatChanged() *tool {
	return define(tool{
		name: "what_changed", title: "List what changed", toolset: inspect, tables: state.Full,
		doc: "Lists what has changed in all sessions since a cursor: panes, windows and sessions that came, went, moved or " +
			"got another name, size, title, foreground command or mode, processes that ended, runs and marked commands (see " +
			"list_commands) that started and ended, bells, people who attached or left. Without a cursor it lists the newest changes. It is the cheapest way to look around; with waitMs it " +
			"waits for the next change.",
		params: slices.Concat([]param{
			{
				name: "cursor", doc: "The cursor of the answer before. Leave it out to start.", pattern: state.JournalCursorPattern,
				match: func(s string) bool { _, err := state.ParseJournalCursor(s); return err == nil },
				want:  "a cursor that what_changed returned",
			},
			{
				name: "kinds", kind: kindStrings, maxItems: len(eventKinds), enum: kindNames(eventKinds),
				match: isEventKind, want: "one of " + strings.Join(kindNames(eventKinds), ", "),
				doc: "Only changes of these kinds.",
			},
			paneParam(false),
		}, sessionParams(false, "Only what happens in this session: an id such as $1, or an exact name."), []param{
			{name: "waitMs", kind: kindInteger, doc: "With a cursor: wait at most this many milliseconds for the first change. Default 0."},
			{name: "maxEvents", kind: kindInteger, positive: true, doc: "Return at most this many; the cursor leads to the others. Default 200."},
		}),
		output: output(map[string]schema{
			"cursor":             patternOut(state.JournalCursorPattern).with("description", "Pass it to the next call."),
			"effectiveTimeoutMs": integerOut(),
			"events": arrayOut(objectOut(map[string]schema{
				"after": orNull(stringOut()), "before": orNull(stringOut()), "kind": enumOut(kindNames(eventKinds)...),
				"paneId": orNull(patternOut(panePattern)), "sessionId": orNull(patternOut(sessionPattern)),
				"time": stringOut(), "windowId": orNull(patternOut(windowPattern)),
			})),
			"gap": booleanOut().with("description", "Changes before these are missing: list panes, windows and sessions again."),
		}), reach: reachNone, effects: []string{effectObserve}, classes: []string{classMetadata},
	}, listChanges)
}

func isEventKind(s string) bool { return slices.Contains(eventKinds, state.ChangeKind(s)) }

type changedArgs struct {
	sessionArgs
	Cursor    *string  `arg:"cursor"`
	Kinds     []string `arg:"kinds"`
	PaneID    *string  `arg:"paneId"`
	WaitMs    *int64   `arg:"waitMs"`
	MaxEvents *int64   `arg:"maxEvents"`
}

// scope is which changes somebody asks about.
type scope struct {
	kinds   []string
	pane    *controlmode.PaneID
	window  *controlmode.WindowID
	session *controlmode.SessionID
}

// of tells whether a change is in the scope.
func (s *scope) of(ch *state.Change) bool {
	switch {
	case len(s.kinds) > 0 && !slices.Contains(s.kinds, string(ch.Kind)),
		s.pane != nil && (ch.Pane == nil || *ch.Pane != *s.pane),
		s.window != nil && (ch.Window == nil || *ch.Window != *s.window):
		return false
	case s.session == nil || ch.Session != nil && *ch.Session == *s.session:
		return true
	}
	in := func(l state.Link) bool { return l.Session == *s.session }
	return slices.ContainsFunc(ch.Was, in) || slices.ContainsFunc(ch.Is, in)
}

func listChanges(ctx context.Context, c *call, a changedArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Full)
	if err != nil {
		return nil, err
	}
	s := scope{kinds: a.Kinds}
	if a.PaneID != nil {
		id, err := controlmode.ParsePaneID(*a.PaneID)
		if err != nil {
			return nil, c.noPane(ctx, *a.PaneID)
		}
		s.pane = &id // it may be gone: then that is what has changed
	}
	if _, ok := a.asked(); ok {
		found, err := c.session(ctx, m, a.sessionArgs)
		if err != nil {
			return nil, err
		}
		s.session = &found.ID
	}
	limit := c.lines(a.MaxEvents)
	journal := c.table.mirror.Journal()
	if a.Cursor == nil {
		all, _ := journal.Since(0)
		kept := c.changes(all, &s)
		e := &events{list: kept[max(len(kept)-limit, 0):], cursor: journal.At(0)}
		if len(all) > 0 {
			e.cursor = journal.At(all[len(all)-1].Seq)
		}
		return e.result(), nil
	}
	from, _ := state.ParseJournalCursor(*a.Cursor)
	var wait time.Duration
	if a.WaitMs != nil {
		wait = c.wait(*a.WaitMs)
	}
	e, err := c.changesAfter(ctx, from, &s, limit, wait)
	if err != nil {
		return nil, err
	}
	return e.result(), nil
}

// changes are those of a list that the caller may see and asks about.
func (c *call) changes(all []state.Change, s *scope) []state.Change {
	kept := []state.Change{}
	for _, ch := range all {
		if seen, ok := c.change(ch); ok && s.of(&seen) {
			kept = append(kept, seen)
		}
	}
	return kept
}

// changesAfter reads on from a cursor, and waits for something to tell.
func (c *call) changesAfter(ctx context.Context, from state.JournalCursor, s *scope, limit int, wait time.Duration) (*events, error) {
	journal := c.table.mirror.Journal()
	wake := make(chan struct{}, 1)
	if wait > 0 {
		journal.Join(wake)
		defer journal.Leave(wake)
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for over := wait <= 0; ; {
		all, gap := journal.After(from)
		e := &events{list: c.changes(all, s), gap: gap, cursor: from, wait: wait}
		if len(all) > 0 {
			e.cursor = journal.At(all[len(all)-1].Seq)
		} else if gap {
			e.cursor = journal.At(journal.Seq())
		}
		if len(e.list) > limit {
			e.list = e.list[:limit]
			e.cursor = journal.At(e.list[limit-1].Seq)
		}
		if over || len(e.list) > 0 || gap {
			return e, nil
		}
		from = e.cursor // what was not asked about need not be looked at again
		select {
		case <-wake:
		case <-late.C:
			over = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// events is the answer of what_changed.
type events struct {
	list   []state.Change
	cursor state.JournalCursor
	gap    bool
	wait   time.Duration
}

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func (e *events) result() *toolResult {
	rows := make([][]byte, 0, len(e.list))
	size := 0
	var text strings.Builder
	for i := range e.list {
		ch := &e.list[i]
		row := eventRow(ch)
		if size += len(row) + 1; size > viewCeiling/2 {
			e.list = e.list[:i]
			if i > 0 {
				e.cursor = e.cursor.Back(e.list[i-1].Seq)
			}
			break
		}
		rows = append(rows, row)
		text.WriteString(eventText(ch) + "\n")
	}
	var o object
	o.open()
	o.string("cursor", e.cursor.String())
	o.int("effectiveTimeoutMs", int(e.wait.Milliseconds()))
	o.array("events", rows)
	o.bool("gap", e.gap)
	o.close()
	var n notices
	n.add(e.gap, "changes before these are missing: list again")
	n.add(len(e.list) == 0, "nothing has changed")
	text.WriteString("[cursor " + e.cursor.String() + "]")
	return &toolResult{Structured: o.b, Text: n.over(text.String())}
}

func eventRow(ch *state.Change) []byte {
	var o object
	o.open()
	o.textOrNull("after", ch.After)
	o.textOrNull("before", ch.Before)
	o.string("kind", string(ch.Kind))
	if ch.Pane != nil {
		o.string("paneId", ch.Pane.String())
	} else {
		o.null("paneId")
	}
	if ch.Session != nil {
		o.string("sessionId", ch.Session.String())
	} else {
		o.null("sessionId")
	}
	o.string("time", ch.Time.UTC().Format(timeLayout))
	if ch.Window != nil {
		o.string("windowId", ch.Window.String())
	} else {
		o.null("windowId")
	}
	o.close()
	return o.b
}

// textOrNull writes text of tmux, null for none.
func (o *object) textOrNull(name, value string) {
	if value == "" {
		o.null(name)
		return
	}
	o.string(name, clean(value))
}

// eventText is a change on one line.
func eventText(ch *state.Change) string {
	var b strings.Builder
	b.WriteString(ch.Time.UTC().Format(timeLayout) + " " + string(ch.Kind))
	for _, id := range []fmt.Stringer{ch.Pane, ch.Window, ch.Session} {
		switch id := id.(type) {
		case *controlmode.PaneID:
			if id != nil {
				b.WriteString(" " + id.String())
			}
		case *controlmode.WindowID:
			if id != nil {
				b.WriteString(" " + id.String())
			}
		case *controlmode.SessionID:
			if id != nil {
				b.WriteString(" " + id.String())
			}
		}
	}
	switch {
	case ch.Before != "" && ch.After != "":
		b.WriteString(": " + inline(ch.Before) + " -> " + inline(ch.After))
	case ch.Before+ch.After != "":
		b.WriteString(": " + inline(ch.Before+ch.After))
	}
	return b.String()
}
