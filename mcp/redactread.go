package mcp

import (
	"context"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// contextRows is how many rows around a captured range are looked at for the
// other part of a secret.
const contextRows = 64

// rowsAt are the rows of a range of a pane's grid. Rows that do not exist, or
// cannot be read, are none.
func (c *call) rowsAt(ctx context.Context, id controlmode.PaneID, from, to int) []string {
	shot, err := c.table.mirror.Capture(ctx, id, state.CaptureRange{Start: &from, End: &to})
	// tmux answers a range outside with the nearest row it has.
	if err != nil || to < -shot.HistorySize || from > shot.Height-1 {
		return nil
	}
	return shot.Lines
}

// redactShot takes secrets out of a capture of the rows from first to last.
func (c *call) redactShot(ctx context.Context, id controlmode.PaneID, shot *state.Capture, first, last int) {
	r := c.policy.redact
	if r == nil {
		return
	}
	before := c.rowsAt(ctx, id, first-contextRows, first-1)
	var after []string
	if last < shot.Height-1 {
		after = c.rowsAt(ctx, id, last+1, last+contextRows)
	}
	width := shot.Width
	if width == 0 {
		width = max(widest(shot.Lines), widest(before), widest(after))
	}
	lines, n := r.rows(before, shot.Lines, after, width)
	shot.Lines = lines
	c.arrival.redacted.Add(int64(n))
}

// redactRows takes secrets out of the rows of a screen.
func (c *call) redactRows(rows []string, width int) []string {
	if c.policy.redact == nil {
		return rows
	}
	rows, n := c.policy.redact.rows(nil, rows, nil, width)
	c.arrival.redacted.Add(int64(n))
	return rows
}

// holdBack is how long the end of a delta is held back that may be the beginning
// of a secret, for the rest to come.
const holdBack = 150 * time.Millisecond

// readSince is Mirror.Since without secrets.
func (c *call) readSince(ctx context.Context, id controlmode.PaneID, from state.Cursor, opt state.SinceOptions) (*state.Since, error) {
	if c.policy.redact != nil && opt.Raw {
		return nil, &problem{
			reason: "raw is not available on this socket: it takes secrets out of text, and bytes may hide them",
			hint:   "Leave raw out.",
		}
	}
	return c.withoutSecrets(from, opt, func(opt state.SinceOptions) (*state.Since, error) {
		s, err := c.table.mirror.Since(ctx, id, from, opt)
		if c.policy.redact == nil || err != nil || s.More || !c.policy.redact.unfinished(s.Text) {
			return s, err
		}
		opt.Wait, opt.Settle = 0, 0
		t := time.NewTimer(holdBack)
		defer t.Stop()
		select {
		case <-t.C:
			return c.table.mirror.Since(ctx, id, from, opt)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}, func(page *state.Since) string {
		if !opt.Oldest {
			return ""
		}
		return c.following(ctx, id, page)
	})
}

// following is the beginning of what there is after a page already: the other
// part of a secret may be there.
func (c *call) following(ctx context.Context, id controlmode.PaneID, page *state.Since) string {
	if !page.More {
		return ""
	}
	next, err := c.table.mirror.Since(ctx, id, page.Cursor, state.SinceOptions{Oldest: true, MaxBytes: seenBytes})
	if err != nil || next.AlternateScreen {
		return ""
	}
	return joined(page.Text, next.Text, next.ContinuesLine)
}

// joined is a text with what has to stand between it and the text before.
func joined(before, text string, goesOn bool) string {
	if text != "" && !goesOn && before != "" && before[len(before)-1] != '\n' {
		return "\n" + text
	}
	return text
}

// redactSince takes secrets out of what read finds after a cursor.
func (c *call) redactSince(from state.Cursor, opt state.SinceOptions, read sinceReader) (*state.Since, error) {
	return c.withoutSecrets(from, opt, read, func(*state.Since) string { return "" })
}

type sinceReader func(state.SinceOptions) (*state.Since, error)

// withoutSecrets is redactSince where following tells what there is after a page.
func (c *call) withoutSecrets(from state.Cursor, opt state.SinceOptions, read sinceReader, following func(*state.Since) string) (*state.Since, error) {
	r := c.policy.redact
	if r == nil {
		return read(opt)
	}
	// Cut afterwards: the part of a secret that a limit leaves would look like
	// none.
	whole := opt
	if !opt.Oldest {
		whole.MaxLines, whole.MaxBytes = 0, 0
	}
	found, err := read(whole)
	if err == nil && opt.Oldest && found.AlternateScreen { // which is no page
		whole.MaxLines, whole.MaxBytes, whole.Wait, whole.Settle = 0, 0, 0, 0
		found, err = read(whole)
	}
	if err != nil {
		return nil, err
	}
	s := *found
	width, n := c.widthOf(from.Stream.Pane()), 0
	if s.AlternateScreen {
		var rows []string
		rows, n = r.rows(nil, strings.Split(s.Text, "\n"), nil, width)
		s.Text = strings.Join(rows, "\n")
		r.seen.put(s.Cursor.String(), "")
	} else {
		goesOn := s.ContinuesLine
		if !r.seen.has(from.String()) {
			goesOn = c.lookBack(from, &s)
		}
		s.Text, n = r.delta(from.String(), s.Text, s.Cursor.String(), around{after: following(&s), goesOn: goesOn, width: width})
	}
	c.arrival.redacted.Add(int64(n))
	if opt.Oldest && !s.AlternateScreen {
		return &s, nil
	}
	cut := newestOf(s.Text, opt.MaxLines, opt.MaxBytes)
	s.Text, s.Lines = cut.text, min(s.Lines, cut.lines-cut.dropped)
	s.DroppedLines += cut.dropped
	s.OmittedBytes += cut.omitted
	if cut.dropped > 0 || s.OmittedBytes > 0 {
		s.ContinuesLine = false
	}
	return &s, nil
}

const (
	// lookBackRows is how far above a text the pane is looked at for the beginning
	// of a secret: a private key of 8192 bits has 100 lines.
	lookBackRows = 128
	// lookBackLimit bounds that look: it is for an answer that is due.
	lookBackLimit = 2 * time.Second
)

// lookBack remembers what the pane shows before a text that was read from a cursor
// of which this redactor knows nothing: another daemon gave it out, or another
// socket, or it is too long ago. It tells whether the text goes on with the last
// line of that. Where the pane does not show the text, for one because the cursor
// moved, all that it shows counts as before it.
func (c *call) lookBack(from state.Cursor, s *state.Since) (goesOn bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lookBackLimit)
	defer cancel()
	start := -(lookBackRows + strings.Count(s.Text, "\n"))
	shot, err := c.table.mirror.Capture(ctx, from.Stream.Pane(), state.CaptureRange{Start: &start, Join: true, RowBytes: resultCeiling})
	if err != nil || shot.Alternate { // which says nothing about what lies below
		return s.ContinuesLine
	}
	before := screenText(shot)
	at := strings.LastIndex(before, strings.TrimRight(s.Text, "\n"))
	if at >= 0 {
		before = before[:at]
	}
	goesOn = at > 0 && before[at-1] != '\n'
	if s.ContinuesLine && !goesOn {
		before, goesOn = before+unknownStart, true
	}
	c.policy.redact.seen.put(from.String(), before)
	return goesOn
}

// newestOf is newest with both limits to choose; 0 stands for the greatest.
func newestOf(text string, lines, bytes int) shortened {
	if lines <= 0 {
		lines = MaxLines
	}
	s := newest(text, lines)
	if bytes > 0 && len(s.text) > bytes {
		short := tail(s.text, bytes)
		s.omitted += len(s.text) - len(short)
		s.text = short
	}
	return s
}

// runText is Mirror.RunText without secrets.
func (c *call) runText(id string, opt state.RunTextOptions) (v state.Run, t state.RunText, err error) {
	t, err = c.printedText(opt, func(opt state.RunTextOptions) (controlmode.PaneID, state.RunText, error) {
		var t state.RunText
		v, t, err = c.table.mirror.RunText(id, opt)
		return v.Pane, t, err
	})
	return v, t, err
}

// commandText is Mirror.CommandText without secrets.
func (c *call) commandText(pane controlmode.PaneID, id string, opt state.RunTextOptions) (v state.Command, t state.RunText, err error) {
	t, err = c.printedText(opt, func(opt state.RunTextOptions) (controlmode.PaneID, state.RunText, error) {
		var t state.RunText
		v, t, err = c.table.mirror.CommandText(pane, id, opt)
		return pane, t, err
	})
	return v, t, err
}

// printedText is what a run or a command of a pane has printed, without secrets.
func (c *call) printedText(opt state.RunTextOptions,
	read func(state.RunTextOptions) (controlmode.PaneID, state.RunText, error),
) (state.RunText, error) {
	r := c.policy.redact
	if r == nil {
		_, t, err := read(opt)
		return t, err
	}
	lines, bytes := opt.MaxLines, opt.MaxBytes
	if opt.From == nil { // cut afterwards, as a delta is
		opt.MaxLines, opt.MaxBytes = 0, 0
	}
	opt.Around = seenBytes
	pane, t, err := read(opt)
	if err != nil {
		return t, err
	}
	a := around{
		before: t.Before, goesOn: t.ContinuesLine, after: joined(t.Text, t.After, false),
		width: c.widthOf(pane), open: t.After == "",
	}
	var n int
	t.Text, n = r.part(t.Text, a)
	c.arrival.redacted.Add(int64(n))
	if opt.From == nil {
		cut := newestOf(t.Text, lines, bytes)
		t.Text, t.Lines = cut.text, min(t.Lines, cut.lines-cut.dropped)
		t.DroppedLines += cut.dropped
		t.OmittedBytes += cut.omitted
	}
	return t, nil
}

// redactText takes secrets out of a line of output that stands for itself.
func (c *call) redactText(s string) string {
	r := c.policy.redact
	if r == nil {
		return s
	}
	s, n := r.unended(s)
	c.arrival.redacted.Add(int64(n))
	return s
}

// redactLine takes secrets out of a line that was printed after a cursor. Where
// secrets are taken out of what was printed there, a line that is not left in it
// is part of one.
func (c *call) redactLine(line string, from state.Cursor, read sinceReader) string {
	if c.policy.redact == nil || line == "" {
		return line
	}
	clean := c.redactText(line)
	s, err := c.redactSince(from, state.SinceOptions{}, read)
	if err != nil || clean == line && strings.Contains(s.Text, redacted) && !strings.Contains("\n"+s.Text, "\n"+strings.TrimRight(line, " ")) {
		return redacted
	}
	return clean
}

// began remembers what a first read showed, for the delta that goes on from it.
func (c *call) began(cursor *state.Cursor, shown string) {
	if c.policy.redact != nil && cursor != nil {
		c.policy.redact.seen.put(cursor.String(), shown)
	}
}

// redactLines is what takes secrets out of the lines of a pane, the first of
// which begins at a row, before they are searched; nil if there is nothing to do.
func (c *call) redactLines(ctx context.Context, first int) func(controlmode.PaneID, []state.ShownLine) []state.ShownLine {
	r := c.policy.redact
	if r == nil {
		return nil
	}
	return func(id controlmode.PaneID, lines []state.ShownLine) []state.ShownLine {
		texts := make([]string, len(lines))
		for i := range lines {
			texts[i] = lines[i].Text
		}
		before := c.rowsAt(ctx, id, first-contextRows, first-1)
		texts, n := r.rows(before, texts, nil, max(widest(before), c.widthOf(id)))
		c.arrival.redacted.Add(int64(n))
		out := slices.Clone(lines)
		for i := range out {
			out[i].Text = texts[i]
		}
		return out
	}
}

// widthOf is the newest known width of a pane.
func (c *call) widthOf(id controlmode.PaneID) int {
	if p, ok := c.table.mirror.Model().Pane(id); ok {
		return p.Width
	}
	return 0
}
