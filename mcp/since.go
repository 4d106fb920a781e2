package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// seedHistory is how many rows above the screen the first read of a pane shows.
const seedHistory = 100

const (
	orderNewest = "newest"
	orderOldest = "oldest"
)

func sinceOut() map[string]schema {
	return map[string]schema{
		"alternateScreen": booleanOut().with("description", "A full-screen program runs; the text is its screen now."),
		"byteClamped":     booleanOut().with("description", "This result was shortened by bytes."),
		"continuesLine": booleanOut().with("description",
			"The first line goes on with the unfinished last line of the read before; otherwise, if that had no final newline, "+
				"it was rewritten and this is a line of its own."),
		"cursor":             orNull(patternOut(state.CursorPattern)).with("description", "Pass it to the next call; null while output cannot be followed."),
		"droppedLines":       integerOut().with("description", "Older lines of this read that maxLines cut off."),
		"effectiveTimeoutMs": integerOut().with("description", "Longest wait that was in effect; 0 if the call did not wait."),
		"gap":                gapOut().with("description", "The newest place before cursor where output may be missing, and why."),
		"missedBytes":        integerOut().with("description", "Bytes printed since the cursor that are no longer kept."),
		"more":               booleanOut().with("description", "There is more after cursor already."),
		"omittedBytes":       integerOut(),
		"paneId":             patternOut(panePattern),
		"rangeClamped":       booleanOut(),
		"rawBase64":          orNull(stringOut()).with("description", "The bytes, if raw was asked for."),
		"returnedBytes":      integerOut(),
		"seeded":             booleanOut().with("description", "This call started the watch; the text is the screen."),
		"streaming":          booleanOut().with("description", "False: the output cannot be followed at present, the text is the screen."),
		"text":               stringOut(),
	}
}

// gapOut is the schema of a gap in output.
func gapOut() schema {
	return schema{"anyOf": []any{
		objectOut(map[string]schema{
			"bytes":  orNull(integerOut()).with("description", "How much is missing; null if nobody can know."),
			"reason": stringOut(),
		}),
		schema{"type": "null"},
	}}
}

type sinceArgs struct {
	PaneID   string  `arg:"paneId"`
	Cursor   *string `arg:"cursor"`
	MaxLines *int64  `arg:"maxLines"`
	WaitMs   *int64  `arg:"waitMs"`
	SettleMs *int64  `arg:"settleMs"`
	Order    *string `arg:"order"`
	MaxBytes *int64  `arg:"maxBytes"`
	Raw      *bool   `arg:"raw"`
}

// delta is what a read of a stream found.
type delta struct {
	state.Since
	cursor    *state.Cursor // nil if the output cannot be followed
	clamped   bool          // the seed's range was shortened
	bytes     bool          // by the byte ceiling
	seeded    bool
	streaming bool
	raw       bool
	wait      time.Duration
}

func captureSince(ctx context.Context, c *call, a sinceArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	var d *delta
	if a.Cursor == nil {
		d, err = c.seed(ctx, id, c.lines(a.MaxLines), maxBytes(a.MaxBytes))
	} else {
		d, err = c.since(ctx, id, &a)
	}
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	return sinceResult(id, d), nil
}

// maxBytes is how much text an answer may hold.
func maxBytes(asked *int64) int {
	if asked == nil {
		return resultCeiling
	}
	return int(min(*asked, resultCeiling))
}

// seed starts the watch and answers the screen. While no connection to tmux can
// be had that delivers output, the screen is all there is.
func (c *call) seed(ctx context.Context, id controlmode.PaneID, lines, bytes int) (*delta, error) {
	start := -seedHistory
	r := state.CaptureRange{Start: &start, Join: true, MaxRows: lines, RowBytes: resultCeiling}
	d := &delta{seeded: true}
	shot, cursor, err := c.seedScreen(ctx, id, r)
	if err == nil && shot.Alternate { // what lies above belongs to the main screen
		r.Start = nil
		shot, cursor, err = c.seedScreen(ctx, id, r)
	}
	d.streaming = cursor != nil
	if err != nil {
		return nil, err
	}
	d.cursor, d.AlternateScreen = cursor, shot.Alternate
	c.began(d.cursor, screenText(shot))
	if shot.Start != nil {
		start = max(*shot.Start, -shot.HistorySize)
	}
	c.redactShot(ctx, id, shot, start, shot.Height-1)
	d.clamped, d.bytes = shot.RangeClamped, shot.ByteClamped
	s := newest(screenText(shot), lines)
	d.Text, d.DroppedLines, d.OmittedBytes = s.text, s.dropped, s.omitted
	if cut := tail(d.Text, bytes); len(cut) < len(d.Text) {
		d.OmittedBytes += len(d.Text) - len(cut)
		d.Text = cut
	}
	return d, nil
}

