package transcript

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// SinceOptions limit a Delta. A limit of 0 is none.
type SinceOptions struct {
	MaxLines int // logical lines
	MaxBytes int // of Text
	// Oldest asks for the oldest lines when not all fit, with Offset only past
	// what is returned, so that calls with the returned offsets page through
	// everything once. Otherwise the newest are given and the others counted.
	Oldest bool
}

// Delta is what a reader at an offset has not seen.
//
// To join deltas, concatenate; if the earlier text has no final newline and
// ContinuesLine is false, put a newline between.
type Delta struct {
	// Text is logical lines, each ended by a newline, except that the last has
	// none while it is unfinished. Valid UTF-8; no controls but LF and TAB.
	Text string
	// Offset is where the reader stands afterwards.
	Offset int64
	// ContinuesLine: the first line is only the new part of a line that the
	// reader has seen unfinished. All others are whole.
	ContinuesLine bool
	// AlternateScreen: Text is the alternate screen as it is now, row by row.
	AlternateScreen bool
	// More: there are lines after Offset already.
	More bool
	// Lines counts the lines in Text.
	Lines int
	// DroppedLines and OmittedBytes are what the limits cut from the front.
	DroppedLines, OmittedBytes int
	// LostLines is at least the number of lines that left history before they
	// could be read; 0 means that none did.
	LostLines int
}

// Since tells a reader who has seen everything up to an offset what is new:
// every line of which text has changed since, oldest line first, in its present
// state. A progress bar is its last state, colours and repaints are no news,
// lines that were erased are not told. On the alternate screen it is the screen,
// after the lines that came before it.
func (t *Transcript) Since(offset int64, opt SinceOptions) Delta {
	d, _ := t.since(offset, opt)
	return d
}

