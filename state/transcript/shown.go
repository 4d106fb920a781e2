package transcript

import (
	"strings"
	"unicode/utf8"
)

// ShownLine is a logical line of what a pane shows.
type ShownLine struct {
	Offset int64 // of its last change
	Text   string
}

// Shown is what `capture-pane -p -J -S -history` prints: the newest rows of
// tmux's history and the visible screen, also the alternate one, with wrapped
// rows joined. The first line is the rest of one if its beginning lies above.
// Text is as Since gives it. known is false if tmux has some of those rows and
// the transcript has not: then nothing is answered.
func (t *Transcript) Shown(history int) (lines []ShownLine, known bool) {
	n := min(max(history, 0), t.HistorySize())
	if n > t.history.tmux() {
		return nil, false
	}
	var s shown
	lines = make([]ShownLine, 0, n+t.height)
	for i := t.history.len() - n; i < t.history.len(); i++ {
		p := t.history.at(i)
		s.raw = append(s.raw, p.text...)
		lines = s.end(lines, p.changed, p.wrapped)
	}
	for y, r := range t.rows {
		s.raw = t.appendRaw(s.raw, r, r.used)
		lines = s.end(lines, r.changed, r.wrapped && y < t.height-1)
	}
	text := string(s.raw)
	from := 0
	for i := range lines {
		to := s.ends[i]
		lines[i].Text = trimBlanks(shownText(text[from:to]))
		from = to
	}
	return lines, true
}

// shown collects the texts of lines, which are cut from one string in the end.
type shown struct {
	raw     []byte
	ends    []int
	changed int64 // of the line at hand
}

// end ends a row, and its line unless that goes on.
func (s *shown) end(lines []ShownLine, changed int64, goesOn bool) []ShownLine {
	s.changed = max(s.changed, changed)
	if goesOn {
		return lines
	}
	lines = append(lines, ShownLine{Offset: s.changed})
	s.ends = append(s.ends, len(s.raw))
	s.changed = 0
	return lines
}

// shownText is readText without a copy for the usual line.
func shownText(raw string) string {
	if strings.IndexByte(raw, acsByte) < 0 && utf8.ValidString(raw) {
		return raw
	}
	return readText(raw, true)
}
