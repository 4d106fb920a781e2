package transcript

import "unicode/utf8"

const variationSelector = '\ufe0f'

// combineNew is the joining of tmux from 3.4 on (screen-write.c,
// screen_write_combine): a joiner lives in the cell, so chunks do not matter.
// It reports whether the character is dealt with.
func (t *Transcript) combineNew(c rune, width int) bool {
	if t.profile >= Profile36 && c == '\u3164' { // Hangul filler: never shown
		return true
	}
	zero := width == 0 || c == zwj || c == variationSelector
	wide := c == variationSelector
	if t.cx == 0 {
		return zero
	}
	r := t.rows[t.cy]
	last, n, ok := t.before()
	if !ok {
		return zero
	}
	if !zero {
		join, force := t.joins(last, c)
		switch join {
		case joinNot:
			return false
		case joinDrop:
			return true
		}
		wide = wide || force
	}
	joined, ok := t.joined(last, c, 1)
	if !ok { // before 3.8 it is then a cell of its own, of no column
		return zero && t.profile >= Profile38
	}
	if last.width() == 1 && wide {
		t.widen(r, joined)
		return true
	}
	t.extendCell(r, t.cx-n, n, joined)
	return true
}

// before is the cell that what is printed at the cursor, not in column 0, could
// join, and its width.
func (t *Transcript) before() (last cell, width int, ok bool) {
	r, width := t.rows[t.cy], 1
	last = r.at(t.cx - 1)
	if t.cx != 1 && last.padding() {
		width = 2
		last = r.at(t.cx - 2)
	}
	return last, width, !last.padding() && width == last.width()
}

// widen stores a cell that joining has made two columns wide and moves the
// cursor on. tmux 3.4 puts the padding one column too far. At the margin the
// padding lies beyond the screen: before 3.6 the cursor then falls back to the
// last column, later it stays, because the character is not wholly visible.
func (t *Transcript) widen(r *row, c cell) {
	x := t.cx - 1
	t.extendCell(r, x, 1, c|cellWide)
	pad := t.cx
	if t.profile == Profile34 {
		pad++
	}
	t.setCell(r, pad, cellSpace|cellPadding)
	if t.profile < Profile36 || t.cx < t.width {
		t.setCursor(t.cx+1, -1)
	}
}

// join says what becomes of a character after another.
type join int

const (
	joinNot  join = iota // a cell of its own
	joinWith             // goes into the cell before
	joinDrop             // vanishes
)

// joins decides for a character that has a width. force asks for two columns.
func (t *Transcript) joins(last cell, c rune) (j join, force bool) {
	text := t.appendCell(t.clusterText[:0], last)
	t.clusterText = text
	if t.profile < Profile36 {
		if isModifier(c) {
			if len(text) < 2 {
				return joinNot, false
			}
			return joinWith, true
		}
		if endsInJoiner(text) {
			return joinWith, false
		}
		return joinNot, false
	}
	return joinsEmoji(text, c)
}

func endsInJoiner(text []byte) bool {
	r, _ := utf8.DecodeLastRune(text)
	return r == zwj
}

// isModifier lists what joins any character before it in 3.4 and 3.5: the
// regional indicators and the skin tones (utf8-combined.c).
func isModifier(c rune) bool {
	return c >= 0x1f1e6 && c <= 0x1f1ff || c >= 0x1f3fb && c <= 0x1f3ff
}

// joinsEmoji is the rule from 3.6 on: Hangul syllables in the making, pairs of
// regional indicators, skin tones after (or before) the emoji that take them,
// and anything after a joiner. Only the first rune of the cell counts for the
// pairs, as tmux decodes no further.
func joinsEmoji(text []byte, c rune) (j join, force bool) {
	last, _ := utf8.DecodeLastRune(text)
	switch jamoOf(c) {
	case jamoLead:
		return joinNot, false
	case jamoVowel:
		if jamoOf(last) == jamoLead {
			return joinWith, false
		}
		return joinDrop, false
	case jamoTail:
		if jamoOf(last) == jamoVowel {
			return joinWith, false
		}
		return joinDrop, false
	}
	first, _ := utf8.DecodeRune(text)
	switch {
	case isRegional(first) && isRegional(c),
		isSkinTone(first) && takesSkinTone(c),
		isSkinTone(c) && takesSkinTone(first):
		return joinWith, true
	case last == zwj:
		return joinWith, false
	}
	return joinNot, false
}

func isRegional(c rune) bool { return c >= 0x1f1e6 && c <= 0x1f1ff }

func isSkinTone(c rune) bool { return c >= 0x1f3fb && c <= 0x1f3ff }

// jamo is a part of a Hangul syllable.
type jamo int

const (
	jamoNone jamo = iota
	jamoLead
	jamoVowel
	jamoTail
)

