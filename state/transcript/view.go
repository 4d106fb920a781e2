package transcript

import "math"

// view is what deltas need to know of a row, in history or on the main screen.
type view struct {
	id                            uint64
	changed, born, rewrote, ended int64
	left, gap                     int64 // 1 for "some time" in history
	wrapped, past                 bool
}

// news is the offset of the last thing a reader could be told about the row.
func (v *view) news() int64 { return max(v.changed, v.ended) }

// main is the rows of the main screen, shown or not.
func (t *Transcript) main() []*row {
	if t.alternate {
		return t.saved
	}
	return t.rows
}

// rowCount counts history and the main screen.
func (t *Transcript) rowCount() int { return t.history.len() + len(t.main()) }

func (t *Transcript) view(i int) view {
	if i < t.history.len() {
		p := t.history.at(i)
		v := view{
			id: p.id, changed: p.changed, born: p.bornAt(), rewrote: p.rewroteAt(),
			ended: p.endedAt(), wrapped: p.wrapped, past: true,
		}
		if p.left {
			v.left = 1
		}
		if p.gap {
			v.gap = 1
		}
		return v
	}
	i -= t.history.len()
	rows := t.main()
	r := rows[i]
	return view{
		id: r.id, changed: r.changed, born: r.born, rewrote: r.rewrote, ended: r.ended,
		left: r.left, gap: r.gap, wrapped: r.wrapped && i < len(rows)-1,
	}
}

// wraps tells whether a row's text goes on in the next one.
func (t *Transcript) wraps(i int) bool {
	if i < t.history.len() {
		return t.history.at(i).wrapped
	}
	i -= t.history.len()
	rows := t.main()
	return rows[i].wrapped && i < len(rows)-1
}

// rawText is a row's text in the internal form.
func (t *Transcript) rawText(i int) string {
	if i < t.history.len() {
		return t.history.at(i).text
	}
	r := t.main()[i-t.history.len()]
	t.scratchText = t.appendRaw(t.scratchText[:0], r, r.used)
	return string(t.scratchText)
}

// nextNews is the first row from i on with news after an offset, or rowCount.
func (t *Transcript) nextNews(i int, after int64) int {
	h := &t.history
	for i < h.n {
		slot := h.head + i
		if slot >= len(h.ring) {
			slot -= len(h.ring)
		}
		if h.newest[slot/historyBlock] <= after {
			i = min(i+min(historyBlock-slot%historyBlock, len(h.ring)-slot), h.n)
			continue
		}
		p := &h.ring[slot]
		if p.changed > after || p.endedAt() > after {
			return i
		}
		i++
	}
	i = max(i, h.n)
	n := t.rowCount()
	for ; i < n; i++ {
		if v := t.view(i); v.news() > after {
			return i
		}
	}
	return n
}

// line is a logical line: rows from (included) to to (excluded), or an orphan.
type line struct {
	from, to int
	orphan   *orphan
	id       uint64
	news     int64 // of its rows, the newest
	changed  int64
	blank    bool
	open     bool // told without the newline that a later line feed gave it
	cutAt    int  // only the rows before this one are told; 0 for all
}

// lineAt is the logical line around a row.
func (t *Transcript) lineAt(i int) line { return t.lineWithin(i, math.MaxInt) }

// lineWithin is the logical line around a row, or the part of it that is no more
// than so many rows away.
func (t *Transcript) lineWithin(i, most int) line {
	if i < t.history.len() { // most are one row in history
		if p := t.history.at(i); !p.wrapped && (i == 0 || !t.history.at(i-1).wrapped) {
			return line{
				from: i, to: i + 1, id: p.id, news: max(p.changed, p.endedAt()), changed: p.changed,
				blank: trimBlanks(p.text) == "",
			}
		}
	}
	l := line{from: i, to: i + 1}
	for l.from > 0 && i-l.from < most && t.wraps(l.from-1) {
		l.from--
	}
	n := t.rowCount()
	for j := l.from; j < n; j++ {
		v := t.view(j)
		l.news, l.changed = max(l.news, v.news()), max(l.changed, v.changed)
		if j == l.from {
			l.id = v.id
		}
		l.to = j + 1
		if !v.wrapped || j-i >= most {
			break
		}
	}
	l.blank = t.blankRows(l.from, l.to)
	return l
}

func (t *Transcript) blankRows(from, to int) bool {
	for i := from; i < to; i++ {
		if i < t.history.len() {
			if trimBlanks(t.history.at(i).text) != "" {
				return false
			}
		} else if !t.main()[i-t.history.len()].isBlank() {
			return false
		}
	}
	return true
}

// lineText is a line's text from a row and a byte in it on, as a person reads
// it, without trailing blanks.
func (t *Transcript) lineText(l *line, from, skip int) string {
	if l.orphan != nil {
		return l.orphan.text
	}
	if l.to-from == 1 {
		raw := t.rawText(from)
		return trimBlanks(readText(raw[min(skip, len(raw)):], true))
	}
	var b []byte
	for i := from; i < l.to; i++ {
		b = append(b, t.rawText(i)...)
	}
	return trimBlanks(readText(string(b[min(skip, len(b)):]), true))
}

// finished tells whether nothing more is expected of a line: a line feed has
// left it, it is in history, or there is something below it.
func (t *Transcript) finished(l line) bool {
	if l.orphan != nil || l.to <= t.history.len() {
		return true
	}
	if v := t.view(l.to - 1); v.ended != 0 {
		return true
	}
	return t.contentBelow(l.to)
}

func (t *Transcript) contentBelow(i int) bool {
	for n := t.rowCount(); i < n; i++ {
		if t.view(i).born != 0 {
			return true
		}
	}
	return false
}

// Line is a logical line: a row and the rows it wrapped into.
type Line struct {
	ID       uint64 // of its first row; never reused
	Offset   int64  // of its last change
	Text     string // valid UTF-8, box characters for line drawing, no trailing blanks
	Finished bool   // a line feed has left it, or there is something below it
}

// Lines calls yield for each line of history and of the main screen, oldest
// first, until it returns false. Blank lines below the last content are left out.
func (t *Transcript) Lines(yield func(Line) bool) {
	n := t.rowCount()
	for n > t.history.len() {
		if v := t.view(n - 1); v.born != 0 {
			break
		}
		n--
	}
	for i := 0; i < n; {
		l := t.lineAt(i)
		if !yield(Line{ID: l.id, Offset: l.changed, Text: t.lineText(&l, l.from, 0), Finished: t.finished(l)}) {
			return
		}
		i = l.to
	}
}
