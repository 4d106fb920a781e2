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
	// kept rows are not tmux's any more; they cost keptBytes, at most keep.
	kept, keptBytes, keep int
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
	b := i / historyBlock
	for b >= len(h.newest) {
		h.newest = append(h.newest, 0)
	}
	h.newest[b] = max(h.newest[b], off)
}

func (h *history) grow() {
	size := min(max(2*len(h.ring), 16), max(h.limit, 16))
	if size <= len(h.ring) {
		size = 2 * len(h.ring) // a seed may bring more than the limit
	}
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
		h.at(i).text = ""
	}
	h.head += n
	if h.head >= len(h.ring) && len(h.ring) > 0 {
		h.head -= len(h.ring)
	}
	h.n -= n
}

func (h *history) clear() {
	*h = history{limit: h.limit, keep: h.keep}
}

// pastBytes is what a past row costs besides its text.
const pastBytes = 64

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
	for range n {
		h.keptBytes += pastBytes + len(h.at(h.kept).text)
		h.kept++
	}
	over, bytes := 0, h.keptBytes
	for over < h.kept && bytes > h.keep {
		bytes -= pastBytes + len(h.at(over).text)
		over++
	}
	t.forget(over)
}

// forget drops the n oldest rows, which are kept ones, and remembers how much a
// late reader will have missed.
func (t *Transcript) forget(n int) {
	if n == 0 {
		return
	}
	lines, newest := 0, int64(0)
	for i := range n {
		p := t.history.at(i)
		t.history.keptBytes -= pastBytes + len(p.text)
		if !p.wrapped {
			lines++
		}
		newest = max(newest, p.changed, p.endedAt())
	}
	t.lost.add(newest, lines)
	t.history.kept -= n
	t.history.drop(n)
}

// Keep sets how many bytes of rows that tmux has dropped from its history are
// kept for readers, 0 (the default) for none.
func (t *Transcript) Keep(bytes int) {
	t.history.keep = bytes
	t.trim(0)
}

// lost keeps, coarsely, how many lines have left history and up to which
// offset they had been written.
type lost struct {
	marks [64]lostMark
	n     int
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
