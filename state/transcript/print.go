package transcript

import "unicode/utf8"

// print writes a run of printable ASCII; start is the offset before its first
// byte and step how far each byte moves it (0 while REP repeats).
//
// tmux collects such a run and stores it whole (screen-write.c,
// screen_write_collect_add), one row at a time. Line drawing, insert mode and
// wrap mode off go character by character instead, with other rules.
func (t *Transcript) print(run []byte, start, step int64) {
	t.lastRune, t.canRepeat = rune(run[len(run)-1]), true
	if !t.wrapMode || t.insertMode || t.lineDrawing() {
		for i, b := range run {
			t.off = start + int64(i+1)*step
			t.put(t.ascii(b), 1)
		}
		return
	}
	for len(run) > 0 {
		t.off = start + step
		if t.cx > t.width-1 {
			t.wrap()
		}
		n := min(len(run), t.width-t.cx)
		t.store(t.rows[t.cy], run[:n], start, step)
		run = run[n:]
		start += int64(n) * step
		t.off = start
	}
}

// store writes a run at the cursor of a row it fits into
// (screen_write_collect_end).
func (t *Transcript) store(r *row, run []byte, start, step int64) {
	from, end := t.cx, t.cx+len(run)
	r.expand(end, t.width)
	if r.wide {
		t.splitBefore(r, from)
	}
	fresh := from >= r.used // beyond it there are only erased cells
	r.used = max(r.used, end)
	cells := r.cells[from:end:end]
	run = run[:len(cells)]
	var first, last int
	if fresh && t.pen.space == 0 {
		first, last = fill(cells, run)
	} else {
		first, last = overwrite(cells, run, t.pen.space|cellSpace)
	}
	if first >= 0 {
		t.touchRun(r, first, last, start, step)
	}
	t.cx = end
	if r.wide {
		t.splitAfter(r, end)
	}
}

// fill stores a run over erased cells and finds its text.
func fill(cells []cell, run []byte) (first, last int) {
	for i, b := range run {
		cells[i] = cell(b)
	}
	for first < len(run) && run[first] == ' ' {
		first++
	}
	if first == len(run) {
		return -1, 0
	}
	last = len(run) - 1
	for run[last] == ' ' {
		last--
	}
	return first, last
}

