package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// SeedState is what tmux tells of a pane, all of one instant: ask for the
// formats and the captures in one control-mode line, so that they lie at one
// offset of the output.
type SeedState struct {
	Width, Height          int    // #{pane_width} #{pane_height}
	CursorX, CursorY       int    // #{cursor_x} #{cursor_y}
	Upper, Lower           int    // #{scroll_region_upper} #{scroll_region_lower}
	Wrap, Insert, Origin   bool   // #{wrap_flag} #{insert_flag} #{origin_flag}
	Alternate              bool   // #{alternate_on}
	AlternateX, AlternateY int    // #{alternate_saved_x} #{alternate_saved_y}; -1 if never saved (tmux prints 4294967295)
	Tabs                   string // #{pane_tabs}, columns with commas
	HistorySize            int    // #{history_size}
	HistoryLimit           int    // #{history_limit}

	// Styled is `capture-pane -p -e -N -S -LINES`, Joined `capture-pane -p -J -S
	// -LINES` with the same number. They hold the newest history rows and the
	// screen; a final newline may be missing.
	Styled, Joined []byte
	// SavedStyled and SavedJoined are the same with -a and without -S, while the
	// alternate screen is on.
	SavedStyled, SavedJoined []byte
	// Pending is `capture-pane -P -C`: an unfinished sequence, octal escapes.
	Pending []byte
}

// ErrSeed is a SeedState that contradicts itself, because the pane changed
// between the captures or a capture was cut short. Ask again.
var ErrSeed = errors.New("captures do not fit together")

// Seed makes the transcript of a pane that has run for a while; offset is where
// in the output the state was taken. What cannot be asked for (the pen, the
// character sets, the saved cursor, what REP repeats) is taken as after a reset.
// Nothing seeded is news to a reader at offset or later.
func Seed(s SeedState, offset int64, p Profile) (*Transcript, error) {
	return seed(s, offset, p, 0)
}

func seed(s SeedState, offset int64, p Profile, firstID uint64) (*Transcript, error) {
	t := New(s.Width, s.Height, s.HistoryLimit, p)
	t.nextID = max(t.nextID, firstID)
	t.off, t.base = offset, offset
	if err := t.seedModes(s); err != nil {
		return nil, err
	}
	main, joined := s.Styled, s.Joined
	rows, err := t.seedRows(main, joined)
	if err != nil {
		return nil, err
	}
	past := len(rows) - t.height
	if past < 0 || past > s.HistorySize {
		return nil, fmt.Errorf("%w: %d rows for a screen of %d and history of %d", ErrSeed, len(rows), t.height, s.HistorySize)
	}
	t.above = s.HistorySize - past
	for _, r := range rows[:past] {
		t.seedPast(r)
	}
	if s.Alternate {
		saved, err := t.seedRows(s.SavedStyled, s.SavedJoined)
		if err != nil {
			return nil, fmt.Errorf("saved screen: %w", err)
		}
		t.seedScreen(saved[:min(len(saved), t.height)])
		t.alternateOn(false)
		t.alternateSince = offset
		t.seedScreen(rows[past:])
	} else {
		t.seedScreen(rows[past:])
	}
	t.cx, t.cy = min(max(s.CursorX, 0), t.width), min(max(s.CursorY, 0), t.height-1)
	t.wrapMode, t.insertMode, t.originMode = s.Wrap, s.Insert, s.Origin
	t.settle(offset)
	t.feedPending(s.Pending)
	return t, nil
}

func (t *Transcript) seedModes(s SeedState) error {
	t.upper, t.lower = max(s.Upper, 0), min(s.Lower, t.height-1)
	if t.upper >= t.lower {
		t.upper, t.lower = 0, t.height-1
	}
	clear(t.tabs)
	for _, f := range strings.Split(s.Tabs, ",") {
		if f == "" {
			continue
		}
		x, err := strconv.Atoi(f)
		if err != nil {
			return fmt.Errorf("tab stops %q: %w", s.Tabs, err)
		}
		if x >= 0 && x < t.width {
			t.tabs[x] = true
		}
	}
	if s.AlternateX >= 0 && s.AlternateY >= 0 && s.AlternateX < 1<<31 && s.AlternateY < 1<<31 {
		t.savedX, t.savedY, t.savedSet = s.AlternateX, s.AlternateY, true
	}
	return nil
}

// seedRow is one captured row.
type seedRow struct {
	text    string // in the internal form, up to the last used column
	wrapped bool
	acs     bool
}

