package state

import (
	"fmt"
	"regexp"
	"strings"

	"tmux-mcpd/state/transcript"
)

// Pattern is a text or a regular expression that is looked for in logical lines.
type Pattern struct {
	Text string // as it was given
	re   *regexp.Regexp
}

// ErrPattern is a pattern that cannot be looked for.
var ErrPattern = fmt.Errorf("not a pattern")

// maxRegexp keeps the compiled form of a regular expression small.
const maxRegexp = 4096

// NewPattern makes a Pattern. Lines are looked at one by one, so a text with a
// line feed is ErrPattern; so are a regular expression that does not parse (RE2
// syntax) and one of more than 4096 bytes.
func NewPattern(text string, isRegexp bool) (Pattern, error) {
	p := Pattern{Text: text}
	switch {
	case !isRegexp && strings.Contains(text, "\n"):
		return p, fmt.Errorf("%w: it contains a line feed, and lines are looked at one by one", ErrPattern)
	case !isRegexp:
		return p, nil
	case len(text) > maxRegexp:
		return p, fmt.Errorf("%w: a regular expression may have %d bytes", ErrPattern, maxRegexp)
	}
	var err error
	if p.re, err = regexp.Compile(text); err != nil {
		return p, fmt.Errorf("%w: %s", ErrPattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return p, nil
}

// in tells whether the pattern is in a line.
func (p *Pattern) in(line string) bool {
	if p.re != nil {
		return p.re.MatchString(line)
	}
	return strings.Contains(line, p.Text)
}

// maxFinds bounds the matches in one line that are looked at.
const maxFinds = 256

// news tells whether a line holds a match that is not wholly inside one of the
// regions that do not count.
func (p *Pattern) news(line string, old []region) bool {
	if len(old) == 0 {
		return p.in(line)
	}
	if p.re != nil {
		for _, m := range p.re.FindAllStringIndex(line, maxFinds) {
			if !covered(region{m[0], m[1]}, old) {
				return true
			}
		}
		return false
	}
	for from, n := 0, 0; n < maxFinds; n++ {
		i := strings.Index(line[from:], p.Text)
		if i < 0 {
			return false
		}
		if !covered(region{from + i, from + i + len(p.Text)}, old) {
			return true
		}
		from += i + 1
	}
	return false
}

// region is a part of a line: bytes from (included) to to (excluded).
type region struct{ from, to int }

func covered(r region, by []region) bool {
	for _, b := range by {
		if r.from >= b.from && r.to <= b.to {
			return true
		}
	}
	return false
}

// typedText is one line of what this daemon has typed into a pane.
type typedText struct {
	text string
	seq  int   // counts what was typed into the pane
	at   int64 // output before it cannot be its echo
	// Where the cursor was: the logical line, and the place in it.
	line uint64
	from int
}

// maxTyped bounds what is remembered of a pane's input.
const maxTyped = 32

// typing notes what is about to be typed, so that its echo is known for one.
func (o *Output) typing(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil || o.held >= 0 {
		return
	}
	cursor := o.text.CursorLine()
	rec := typedText{at: o.text.Offset(), line: cursor.ID, from: len(cursor.Text)}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if rec.text = strings.TrimSpace(line); rec.text == "" {
			continue
		}
		o.typedSeq++
		rec.seq = o.typedSeq
		o.typed = append(o.typed, rec)
		if len(o.typed) > maxTyped {
			o.typed = o.typed[1:]
		}
		rec.line = 0
	}
}

// echo is what one reader has seen of the echo of a typed line.
type echo struct {
	typedText
	seen  []uint64 // the lines that show it
	twice bool     // a line editor may show it again
}

// sight is one reader's view of a pane's lines: which parts of them are news.
type sight struct {
	typed  bool              // the echo of what was typed counts
	before map[uint64]string // lines that were seen when the reader came
	echoes []echo
	known  int // typed texts up to this one are in echoes
	// screen is what was seen on an alternate screen when the reader came:
	// full-screen programs move text by writing it again.
	screen map[string]bool
}

// take adds what was typed since the last look.
func (s *sight) take(typed []typedText) {
	for _, t := range typed {
		if t.seq > s.known {
			s.echoes = append(s.echoes, echo{typedText: t})
			s.known = t.seq
		}
	}
}

// old lists the parts of a line that are no news.
func (s *sight) old(l *transcript.NewLine) []region {
	if s.screen[l.Text] {
		return []region{{0, len(l.Text)}}
	}
	var parts []region
	if l.Old > 0 {
		parts = append(parts, region{0, l.Old})
	}
	if was, ok := s.before[l.ID]; ok {
		front, back := common(was, l.Text)
		if front > 0 {
			parts = append(parts, region{0, front})
		}
		if back > 0 {
			parts = append(parts, region{len(l.Text) - back, len(l.Text)})
		}
		s.before[l.ID] = was[:front] + was[len(was)-back:] // what has gone once is new when it comes again
	}
	if s.typed {
		return parts
	}
	if l.Typed >= 0 {
		parts = append(parts, region{l.Typed, len(l.Text)})
	}
	for i := range s.echoes {
		if r, ok := s.echoes[i].in(l); ok {
			parts = append(parts, r)
		}
	}
	return parts
}

// common is how many bytes two lines have in common at the front and, if they
// are of one length, besides at the back.
func common(a, b string) (front, back int) {
	for front < len(a) && front < len(b) && a[front] == b[front] {
		front++
	}
	if len(a) == len(b) {
		for back < len(a)-front && a[len(a)-1-back] == b[len(b)-1-back] {
			back++
		}
	}
	return front, back
}

// in finds the echo in a line: behind where the cursor stood when it was typed,
// or else at the end of the first line that ends with it. While it is being
// typed, its beginning counts.
//
// A terminal echoes what is typed while nobody reads it, at the beginning of a
// line, and a line editor shows it again behind its prompt when it comes to read
// it: such a text may come twice.
func (e *echo) in(l *transcript.NewLine) (region, bool) {
	if l.Offset <= e.at {
		return region{}, false
	}
	if e.line == l.ID && e.from <= len(l.Text) {
		if rest := strings.TrimLeft(l.Text[e.from:], " "); rest != "" && (strings.HasPrefix(rest, e.text) || strings.HasPrefix(e.text, rest)) {
			if len(rest) >= len(e.text) {
				e.note(l.ID, strings.TrimSpace(l.Text[:e.from]) == "")
			}
			return region{e.from, len(l.Text)}, true // with what a line editor suggests
		}
	}
	text := strings.TrimRight(l.Text, " ")
	again := false
	for _, id := range e.seen {
		again = again || id == l.ID
	}
	if len(e.seen) > 0 && !again && (!e.twice || len(e.seen) > 1 || text == e.text) {
		return region{}, false
	}
	for n := min(len(e.text), len(text)); n > 0; n-- {
		if !strings.HasSuffix(text, e.text[:n]) {
			continue
		}
		if n == len(e.text) && !again {
			e.note(l.ID, len(text) == n)
		}
		return region{len(text) - n, len(l.Text)}, true
	}
	return region{}, false
}

// note counts a line that shows the whole text.
func (e *echo) note(id uint64, alone bool) {
	for _, seen := range e.seen {
		if seen == id {
			return
		}
	}
	e.twice = e.twice || len(e.seen) == 0 && alone
	e.seen = append(e.seen, id)
}

// In tells whether the pattern is in one of the lines.
func (p *Pattern) In(lines []string) bool {
	for _, l := range lines {
		if p.in(l) {
			return true
		}
	}
	return false
}
