package transcript

// past is a row in history. tmux edits nothing there but the newest row's wrap
// flag. Offsets before the last change are kept as distances, so that a full
// history of short lines stays small.
type past struct {
	text    string // up to the last used column, see appendRaw
	changed int64
	id      uint64
	born    uint32 // changed - born, noBorn for a row without content
	rewrote uint32 // changed - rewrote
	ended   int32  // ended - changed, noEnd if no line feed left the row
	wrapped bool
	acs     bool // text holds line drawing
	left    bool // something else changed between this row and the next of its line
	gap     bool // the same between the row before and this one
	cut     bool // tmux took its wrap flag here: the line was one with the next
}

const (
	farBack = 1<<32 - 2
	noBorn  = 1<<32 - 1
	noEnd   = -1 << 31
)

func distance(from, to int64) uint32 {
	return uint32(min(max(to-from, 0), farBack))
}

// bornAt is a lower bound of the offset of the first content, 0 for none.
func (p *past) bornAt() int64 {
	switch p.born {
	case noBorn:
		return 0
	case farBack:
		return 1
	}
	return p.changed - int64(p.born)
}

func (p *past) rewroteAt() int64 {
	return p.changed - int64(p.rewrote)
}

func (p *past) endedAt() int64 {
	if p.ended == noEnd {
		return 0
	}
	return p.changed + int64(p.ended)
}

// history is a ring of past rows: those tmux has, up to its history-limit, and
// before them those it has dropped already and readers may still want (kept).
type history struct {
	ring  []past
	head  int // oldest
	n     int
	limit int
	kept  int // oldest rows that tmux has not any more
	// bytes is what all rows cost, see cost; at most budget. A negative budget
	// is none: tmux's rows are held, and no others.
	bytes, budget int
	// newest holds, per block of the ring, the newest offset written there, so
	// that a reader who is nearly up to date does not look at every row.
	newest []int64
}

const historyBlock = 64

func (h *history) len() int { return h.n }

func (h *history) at(i int) *past {
	i += h.head
	if i >= len(h.ring) {
		i -= len(h.ring)
	}
	return &h.ring[i]
}

// tmux is the number of rows that tmux has.
func (h *history) tmux() int { return h.n - h.kept }

// add appends a row; the caller has made room.
func (h *history) add(p past, off int64) {
	if h.n == len(h.ring) {
		h.grow()
	}
	i := h.head + h.n
	if i >= len(h.ring) {
		i -= len(h.ring)
	}
	h.ring[i] = p
	h.n++
	h.bytes += p.cost()
	b := i / historyBlock
	for b >= len(h.newest) {
		h.newest = append(h.newest, 0)
	}
	h.newest[b] = max(h.newest[b], off)
}

func (h *history) grow() {
	size := len(h.ring) + max(len(h.ring)/2, 16)
	if h.limit > len(h.ring) { // a seed may bring more
		size = min(size, h.limit)
	}
	h.resize(size)
}

func (h *history) resize(size int) {
	ring := make([]past, size)
	var newest []int64
	for i := range h.n {
		ring[i] = *h.at(i)
	}
	for i := range h.n {
		b := i / historyBlock
		for b >= len(newest) {
			newest = append(newest, 0)
		}
		newest[b] = max(newest[b], ring[i].changed, ring[i].endedAt())
	}
	h.ring, h.head, h.newest = ring, 0, newest
}

// drop forgets the n oldest rows and lets their text go.
func (h *history) drop(n int) {
	for i := range n {
		p := h.at(i)
		h.bytes -= p.cost()
		p.text = ""
	}
	h.head += n
	if h.head >= len(h.ring) && len(h.ring) > 0 {
		h.head -= len(h.ring)
	}
	h.n -= n
}

func (h *history) clear() {
	*h = history{limit: h.limit, budget: h.budget}
}

// pastBytes is what a past row costs besides its text.
const pastBytes = 64

func (p *past) cost() int { return pastBytes + len(p.text) }

