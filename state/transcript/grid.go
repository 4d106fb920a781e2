package transcript

// The operations of tmux's grid.c and grid-view.c on the visible rows, in its
// own order and with its own edge cases: which rows lose their wrap flag, and
// which cells are blanked, follows from that order and from nothing else.
// Rows are counted from the top of the screen; -1 is the newest history row.

// colour is a colour of the pen: 0 is the default, everything else only needs
// to differ when the colour does.
type colour uint32

func (c colour) set() bool { return c != 0 }

// clearWrap takes the wrap flag from a row; the newest history row counts.
func (t *Transcript) clearWrap(y int) {
	switch {
	case y >= 0 && y < t.height:
		if r := t.rows[y]; r.wrapped {
			r.wrapped = false
			t.reline(r)
			if y+1 < t.height {
				t.reline(t.rows[y+1])
			}
		}
	case y == -1 && t.history.tmux() > 0:
		if p := t.history.at(t.history.len() - 1); p.wrapped {
			p.wrapped, p.cut = false, true
		}
	}
}

// clearRows frees ny rows (grid_clear_lines). A negative count comes from the
// unsigned arithmetic of tmux's callers: no row is freed then, but the row
// above still loses its flag.
func (t *Transcript) clearRows(py, ny int, bg colour) {
	if ny == 0 || py >= t.height || py+ny-1 >= t.height || py+ny-1 < -t.history.tmux() {
		return
	}
	if end := py + ny; end > py && end < t.height && t.rows[end-1].wrapped {
		t.reline(t.rows[end])
	}
	for y := py; y < py+ny; y++ {
		t.wipe(t.rows[y], bg)
	}
	t.clearWrap(py - 1)
}

// clear blanks a block of cells (grid_clear).
func (t *Transcript) clear(px, py, nx, ny int, bg colour) {
	if nx <= 0 || ny == 0 {
		return
	}
	if px == 0 && nx == t.width {
		t.clearRows(py, ny, bg)
		return
	}
	if py >= t.height || py+ny-1 >= t.height {
		return
	}
	for y := py; y < py+ny; y++ {
		r := t.rows[y]
		n := nx
		if !bg.set() {
			have := min(t.width, len(r.cells))
			if px > have {
				continue
			}
			if px+nx > have {
				n = have - px
			}
		}
		r.expand(px+n, t.width)
		t.blank(r, px, px+n, t.blankCell(bg))
	}
}

// blank sets cells to erased ones and notes whether text went with them.
func (t *Transcript) blank(r *row, from, end int, erased cell) {
	lost, solidEnd := false, end
	if t.profile < Profile36 { // blanks have no style, and beyond used all are erased
		end = min(end, max(r.used, from))
	}
	for x := from; x < end; x++ {
		if !r.cells[x].blank() {
			lost = true
		}
		r.cells[x] = erased
	}
	switch {
	case lost:
		t.touch(r, from, t.off)
	case solidEnd > from: // blanks that a reader may have been given are gone
		t.rewritten(r, from)
	}
}

// moveRows moves ny rows from py to dy (grid_move_lines).
func (t *Transcript) moveRows(dy, py, ny int, bg colour) {
	if ny <= 0 || py == dy || py+ny > t.height || dy+ny > t.height {
		return
	}
	if py > 0 && t.rows[py-1].wrapped {
		t.reline(t.rows[py])
	}
	for y := dy; y < dy+ny; y++ {
		if y < py || y >= py+ny {
			t.drop(t.rows[y])
		}
	}
	t.clearWrap(dy - 1)
	copy(t.rows[dy:dy+ny], t.rows[py:py+ny])
	for y := py; y < py+ny; y++ {
		if y < dy || y >= dy+ny {
			t.rows[y] = t.newRow(bg)
		}
	}
	if py < dy || py >= dy+ny {
		t.clearWrap(py - 1)
	}
}

// moveCells moves nx cells within a row (grid_move_cells).
func (t *Transcript) moveCells(dx, px, y, nx int, bg colour) {
	if nx <= 0 || px == dx {
		return
	}
	r := t.rows[y]
	r.expand(px+nx, t.width)
	r.expand(dx+nx, t.width)
	lo, hi := min(px, dx), max(px, dx)+nx
	old := append(t.scratch[:0], r.cells[lo:hi]...)
	t.scratch = old
	copy(r.cells[dx:dx+nx], r.cells[px:px+nx])
	r.used = max(r.used, dx+nx)
	for x := px; x < px+nx; x++ {
		if x < dx || x >= dx+nx {
			r.cells[x] = t.blankCell(bg)
		}
	}
	for i, c := range old {
		if !sameText(c, r.cells[lo+i]) {
			t.touch(r, lo+i, t.off)
			break
		}
	}
}

// insertCells makes room (grid_view_insert_cells): only what still fits moves,
// and only as many cells as moved are blanked.
func (t *Transcript) insertCells(px, y, nx int, bg colour) {
	if px >= t.width-1 {
		t.clear(px, y, 1, 1, bg)
		return
	}
	t.moveCells(px+nx, px, y, t.width-px-nx, bg)
}

// deleteCells closes up (grid_view_delete_cells).
func (t *Transcript) deleteCells(px, y, nx int, bg colour) {
	t.moveCells(px, px+nx, y, t.width-px-nx, bg)
	t.clear(t.width-nx, y, px+nx-(t.width-nx), 1, bg)
}

func (t *Transcript) insertRows(py, ny int, bg colour) {
	t.moveRows(py+ny, py, t.height-py-ny, bg)
}

func (t *Transcript) insertRowsRegion(lower, py, ny int, bg colour) {
	left := lower + 1 - py - ny
	t.moveRows(lower+1-left, py, left, bg)
	t.clear(0, py+left, t.width, ny-left, bg)
}

func (t *Transcript) deleteRows(py, ny int, bg colour) {
	t.moveRows(py, py+ny, t.height-py-ny, bg)
	t.clear(0, t.height-ny, t.width, py+ny-(t.height-ny), bg)
}

func (t *Transcript) deleteRowsRegion(lower, py, ny int, bg colour) {
	left := lower + 1 - py - ny
	t.moveRows(py, py+ny, left, bg)
	t.clear(0, py+left, t.width, ny-left, bg)
}

// scrollUp scrolls a region by one row. With history on, the region's top row
// goes there wherever the region is (grid_view_scroll_region_up).
func (t *Transcript) scrollUp(upper, lower int, bg colour) {
	if !t.historyOn() {
		t.moveRows(upper, upper+1, lower-upper, bg)
		return
	}
	r := t.rows[upper]
	t.push(r)
	copy(t.rows[upper:lower], t.rows[upper+1:lower+1])
	t.rows[lower] = t.newRow(bg)
}

func (t *Transcript) scrollDown(upper, lower int, bg colour) {
	t.moveRows(upper+1, upper, lower-upper, bg)
}

// clearIntoHistory pushes the screen up to its last used row into history
// (grid_view_clear_history).
func (t *Transcript) clearIntoHistory(bg colour) {
	last := 0
	for y, r := range t.rows {
		if r.used != 0 {
			last = y + 1
		}
	}
	if last == 0 {
		t.clear(0, 0, t.width, t.height, bg)
		return
	}
	for range last {
		t.scrollUp(0, t.height-1, bg)
	}
	if last < t.height {
		t.clear(0, 0, t.width, t.height-last, bg)
	}
}
