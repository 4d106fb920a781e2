package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// metaRedacted counts what was taken out of an answer.
const metaRedacted = "tmux-mcpd/redacted"

// redactor takes secrets out of what a socket's clients are told, never out of
// what they say. It knows shapes: a secret that looks like nothing in particular
// stays.
type redactor struct {
	detectors, beginnings []detector
	seen                  seen
}

// CheckPatterns tells whether all of these are regular expressions (RE2).
func CheckPatterns(list []string) error {
	_, err := newRedactor(list)
	return err
}

func newRedactor(patterns []string) (*redactor, error) {
	r := &redactor{detectors: slices.Clone(detectors), beginnings: slices.Clone(beginnings)}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", quote(p), err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("pattern %s matches nothing at all, and so everywhere", quote(p))
		}
		r.detectors = append(r.detectors, detector{Regexp: re})
		if prefix, _ := re.LiteralPrefix(); prefix != "" {
			r.beginnings = append(r.beginnings, detector{Regexp: regexp.MustCompile(regexp.QuoteMeta(prefix) + `\S*\z`)})
		}
	}
	return r, nil
}

// text takes secrets out of a text that stands for itself.
func (r *redactor) text(s string) (string, int) { return replace(s, 0, find(s, r.detectors)) }

// unended is text for what may go on: what can be the beginning of a secret at
// its end is taken out as well.
func (r *redactor) unended(s string) (string, int) {
	return replace(s, 0, find(s, r.detectors, r.beginnings))
}

// rows takes secrets out of rows of a screen of that width, across the places
// where the terminal wrapped them. before and after are the rows around them.
func (r *redactor) rows(before, rows, after []string, width int) ([]string, int) {
	all := slices.Concat(before, rows, after)
	spans := make([][]span, len(all))
	count := 0
	for _, soft := range []bool{false, true} {
		text, starts := joinRows(all, width, soft)
		found := find(text, r.detectors)
		if len(after) == 0 { // what the pane shows last may go on
			found = merged(append(found, find(strings.TrimRight(text, " \n"), r.beginnings)...))
		}
		for _, s := range found {
			here := false
			for i := range all {
				from, to := max(s.from-starts[i], 0), min(s.to-starts[i], len(all[i]))
				if from < to {
					spans[i] = append(spans[i], span{from, to})
					here = here || i >= len(before) && i < len(before)+len(rows)
				}
			}
			if here {
				count++
			}
		}
	}
	if count == 0 {
		return rows, 0
	}
	out, count := make([]string, len(rows)), 0
	open := false // the row before ended in a secret
	for i := range rows {
		k := len(before) + i
		own := merged(spans[k])
		out[i], _ = replace(all[k], 0, own)
		for _, s := range own {
			if s.from > 0 || !open {
				count++
			}
		}
		open = len(own) > 0 && own[len(own)-1].to == len(all[k])
	}
	return out, max(count, 1)
}

// joinRows joins rows by newlines, or where a row fills the width and may have
// been wrapped by nothing. starts are where each row starts in the text.
func joinRows(rows []string, width int, soft bool) (text string, starts []int) {
	var b strings.Builder
	starts = make([]int, len(rows))
	for i, row := range rows {
		starts[i] = b.Len()
		b.WriteString(row)
		if !soft || cells(row) < width-1 {
			b.WriteByte('\n')
		}
	}
	return b.String(), starts
}

