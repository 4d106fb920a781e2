package transcript

// The cursor, the margins and the two screens (tmux's screen-write.c and
// screen.c).

// setCursor moves the cursor; -1 keeps a coordinate. The column after the last
// is a position of its own: the next character wraps there.
func (t *Transcript) setCursor(x, y int) {
	if x != -1 {
		if x > t.width || x < 0 {
			x = t.width - 1
		}
		t.cx = x
	}
	if y != -1 {
		t.cy = max(min(y, t.height-1), 0)
	}
}

// cursorTo is CUP and its kin: clamped to the screen, counted from the region's
// top in origin mode.
func (t *Transcript) cursorTo(x, y int, origin bool) {
	if origin && y != -1 && t.originMode {
		if y > t.lower-t.upper {
			y = t.lower
		} else {
			y += t.upper
		}
	}
	if x != -1 {
		x = min(x, t.width-1)
	}
	if y != -1 {
		y = min(y, t.height-1)
	}
	t.setCursor(x, y)
}

func (t *Transcript) cursorUp(n int) {
	if t.cy < t.upper {
		n = min(n, t.cy)
	} else {
		n = min(n, t.cy-t.upper)
	}
	x := t.cx
	if x == t.width {
		x--
	}
	t.setCursor(x, t.cy-n)
}

func (t *Transcript) cursorDown(n int) {
	if t.cy > t.lower {
		n = min(n, t.height-1-t.cy)
	} else {
		n = min(n, t.lower-t.cy)
	}
	x := t.cx
	if x == t.width {
		x--
	}
	t.setCursor(x, t.cy+n)
}

func (t *Transcript) cursorRight(n int) {
	if t.cx == t.width { // tmux's subtraction goes below zero, then clamps
		t.cx--
		return
	}
	t.setCursor(t.cx+min(n, t.width-1-t.cx), -1)
}

func (t *Transcript) cursorLeft(n int) {
	t.setCursor(t.cx-min(n, t.cx), -1)
}

// backspace goes up to the end of the row above when that row wrapped.
func (t *Transcript) backspace() {
	if t.cx > 0 {
		t.setCursor(t.cx-1, -1)
		return
	}
	if t.cy > 0 && t.rows[t.cy-1].wrapped {
		t.setCursor(t.width-1, t.cy-1)
	}
}

// tab moves to the next stop, or the last column. From 3.6 on a tab over blank
// columns of one style is stored, and captured as a tab.
func (t *Transcript) tab() {
	if t.cx >= t.width-1 {
		return
	}
	r, x := t.rows[t.cy], t.cx
	first, blank := r.at(x), true
	for {
		c := r.at(x)
		if c&(cellValue|cellCluster|cellPadding) != cellSpace || (c^first)&^cellCleared != 0 || c.width() != 1 {
			blank = false
		}
		x++
		if t.tabs[x] || x >= t.width-1 {
			break
		}
	}
	if t.profile >= Profile36 && blank && x-t.cx <= clusterBytes36 {
		t.putTab(x - t.cx)
		return
	}
	t.cx = x
}

// backTab is CBT.
func (t *Transcript) backTab(n int) {
	x := min(t.cx, t.width-1)
	for ; x > 0 && n > 0; n-- {
		x--
		for x > 0 && !t.tabs[x] {
			x--
		}
	}
	t.cx = x
}

func (t *Transcript) resetTabs() {
	t.tabs = make([]bool, t.width+1)
	for x := 8; x < t.width; x += 8 {
		t.tabs[x] = true
	}
}

// lineFeed moves down, scrolling at the region's end. A line that a line feed
// leaves is a finished one.
func (t *Transcript) lineFeed() {
	r := t.rows[t.cy]
	if r.ended == 0 {
		r.ended = t.off
		if r.born == 0 {
			r.born = t.off
		}
		if !t.alternate {
			t.changed = t.off
		}
	}
	t.down(t.pen.bg)
}

// wrap continues a line in the next row. Only this sets the wrap flag.
func (t *Transcript) wrap() {
	r := t.rows[t.cy]
	was := r.wrapped
	r.wrapped = true
	same := t.last == r
	t.down(0)
	if next := t.rows[t.cy]; next != r {
		if !was && !next.isBlank() {
			t.reline(r)
		}
		if same {
			// The next change is of the same line, not a change elsewhere.
			t.last = next
		}
	}
	t.setCursor(0, -1)
}

func (t *Transcript) down(bg colour) {
	if t.cy == t.lower {
		t.scrollUp(t.upper, t.lower, bg)
	} else if t.cy < t.height-1 {
		t.cy++
	}
}

func (t *Transcript) reverseIndex() {
	if t.cy == t.upper {
		t.scrollDown(t.upper, t.lower, t.pen.bg)
	} else if t.cy > 0 {
		t.cy--
	}
}

func (t *Transcript) setRegion(upper, lower int) {
	upper, lower = min(upper, t.height-1), min(lower, t.height-1)
	if upper >= lower { // a region has at least two rows
		return
	}
	t.setCursor(0, 0)
	t.upper, t.lower = upper, lower
}