// seedScreen starts the watch; without a connection that delivers output there
// is no cursor.
func (c *call) seedScreen(ctx context.Context, id controlmode.PaneID, r state.CaptureRange) (*state.Capture, *state.Cursor, error) {
	shot, cursor, err := c.table.mirror.StartWatch(ctx, id, r)
	if errors.Is(err, state.ErrDetached) {
		shot, err = c.table.mirror.Capture(ctx, id, r)
		return shot, nil, err
	}
	return shot, &cursor, err
}

// since reads on from a cursor.
func (c *call) since(ctx context.Context, id controlmode.PaneID, a *sinceArgs) (*delta, error) {
	from, err := c.cursor(ctx, id, *a.Cursor)
	if err != nil {
		return nil, err
	}
	opt := state.SinceOptions{
		MaxLines: c.lines(a.MaxLines), MaxBytes: maxBytes(a.MaxBytes),
		Oldest: a.Order != nil && *a.Order == orderOldest, Raw: a.Raw != nil && *a.Raw,
	}
	if opt.Raw && a.MaxBytes == nil {
		opt.MaxBytes = rawCeiling
	}
	if a.WaitMs != nil {
		opt.Wait = c.wait(*a.WaitMs)
	}
	if a.SettleMs != nil {
		opt.Settle = c.wait(*a.SettleMs)
	}
	s, err := c.readSince(ctx, id, from, opt)
	if err != nil {
		return nil, cursorProblem(err, id, from)
	}
	return &delta{Since: *s, cursor: &s.Cursor, streaming: true, raw: opt.Raw, wait: opt.Wait}, nil
}

// cursor reads a cursor that a caller has given for a pane. One of a pane that
// does not exist for the caller is like one that was never issued.
func (c *call) cursor(ctx context.Context, id controlmode.PaneID, text string) (state.Cursor, error) {
	from, err := state.ParseCursor(text)
	if err != nil || from.Stream.Pane() != id && c.arrival.see(ctx, from.Stream.Pane()) != nil {
		return from, &problem{reason: "the cursor was not issued by this server", hint: cursorHint}
	}
	return from, nil
}

// rawCeiling keeps an answer of bytes, a third longer in base64, below the
// ceiling of results.
const rawCeiling = resultCeiling / 4 * 3

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

func sinceResult(id controlmode.PaneID, d *delta) *toolResult {
	var o object
	o.b = make([]byte, 0, len(d.Text)+len(d.Raw)*4/3+512)
	o.open()
	o.bool("alternateScreen", d.AlternateScreen)
	o.bool("byteClamped", d.bytes || d.OmittedBytes > 0)
	o.bool("continuesLine", d.ContinuesLine)
	if d.cursor != nil {
		o.string("cursor", d.cursor.String())
	} else {
		o.null("cursor")
	}
	o.int("droppedLines", d.DroppedLines)
	o.int("effectiveTimeoutMs", int(d.wait.Milliseconds()))
	o.gap("gap", d.Gap)
	o.int("missedBytes", int(d.Missed))
	o.bool("more", d.More)
	o.int("omittedBytes", d.OmittedBytes)
	o.string("paneId", id.String())
	o.bool("rangeClamped", d.clamped)
	if d.raw {
		o.string("rawBase64", base64.StdEncoding.EncodeToString(d.Raw))
	} else {
		o.null("rawBase64")
	}
	o.int("returnedBytes", len(d.Text)+len(d.Raw))
	o.bool("seeded", d.seeded)
	o.bool("streaming", d.streaming)
	o.string("text", d.Text)
	o.close()
	return &toolResult{Structured: o.b, Text: d.readable()}
}

// gap adds a gap in output or null.
func (o *object) gap(name string, g *state.Gap) {
	if g == nil {
		o.null(name)
		return
	}
	var in object
	in.open()
	if g.Bytes != nil {
		in.int("bytes", int(*g.Bytes))
	} else {
		in.null("bytes")
	}
	in.string("reason", string(g.Reason))
	in.close()
	o.raw(name, in.b)
}

// readable is the text half of the answer.
func (d *delta) readable() string {
	var n notices
	n.add(!d.streaming, "the output cannot be followed at present; this is the screen")
	n.count(int(d.Missed), "%s missed before this", "byte")
	if d.Gap != nil {
		n.add(true, "output is missing: %s", d.Gap.Reason)
	}
	n.count(d.DroppedLines, "%s before these not shown", "line")
	n.count(d.OmittedBytes, "%s before these not shown", "byte")
	n.add(d.AlternateScreen, "a full-screen program: its screen now")
	if d.raw {
		n.add(true, "%s in rawBase64", plural(len(d.Raw), "byte"))
	}
	n.add(d.Text == "" && !d.raw && !d.seeded, "nothing new")
	n.add(d.More, "there is more: read on from the cursor")
	end := ""
	if d.Text != "" && d.Text[len(d.Text)-1] != '\n' {
		end = "\n"
	}
	if d.cursor == nil {
		return n.over(d.Text + end)
	}
	return n.over(d.Text + end + "[cursor " + d.cursor.String() + "]")
}
