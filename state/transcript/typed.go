package transcript

import "strings"

// maxTypedLine bounds a command line as it is read off the rows, in bytes.
const maxTypedLine = 4096

// typing is where a shell began to read a command line: the newest B mark that
// no other mark of a shell has followed.
type typing struct {
	on   bool
	row  uint64
	col  int
	skip int   // bytes of the row's text before col
	off  int64 // after the mark
	more bool  // the prompt of a further line of it is being printed
}

// typedBefore takes note of a mark, and for a C answers what the rows show
// between the B before it and here. It is "" where that cannot be told: the row
// was wiped meanwhile, or there was no B.
//
// A full row is taken to go on in the next: zsh erases the next one first, upon
// which tmux forgets that it was wrapped into.
//
// It looks at no more rows, and takes no more bytes, than bytes have come since
// the B, so that a byte costs constant time here as well.
func (t *Transcript) typedBefore(k Mark) string {
	was := t.typing
	switch k.Kind {
	case 'A', 'P':
		if k.Secondary() {
			t.typing.more = true
		} else if k.Kind == 'A' {
			t.typing = typing{}
		}
	case 'B':
		if was.on && was.more {
			t.typing.more = false
			break
		}
		r := t.rows[t.cy]
		t.scratchText = t.appendRaw(t.scratchText[:0], r, t.cx)
		t.typing = typing{on: true, row: r.id, col: t.cx, skip: len(t.scratchText), off: k.End}
	case 'C', 'D':
		t.typing = typing{}
	}
	if k.Kind != 'C' || !was.on || t.onMark == nil {
		return ""
	}
	return t.typedSince(was, int(min(k.Start-was.off, maxTypedLine)))
}

// Secondary tells whether a mark A or P begins a prompt inside a command line
// (k=s, k=c) or beside it (k=r), as kitty's shells say.
func (k *Mark) Secondary() bool {
	for o := range strings.SplitSeq(k.Text, ";") {
		if o == "k=s" || o == "k=c" || o == "k=r" {
			return true
		}
	}
	return false
}

func (t *Transcript) typedSince(was typing, most int) string {
	h := 0 // rows on the alternate screen have no history above them
	rows := t.rows
	if !t.alternate {
		h = t.history.len()
	}
	end := h + t.cy
	if t.cx > 0 {
		end++
	}
	idAt := func(i int) uint64 {
		if i < h {
			return t.history.at(i).id
		}
		return rows[i-h].id
	}
	from := h + t.cy
	for n := 0; idAt(from) != was.row; n++ {
		if from--; from < 0 || n == most {
			return ""
		}
	}
	var b []byte
	for i := from; i < end && len(b) < most; i++ {
		skip, last := 0, len(b)
		if i == from {
			skip = was.skip
		}
		var born int64
		var wrapped bool
		if i < h {
			p := t.history.at(i)
			b = append(b, p.text[min(skip, len(p.text)):]...)
			born, wrapped = p.bornAt(), p.wrapped || len(p.text) == t.width
		} else {
			r := rows[i-h]
			x := t.typedEnd(r, i == from, was.col)
			t.scratchText = t.appendRaw(t.scratchText[:0], r, x)
			b = append(b, t.scratchText[min(skip, len(t.scratchText)):]...)
			born, wrapped = r.born, r.wrapped || x == t.width || x == t.width-1 && i+1 < end && rows[i+1-h].at(0)&cellWide != 0
		}
		if i == from && was.col > 0 && born > was.off {
			return ""
		}
		if !wrapped {
			b = append(b[:last], strings.TrimRight(string(b[last:]), " ")...)
			b = append(b, '\n')
		}
	}
	text := readText(string(b), true)
	if len(text) > most {
		text = cut([]byte(text), most)
	}
	return strings.TrimSpace(text)
}

// typedEnd is the column where what was typed into a row ends: before the first
// cell that nothing was printed to, as what comes after such cells is a prompt at
// the right.
func (t *Transcript) typedEnd(r *row, first bool, col int) int {
	end := min(r.used, len(r.cells))
	if r.wrapped {
		return end
	}
	x := 0
	if first {
		x = col
	}
	for x < end && r.cells[x]&cellCleared == 0 {
		x++
	}
	return max(min(x, end), min(col, end))
}