// seedRows reads the two captures of the same rows and finds the wrap flags: a
// row is wrapped where the joined capture goes on without a newline.
func (t *Transcript) seedRows(styled, joined []byte) ([]seedRow, error) {
	var rows []seedRow
	acs := false
	for _, l := range splitLines(styled) {
		var r seedRow
		r.text, acs = unstyle(l, acs)
		r.acs = strings.IndexByte(r.text, acsByte) >= 0
		rows = append(rows, r)
	}
	lines := splitLines(joined)
	w := walker{rows: rows, lines: lines, exact: t.profile < Profile34}
	for _, r := range rows {
		// A row that wrapped is full, or one column short of it.
		w.full = append(w.full, t.columns(r.text) >= t.width-1)
	}
	if !w.walk(false) && !w.walk(true) {
		return nil, fmt.Errorf("%w: %d rows, %d joined lines", ErrSeed, len(rows), len(lines))
	}
	return rows, nil
}

// splitLines splits a capture; the last newline may be missing.
func splitLines(b []byte) []string {
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// unstyle takes the sequences of `capture-pane -e` from a row: SGR, hyperlinks,
// and SO and SI around line drawing, whose state carries over to the next row.
func unstyle(s string, acs bool) (string, bool) {
	if !acs && strings.IndexByte(s, 0x1b) < 0 && strings.IndexByte(s, 0x0e) < 0 {
		return s, false
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0x0e:
			acs = true
		case c == 0x0f:
			acs = false
		case c == 0x1b && i+1 < len(s) && s[i+1] == ']':
			if n := strings.Index(s[i:], "\x1b\\"); n >= 0 {
				i += n + 1
			} else {
				i = len(s)
			}
		case c == 0x1b:
			for i+1 < len(s) && !(s[i] >= 0x40 && s[i] < 0x7f && s[i] != '[') {
				i++
			}
		default:
			if acs && c > 0x20 && c < 0x7f {
				b = append(b, acsByte)
			}
			b = append(b, c)
		}
	}
	return string(b), acs
}

// columns is the width of a text in the internal form; a tab counts for plenty.
func (t *Transcript) columns(text string) (n int) {
	for _, r := range text {
		if r == '\t' {
			n += t.width
		} else if w := t.profile.width(r); w > 0 && r != utf8.RuneError {
			n += w
		}
	}
	return n
}

// walker finds the wrap flags in two captures of the same rows.
type walker struct {
	rows  []seedRow
	full  []bool
	lines []string
	exact bool // before 3.4 -N does not pad rows with blanks
}

// walk sets the rows' wrap flags and cuts their texts to what was used. Where
// blank rows leave a choice, a row that is not full is taken for wrapped only
// if asked to, and a full one only if there is no other way.
func (w *walker) walk(anyRow bool) bool {
	type place struct{ row, line, at int }
	var undo []place
	var p place
	plain := make([]string, len(w.rows))
	for i, r := range w.rows {
		plain[i] = tmuxText(r.text, r.acs)
	}
	segments := make([]string, len(w.rows))
	take := func(s string, wrapped bool) {
		segments[p.row], w.rows[p.row].wrapped = s, wrapped
		if p = (place{p.row + 1, p.line, p.at + len(s)}); !wrapped {
			p.line, p.at = p.line+1, 0
		}
	}
	wrap := func() bool {
		if p.line == len(w.lines) || !anyRow && !w.full[p.row] {
			return false
		}
		s, ok := prefix(w.lines[p.line][p.at:], plain[p.row])
		if ok {
			take(s, true)
		}
		return ok
	}
	for range 20*len(w.rows) + 1000 {
		last := p.row == len(w.rows)-1
		switch {
		case p.row == len(w.rows) && p.line == len(w.lines):
			for k := range w.rows {
				w.rows[k].text = cutRaw(w.rows[k].text, len(segments[k]))
			}
			return true
		case last && p.line == len(w.lines) && p.at == 0 && trimBlanks(plain[p.row]) == "":
			// A last row that is empty and wrapped: tmux takes the newline before
			// it for the capture's last (cmd-capture-pane.c).
			segments[p.row], w.rows[p.row].wrapped = "", true
			p.row++
			continue
		case p.row < len(w.rows) && p.line < len(w.lines):
			rest := w.lines[p.line][p.at:]
			if rest == plain[p.row] || !w.exact && trimBlanks(rest) == trimBlanks(plain[p.row]) {
				undo = append(undo, p)
				take(rest, false)
				continue
			}
			if wrap() {
				continue
			}
		}
		for ok := false; !ok; {
			if len(undo) == 0 {
				return false
			}
			p = undo[len(undo)-1]
			undo = undo[:len(undo)-1]
			ok = wrap()
		}
	}
	return false
}

