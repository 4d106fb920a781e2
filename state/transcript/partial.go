package transcript

// partial says how much of a row's text a reader at an offset has been given.
// Readers stand between two chunks, so it is enough to note the row that
// changed last at the end of each chunk.
type partial struct {
	id   uint64
	off  int64 // the row's last change when it was noted
	end  int   // bytes of the row's text given out
	col  int   // the column after them
	old  bool  // what was given out has been rewritten since
	next int64 // the row's next change, from which on this says nothing; 0 if none yet
	left int64 // first change of another row between the two, 0 if none
}

// partials is a ring of the newest ones, and one of those at which a reader is
// known to stand. What is in neither is given whole again, never lost.
type partials struct {
	ring   [64]partial
	n      int       // ever added
	pinned []partial // at most maxPinned
	pins   int       // ever pinned
}

const maxPinned = 256

func (p *partials) pin(e partial) {
	if len(p.pinned) < maxPinned {
		p.pinned = append(p.pinned, e)
	} else {
		p.pinned[p.pins%maxPinned] = e
	}
	p.pins++
}

// newest is the one that was added last, nil for none.
func (p *partials) newest() *partial {
	if p.n == 0 {
		return nil
	}
	return &p.ring[(p.n-1)%len(p.ring)]
}

func (p *partials) add(e partial) {
	p.ring[p.n%len(p.ring)] = e
	p.n++
}

// find is the newest partial of a row at or before an offset.
func (p *partials) find(id uint64, off int64) *partial {
	for i := p.n - 1; i >= max(p.n-len(p.ring), 0); i-- {
		if e := &p.ring[i%len(p.ring)]; e.id == id && e.off <= off {
			return e
		}
	}
	var found *partial
	for i := range p.pinned {
		if e := &p.pinned[i]; e.id == id && e.off <= off && (found == nil || e.off > found.off) {
			found = e
		}
	}
	return found
}

// close notes a row's next change, and whether something else came before it.
func (p *partials) close(id uint64, next, left int64) {
	for i := p.n - 1; i >= max(p.n-len(p.ring), 0); i-- {
		if e := &p.ring[i%len(p.ring)]; e.id == id {
			if e.next == 0 {
				e.next, e.left = next, left
			}
			break
		}
	}
	for i := range p.pinned {
		if e := &p.pinned[i]; e.id == id && e.next == 0 {
			e.next, e.left = next, left
		}
	}
}

// spoil tells that a row's text has changed at a column: who has been given it
// cannot go on from there.
func (p *partials) spoil(id uint64, col int) {
	for i := range min(p.n, len(p.ring)) {
		if e := &p.ring[i]; e.id == id && e.col > col {
			e.old = true
		}
	}
	for i := range p.pinned {
		if e := &p.pinned[i]; e.id == id && e.col > col {
			e.old = true
		}
	}
}

// rewritten notes that a row's text has changed at a column and perhaps behind it.
func (t *Transcript) rewritten(r *row, col int) {
	if col < r.solid {
		t.partials.spoil(r.id, col)
		r.solid = col
	}
}

// Pin notes that a reader stands at Offset, where the output may end in the
// middle of a line: maxPinned such places are remembered, however much follows.
func (t *Transcript) Pin() {
	r := t.last
	if r == nil || t.alternate || r.ended != 0 {
		return
	}
	p := &t.partials
	e := p.find(r.id, r.changed)
	if e == nil || e.off != r.changed {
		return
	}
	for i := range p.pinned {
		if at := &p.pinned[i]; at.id == e.id && at.off == e.off {
			return
		}
	}
	p.pin(*e)
}

// notePartial is called at the end of each chunk.
//
// A line that no line feed has left yet ends where its text ends, or at the
// cursor when that stands behind blanks of the same row: "$ " is a prompt with
// its blank. What is given out once stays what it was even if more blanks
// follow, since blanks alone are no news.
func (t *Transcript) notePartial() {
	r := t.last
	if r == nil || t.alternate {
		return
	}
	// Blanks that went on in a new row are no news: the text ends above.
	for y := t.cy; y > 0 && y < len(t.rows) && t.rows[y] == r && r.changed == 0 && t.rows[y-1].wrapped; y-- {
		r = t.rows[y-1]
	}
	if r.ended != 0 || r.changed == 0 {
		return
	}
	if e := t.partials.newest(); e != nil && e.id == r.id && e.off == r.changed {
		return
	}
	end := r.textEnd()
	if t.cy < len(t.rows) && t.rows[t.cy] == r {
		end = max(end, min(t.cx, r.used))
	}
	t.scratchText = t.appendRaw(t.scratchText[:0], r, end)
	t.partials.add(partial{id: r.id, off: r.changed, end: len(t.scratchText), col: end})
	r.noted = true
	r.solid = max(r.solid, end)
}