// alignmentTest is DECALN.
func (t *Transcript) alignmentTest() {
	for _, r := range t.rows {
		for x := range t.width {
			t.setCell(r, x, cell('E'))
		}
	}
	t.setCursor(0, 0)
	t.upper, t.lower = 0, t.height-1
}

// insertLines and deleteLines outside the region work down to the screen's
// bottom.
func (t *Transcript) insertLines(n int) {
	if t.cy < t.upper || t.cy > t.lower {
		t.insertRows(t.cy, min(n, t.height-t.cy), t.pen.bg)
		return
	}
	t.insertRowsRegion(t.lower, t.cy, min(n, t.lower+1-t.cy), t.pen.bg)
}

func (t *Transcript) deleteLines(n int) {
	if t.cy < t.upper || t.cy > t.lower {
		t.deleteRows(t.cy, min(n, t.height-t.cy), t.pen.bg)
		return
	}
	t.deleteRowsRegion(t.lower, t.cy, min(n, t.lower+1-t.cy), t.pen.bg)
}

// eraseLine is EL 2, and EL 0 at column 0.
func (t *Transcript) eraseLine() {
	if len(t.rows[t.cy].cells) == 0 && !t.pen.bg.set() {
		return
	}
	t.clear(0, t.cy, t.width, 1, t.pen.bg)
}

func (t *Transcript) eraseLineRight() {
	if t.cx == 0 {
		t.eraseLine()
		return
	}
	if t.cx > t.width-1 || t.cx >= len(t.rows[t.cy].cells) && !t.pen.bg.set() {
		return
	}
	t.clear(t.cx, t.cy, t.width-t.cx, 1, t.pen.bg)
}

func (t *Transcript) eraseLineLeft() {
	if t.cx >= t.width-1 {
		t.eraseLine()
		return
	}
	t.clear(0, t.cy, t.cx+1, 1, t.pen.bg)
}

// eraseBelow is ED 0. From home with history on it is ED 2.
func (t *Transcript) eraseBelow() {
	if t.cx == 0 && t.cy == 0 && t.historyOn() && t.scrollOnClear {
		t.clearIntoHistory(t.pen.bg)
		return
	}
	if t.cx <= t.width-1 {
		t.clear(t.cx, t.cy, t.width-t.cx, 1, t.pen.bg)
	}
	t.clear(0, t.cy+1, t.width, t.height-(t.cy+1), t.pen.bg)
}

func (t *Transcript) eraseAbove() {
	if t.cy > 0 {
		t.clear(0, 0, t.width, t.cy, t.pen.bg)
	}
	if t.cx > t.width-1 {
		t.clear(0, t.cy, t.width, 1, t.pen.bg)
	} else {
		t.clear(0, t.cy, t.cx+1, 1, t.pen.bg)
	}
}

// eraseScreen is ED 2: the screen goes to history, the cursor stays.
func (t *Transcript) eraseScreen(bg colour) {
	if t.historyOn() && t.scrollOnClear {
		t.clearIntoHistory(bg)
		return
	}
	t.clear(0, 0, t.width, t.height, bg)
}

// reset is RIS. It does not leave the alternate screen.
func (t *Transcript) reset() {
	t.resetPen()
	t.resetTabs()
	t.setRegion(0, t.height-1)
	t.insertMode, t.originMode, t.wrapMode = false, false, true
	t.eraseScreen(0)
	t.setCursor(0, 0)
}

// alternateOn saves the screen and shows a blank one.
func (t *Transcript) alternateOn(cursor bool) {
	if !t.alternateScreen || t.alternate {
		return
	}
	t.notePartial() // a reader may stand here, see since
	if cursor {
		t.savedX, t.savedY, t.savedSet = t.cx, t.cy, true
	}
	t.savedPen = t.pen
	t.saved, t.rows = t.rows, t.savedSpare
	t.savedSpare = nil
	if t.rows == nil {
		t.rows = make([]*row, t.height)
	}
	// tmux copies the screen and then frees each of its rows, so the newest
	// history row loses its wrap flag for good.
	for y := range t.rows {
		t.rows[y] = t.newRow(0)
	}
	t.clearWrap(-1)
	t.alternate = true
	t.alternateSince = t.off
	t.savedWidth, t.savedHeight = t.width, t.height
}

// alternateOff restores the screen. The cursor is restored even when the
// alternate screen was not on.
func (t *Transcript) alternateOff(cursor bool) {
	if !t.alternateScreen {
		return
	}
	if cursor && t.savedSet {
		t.cx, t.cy = t.savedX, t.savedY
		t.pen = t.savedPen
	}
	if t.alternate {
		for _, r := range t.rows {
			t.drop(r)
		}
		t.rows, t.savedSpare = t.saved, t.rows
		t.saved = nil
		t.alternate = false
		if t.savedWidth != t.width || t.savedHeight != t.height {
			t.stale = true
		}
	}
	t.cx = min(t.cx, t.width-1)
	t.cy = min(t.cy, t.height-1)
}