// historyOn tells whether rows enter history: not on the alternate screen, and
// not in a pane made with history-limit 0.
func (t *Transcript) historyOn() bool { return !t.alternate && t.history.limit > 0 }

// push moves a row into history. At the limit the oldest tenth goes first
// (grid.c, grid_collect_history).
func (t *Transcript) push(r *row) {
	h := &t.history
	if size := t.above + h.tmux(); size > 0 && size >= h.limit {
		n := min(max(h.limit/10, 1), size)
		skip := min(n, t.above)
		t.above -= skip
		t.trim(n - skip)
	}
	t.scratchText = t.appendRaw(t.scratchText[:0], r, r.used)
	p := past{
		text:    string(t.scratchText),
		changed: r.changed,
		id:      r.id,
		born:    noBorn,
		rewrote: distance(r.rewrote, r.changed),
		ended:   noEnd,
		wrapped: r.wrapped,
		acs:     r.acs,
		left:    r.left != 0,
		gap:     r.gap != 0,
	}
	if r.born != 0 {
		p.born = distance(r.born, r.changed)
	}
	if r.ended != 0 {
		p.ended = int32(min(max(r.ended-r.changed, noEnd+1), 1<<31-1))
	}
	h.add(p, max(r.changed, r.ended))
	t.economise()
	if !p.wrapped {
		t.entered++
	}
	if t.last == r {
		t.last = nil
	}
	t.drop(r)
}

// trim takes the n oldest rows from what tmux has. They are kept for readers as
// far as the budget goes.
func (t *Transcript) trim(n int) {
	h := &t.history
	h.kept += n
	if h.budget < 0 {
		t.forget(h.kept)
	} else {
		t.economise()
	}
}

// economise forgets the oldest rows while all cost more than the budget, and
// then some more, so that it is not at it again at once.
func (t *Transcript) economise() {
	h := &t.history
	if h.budget < 0 || h.bytes <= h.budget {
		return
	}
	n := 0
	for over := h.bytes - (h.budget - h.budget/32); over > 0 && n < h.n; n++ {
		over -= h.at(n).cost()
	}
	t.forget(n)
}

// forget drops the n oldest rows and remembers how much a late reader will have
// missed. Those that tmux has still are above.
func (t *Transcript) forget(n int) {
	if n == 0 {
		return
	}
	h := &t.history
	lines, newest := 0, int64(0)
	for i := range n {
		p := h.at(i)
		if !p.wrapped {
			lines++
		}
		newest = max(newest, p.changed, p.endedAt())
	}
	t.lost.add(newest, lines)
	kept := min(n, h.kept)
	h.kept -= kept
	t.above += n - kept
	h.drop(n)
}

// Keep sets how many bytes of history are held, of what tmux has and of what it
// has dropped already. A reader who comes late for the rest is told of a loss.
// Without it all that tmux has is held, and nothing else.
func (t *Transcript) Keep(bytes int) {
	h := &t.history
	h.budget = max(bytes, 0)
	t.economise()
	if h.n < len(h.ring)/4 {
		h.resize(h.n)
	}
}

// lost keeps, coarsely, how many lines have left history and up to which
// offset they had been written.
type lost struct {
	marks [64]lostMark
	n     int
	to    int64 // the newest change among all
}

type lostMark struct {
	offset int64 // newest change among the lines
	lines  int
}

// add notes lines that are gone. When full, neighbours are merged in pairs:
// counts stay exact for readers behind all of them.
func (l *lost) add(offset int64, lines int) {
	if l.n == len(l.marks) {
		for i := range l.n / 2 {
			a, b := l.marks[2*i], l.marks[2*i+1]
			l.marks[i] = lostMark{max(a.offset, b.offset), a.lines + b.lines}
		}
		l.n /= 2
	}
	l.marks[l.n] = lostMark{offset, lines}
	l.n++
	l.to = max(l.to, offset)
}

// after is at least the number of lines lost that were written after an offset.
func (l *lost) after(offset int64) (lines int) {
	for _, m := range l.marks[:l.n] {
		if m.offset > offset {
			lines += m.lines
		}
	}
	return lines
}