// prefix is the longest beginning of rest that is the row but for blanks at its end.
func prefix(rest, row string) (string, bool) {
	for n := len(row); ; n-- {
		if strings.HasPrefix(rest, row[:n]) {
			return row[:n], true
		}
		if n == 0 || row[n-1] != ' ' {
			return "", false
		}
	}
}

// cutRaw cuts a text in the internal form to n bytes of tmux's text, or pads it.
func cutRaw(raw string, n int) string {
	have := 0
	for i := range len(raw) {
		if have == n {
			return raw[:i]
		}
		if raw[i] != acsByte {
			have++
		}
	}
	return raw + strings.Repeat(" ", max(n-have, 0))
}

// seedPast adds a history row.
func (t *Transcript) seedPast(r seedRow) {
	t.nextID++
	p := past{text: r.text, changed: t.off, id: t.nextID, born: noBorn, ended: noEnd, wrapped: r.wrapped, acs: r.acs}
	if trimBlanks(r.text) != "" {
		p.born = 0
	}
	if !r.wrapped {
		p.ended, p.born = 0, 0
		t.entered++
	}
	t.history.add(p, t.off)
}

// seedScreen prints captured rows to the screen.
func (t *Transcript) seedScreen(rows []seedRow) {
	wrap := t.wrapMode
	t.wrapMode = true
	for y, s := range rows {
		t.cx, t.cy = 0, y
		r := t.rows[y]
		t.printSeed(s.text)
		r.wrapped = s.wrapped
		r.left, r.gap = 0, 0
	}
	t.wrapMode = wrap
	t.pen, t.cx, t.cy = pen{}, 0, 0
	t.canRepeat, t.joiner = false, false
}

// printSeed prints one row's text without ever wrapping.
func (t *Transcript) printSeed(text string) {
	for len(text) > 0 {
		t.pen.g0 = text[0] == acsByte && len(text) > 1
		if t.pen.g0 {
			text = text[1:]
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r < utf8.RuneSelf && t.cx >= t.width:
			return
		case r == '\t':
			t.tab()
		case r < 0x20 || r == 0x7f:
		case r < utf8.RuneSelf:
			t.setCell(t.rows[t.cy], t.cx, t.ascii(byte(r)))
			t.cx++
		case t.profile.width(r) > 0 && t.cx >= t.width && !t.joiner:
			if !t.combine(r, t.profile.width(r)) {
				return
			}
		default:
			t.printRune(r)
		}
		text = text[size:]
	}
}

// settle makes what has been seeded old: known at an offset, ended above the
// cursor, and given out up to the cursor on its row.
func (t *Transcript) settle(offset int64) {
	rows := t.main()
	cy := t.cy
	if t.alternate {
		// The cursor there is not told; it is likely in the last row of text.
		for y, r := range rows {
			if !r.isBlank() {
				cy = y
			}
		}
	}
	for y, r := range rows {
		if r.isBlank() {
			r.born, r.changed = 0, 0
		} else {
			r.born, r.changed = offset, offset
		}
		r.rewrote, r.left, r.gap, r.ended = 0, 0, 0, 0
		r.solid = r.textEnd()
		if y < cy && !r.wrapped {
			r.ended, r.born = offset, offset
		}
	}
	if t.alternate {
		for _, r := range t.rows {
			r.solid = r.textEnd()
		}
	}
	t.changed, t.last = offset, nil
	if !t.alternate && t.rows[t.cy].changed != 0 {
		t.last = t.rows[t.cy]
		t.notePartial()
	}
}

// feedPending puts the parser back into an unfinished sequence.
func (t *Transcript) feedPending(b []byte) {
	raw := unescape(b)
	if len(raw) == 0 {
		return
	}
	t.replay = true
	off := t.off
	t.parse(raw, time.Time{})
	t.replay = false
	t.off = off
	if t.state != stateGround {
		t.escStart, t.strStart = off, off
	}
}

// unescape undoes the octal escapes of capture-pane -C.
func unescape(b []byte) []byte {
	b = slices.Clone(b)
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	out := b[:0]
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) {
			if n, err := strconv.ParseUint(string(b[i+1:i+4]), 8, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}
