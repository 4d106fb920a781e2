package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// seedHistory is how many rows above the screen the first read of a pane shows.
const seedHistory = 100

func sinceOut() map[string]schema {
	return map[string]schema{
		"byteClamped":        booleanOut().with("description", "This result was shortened by bytes."),
		"cursor":             orNull(patternOut(state.CursorPattern)).with("description", "Pass it to the next call."),
		"droppedLines":       integerOut().with("description", "Older lines of this read that maxLines cut off."),
		"effectiveTimeoutMs": integerOut().with("description", "Longest wait that was in effect; 0 if the call did not wait."),
		"missedBytes":        integerOut().with("description", "Bytes printed since the cursor that are no longer kept."),
		"omittedBytes":       integerOut(),
		"paneId":             patternOut(panePattern),
		"rangeClamped":       booleanOut(),
		"returnedBytes":      integerOut(),
		"seeded":             booleanOut().with("description", "This call started the watch; the text is the screen."),
		"streaming":          booleanOut(),
		"text":               stringOut(),
	}
}

type sinceArgs struct {
	PaneID   string  `arg:"paneId"`
	Cursor   *string `arg:"cursor"`
	MaxLines *int64  `arg:"maxLines"`
	WaitMs   *int64  `arg:"waitMs"`
}

// delta is what a read of a stream found.
type delta struct {
	text    string
	cursor  state.Cursor
	missed  int64
	gap     *state.Gap
	clamped bool // the seed's range was shortened
	bytes   bool // by the byte ceiling
	seeded  bool
	wait    time.Duration
}

func captureSince(ctx context.Context, c *call, a sinceArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	var d *delta
	if a.Cursor == nil {
		d, err = c.seed(ctx, id, c.lines(a.MaxLines))
	} else {
		d, err = c.since(ctx, id, *a.Cursor, a.WaitMs)
	}
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	return sinceResult(id, d, c.lines(a.MaxLines)), nil
}

func (c *call) seed(ctx context.Context, id controlmode.PaneID, lines int) (*delta, error) {
	start := -seedHistory
	shot, cursor, err := c.table.mirror.StartWatch(ctx, id,
		state.CaptureRange{Start: &start, Join: true, MaxRows: lines, RowBytes: resultCeiling})
	if err != nil {
		return nil, err
	}
	return &delta{
		text: screenText(shot), cursor: cursor, seeded: true,
		clamped: shot.RangeClamped, bytes: shot.ByteClamped,
	}, nil
}

// maxHeld is how much of an unfinished device string a cursor stays in front
// of; a longer one is given up and skipped as far as it is known.
const maxHeld = 256 << 10

// since reads on from a cursor. The cursor it gives stands before whatever is
// unfinished at the end of the output (part of a character or of an escape
// sequence), so that the next read finds it whole. A wait ends with the first
// text, not with the first byte.
func (c *call) since(ctx context.Context, id controlmode.PaneID, cursor string, waitMs *int64) (*delta, error) {
	from, err := state.ParseCursor(cursor)
	if err != nil {
		return nil, &problem{reason: "the cursor was not issued by this server", hint: cursorHint}
	}
	d := &delta{cursor: from}
	if waitMs != nil {
		d.wait = c.wait(*waitMs)
	}
	deadline := time.Now().Add(d.wait)
	var text, held []byte
	for {
		s, err := c.table.mirror.Since(ctx, id, d.cursor, max(0, time.Until(deadline)))
		if err != nil {
			return nil, cursorProblem(err, id, from)
		}
		d.cursor = s.Cursor
		d.missed += s.Missed
		if s.Gap != nil {
			d.gap, held = s.Gap, nil
		}
		data := append(held, s.Data...)
		var used int
		text, used = filterStream(text, data)
		held = data[used:]
		if s.Gap != nil || len(held) > maxHeld {
			held = nil // nothing to come fits on to it
		}
		if len(text) > 0 || s.Gap != nil || len(s.Data) == 0 || !time.Now().Before(deadline) {
			break
		}
	}
	d.cursor.Offset -= int64(len(held))
	d.text = string(text)
	return d, nil
}

// cursorProblem explains a cursor that cannot be used.
func cursorProblem(err error, id controlmode.PaneID, from state.Cursor) error {
	switch {
	case errors.Is(err, state.ErrOtherPane):
		return &problem{reason: fmt.Sprintf("the cursor belongs to pane %s, not to %s", from.Stream.Pane(), id), hint: cursorHint}
	case errors.Is(err, state.ErrCursor):
		return &problem{reason: err.Error(), hint: cursorHint}
	}
	return err
}

const cursorHint = "Leave the cursor out to start again: the answer is the screen and a fresh cursor."

func sinceResult(id controlmode.PaneID, d *delta, limit int) *toolResult {
	s := newest(d.text, limit)
	var o object
	o.b = make([]byte, 0, len(s.text)+512)
	o.open()
	o.bool("byteClamped", d.bytes || s.omitted > 0)
	o.string("cursor", d.cursor.String())
	o.int("droppedLines", s.dropped)
	o.int("effectiveTimeoutMs", int(d.wait.Milliseconds()))
	o.int("missedBytes", int(d.missed))
	o.int("omittedBytes", s.omitted)
	o.string("paneId", id.String())
	o.bool("rangeClamped", d.clamped)
	o.int("returnedBytes", len(s.text))
	o.bool("seeded", d.seeded)
	o.bool("streaming", true)
	o.string("text", s.text)
	o.close()

	res := &toolResult{Structured: o.b}
	var n notices
	n.add(d.missed > 0, "%s missed before this", plural(int(d.missed), "byte"))
	if d.gap != nil {
		n.add(true, "output is missing: %s", d.gap.Reason)
		gap := map[string]any{"reason": string(d.gap.Reason), "bytes": nil}
		if d.gap.Bytes != nil {
			gap["bytes"] = *d.gap.Bytes
		}
		res.Meta = map[string]any{metaGap: gap}
	}
	n.cut(s)
	n.add(s.text == "", "nothing new")
	body := s.text
	if body != "" && body[len(body)-1] != '\n' {
		body += "\n"
	}
	res.Text = n.over(body + "[cursor " + d.cursor.String() + "]")
	return res
}