// since also returns the lines that Text is made of, for tests.
func (t *Transcript) since(offset int64, opt SinceOptions) (Delta, []told) {
	d := Delta{Offset: t.off, LostLines: t.lost.after(offset)}
	if t.changed <= offset && len(t.orphans) == 0 {
		return d, nil
	}
	lines := t.newsAfter(offset)
	if len(lines) == 0 {
		if t.alternate && t.changed > offset {
			t.screenDelta(&d, opt)
		}
		return d, nil
	}
	if t.alternate {
		// The main screen's lines first; the alternate screen comes next.
		d.Offset = max(t.alternateSince, offset)
		d.More = t.changed > d.Offset
	}
	page := lines
	if opt.Oldest {
		page = t.oldest(lines, offset, opt, &d)
	} else if opt.MaxLines > 0 && len(lines) > opt.MaxLines {
		d.DroppedLines = len(lines) - opt.MaxLines
		page = lines[d.DroppedLines:]
	}
	tell := t.tell(page, offset, d.DroppedLines == 0)
	size := len(tell)
	for i := range tell {
		size += len(tell[i].text)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range tell {
		b.WriteString(tell[i].text)
		if tell[i].ended {
			b.WriteByte('\n')
		}
	}
	d.Text, d.Lines = b.String(), len(tell)
	d.ContinuesLine = len(tell) > 0 && tell[0].continues
	if cap(tell) <= maxScratch {
		t.scratchTold = tell
	}
	if !opt.Oldest {
		cutFront(&d, opt.MaxBytes)
	}
	return d, tell
}

// told is a line as it is given out.
type told struct {
	line      *line
	text      string // without the newline
	ended     bool   // with a newline
	continues bool
}

// maxScratch is up to how many lines the memory for a list of them is kept, and for
// their texts, which history holds as well.
const maxScratch = 1024

// newsAfter lists the lines to tell, in the order of the rows, until it is called
// again.
func (t *Transcript) newsAfter(after int64) []line {
	lines := t.scratchLines[:0]
	var ended []line
	var orphans []orphan
	for i := range t.orphans {
		if t.orphans[i].news > after {
			orphans = append(orphans, t.orphans[i])
		}
	}
	n := t.rowCount()
	for i := t.nextNews(0, after); i < n; {
		l := t.lineAt(i)
		switch { // a blank line that no line feed has left was erased, or painted with blanks
		case !l.blank && l.changed > after, l.blank && t.view(l.to-1).ended > after:
			lines = append(lines, l)
		case !l.blank:
			ended = append(ended, l)
		}
		i = t.nextNews(l.to, after)
	}
	if cap(lines) <= maxScratch {
		t.scratchLines = lines
	}
	if len(orphans) > 0 {
		return t.placeOrphans(lines, orphans)
	}
	if len(lines) == 0 {
		// Only line feeds: news for the line they ended, if the reader has it
		// without its newline.
		for _, l := range ended {
			if _, ok := t.continued(l, after); ok {
				return []line{l}
			}
		}
	}
	return lines
}

// tell renders lines for a reader at an offset. first tells that none were left out
// before them.
func (t *Transcript) tell(lines []line, offset int64, first bool) []told {
	out := slices.Grow(t.scratchTold[:0], len(lines))
	for i := range lines {
		l := &lines[i]
		from, skip := l.from, 0
		continues, ended := false, false
		if i == 0 && first && l.orphan == nil {
			if p, ok := t.continued(*l, offset); ok {
				from, skip, continues = p.row, p.skip, true
			}
		}
		text := t.lineText(l, from, skip)
		if l.cutAt > 0 {
			text = t.rowsText(from, l.cutAt, skip)
		} else if i < len(lines)-1 || t.finished(*l) && !l.open {
			ended = true
		} else {
			text = t.unfinishedText(*l, from, skip, text)
		}
		out = append(out, told{line: l, text: text, ended: ended, continues: continues})
	}
	return out
}

// unfinishedText is the text of a line that goes on, with the blanks before the
// cursor.
func (t *Transcript) unfinishedText(l line, from, skip int, trimmed string) string {
	last := l.to - 1
	v := t.view(last)
	for v.changed == 0 && last > from { // blanks that went on in a new row
		last--
		v = t.view(last)
	}
	e := t.partials.find(v.id, v.changed)
	if e == nil || e.off != v.changed {
		return trimmed
	}
	var b []byte
	for i := from; i < last; i++ {
		b = append(b, t.rawText(i)...)
	}
	raw := t.rawText(last)
	b = append(b, raw[:min(e.end, len(raw))]...)
	return readText(string(b[min(skip, len(b)):]), true)
}

// place is where the new part of a line begins.
type place struct{ row, skip int }

// continued tells whether a reader at an offset holds the beginning of the line
// at the very end of its text, without newline, and where the rest begins. In
// doubt it says no, and the line is told whole.
func (t *Transcript) continued(l line, offset int64) (place, bool) {
	j := l.from
	var before view
	for ; j < l.to; j++ {
		v := t.view(j)
		if v.news() > offset {
			break
		}
		before = v
	}
	if j == l.to {
		return place{}, false
	}
	v := t.view(j)
	p := place{row: j}
	switch {
	case v.born > offset:
		// A new row of an old line. The reader's text ends with the row before
		// it unless something else changed in between.
		if j == l.from || before.born == 0 || before.left != 0 && before.left <= offset ||
			v.gap != 0 && v.gap <= offset || before.ended != 0 {
			return place{}, false
		}
		// Blanks at that row's end may have come after the reader looked.
		raw := t.rawText(j - 1)
		if e := t.partials.find(before.id, offset); e != nil && e.off == before.changed {
			if e.end < len(raw) {
				p = place{row: j - 1, skip: e.end}
			}
		} else if raw == "" || raw[len(raw)-1] == ' ' {
			return place{}, false
		}
	default:
		e := t.partials.find(v.id, offset)
		if e == nil || e.old || e.off < v.rewrote || v.ended != 0 && v.ended <= offset ||
			e.next != 0 && e.next <= offset || e.left != 0 && e.left <= offset ||
			v.changed <= offset && v.left != 0 && v.left <= offset {
			return place{}, false
		}
		p.skip = e.end
	}
	for i, n := j+1, t.rowCount(); i < n; i++ {
		if w := t.view(i); w.born == 0 && w.changed > offset || w.born != 0 && w.born <= offset {
			return place{}, false
		}
	}
	return p, true
}

// oldest picks the lines of a page: those that changed first, up to the limits,
// and the offset of the last of their changes. Lines that changed by the same
// byte are not parted, so a page may be longer than asked for.
func (t *Transcript) oldest(lines []line, offset int64, opt SinceOptions, d *Delta) []line {
	size := func(l line) int { return len(t.lineText(&l, l.from, 0)) + 1 }
	total := 0
	for _, l := range lines {
		total += size(l)
	}
	if (opt.MaxLines <= 0 || len(lines) <= opt.MaxLines) && (opt.MaxBytes <= 0 || total <= opt.MaxBytes) {
		return lines
	}
	order := slices.Clone(lines)
	slices.SortStableFunc(order, func(a, b line) int { return cmp.Compare(a.key(), b.key()) })
	n, bytes := 0, 0
	for n < len(order) {
		end := n + 1
		for end < len(order) && order[end].key() == order[n].key() {
			end++
		}
		more := 0
		for _, l := range order[n:end] {
			more += size(l)
		}
		over := opt.MaxLines > 0 && end > opt.MaxLines || opt.MaxBytes > 0 && bytes+more > opt.MaxBytes
		if over && n > 0 {
			break
		}
		if over && end == 1 && opt.MaxBytes > 0 && more > opt.MaxBytes {
			if l, ok := t.part(order[0], offset, opt.MaxBytes); ok {
				d.Offset, d.More = l.news, true
				return []line{l}
			}
		}
		n, bytes = end, bytes+more
	}
	if n == len(order) {
		return lines
	}
	return t.cutPage(lines, order, n, d)
}

// key is the offset that a line is paged by: of its last change of text, or for
// a blank line of the line feed that made it one.
func (l line) key() int64 {
	if l.blank {
		return l.news
	}
	return l.changed
}

// cutPage ends a page after the n lines that changed first. The offset is past
// the line feeds that ended them, unless another line changed in between: then
// the last line is told without the newline that came later.
func (t *Transcript) cutPage(lines, order []line, n int, d *Delta) []line {
	last := order[n-1].key()
	cut := last
	for _, l := range order[:n] {
		cut = max(cut, l.news)
	}
	if order[n].key() <= cut {
		cut = last
	}
	d.Offset, d.More = cut, true
	page := slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.key() > last })
	if l := &page[len(page)-1]; l.orphan == nil && t.view(l.to-1).ended > cut {
		l.open = true
	}
	return page
}

