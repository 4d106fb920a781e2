package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Row texts are kept in a form that tells line drawing from letters: acsByte,
// which no UTF-8 text contains, stands before a letter that means line drawing.
// tmux's own capture prints the letter (cmd-capture-pane.c); a person saw a box.
const acsByte = 0xff

// boxes maps the letters of the DEC line drawing set; the others stay.
var boxes = [...]rune{
	'`': '\u25c6', 'a': '\u2592', 'f': '\u00b0', 'g': '\u00b1', 'h': '\u2424',
	'i': '\u240b', 'j': '\u2518', 'k': '\u2510', 'l': '\u250c', 'm': '\u2514',
	'n': '\u253c', 'o': '\u23ba', 'p': '\u23bb', 'q': '\u2500', 'r': '\u23bc',
	's': '\u23bd', 't': '\u251c', 'u': '\u2524', 'v': '\u2534', 'w': '\u252c',
	'x': '\u2502', 'y': '\u2264', 'z': '\u2265', '{': '\u03c0', '|': '\u2260',
	'}': '\u00a3', '~': '\u00b7', '+': '\u2192', ',': '\u2190', '-': '\u2191',
	'.': '\u2193', '0': '\u25ae',
}

// appendRaw appends the text of the columns below end.
func (t *Transcript) appendRaw(b []byte, r *row, end int) []byte {
	end = min(end, r.used, len(r.cells), t.width)
	if !r.rich {
		n := len(b)
		b = slices.Grow(b, end)[:n+end]
		for i, c := range r.cells[:end] {
			b[n+i] = byte(c)
		}
		return b
	}
	for _, c := range r.cells[:end] {
		if c&(cellCluster|cellPadding|cellACS|cellTab) == 0 && c&cellValue < utf8.RuneSelf {
			b = append(b, byte(c))
			continue
		}
		if c&cellACS != 0 {
			b = append(b, acsByte)
		}
		b = t.appendCell(b, c)
	}
	return b
}

// tmuxText is a row's text as tmux captures it: letters for line drawing.
func tmuxText(raw string, acs bool) string {
	if !acs {
		return raw
	}
	return strings.ReplaceAll(raw, string([]byte{acsByte}), "")
}

// readText is a row's text as a person reads it, always valid UTF-8.
func readText(raw string, acs bool) string {
	if utf8.ValidString(raw) { // so it has no acsByte either
		return raw
	}
	if !acs || strings.IndexByte(raw, acsByte) < 0 {
		return strings.ToValidUTF8(raw, "\ufffd")
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != acsByte || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		i++
		if c := int(raw[i]); c < len(boxes) && boxes[c] != 0 {
			b.WriteRune(boxes[c])
		} else {
			b.WriteByte(raw[i])
		}
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// trimBlanks cuts trailing blanks.
func trimBlanks(s string) string { return strings.TrimRight(s, " ") }

// Rows are history and screen as `capture-pane -p -S -` prints them, without
// trailing blanks. Line drawing is given as tmux's letters.
func (t *Transcript) Rows() []string {
	h := &t.history
	rows := make([]string, 0, h.tmux()+t.height)
	for i := h.kept; i < h.len(); i++ {
		p := h.at(i)
		rows = append(rows, trimBlanks(tmuxText(p.text, p.acs)))
	}
	return append(rows, t.Screen()...)
}

// Screen is the visible rows as `capture-pane -p` prints them, without
// trailing blanks.
func (t *Transcript) Screen() []string {
	rows := make([]string, 0, t.height)
	for _, r := range t.rows {
		raw := string(t.appendRaw(t.scratchText[:0], r, r.used))
		rows = append(rows, trimBlanks(tmuxText(raw, r.acs)))
	}
	return rows
}

// Joined is history and screen as `capture-pane -p -J -S -` prints them: a
// wrapped row up to its last used column, then the next. Trailing blanks are
// cut.
func (t *Transcript) Joined() []string {
	var lines []string
	var line strings.Builder
	add := func(text string, wrapped bool) {
		line.WriteString(text)
		if !wrapped {
			lines = append(lines, trimBlanks(line.String()))
			line.Reset()
		}
	}
	for i := t.history.kept; i < t.history.len(); i++ {
		p := t.history.at(i)
		add(tmuxText(p.text, p.acs), p.wrapped)
	}
	for y, r := range t.rows {
		raw := string(t.appendRaw(t.scratchText[:0], r, r.used))
		add(tmuxText(raw, r.acs), r.wrapped && y < t.height-1)
	}
	return lines
}