// overwrite stores a run and finds the first and the last cell that read
// differently now.
func overwrite(cells []cell, run []byte, space cell) (first, last int) {
	first = -1
	for i, b := range run {
		old, c := cells[i], cell(b)
		if b == ' ' {
			c = space
		}
		if old == c {
			continue
		}
		cells[i] = c
		if (old^c)&cellLook != 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// touchRun marks a stored run of which the cells first to last differ. The
// cursor is still where the run began.
func (t *Transcript) touchRun(r *row, first, last int, start, step int64) {
	t.touch(r, t.cx+first, start+int64(last+1)*step)
}

// splitBefore blanks the rest of a wide character whose second half the run
// starts on. At column 0 tmux before 3.6 forgets the first half.
func (t *Transcript) splitBefore(r *row, cx int) {
	if cx == 0 {
		return
	}
	x := cx
	var c cell
	for ; x > 0; x-- {
		c = r.at(x)
		if !c.padding() {
			break
		}
		t.setCell(r, x, cellSpace)
	}
	if t.profile < Profile36 {
		if c.width() > 1 {
			t.setCell(r, x, cellSpace)
		}
		return
	}
	if x != cx {
		if x == 0 {
			c = r.at(0)
		}
		if c.width() > 1 || c.padding() {
			t.setCell(r, x, cellSpace)
		}
	}
}

// splitAfter blanks the second half of a wide character that lost its first.
func (t *Transcript) splitAfter(r *row, cx int) {
	for x := cx; x < t.width; x++ {
		if !r.at(x).padding() {
			break
		}
		t.setCell(r, x, cellSpace)
	}
}

// setCell stores one cell (grid.c, grid_set_cell).
func (t *Transcript) setCell(r *row, x int, c cell) { t.putCell(r, x, c, x) }

// extendCell stores a cell that was a number of columns wide and of which the text
// goes on: who has been given the row up to there has the beginning of it.
func (t *Transcript) extendCell(r *row, x, width int, c cell) { t.putCell(r, x, c, x+width) }

// putCell stores a cell; behind the column rewritten the row's text is another.
func (t *Transcript) putCell(r *row, x int, c cell, rewritten int) {
	r.expand(x+1, t.width)
	r.used = max(r.used, x+1)
	old := r.cells[x]
	r.cells[x] = c
	if c&(cellPadding|cellTab) != 0 {
		r.wide = true
	}
	if c&cellACS != 0 {
		r.acs = true
	}
	if c&(cellCluster|cellPadding|cellACS|cellTab) != 0 || c&cellValue >= utf8.RuneSelf {
		r.rich = true
	}
	if !sameText(old, c) {
		t.touch(r, rewritten, t.off)
	}
}

// ascii is the cell of a printable byte in the current character set.
func (t *Transcript) ascii(b byte) cell {
	c := cell(b)
	if b == ' ' {
		c |= t.pen.space
	}
	if t.lineDrawing() {
		c |= cellACS
	}
	return c
}

func (t *Transcript) lineDrawing() bool {
	if t.pen.shiftOut {
		return t.pen.g1
	}
	return t.pen.g0
}

// printRune prints a complete character from UTF-8 input.
func (t *Transcript) printRune(r rune) {
	w := t.profile.width(r)
	if w < 0 {
		return
	}
	c := cell(r)
	if w == 2 {
		c |= cellWide
	}
	if !t.combine(r, w) {
		t.put(c, w)
	}
}

// put writes one cell of the given width at the cursor (screen_write_cell,
// after combining).
func (t *Transcript) put(c cell, width int) {
	if c&(cellTab|cellCluster) == 0 && c&cellValue < utf8.RuneSelf && t.joiner {
		// 3.3a joins ASCII too when it does not come in a collected run.
		t.joiner = false
		t.appendToCell(zwj)
		t.appendToCell(rune(c & cellValue))
		return
	}
	sx := t.width
	if r := t.rows[t.cy]; width == 2 && t.cx >= r.used && t.cx+2 <= sx && t.wrapMode && !t.insertMode {
		t.putWide(r, c)
		return
	}
	if !t.wrapMode && width > 1 && (width > sx || t.cx != sx && t.cx > sx-width) {
		return
	}
	// tmux subtracts without sign: for a character wider than the screen, room
	// is always found.
	room := uint32(sx - width)
	skip := true
	if t.insertMode {
		t.insertCells(t.cx, t.cy, width, 0)
		skip = false
	}
	if t.wrapMode && uint32(t.cx) > room {
		t.wrap()
	}
	if uint32(t.cx) > room {
		return
	}
	r := t.rows[t.cy]
	if r.wide && t.overwrite(r, width) {
		skip = false
	}
	if width > 1 || !skip || !t.printed(r, c) {
		t.setCell(r, t.cx, c)
	}
	for x := t.cx + 1; x < t.cx+width; x++ {
		t.setCell(r, x, cellSpace|cellPadding)
	}
	last := 0
	if !t.wrapMode {
		last = 1
	}
	if uint32(t.cx) <= uint32(sx-last-width) {
		t.setCursor(t.cx+width, -1)
	} else {
		t.setCursor(sx-last, -1)
	}
}

// putWide is put for a wide character that goes on behind everything in a row.
func (t *Transcript) putWide(r *row, c cell) {
	x := t.cx
	r.expand(x+1, t.width) // in two steps, as tmux
	r.expand(x+2, t.width)
	r.cells[x], r.cells[x+1] = c, cellSpace|cellPadding
	r.used, r.wide, r.rich = x+2, true, true
	r.acs = r.acs || c&cellACS != 0
	t.touch(r, x, t.off)
	t.cx = x + 2
}

// printed tells whether tmux finds the cell to hold the character already and
// then does not store it, so that `used` stays (screen_write_cell, "skip").
// Beyond the allocated cells that is a blank with the default pen.
func (t *Transcript) printed(r *row, c cell) bool {
	if t.cx >= len(r.cells) {
		return c == cellSpace && t.pen.isDefault()
	}
	return r.cells[t.cx] == c
}

// overwrite blanks what the character under the cursor leaves behind
// (screen_write_overwrite).
func (t *Transcript) overwrite(r *row, width int) (done bool) {
	now := r.at(t.cx)
	if now.padding() {
		x := t.cx
		for ; x > 0; x-- {
			if !r.at(x).padding() {
				break
			}
			t.setCell(r, x, cellSpace)
		}
		t.setCell(r, x, cellSpace)
		done = true
	}
	if width != 1 || now.width() != 1 {
		rest := cellSpace
		if now&cellTab != 0 && t.profile == Profile36 {
			rest |= cellTab // 3.6 and 3.7 leave a tab in every column of a tab
		}
		for x := t.cx + width; x < t.width; x++ {
			if !r.at(x).padding() {
				break
			}
			t.setCell(r, x, rest)
			done = true
		}
	}
	return done
}

const zwj = '\u200d'

// combine handles a character that joins the cell before the cursor. It
// reports whether the character is dealt with.
func (t *Transcript) combine(r rune, width int) bool {
	if t.profile >= Profile34 {
		return t.combineNew(r, width)
	}
	// 3.3a: a joiner waits for the next character that is not collected.
	if r == zwj {
		t.joiner = true
		return true
	}
	if t.joiner {
		t.appendToCell(zwj)
	}
	if width == 0 || t.joiner {
		t.joiner = false
		t.appendToCell(r)
		return true
	}
	return false
}

// appendToCell adds a character to the nearest cell on the left that is not
// padding; at column 0, or when the cell is full, it is dropped
// (screen_write_combine, 3.3a).
func (t *Transcript) appendToCell(c rune) {
	r := t.rows[t.cy]
	x := t.cx - 1
	for x >= 0 && r.at(x).padding() {
		x--
	}
	if x < 0 {
		return
	}
	if n, ok := t.joined(r.at(x), c, 1); ok {
		t.extendCell(r, x, t.cx-x, n)
	}
}

// joined is a cell with a character more, times over.
func (t *Transcript) joined(base cell, add rune, times int) (cell, bool) {
	b := t.appendCell(t.clusterText[:0], base&^cellTab)
	for range times {
		b = appendRune(b, add)
	}
	t.clusterText = b
	if len(b) > t.profile.clusterBytes() {
		return base, false
	}
	if len(b) == clusterBytes36 {
		// tmux keeps the size in five bits below the width (utf8.c), so this one
		// reads as empty and two columns wide.
		b = b[:0]
		base |= cellWide
	}
	n, ok := t.intern(b)
	if !ok {
		return base, true // over the cap: the base character stays
	}
	return base&^(cellValue|cellCleared) | cell(n) | cellCluster, true
}

// repeat is REP: the last character again, at most up to the margin. Before 3.5
// only ASCII counts (input.c, input_csi_dispatch).
func (t *Transcript) repeat(n int) {
	n = min(n, t.width-t.cx)
	if !t.canRepeat || n <= 0 {
		return
	}
	if t.lastRune >= utf8.RuneSelf {
		for range n {
			t.printRune(t.lastRune)
		}
		return
	}
	run := t.run[:0]
	for range n {
		run = append(run, byte(t.lastRune))
	}
	t.run = run
	t.print(run, t.off, 0)
}
