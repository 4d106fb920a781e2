package transcript

// CommandLine is what stands between the place where a shell began to read the
// command line that the cursor is on, and the cursor: what was typed. row is the
// id of the row where it begins. ok is false if no shell has marked that place
// (OSC 133 B), or something else is shown there now.
//
// What follows the cursor is left out: it may be a suggestion or a prompt at the
// right.
func (t *Transcript) CommandLine() (text string, row uint64, ok bool) {
	if t.alternate {
		return "", 0, false
	}
	starts := t.commandStarts()
	if len(starts) == 0 {
		return "", 0, false
	}
	above := t.history.len()
	l := t.newsAt(above + t.cy)
	var typed []byte
	skip := -1
	for i := l.from; i <= above+t.cy; i++ {
		v := t.view(i)
		if k, found := starts[v.id]; found && (k.Col == 0 || v.born <= k.End) {
			typed, skip, row = nil, k.Col, v.id // of plain rows, a byte is a column
			if i >= above {
				skip = len(t.appendRaw(nil, t.rows[i-above], k.Col))
			}
		}
		if i < above+t.cy {
			typed = append(typed, t.rawText(i)...)
		} else {
			typed = t.appendRaw(typed, t.rows[t.cy], t.cx)
		}
	}
	if skip < 0 {
		return "", 0, false
	}
	return readText(string(typed[min(skip, len(typed)):]), true), row, true
}

// BeforeCursor is what stands before the cursor on its line, wrapped rows joined,
// and the id of the row where that begins. ok is false while a full-screen program
// has the screen.
func (t *Transcript) BeforeCursor() (text string, row uint64, ok bool) {
	if t.alternate {
		return "", 0, false
	}
	above := t.history.len()
	l := t.newsAt(above + t.cy)
	var raw []byte
	for i := l.from; i < above+t.cy; i++ {
		raw = append(raw, t.rawText(i)...)
	}
	raw = t.appendRaw(raw, t.rows[t.cy], t.cx)
	return readText(string(raw), true), t.view(l.from).id, true
}
