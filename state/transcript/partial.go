package transcript

// partial says how much of a row's text a reader at an offset has been given.
// Readers stand between two chunks, so it is enough to note the row that
// changed last at the end of each chunk.
type partial struct {
	id   uint64
	off  int64 // the row's last change when it was noted
	end  int   // bytes of the row's text given out
	next int64 // the row's next change, from which on this says nothing; 0 if none yet
	left int64 // first change of another row between the two, 0 if none
}

// partials is a ring of the newest ones, and one of those at which a reader is
// known to stand. What is in neither is given whole again, never lost.
type partials struct {
	ring   [64]partial
	n      int // ever added
	pinned [64]partial
	pins   int // ever pinned
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
	for i := p.pins - 1; i >= max(p.pins-len(p.pinned), 0); i-- {
		if e := &p.pinned[i%len(p.pinned)]; e.id == id && e.off <= off {
			return e
		}
	}
	return nil
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
	for i := range min(p.pins, len(p.pinned)) {
		if e := &p.pinned[i]; e.id == id && e.next == 0 {
			e.next, e.left = next, left
		}
	}
}

// Pin notes that a reader stands at Offset, where the output may end in the
// middle of a line: 64 such places are remembered, however much follows.
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
	if p.pins > 0 && p.pinned[(p.pins-1)%len(p.pinned)] == *e {
		return
	}
	p.pinned[p.pins%len(p.pinned)] = *e
	p.pins++
}

// notePartial is called at the end of each chunk.
//
// A line that no line feed has left yet ends where its text ends, or at the
// cursor when that stands behind blanks of the same row: "$ " is a prompt with
// its blank. What is given out once stays what it was even if more blanks
// follow, since blanks alone are no news.
func (t *Transcript) notePartial() {
	r := t.last
	if r == nil || t.alternate || r.ended != 0 || r.changed == 0 {
		return
	}
	if e := t.partials.find(r.id, r.changed); e != nil && e.off == r.changed {
		return
	}
	end := r.textEnd()
	if t.cy < len(t.rows) && t.rows[t.cy] == r {
		end = max(end, min(t.cx, r.used))
	}
	t.scratchText = t.appendRaw(t.scratchText[:0], r, end)
	t.partials.add(partial{id: r.id, off: r.changed, end: len(t.scratchText)})
	r.noted = true
	r.solid = end // a change below it is a rewrite, and makes older partials useless
}
