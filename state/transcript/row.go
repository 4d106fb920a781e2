package transcript

// row is one visible row. Rows are objects that move: a scroll, an inserted
// line or the alternate screen moves the pointer, so that what a row remembers
// of its past moves along with it.
//
// All offsets count the pane's output bytes and lie just after the byte that
// did it; 0 means never.
type row struct {
	cells []cell // as many as tmux has allocated; beyond them the row is blank
	// used is the last column that was printed or moved to, plus one. Erasing
	// does not lower it. tmux joins a wrapped row up to here (grid.c, cellused).
	used    int
	wrapped bool // the text goes on in the next row (GRID_LINE_WRAPPED)
	wide    bool // holds, or held, a padding cell
	rich    bool // holds, or held, anything but printable ASCII
	noted   bool // has a partial that no change has closed yet
	acs     bool // holds, or held, line drawing

	id      uint64 // survives scrolling; never reused
	born    int64  // first content
	changed int64  // last change of text; colours and repaints are none
	rewrote int64  // last change that left nothing of the text, or of its line
	ended   int64  // first time a line feed left the row
	left    int64  // first change elsewhere after the last one here
	gap     int64  // the same for a row that a line wrapped into, before its first

	// solid is the column below which a reader may have been given the row's text
	// while it was unfinished: a change at or beyond it only continues the row.
	solid int
}

// at is the cell at a column; beyond the allocated cells it is blank.
func (r *row) at(x int) cell {
	if x < len(r.cells) {
		return r.cells[x]
	}
	return cellSpace
}

// expand allocates cells up to column n, in tmux's steps of a quarter, half
// and full width (grid.c, grid_expand_line). The steps show: erasing a row
// without cells does nothing, and a blank is not printed beyond them.
func (r *row) expand(n, width int) {
	if n <= len(r.cells) {
		return
	}
	switch {
	case n < width/4:
		n = width / 4
	case n < width/2:
		n = width / 2
	case n < width:
		n = width
	}
	if n > cap(r.cells) { // only beyond the screen's edge
		r.cells = append(make([]cell, 0, n), r.cells...)
	}
	fresh := r.cells[len(r.cells):n]
	for i := range fresh {
		fresh[i] = cellBlank
	}
	r.cells = r.cells[:n]
}

// isBlank tells whether the row reads as an empty line.
func (r *row) isBlank() bool {
	n := min(r.used, len(r.cells))
	for _, c := range r.cells[:n] {
		if !c.blank() {
			return false
		}
	}
	return true
}

// textEnd is the column after the last character that is not a blank.
func (r *row) textEnd() int {
	x := min(r.used, len(r.cells))
	for x > 0 && r.cells[x-1].blank() {
		x--
		// The padding of a wide character belongs to it.
		if r.cells[x].padding() && x > 0 && !r.cells[x-1].blank() {
			return x + 1
		}
	}
	return x
}

// newRow takes a row from the pool or makes one. It has no cells unless the
// background is coloured (grid.c, grid_empty_line).
func (t *Transcript) newRow(bg colour) *row {
	var r *row
	if n := len(t.pool); n > 0 {
		r = t.pool[n-1]
		t.pool = t.pool[:n-1]
		*r = row{cells: r.cells[:0]}
	} else {
		r = &row{cells: make([]cell, 0, t.width)}
	}
	t.nextID++
	r.id = t.nextID
	if bg.set() {
		r.expand(t.width, t.width)
		t.blank(r, 0, t.width, t.blankCell(bg))
	}
	return r
}

// drop returns a row that is no longer shown to the pool.
func (t *Transcript) drop(r *row) {
	if t.last == r {
		t.last = nil
	}
	if len(t.pool) < 2*t.height+1 {
		t.pool = append(t.pool, r)
	}
}

// touch records that the row's text changed at a column and perhaps behind it: off
// is the offset of the last such change.
func (t *Transcript) touch(r *row, from int, off int64) {
	t.rewritten(r, from)
	if r.noted {
		t.partials.close(r.id, off, r.left)
		r.noted = false
	}
	if r.born == 0 {
		r.gap = r.left
	}
	r.left = 0
	r.changed = off
	if r.born == 0 {
		r.born = off
	}
	t.changed = off
	if t.last != r {
		if t.last != nil && t.last.left == 0 {
			t.last.left = off
		}
		t.last = r
	}
}

// wipe empties a row in place (grid.c, grid_free_line, grid_empty_line): its
// cells, its wrap flag and what it had used.
func (t *Transcript) wipe(r *row, bg colour) {
	if !r.isBlank() {
		t.touch(r, 0, t.off)
		r.rewrote = t.off
	} else if r.solid > 0 {
		r.rewrote = t.off
	}
	r.cells = r.cells[:0]
	r.used, r.solid = 0, 0
	r.wrapped, r.wide, r.rich, r.acs = false, false, false, false
	r.born, r.ended = 0, 0
	if bg.set() {
		r.expand(t.width, t.width)
		t.blank(r, 0, t.width, t.blankCell(bg))
	}
}

// reline records that a row's logical line has become another: it lost or
// gained the row below.
func (t *Transcript) reline(r *row) {
	if r.born != 0 && !r.isBlank() {
		t.touch(r, 0, t.off)
		r.rewrote = t.off
	}
}