// part takes the first rows of a line that is too long for a page, if the rest
// can be told later as its continuation.
func (t *Transcript) part(l line, offset int64, limit int) (line, bool) {
	from, skip := l.from, 0
	if p, ok := t.continued(l, offset); ok {
		from, skip = p.row, p.skip
	}
	best, bytes, news := 0, 0, int64(0)
	for i := from; i < l.to-1; i++ {
		v := t.view(i)
		news = max(news, v.news())
		bytes += len(t.rawText(i))
		if best > 0 && bytes-skip > limit {
			break
		}
		if p, ok := t.continued(l, news); ok && p.row == i+1 && p.skip == 0 && news > offset {
			best = i + 1
			l.cutAt, l.news = best, news
			if bytes-skip > limit {
				break
			}
		}
	}
	return l, best > 0
}

// rowsText is the text of some rows of a line, blanks and all.
func (t *Transcript) rowsText(from, to, skip int) string {
	var b []byte
	for i := from; i < to; i++ {
		b = append(b, t.rawText(i)...)
	}
	return readText(string(b[min(skip, len(b)):]), true)
}

// screenDelta gives the alternate screen.
func (t *Transcript) screenDelta(d *Delta, opt SinceOptions) {
	rows := make([]string, 0, t.height)
	for _, r := range t.rows {
		rows = append(rows, trimBlanks(readText(string(t.appendRaw(nil, r, r.used)), true)))
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	if opt.MaxLines > 0 && len(rows) > opt.MaxLines {
		d.DroppedLines = len(rows) - opt.MaxLines
		rows = rows[d.DroppedLines:]
	}
	d.AlternateScreen, d.Lines = true, len(rows)
	if len(rows) > 0 {
		d.Text = strings.Join(rows, "\n") + "\n"
	}
	cutFront(d, opt.MaxBytes)
}

// cutFront keeps the newest bytes of the text, on a character's boundary.
func cutFront(d *Delta, limit int) {
	if limit <= 0 || len(d.Text) <= limit {
		return
	}
	at := len(d.Text) - limit
	for at < len(d.Text) && !utf8.RuneStart(d.Text[at]) {
		at++
	}
	d.OmittedBytes = at
	d.Text = d.Text[at:]
	d.ContinuesLine = false
	d.Lines = strings.Count(d.Text, "\n")
	if d.Text != "" && !strings.HasSuffix(d.Text, "\n") {
		d.Lines++
	}
}
