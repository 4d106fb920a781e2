package transcript

import (
	"strings"
	"unicode/utf8"
)

const (
	maxTitles = 16
	maxMarks  = 256
	maxMark   = 512 // bytes of a mark's text
	maxTitle  = 1024
)

// Mark is an OSC 133 sequence that a shell or a run printed. tmux shows
// nothing of it.
type Mark struct {
	Kind  byte   // 'A' to 'D' and whatever else came after "133;"
	Text  string // what follows the kind, without its semicolon; at most 512 bytes
	Start int64  // offset of the sequence's ESC: output before it ends here
	End   int64  // offset after its last byte: output after it begins here
	Row   uint64 // id of the row with the cursor, as Line.ID gives it
	Col   int    // cursor column
	// Line, as OnMark is told it: of a C what the rows show between the newest B
	// and here, the command line as it was typed, "" if that is not known; of a B
	// the prompt before it, in its own row.
	Line string
	// Above, of a C without a B before it, is the line above: a prompt, perhaps,
	// and what was typed behind it.
	Above string
}

// OnMark has f called for every mark as it is rendered, with its whole text (4 KiB)
// and its Line. It is called inside Write, and must not call the transcript.
// The marks of VS Code (OSC 633), which mean the same, are told as well, and E,
// which is its own: the text is the command line, escaped.
func (t *Transcript) OnMark(f func(Mark)) { t.onMark = f }

// marks is a ring of the newest marks.
type marks struct {
	ring []Mark
	head int
}

func (m *marks) add(k Mark) {
	if len(m.ring) < maxMarks {
		m.ring = append(m.ring, k)
		return
	}
	m.ring[m.head] = k
	m.head = (m.head + 1) % maxMarks
}

// Marks are the OSC 133 marks that ended after an offset, oldest first. The
// newest 256 are kept.
func (t *Transcript) Marks(after int64) []Mark {
	var out []Mark
	n := len(t.marks.ring)
	for i := range n {
		if k := t.marks.ring[(t.marks.head+i)%n]; k.End > after {
			out = append(out, k)
		}
	}
	return out
}

// Title is what the program last set as the pane's title, at most 1 KiB. It is
// the program's text and may be anything printable.
func (t *Transcript) Title() string { return t.title }

// WindowName is the name the program last set with ESC k. Whether tmux uses it
// depends on allow-rename.
func (t *Transcript) WindowName() string { return t.windowName }

// osc handles a complete OSC string.
func (t *Transcript) osc() {
	s := t.str
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 0 || n > 9 {
		return
	}
	number := 0
	for _, c := range s[:n] {
		number = number*10 + int(c-'0')
	}
	s = s[n:]
	if len(s) > 0 && s[0] == ';' {
		s = s[1:]
	} else if len(s) > 0 && t.profile >= Profile34 {
		return
	}
	switch number {
	case 0, 2:
		t.setTitle(s)
	case 8:
		t.hyperlink(s)
	case 133:
		t.mark(s)
	case 633:
		if len(s) > 0 && s[0] >= 'A' && s[0] <= 'E' {
			t.mark(s)
		}
	}
}

// hyperlink notes whether the pen is inside a link, which from 3.4 on makes it
// differ from the default pen.
func (t *Transcript) hyperlink(s []byte) {
	if t.profile < Profile34 {
		return
	}
	if _, uri, ok := strings.Cut(string(s), ";"); ok {
		t.pen.link = uri != ""
		t.restyle()
	}
}

func (t *Transcript) mark(s []byte) {
	if len(s) == 0 || len(s) > 1 && s[1] != ';' {
		return
	}
	k := Mark{Kind: s[0], Start: t.strStart, End: t.off, Row: t.rows[t.cy].id, Col: t.cx}
	var text []byte
	if len(s) > 2 {
		text = s[2:]
	}
	k.Text = cut(text, maxMark)
	if k.Kind != 'E' {
		t.marks.add(k)
	}
	t.typedBefore(&k)
	if t.onMark != nil {
		k.Text = cut(text, maxString)
		t.onMark(k)
	}
}

// cut is valid UTF-8 of at most n bytes.
func cut(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		if len(b) > 0 && b[len(b)-1] >= utf8.RuneSelf {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}

// setTitle takes a title as tmux does: only if it is valid UTF-8.
func (t *Transcript) setTitle(s []byte) {
	if utf8.Valid(s) && !hasControl(s) {
		t.title = cut(s, maxTitle)
	}
}

func (t *Transcript) setWindowName(s []byte) {
	if utf8.Valid(s) && !hasControl(s) {
		t.windowName = cut(s, maxTitle)
	}
}

func hasControl(s []byte) bool {
	for _, c := range s {
		if c < 0x20 || c == 0x7f {
			return true
		}
	}
	return false
}

// windowOperation is CSI t; only the title stack (22 and 23) has an effect here.
func (t *Transcript) windowOperation() {
	for i := 0; i < t.nArgs; i++ {
		switch t.arg(i, 0, -1) {
		case 22, 23:
			push := t.args[i] == 22
			i++
			switch which := t.arg(i, 0, -1); {
			case which == -1:
				return
			case which != 0 && which != 2:
			case push:
				if len(t.titles) < maxTitles {
					t.titles = append(t.titles, t.title)
				}
			case len(t.titles) > 0:
				t.title = t.titles[len(t.titles)-1]
				t.titles = t.titles[:len(t.titles)-1]
			}
		case -1:
			return
		case 3, 4, 8:
			i += 2
		case 9, 10:
			i++
		}
	}
}
