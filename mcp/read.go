package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The tools that read what a pane shows or prints.
func readTools() []*tool {
	content := func(name, title, doc string, params []param, out map[string]schema) tool {
		return tool{
			name: name, title: title, toolset: inspect, doc: doc, params: params, output: output(out),
			reach: reachNone, effects: []string{effectObserve}, classes: []string{classMetadata, classTerminal},
		}
	}
	since := content("capture_since", "Read new output",
		"Reads what a pane has printed since a cursor, or, without a cursor, starts watching it and returns its screen. "+
			"Pass the returned cursor to the next call; reads repeat nothing and count whatever was lost.",
		[]param{
			paneParam(true), maxLinesParam(),
			{
				name: "cursor", doc: "The cursor that the call before returned. Leave it out to start.",
				pattern: state.CursorPattern, match: isCursor, want: "a cursor that capture_since or snapshot_pane returned",
			},
			{
				name: "waitMs", kind: kindInteger,
				doc: "With a cursor: wait at most this many milliseconds for the first new text. Default 0.",
			},
			{
				name: "settleMs", kind: kindInteger, added: true,
				doc: "With waitMs: answer only when the pane has printed nothing for this many milliseconds.",
			},
			{
				name: "order", enum: []string{orderNewest, orderOldest}, added: true,
				doc: "Which lines to return when not all fit: the newest, and the others are counted as dropped (default), " +
					"or the oldest, and the returned cursor leads to the others.",
			},
			{
				name: "maxBytes", kind: kindInteger, positive: true, added: true,
				doc: "Return at most this many bytes of text. It can lower the server's limit, never raise it.",
			},
			{
				name: "raw", kind: kindBoolean, added: true,
				doc: "Return the bytes as they came, base64 in rawBase64, instead of text.",
			},
		},
		sinceOut())
	row := define(since, captureSince)
	row.waits = func(args any) bool {
		a := args.(sinceArgs)
		return a.Cursor != nil && a.WaitMs != nil && *a.WaitMs > 0
	}
	capture := define(content("capture_pane", "Capture a pane",
		"Captures the screen of a pane, or a range of rows with its history, as plain text.",
		[]param{
			paneParam(true), maxLinesParam(), historyParam(),
			{
				name: "start", kind: kindInteger, lowest: minSafe,
				doc: "First row: 0 is the top of the screen, negative rows are history. Default 0.",
			},
			{
				name: "end", kind: kindInteger, lowest: minSafe,
				doc: "Last row on the same scale; -1 is the row above the screen, not the last one. Default: the last row of the screen.",
			},
			{name: "joinWrapped", kind: kindBoolean, doc: "Join rows that the terminal wrapped into one line."},
		},
		captureOut()), capturePane)
	capture.screen = func(args any) (controlmode.PaneID, bool) {
		a := args.(captureArgs)
		id, err := controlmode.ParsePaneID(a.PaneID)
		return id, err == nil && a.Start == nil && a.End == nil && !a.JoinWrapped && !a.History
	}
	return []*tool{
		capture,
		row,
		define(content("snapshot_pane", "Snapshot a pane",
			"Shows the screen of a pane with its metadata and cursor position, all of one instant, and in _meta what "+
				"its program waits for. Wrapped rows are joined; blank rows below the cursor are left out.",
			[]param{paneParam(true), maxLinesParam(), historyParam()}, snapshotOut()), snapshotPane),
	}
}

// historyParam is the Java port's way to ask for scrollback.
func historyParam() param {
	return param{name: "history", kind: kindBoolean, hidden: true, doc: "Include the history."}
}

