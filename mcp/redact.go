package mcp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// text takes secrets out of a text that stands for itself. Where something in it
// was cut short, it may have been a secret.
func (r *redactor) text(s string) (string, int) {
	return replace(s, 0, merged(append(find(s, r.detectors), r.cutShort(s)...)))
}

// cutShort finds what can be the beginning of a secret before each cutMark.
func (r *redactor) cutShort(s string) (spans []span) {
	const longest = 80 // what quote and shortName leave
	for at := strings.Index(s, cutMark); at >= 0; {
		from := max(0, at-longest)
		if at > 0 && s[at-1] != '.' && s[at-1] != ' ' {
			for _, b := range find(s[from:at], r.beginnings) {
				spans = append(spans, span{from + b.from, from + b.to})
			}
		}
		next := strings.Index(s[at+len(cutMark):], cutMark)
		if next < 0 {
			break
		}
		at += len(cutMark) + next
	}
	return spans
}

// unended is text for what may go on: what can be the beginning of a secret at
// its end is taken out as well.
func (r *redactor) unended(s string) (string, int) {
	return replace(s, 0, find(s, r.detectors, r.beginnings))
}

// spans finds secrets in lines of a terminal of that width, also those that go on
// in the next line where one fills the width: whether the terminal wrapped it,
// nobody knows any more. open: the text may go on, so what can be the beginning
// of a secret at its end is one.
func (r *redactor) spans(text string, width int, open bool) []span {
	lists := [][]detector{r.detectors}
	if open {
		lists = append(lists, r.beginnings)
	}
	found := find(text, lists...)
	soft, cuts := softened(text, width)
	if len(cuts) == 0 {
		return found
	}
	for _, s := range findAcross(soft, cuts, lists...) {
		found = append(found, span{unsoftened(s.from, cuts, false), unsoftened(s.to, cuts, true)})
	}
	return merged(found)
}

// softened is a text without the newlines after lines that fill the width, and
// where in it they were.
func softened(text string, width int) (soft string, cuts []int) {
	if width <= 1 {
		return text, nil
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if row, ok := strings.CutSuffix(line, "\n"); ok && cells(row) >= width-1 {
			line, cuts = row, append(cuts, b.Len()+len(row))
		}
		b.WriteString(line)
	}
	return b.String(), cuts
}

// unsoftened is the place in the text of a place in what softened made of it. A
// newline that was just there lies before the end of something, and after its
// beginning.
func unsoftened(at int, cuts []int, end bool) int {
	n, _ := slices.BinarySearch(cuts, at)
	for !end && n < len(cuts) && cuts[n] == at {
		n++
	}
	return at + n
}

// rows takes secrets out of rows of a screen of that width, across the places
// where the terminal wrapped them. before and after are the rows around them.
func (r *redactor) rows(before, rows, after []string, width int) ([]string, int) {
	all := slices.Concat(before, rows, after)
	text, starts := strings.Join(all, "\n"), make([]int, len(all))
	for i, at := 0, 0; i < len(all); i++ {
		starts[i], at = at, at+len(all[i])+1
	}
	found := r.spans(text, width, false)
	if len(after) == 0 { // what the pane shows last may go on
		found = merged(append(found, r.spans(strings.TrimRight(text, " \n"), width, true)...))
	}
	out, count := slices.Clone(rows), 0
	for i := range rows {
		k := len(before) + i
		var own []span
		for _, s := range found {
			from, to := max(s.from-starts[k], 0), min(s.to-starts[k], len(all[k]))
			if from >= to {
				continue
			}
			own = append(own, span{from, to})
			if s.from >= starts[k]-1 || i == 0 { // its first row here
				count++
			}
		}
		out[i], _ = replace(all[k], 0, own)
	}
	return out, count
}

// around is what a reader knows of the text before and after a part of it.
type around struct {
	before, after string
	goesOn        bool // the part goes on with the last line of before
	width         int  // of the terminal
	open          bool // what follows after is not known, and may come
}

// part takes secrets out of a part of a text, also those that begin before it or
// end after it.
func (r *redactor) part(text string, a around) (string, int) {
	before := a.before
	if !a.goesOn && before != "" && before[len(before)-1] != '\n' {
		before += "\n"
	}
	whole := before + text
	return replace(whole, len(before), clipped(r.spans(whole+a.after, a.width, a.open), len(whole)))
}

// clipped are spans as far as they lie before an end.
func clipped(spans []span, end int) []span {
	var out []span
	for _, s := range spans {
		if s.from < end {
			out = append(out, span{s.from, min(s.to, end)})
		}
	}
	return out
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

func (s *seen) has(cursor string) bool {
	_, ok := s.get(cursor)
	return ok
}

// unknownStart stands for a line of which nobody knows how it begins: what goes on
// with it is taken for the rest of a secret.
const unknownStart = "\ntoken="

// delta takes secrets out of a text that goes on from a cursor. What may be the
// beginning of one at its end is taken out as well.
func (r *redactor) delta(from, text, to string, a around) (string, int) {
	before, known := r.seen.get(from)
	full := before + text
	switch {
	case !known && a.goesOn:
		before = unknownStart
		full = text
	case !a.goesOn && before != "" && before[len(before)-1] != '\n':
		full = before + "\n" + text
	}
	a.before, a.open = before, a.after == ""
	out, n := r.part(text, a)
	r.seen.put(to, full)
	return out, n
}

// unfinished tells whether a text ends in what may be the beginning of a secret.
func (r *redactor) unfinished(text string) bool {
	return len(find(tail(text, seenBytes), r.beginnings)) > 0
}
