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

// typedBefore takes note of a mark, and gives it the Line and Above of what the
// rows show before it.
//
// A full row is taken to go on in the next: zsh erases the next one first, upon
// which tmux forgets that it was wrapped into.
//
// It looks at no more rows, and takes no more bytes, than bytes have come since
// the B, so that a byte costs constant time here as well.
func (t *Transcript) typedBefore(k *Mark) {
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
		if t.onMark != nil {
			k.Line = readText(string(t.scratchText), true)
		}
	case 'C', 'D':
		t.typing = typing{}
	}
	switch {
	case k.Kind != 'C' || t.onMark == nil:
	case was.on:
		k.Line = t.typedSince(was, int(min(k.Start-was.off, maxTypedLine)))
	default:
		k.Above = t.lineAbove()
	}
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
			first := 0
			if i == from {
				first = was.col
			}
			var text []byte
			text, wrapped = t.typedRow(i-h, first)
			b, born = append(b, text[min(skip, len(text)):]...), r.born
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

// typedRow is what was typed into a visible row, columns before first included,
// and whether it goes on in the next. It ends before the first cell that nothing
// was printed to: what comes after such cells is a prompt at the right.
func (t *Transcript) typedRow(y, first int) (text []byte, wrapped bool) {
	r := t.rows[y]
	end := min(r.used, len(r.cells))
	x := min(first, end)
	for x < end && (r.wrapped || r.cells[x]&cellCleared == 0) {
		x++
	}
	t.scratchText = t.appendRaw(t.scratchText[:0], r, x)
	wide := y+1 < len(t.rows) && t.rows[y+1].at(0)&cellWide != 0
	return t.scratchText, r.wrapped || x == t.width || wide && x == t.width-1
}

// lineAbove is the line above the cursor's row, as far as it is on the screen.
func (t *Transcript) lineAbove() string {
	const most = 16 // rows
	from := t.cy
	for from > 0 && t.cy-from < most {
		if _, wrapped := t.typedRow(from-1, 0); from < t.cy && !wrapped {
			break
		}
		from--
	}
	var b []byte
	for y := from; y < t.cy; y++ {
		text, _ := t.typedRow(y, 0)
		b = append(b, text...)
	}
	return strings.TrimRight(readText(string(b[:min(len(b), maxTypedLine)]), true), " ")
}
