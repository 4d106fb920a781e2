package transcript

// escDispatch executes an escape sequence that is not the start of a longer
// one. Unknown ones have no effect, not even on REP.
func (t *Transcript) escDispatch(c byte) {
	if t.discard {
		return
	}
	if t.nInter > 1 {
		return
	}
	if t.nInter == 1 {
		switch [2]byte{t.intermediates[0], c} {
		case [2]byte{'(', '0'}:
			t.pen.g0 = true
		case [2]byte{'(', 'B'}:
			t.pen.g0 = false
		case [2]byte{')', '0'}:
			t.pen.g1 = true
		case [2]byte{')', 'B'}:
			t.pen.g1 = false
		case [2]byte{'#', '8'}:
			t.alignmentTest()
		default:
			return
		}
		t.canRepeat = false
		return
	}
	switch c {
	case '7':
		t.saveCursor()
	case '8':
		t.restoreCursor()
	case 'D':
		t.lineFeed()
	case 'E':
		t.cx = 0
		t.lineFeed()
	case 'H':
		if t.cx < t.width {
			t.tabs[t.cx] = true
		}
	case 'M':
		t.reverseIndex()
	case 'c':
		t.reset()
	case '=', '>', '\\': // keypad modes, and the end of a string
	default:
		return
	}
	t.canRepeat = false
}

func (t *Transcript) saveCursor() {
	t.slot = slot{pen: t.pen, x: t.cx, y: t.cy, origin: t.originMode}
}

func (t *Transcript) restoreCursor() {
	t.pen = t.slot.pen
	t.originMode = t.slot.origin
	t.cursorTo(t.slot.x, t.slot.y, false)
}

// resetPen is tmux's input_reset_cell; the saved origin mode stays.
func (t *Transcript) resetPen() {
	t.pen = pen{}
	t.slot = slot{origin: t.slot.origin}
}

const (
	paramMissing = -1 // empty
	paramString  = -2 // holds a colon
)

// split reads the parameters. tmux drops the whole sequence for a number over
// 2^31-1 or for too many parameters.
func (t *Transcript) split() bool {
	t.nArgs = 0
	if t.nParams == 0 {
		return true
	}
	value, start := paramMissing, 0
	for i := 0; i <= t.nParams; i++ {
		if i < t.nParams && t.params[i] != ';' {
			switch c := t.params[i]; {
			case c == ':':
				value = paramString
			case value == paramString:
			default:
				value = max(value, 0)*10 + int(c-'0')
				if value > 1<<31-1 && !t.colonAhead(i) {
					return false
				}
				value = min(value, 1<<31)
			}
			continue
		}
		if t.nArgs == maxParameters {
			return false
		}
		t.args[t.nArgs] = value
		t.argText[t.nArgs] = [2]uint8{uint8(start), uint8(i)}
		t.nArgs++
		value, start = paramMissing, i+1
	}
	return true
}

// colonAhead tells whether the parameter at i turns out not to be a number.
func (t *Transcript) colonAhead(i int) bool {
	for ; i < t.nParams && t.params[i] != ';'; i++ {
		if t.params[i] == ':' {
			return true
		}
	}
	return false
}

// arg is a parameter with its least value and its default, -1 if unusable
// (input.c, input_get).
func (t *Transcript) arg(i, least, def int) int {
	if i >= t.nArgs {
		return def
	}
	switch v := t.args[i]; v {
	case paramMissing:
		return def
	case paramString:
		return -1
	default:
		return max(v, least)
	}
}

// csiDispatch executes a control sequence. The prefix and the intermediates
// must be known exactly: CSI ? 2 J does nothing.
func (t *Transcript) csiDispatch(c byte) {
	if t.discard || !t.split() {
		return
	}
	switch {
	case t.nInter == 0:
		if !t.csiPlain(c) {
			return
		}
	case t.nInter == 1 && t.intermediates[0] == '?' && (c == 'h' || c == 'l'):
		for i := range t.nArgs {
			t.privateMode(t.arg(i, 0, -1), c == 'h')
		}
	case t.nInter == 1 && t.knownOther(c):
	default:
		return
	}
	t.canRepeat = false
}

// knownOther lists sequences that do nothing to rows but are known to tmux, and
// so cancel REP.
func (t *Transcript) knownOther(c byte) bool {
	switch t.intermediates[0] {
	case '>':
		return c == 'c' || c == 'm' || c == 'n' || c == 'q'
	case ' ':
		return c == 'q'
	case '?':
		return c == 'S' && t.profile >= Profile34 || c == 'n' && t.profile >= Profile36
	}
	return false
}