// cells is about how many columns a row takes.
func cells(row string) int {
	n := 0
	for _, r := range row {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}

func widest(rows []string) int {
	n := 0
	for _, row := range rows {
		n = max(n, cells(row))
	}
	return n
}

// seen remembers the ends of deltas by the cursors that go on from them: the
// beginning of a secret may have been in the delta before.
type seen struct {
	mu    sync.Mutex
	ends  map[string]string
	order []string
}

const (
	seenEnds  = 512
	seenBytes = 8 << 10 // a private key of 4096 bits has 3 KiB
)

func (s *seen) put(cursor, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[string]string{}
	}
	if _, ok := s.ends[cursor]; !ok {
		s.order = append(s.order, cursor)
	}
	s.ends[cursor] = strings.Clone(tail(text, seenBytes))
	if len(s.order) > seenEnds {
		delete(s.ends, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *seen) get(cursor string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.ends[cursor]
	return text, ok
}

// delta takes secrets out of a text that goes on from a cursor. What may be the
// beginning of one at its end is taken out as well.
func (r *redactor) delta(from string, goesOn bool, text, to string) (string, int) {
	before, known := r.seen.get(from)
	if !goesOn && before != "" && before[len(before)-1] != '\n' {
		before += "\n"
	}
	if !known && goesOn {
		// Nobody knows what this is the rest of.
		before = "token="
	}
	full := before + text
	spans := merged(slices.Concat(find(full, r.detectors), find(full, r.beginnings)))
	if !known {
		full = text // not what was put before it
	}
	out, n := replace(before+text, len(before), spans)
	r.seen.put(to, full)
	return out, n
}

// unfinished tells whether a text ends in what may be the beginning of a secret.
func (r *redactor) unfinished(text string) bool {
	return len(find(tail(text, seenBytes), r.beginnings)) > 0
}

// result takes secrets out of a finished answer. prior is what was taken out of
// it before.
func (r *redactor) result(res *toolResult, prior int) *toolResult {
	out := *res
	var inText, inJSON int
	out.Text, inText = r.text(res.Text)
	if res.encode == nil && res.Structured != nil {
		out.Structured, inJSON = r.json(res.Structured)
	}
	n := max(inText, inJSON) + prior
	if res.Meta != nil {
		if raw, err := json.Marshal(res.Meta); err == nil {
			if raw, k := r.json(raw); k > 0 {
				out.Meta = nil
				n += k
				_ = json.Unmarshal(raw, &out.Meta)
			}
		}
	}
	if n == 0 {
		return res
	}
	meta := map[string]any{metaRedacted: n}
	for k, v := range out.Meta {
		meta[k] = v
	}
	out.Meta = meta
	out.Text = fmt.Sprintf("[%s redacted]\n", plural(n, "secret")) + out.Text
	return &out
}

var secretKey = regexp.MustCompile(`(?i)` + secretName)

// json takes secrets out of the strings of a JSON text of ours. A string whose
// key is a secret's name, such as a variable of the environment, is one.
func (r *redactor) json(raw []byte) (json.RawMessage, int) {
	var out []byte
	n, done, key := 0, 0, ""
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		var s string
		if err := json.Unmarshal(raw[i:end], &s); err != nil {
			return raw, n
		}
		if end < len(raw) && raw[end] == ':' {
			key = s
		} else if clean, k := r.named(key, s); k > 0 {
			out = append(out, raw[done:i]...)
			out = appendQuoted(out, clean)
			done, n = end, n+k
		}
		i = end - 1
	}
	if n == 0 {
		return raw, 0
	}
	return append(out, raw[done:]...), n
}

func (r *redactor) named(key, s string) (string, int) {
	if s != "" && s != redacted && isVariable(key) && secretKey.MatchString(key) {
		return redacted, 1
	}
	return r.text(s)
}

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
	return c.redactSince(from, opt, func(opt state.SinceOptions) (*state.Since, error) {
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
	})
}

// redactSince takes secrets out of what read finds after a cursor.
func (c *call) redactSince(from state.Cursor, opt state.SinceOptions, read func(state.SinceOptions) (*state.Since, error)) (*state.Since, error) {
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
	if err != nil {
		return nil, err
	}
	s := *found
	var n int
	s.Text, n = r.delta(from.String(), s.ContinuesLine, s.Text, s.Cursor.String())
	c.arrival.redacted.Add(int64(n))
	if opt.Oldest {
		return &s, nil
	}
	limit := opt.MaxLines
	if limit <= 0 {
		limit = MaxLines
	}
	cut := newest(s.Text, limit)
	s.DroppedLines += cut.dropped
	s.OmittedBytes += cut.omitted
	s.Lines = min(s.Lines, limit)
	s.Text = cut.text
	if opt.MaxBytes > 0 && len(s.Text) > opt.MaxBytes {
		short := tail(s.Text, opt.MaxBytes)
		s.OmittedBytes += len(s.Text) - len(short)
		s.Text = short
	}
	if cut.dropped > 0 || s.OmittedBytes > 0 {
		s.ContinuesLine = false
	}
	return &s, nil
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