// isCursor is the grammar of a cursor alone: one whose offset is too large is
// well-formed, and refused later with a better text.
func isCursor(s string) bool {
	rest, ok := strings.CutPrefix(s, "ltxc1.")
	if !ok || len(rest) < 34 || rest[32] != '.' {
		return false
	}
	for i := range 32 {
		if c := rest[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	digits := rest[33:]
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits[0] != '0' || len(digits) == 1
}

// paneID reads a pane id and answers with alternatives if it cannot exist, or
// does not exist for the caller. Only an id that came from here, or from a
// model of the call's, may be given to the mirror.
func (c *call) paneID(ctx context.Context, s string) (controlmode.PaneID, error) {
	id, err := controlmode.ParsePaneID(s)
	if err != nil {
		return 0, c.noPane(ctx, s)
	}
	if err := c.arrival.see(ctx, id); err != nil {
		return 0, c.missing(ctx, err, s)
	}
	c.about(id)
	return id, nil
}

// missing gives a not-found error its alternatives.
func (c *call) missing(ctx context.Context, err error, pane string) error {
	if errors.Is(err, state.ErrNotFound) {
		return c.noPane(ctx, pane)
	}
	return err
}

// Rows that tmux accepts in capture-pane -S and -E. Others it ignores in
// silence (cmd-capture-pane.c, args_strtonum with INT_MIN and SHRT_MAX).
const (
	lowestRow  = math.MinInt32 + 1
	highestRow = math.MaxInt16
)

func rowOf(n *int64) *int {
	if n == nil {
		return nil
	}
	row := int(max(lowestRow, min(*n, highestRow)))
	return &row
}

func captureOut() map[string]schema {
	return map[string]schema{
		"byteClamped":    booleanOut().with("description", "The byte ceiling shortened the capture."),
		"droppedLines":   integerOut().with("description", "Lines cut from the front to keep within maxLines."),
		"effectiveEnd":   orNull(integerOut()),
		"effectiveStart": orNull(integerOut()),
		"omittedBytes":   integerOut().with("description", "UTF-8 bytes cut from the front by the byte ceiling."),
		"paneId":         patternOut(panePattern),
		"rangeClamped":   booleanOut().with("description", "A limit shortened the range of rows."),
		"returnedBytes":  integerOut(),
		"text":           stringOut(),
		"totalLines":     integerOut().with("description", "Lines captured before the line limit."),
	}
}

type captureArgs struct {
	PaneID      string `arg:"paneId"`
	Start       *int64 `arg:"start"`
	End         *int64 `arg:"end"`
	JoinWrapped bool   `arg:"joinWrapped"`
	MaxLines    *int64 `arg:"maxLines"`
	History     bool   `arg:"history"`
}

func (c *call) captureRange(a captureArgs) state.CaptureRange {
	r := state.CaptureRange{
		Start: rowOf(a.Start), End: rowOf(a.End), Join: a.JoinWrapped,
		MaxRows: c.lines(a.MaxLines), RowBytes: resultCeiling,
	}
	if a.History && r.Start == nil {
		r.Start = new(int)
		*r.Start = lowestRow
	}
	return r
}

func capturePane(ctx context.Context, c *call, a captureArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	r := c.captureRange(a)
	r.RowsOnly = c.policy.redact == nil // which has to know where the rows are
	shot, err := c.arrival.Capture(ctx, id, r)
	if err == nil && shot.RangeClamped && outside(shot) != "" && firstRow(r) < shot.Height {
		// An end far below the screen: the limit kept rows that do not exist.
		// Ask again for the end that does.
		bottom := shot.Height - 1
		r.End = &bottom
		shot, err = c.table.mirror.Capture(ctx, id, r)
	}
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	first, last := 0, shot.Height-1
	if shot.Start != nil {
		first = *shot.Start
	}
	if shot.End != nil {
		last = *shot.End
	}
	c.redactShot(ctx, id, shot, min(first, last), max(first, last))
	return captureResult(id, shot, c.lines(a.MaxLines)), nil
}

func firstRow(r state.CaptureRange) int {
	if r.Start == nil {
		return 0
	}
	return *r.Start
}

// outside says why no row of the range exists, "" if one does. tmux answers
// such a range with the nearest row it has, which was not asked for. (Ends in
// the wrong order are swapped by tmux; only if both lie outside there is none.)
func outside(shot *state.Capture) string {
	top, bottom := -shot.HistorySize, shot.Height-1
	switch {
	case shot.End != nil && *shot.End < top && (shot.Start == nil || *shot.Start < top):
		return fmt.Sprintf("the range ends before the history, which starts at row %d", top)
	case shot.Start != nil && *shot.Start > bottom && (shot.End == nil || *shot.End > bottom):
		return fmt.Sprintf("the range starts below the screen, whose last row is %d", bottom)
	}
	return ""
}

func captureResult(id controlmode.PaneID, shot *state.Capture, limit int) *toolResult {
	rows := shot.Lines
	none := outside(shot)
	if none != "" {
		rows = nil
	}
	s := newestRows(rows, limit)
	var o object
	o.b = make([]byte, 0, len(s.text)+512)
	o.open()
	o.bool("byteClamped", shot.ByteClamped || s.omitted > 0)
	o.int("droppedLines", s.dropped)
	o.intOrNull("effectiveEnd", shot.End)
	o.intOrNull("effectiveStart", shot.Start)
	o.int("omittedBytes", s.omitted)
	o.string("paneId", id.String())
	o.bool("rangeClamped", shot.RangeClamped)
	o.int("returnedBytes", len(s.text))
	o.string("text", s.text)
	o.int("totalLines", s.lines)
	o.close()
	var n notices
	n.add(none != "", "no rows: %s", none)
	n.add(shot.Alternate && firstRow(state.CaptureRange{Start: shot.Start}) < 0,
		"a full-screen program runs: rows from 0 on are its screen, those above the history of the main screen")
	n.add(shot.RangeClamped, "the range was shortened to its last rows")
	n.cut(s)
	return &toolResult{Text: n.over(strings.TrimRight(s.text, "\n")), Structured: o.b}
}

// screenText is captured text down to the cursor or the last row that is not
// blank. A text that ends at the start of a row ends in LF, so that what the
// pane prints next can be put right behind it.
func screenText(shot *state.Capture) string {
	lines := shot.Lines
	for range shot.Height - 1 - shot.CursorY {
		if n := len(lines); n < 2 || lines[n-1] != "" {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n")
}

func snapshotOut() map[string]schema {
	return map[string]schema{
		"content":        stringOut(),
		"cursorX":        integerOut(),
		"cursorY":        integerOut(),
		"droppedLines":   integerOut(),
		"inMode":         integerOut(),
		"pane":           paneViewOut(),
		"scrollPosition": integerOut(),
	}
}

// Keys of our own metadata.
const (
	metaCursor = "tmux-mcpd/cursor"
	// metaMain is the main screen while a full-screen program covers it (O07).
	metaMain = "tmux-mcpd/mainScreen"
)

type snapshotArgs struct {
	PaneID   string `arg:"paneId"`
	MaxLines *int64 `arg:"maxLines"`
	History  bool   `arg:"history"`
}

func snapshotPane(ctx context.Context, c *call, a snapshotArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	if a.History {
		return snapshotHistory(ctx, c, id, a)
	}
	shot, err := c.table.mirror.Snapshot(ctx, id)
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	return c.snapshotResult(ctx, shot, c.lines(a.MaxLines))
}

// snapshotHistory is the Java port's snapshot with scrollback. Its screen and
// cursor position are of one instant, the metadata is of another.
func snapshotHistory(ctx context.Context, c *call, id controlmode.PaneID, a snapshotArgs) (*toolResult, error) {
	shot, err := c.table.mirror.Capture(ctx, id,
		c.captureRange(captureArgs{JoinWrapped: true, MaxLines: a.MaxLines, History: true}))
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	m, p, err := c.pane(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	return c.snapshotResult(ctx, &state.Snapshot{Capture: *shot, Model: m, Pane: p}, c.lines(a.MaxLines))
}

func (c *call) snapshotResult(ctx context.Context, shot *state.Snapshot, limit int) (*toolResult, error) {
	w := c.waiting(ctx, shot.Pane)
	c.began(shot.Cursor, screenText(&shot.Capture))
	first := 0
	if shot.Start != nil {
		first = *shot.Start
	}
	c.redactShot(ctx, shot.Pane.ID, &shot.Capture, first, shot.Height-1)
	s := newest(screenText(&shot.Capture), limit)
	m := c.policy.within(shot.Model)
	row, ok := m.Pane(shot.Pane.ID)
	if !ok {
		return nil, fmt.Errorf("pane %s: %w", shot.Pane.ID, state.ErrNotFound)
	}
	pane := c.views(m).pane(row)
	var o object
	o.b = make([]byte, 0, len(s.text)+len(pane.json)+256)
	o.open()
	o.string("content", s.text)
	o.int("cursorX", shot.CursorX)
	o.int("cursorY", shot.CursorY)
	o.int("droppedLines", s.dropped)
	o.int("inMode", shot.Pane.InMode)
	o.raw("pane", pane.json)
	o.int("scrollPosition", shot.ScrollPosition)
	o.close()

	covered, err := c.covered(ctx, shot, limit)
	if err != nil {
		return nil, err
	}
	n := notices{pane.text}
	n.add(true, "cursor at column %d, row %d", shot.CursorX, shot.CursorY)
	n.add(shot.Alternate && covered == nil, "alternate screen")
	n.add(covered != nil, "alternate screen; the main screen is in _meta as %s", metaMain)
	n.add(shot.Pane.InMode > 0, "in %s, scrolled back %d; this is the live screen, not what a person sees there",
		cmp.Or(inline(shot.Pane.Mode), "a mode"), shot.ScrollPosition)
	n.add(true, "%s", waitingText(w))
	n.cut(s)
	res := withState(&toolResult{Text: n.over(s.text), Structured: o.b, Meta: map[string]any{metaCursor: nil}}, w)
	if shot.Cursor != nil {
		res.Meta[metaCursor] = shot.Cursor.String()
	}
	if covered != nil {
		res.Meta[metaMain] = *covered
	}
	return res, nil
}

// covered is the main screen that the alternate one of a snapshot covers, of a
// later instant; nil for none.
func (c *call) covered(ctx context.Context, shot *state.Snapshot, limit int) (*string, error) {
	if !shot.Alternate {
		return nil, nil
	}
	lines, ok, err := c.table.mirror.Covered(ctx, shot.Pane.ID)
	if err != nil || !ok {
		return nil, c.missing(ctx, err, shot.Pane.ID.String())
	}
	text := newestRows(c.redactRows(lines, shot.Width), limit).text
	return &text, nil
}