// csiPlain executes a sequence without prefix. It reports whether it is known.
func (t *Transcript) csiPlain(c byte) bool {
	switch c {
	case 'c', 'n': // device attributes and status: replies only
	case 't':
		t.windowOperation()
	case 'J', 'K', 'g':
		t.eraseOrTabs(c, t.arg(0, 0, 0))
	case 'h', 'l':
		for i := range t.nArgs {
			if t.arg(i, 0, -1) == 4 {
				t.insertMode = c == 'h'
			}
		}
	case 'm':
		t.sgr()
	case 's':
		t.saveCursor()
	case 'u':
		t.restoreCursor()
	case 'r':
		upper, lower := t.arg(0, 1, 1), t.arg(1, 1, t.height)
		if upper != -1 && lower != -1 {
			t.setRegion(upper-1, lower-1)
		}
	case 'H', 'f':
		y, x := t.arg(0, 1, 1), t.arg(1, 1, 1)
		if x != -1 && y != -1 {
			t.cursorTo(x-1, y-1, true)
		}
	default:
		n := t.arg(0, 1, 1)
		if n == -1 {
			return csiCounted(c)
		}
		return t.counted(c, n)
	}
	return true
}

func csiCounted(c byte) bool {
	switch c {
	case '@', 'A', 'B', 'C', 'D', 'E', 'F', 'G', '`', 'L', 'M', 'P', 'S', 'T', 'X', 'Z', 'b', 'd':
		return true
	}
	return false
}

// counted executes the sequences with one number, at least 1.
func (t *Transcript) counted(c byte, n int) bool {
	switch c {
	case 'A':
		t.cursorUp(n)
	case 'B':
		t.cursorDown(n)
	case 'C':
		t.cursorRight(n)
	case 'D':
		t.cursorLeft(n)
	case 'E':
		t.cx = 0
		t.cursorDown(n)
	case 'F':
		t.cx = 0
		t.cursorUp(n)
	case 'G', '`':
		t.cursorTo(n-1, -1, true)
	case 'd':
		t.cursorTo(-1, n-1, true)
	case '@', 'P', 'X':
		t.characters(c, n)
	case 'L':
		t.insertLines(n)
	case 'M':
		t.deleteLines(n)
	case 'S', 'T':
		for range min(n, t.lower-t.upper+1) {
			if c == 'S' {
				t.scrollUp(t.upper, t.lower, t.pen.bg)
			} else {
				t.scrollDown(t.upper, t.lower, t.pen.bg)
			}
		}
	case 'Z':
		t.backTab(n)
	case 'b':
		t.repeat(n)
	default:
		return false
	}
	return true
}

// characters is ICH, DCH and ECH: nothing at the margin column.
func (t *Transcript) characters(c byte, n int) {
	n = min(n, t.width-t.cx)
	if n <= 0 || t.cx > t.width-1 {
		return
	}
	switch c {
	case '@':
		t.insertCells(t.cx, t.cy, n, t.pen.bg)
	case 'P':
		t.deleteCells(t.cx, t.cy, n, t.pen.bg)
	case 'X':
		t.clear(t.cx, t.cy, n, 1, t.pen.bg)
	}
}

func (t *Transcript) eraseOrTabs(c byte, n int) {
	switch [2]byte{c, byte(min(max(n, -1), 9) + '0')} {
	case [2]byte{'J', '0'}:
		t.eraseBelow()
	case [2]byte{'J', '1'}:
		t.eraseAbove()
	case [2]byte{'J', '2'}:
		t.eraseScreen(t.pen.bg)
	case [2]byte{'J', '3'}:
		if t.arg(1, 0, 0) == 0 {
			t.clearHistory()
		}
	case [2]byte{'K', '0'}:
		t.eraseLineRight()
	case [2]byte{'K', '1'}:
		t.eraseLineLeft()
	case [2]byte{'K', '2'}:
		t.eraseLine()
	case [2]byte{'g', '0'}:
		if t.cx < t.width {
			t.tabs[t.cx] = false
		}
	case [2]byte{'g', '3'}:
		clear(t.tabs)
	}
}

// privateMode is DECSET and DECRST.
func (t *Transcript) privateMode(n int, on bool) {
	switch n {
	case 3: // tmux has no 132 columns, but homes and clears
		t.cursorTo(0, 0, true)
		t.eraseScreen(t.pen.bg)
	case 6:
		t.originMode = on
		t.cursorTo(0, 0, true)
	case 7:
		t.wrapMode = on
	case 47, 1047, 1049:
		if on {
			t.alternateOn(n == 1049)
		} else {
			t.alternateOff(n == 1049)
		}
	}
}
