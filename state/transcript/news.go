package transcript

// maxNewsRows bounds how much of one logical line is looked at: the rest of a
// line that wraps on and on is told as lines of their own that overlap.
const maxNewsRows = 512

// NewLine is a logical line whose text has changed.
type NewLine struct {
	Line
	// Old is the number of bytes at the front of Text that were there before.
	Old int
	// Typed is where in Text a shell said that a command line begins (OSC 133
	// B), -1 if it did not: from there on the line is what was typed.
	Typed int
}

// NewLines lists the logical lines of which text has changed after an offset, in
// the order of the rows; on the alternate screen its own come last. They are
// whole lines as they look now: not the blanks at their ends, but for the line
// the cursor is on, which is told up to the cursor. A line of more than 512 rows
// is told in parts. Erased lines are not told.
func (t *Transcript) NewLines(after int64) []NewLine {
	var found []NewLine
	if t.changed <= after && len(t.orphans) == 0 {
		return nil
	}
	for i := range t.orphans {
		if o := &t.orphans[i]; o.news > after {
			found = append(found, NewLine{Line: Line{ID: o.id, Offset: o.news, Text: o.text, Finished: true}, Typed: -1})
		}
	}
	typed := t.commandStarts()
	first := true
	for i, n := t.nextNews(0, after), t.rowCount(); i < n; {
		l := t.newsAt(i)
		if !l.blank && l.changed > after {
			line := NewLine{Line: t.asLine(l), Typed: t.typedAt(l, typed)}
			if p, ok := t.continued(l, after); first && ok {
				line.Old = min(t.textBefore(l.from, p), len(line.Text))
			}
			found = append(found, line)
		}
		first = false
		i = t.nextNews(l.to, after)
	}
	if t.alternate {
		found = t.newOnScreen(found, after)
	}
	return found
}

// newsAt is the logical line around a row, or the part of it within
// maxNewsRows.
func (t *Transcript) newsAt(i int) line { return t.lineWithin(i, maxNewsRows) }

// asLine renders a line. An unfinished one that the cursor is on ends at the
// cursor.
func (t *Transcript) asLine(l line) Line {
	return Line{ID: l.id, Offset: l.changed, Text: t.cursorText(l), Finished: t.finished(l)}
}

func (t *Transcript) cursorText(l line) string {
	if last := l.to - 1 - t.history.len(); last < 0 || t.alternate || last != t.cy {
		return t.lineText(&l, l.from, 0)
	}
	var b []byte
	for i := l.from; i < l.to-1; i++ {
		b = append(b, t.rawText(i)...)
	}
	r := t.rows[t.cy]
	return readText(string(t.appendRaw(b, r, max(r.textEnd(), min(t.cx, r.used)))), true)
}

// textBefore is how many bytes of a line's text come before a place in it.
func (t *Transcript) textBefore(from int, p place) int {
	var b []byte
	for i := from; i < p.row; i++ {
		b = append(b, t.rawText(i)...)
	}
	raw := t.rawText(p.row)
	return len(readText(string(append(b, raw[:min(p.skip, len(raw))]...)), true))
}

// newOnScreen adds the lines of the alternate screen.
func (t *Transcript) newOnScreen(found []NewLine, after int64) []NewLine {
	for y := 0; y < t.height; {
		from, changed := y, int64(0)
		var b []byte
		for ; y < t.height; y++ {
			r := t.rows[y]
			changed = max(changed, r.changed)
			end := r.used
			if last := !r.wrapped || y == t.height-1; last {
				end = r.textEnd()
				if y == t.cy {
					end = max(end, min(t.cx, r.used))
				}
			}
			b = t.appendRaw(b, r, end)
			if !r.wrapped {
				y++
				break
			}
		}
		if changed > after && len(b) > 0 {
			found = append(found, NewLine{
				Line: Line{ID: t.rows[from].id, Offset: changed, Text: readText(string(b), true), Finished: t.cy >= y}, Typed: -1,
			})
		}
	}
	return found
}

// CursorLine is the logical line that the cursor is on, up to the cursor at
// least: blanks that were printed there are part of it, though they are no news.
func (t *Transcript) CursorLine() NewLine {
	if t.alternate {
		r := t.rows[t.cy]
		text := readText(string(t.appendRaw(nil, r, max(r.textEnd(), min(t.cx, r.used)))), true)
		return NewLine{Line: Line{ID: r.id, Offset: r.changed, Text: text}, Typed: -1}
	}
	l := t.newsAt(t.history.len() + t.cy)
	return NewLine{Line: t.asLine(l), Typed: t.typedAt(l, t.commandStarts())}
}

// ScreenLines are the logical lines that are seen now.
func (t *Transcript) ScreenLines() []Line {
	if t.alternate {
		var lines []Line
		for _, l := range t.newOnScreen(nil, -1) {
			lines = append(lines, l.Line)
		}
		return lines
	}
	var lines []Line
	for i, n := t.history.len(), t.rowCount(); i < n; {
		l := t.newsAt(i)
		if !l.blank {
			lines = append(lines, t.asLine(l))
		}
		i = l.to
	}
	return lines
}

// commandStarts are the places where shells began to read command lines and are
// not known to have gone on: the newest mark of each row, if it is a B.
func (t *Transcript) commandStarts() map[uint64]Mark {
	if len(t.marks.ring) == 0 {
		return nil
	}
	starts := map[uint64]Mark{}
	for _, k := range t.Marks(-1) {
		if k.Kind == 'B' {
			starts[k.Row] = k
		} else {
			delete(starts, k.Row)
		}
	}
	return starts
}

// typedAt is where in a line's text a command line begins, -1 if none does. A
// row that was wiped since the mark shows something else now.
func (t *Transcript) typedAt(l line, starts map[uint64]Mark) int {
	if len(starts) == 0 {
		return -1
	}
	for i := l.from; i < l.to; i++ {
		v := t.view(i)
		k, ok := starts[v.id]
		if !ok || k.Col > 0 && v.born > k.End {
			continue
		}
		skip := k.Col // of plain rows, a byte is a column
		if j := i - t.history.len(); j >= 0 {
			skip = len(t.appendRaw(nil, t.main()[j], k.Col))
		}
		return t.textBefore(l.from, place{row: i, skip: skip})
	}
	return -1
}