func jamoOf(c rune) jamo {
	switch {
	case c >= 0x1100 && c <= 0x115f, c >= 0xa960 && c <= 0xa97c:
		return jamoLead
	case c >= 0x1160 && c <= 0x11a7, c >= 0xd7b0 && c <= 0xd7c6:
		return jamoVowel
	case c >= 0x11a8 && c <= 0x11ff, c >= 0xd7cb && c <= 0xd7fb:
		return jamoTail
	}
	return jamoNone
}

// runes is a sorted list of ranges.
type runes [][2]rune

func (rs runes) has(c rune) bool {
	lo, hi := 0, len(rs)
	for lo < hi {
		m := (lo + hi) / 2
		switch {
		case c < rs[m][0]:
			hi = m
		case c > rs[m][1]:
			lo = m + 1
		default:
			return true
		}
	}
	return false
}

// takesSkinTone tells whether tmux from 3.6 on joins a skin tone to it
// (utf8-combined.c, utf8_should_combine).
func takesSkinTone(c rune) bool { return skinToned.has(c) }

var skinToned = runes{
	{0x1f44b, 0x1f450},
	{0x1f466, 0x1f469},
	{0x1f46e, 0x1f46e},
	{0x1f470, 0x1f478},
	{0x1f47c, 0x1f47c},
	{0x1f481, 0x1f483},
	{0x1f485, 0x1f487},
	{0x1f4aa, 0x1f4aa},
	{0x1f575, 0x1f575},
	{0x1f57a, 0x1f57a},
	{0x1f590, 0x1f590},
	{0x1f595, 0x1f596},
	{0x1f645, 0x1f647},
	{0x1f64b, 0x1f64f},
	{0x1f6b4, 0x1f6b6},
	{0x1f926, 0x1f926},
	{0x1f937, 0x1f939},
	{0x1f93d, 0x1f93e},
	{0x1f9b5, 0x1f9b6},
	{0x1f9b8, 0x1f9b9},
	{0x1f9cd, 0x1f9cf},
	{0x1f9d1, 0x1f9df},
}

// forcedWide tells whether tmux from 3.4 on gives the character two columns
// whatever the C library says (utf8.c).
func forcedWide(p Profile, c rune) bool {
	if isRegional(c) {
		return p < Profile36
	}
	return wideEmoji.has(c)
}

var wideEmoji = runes{
	{0x261d, 0x261d},
	{0x26f9, 0x26f9},
	{0x270a, 0x270d},
	{0x1f385, 0x1f385},
	{0x1f3c2, 0x1f3c4},
	{0x1f3c7, 0x1f3c7},
	{0x1f3ca, 0x1f3cc},
	{0x1f3fb, 0x1f3ff},
	{0x1f442, 0x1f443},
	{0x1f446, 0x1f450},
	{0x1f466, 0x1f469},
	{0x1f46b, 0x1f46e},
	{0x1f470, 0x1f478},
	{0x1f47c, 0x1f47c},
	{0x1f481, 0x1f483},
	{0x1f485, 0x1f487},
	{0x1f48f, 0x1f48f},
	{0x1f491, 0x1f491},
	{0x1f4aa, 0x1f4aa},
	{0x1f574, 0x1f575},
	{0x1f57a, 0x1f57a},
	{0x1f590, 0x1f590},
	{0x1f595, 0x1f596},
	{0x1f645, 0x1f647},
	{0x1f64b, 0x1f64f},
	{0x1f6a3, 0x1f6a3},
	{0x1f6b4, 0x1f6b6},
	{0x1f6c0, 0x1f6c0},
	{0x1f6cc, 0x1f6cc},
	{0x1f90c, 0x1f90c},
	{0x1f90f, 0x1f90f},
	{0x1f918, 0x1f91f},
	{0x1f926, 0x1f926},
	{0x1f930, 0x1f939},
	{0x1f93d, 0x1f93e},
	{0x1f977, 0x1f977},
	{0x1f9b5, 0x1f9b6},
	{0x1f9b8, 0x1f9b9},
	{0x1f9bb, 0x1f9bb},
	{0x1f9cd, 0x1f9cf},
	{0x1f9d1, 0x1f9dd},
	{0x1fac3, 0x1fac5},
	{0x1faf0, 0x1faf8},
}

// putTab stores a tab over blank columns (input.c and grid.c, from 3.6 on). tmux
// prints it as a cell of n blanks, so a joiner before it takes the blanks into
// its own cell and the cursor stays (seen with 3.7c and 3.8).
func (t *Transcript) putTab(n int) {
	if t.cx > 0 {
		last, width, ok := t.before()
		t.clusterText = t.appendCell(t.clusterText[:0], last)
		if ok && endsInJoiner(t.clusterText) {
			if joined, ok := t.joined(last, ' ', n); ok {
				t.extendCell(t.rows[t.cy], t.cx-width, width, joined)
				return
			}
		}
	}
	t.put(cellSpace|cellTab|cell(n-1)<<cellTabShift, n)
}
