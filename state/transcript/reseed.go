package transcript

import (
	"math"
	"slices"
	"strings"
)

// Reason says why a transcript is seeded again.
type Reason int

const (
	// Rewrapped: tmux has moved text that was right here, by a resize, a cleared
	// history or a changed option. What readers had not seen stays to be told.
	Rewrapped Reason = iota
	// Corrected: an audit found that this transcript had been wrong. Lines that
	// are the same keep their offsets, the others are news.
	Corrected
	// Interrupted: bytes were lost or the process changed. What readers had not
	// seen stays to be told, what tmux shows besides is news, and what an
	// unfinished sequence had begun is forgotten.
	Interrupted
)

const (
	maxOrphans     = 1000
	maxOrphanBytes = 256 << 10
)

// Reseed replaces the rows by what tmux shows now; the state must have been
// taken at Offset. Readers' offsets stay good: lines that read as before keep
// theirs, and unless why is Corrected those that cannot be found any more are told
// from the old rows to readers who had not seen them. On an error nothing changes.
func (t *Transcript) Reseed(s SeedState, why Reason) error {
	n, err := seed(s, t.off, t.profile, t.nextID)
	if err != nil {
		return err
	}
	old, fresh := t.knownLines(), n.knownLines()
	pairs := match(old, fresh)
	torn, head := [2]int{}, ""
	if why == Interrupted {
		pairs = withText(old, pairs)
		var ok bool
		if torn, head, ok = t.tornLine(n, old, fresh, pairs); ok {
			pairs = withTorn(pairs, torn)
		} else {
			head = ""
		}
	}
	older := 0
	if t.history.budget > 0 {
		older = olderRows(old, pairs, t.history.len())
	}
	n.adopt(t, why)
	n.carry(t, old, fresh, pairs, why)
	if head != "" {
		n.goOn(fresh[torn[1]].line, head)
	}
	n.partials = t.movedPartials(n, old, fresh, pairs)
	if why != Corrected {
		n.orphans = leftOver(old, fresh, pairs, older, why)
	} else {
		n.orphans = slices.Clone(t.orphans)
	}
	for _, r := range n.main() {
		r.noted = true // perhaps; looking once is enough
	}
	if r := n.last; r != nil {
		if e := n.partials.find(r.id, r.changed); e == nil || e.off != r.changed {
			r.left = 1 // how much of it a reader has is not known: tell it whole
		}
	}
	n.changed = t.changed
	if why != Rewrapped || n.alternate {
		n.changed = t.off
	}
	n.keepOlder(t, older)
	*t = *n
	return nil
}

// olderRows is the number of history rows that the captures did not reach back
// to: those before the line that their first line is.
func olderRows(old []known, pairs [][2]int, history int) int {
	for _, p := range pairs {
		if p[1] == 0 && old[p[0]].orphan == nil {
			return min(old[p[0]].from, history)
		}
	}
	return 0
}

// keepOlder puts the n oldest history rows of from before the own ones. tmux may
// have some of them still; here they only serve readers.
func (t *Transcript) keepOlder(from *Transcript, n int) {
	own := t.history
	t.history = history{limit: own.limit, budget: from.history.budget}
	add := func(h *history, i int) {
		p := h.at(i)
		t.history.add(*p, max(p.changed, p.endedAt()))
	}
	for i := range n {
		add(&from.history, i)
	}
	for i := range own.len() {
		add(&own, i)
	}
	t.trim(n)
}

// adopt takes over what does not depend on rows.
func (t *Transcript) adopt(old *Transcript, why Reason) {
	if why != Interrupted {
		t.parser, t.pen, t.slot = old.parser, old.pen, old.slot
		t.lastRune, t.canRepeat, t.joiner = old.lastRune, old.canRepeat, old.joiner
	}
	t.alternateScreen, t.scrollOnClear = old.alternateScreen, old.scrollOnClear
	t.title, t.windowName, t.titles, t.marks = old.title, old.windowName, old.titles, old.marks
	t.onMark, t.typing = old.onMark, old.typing
	if why == Interrupted || t.width != old.width {
		t.typing = typing{}
	}
	t.lost, t.entered, t.base = old.lost, old.entered, old.base
	if t.alternate && old.alternate {
		t.alternateSince, t.savedPen = old.alternateSince, old.savedPen
		t.savedWidth, t.savedHeight = old.savedWidth, old.savedHeight
	}
}

// known is a line as matching sees it.
type known struct {
	line
	text string
}

// knownLines lists all lines, orphans in their places.
func (t *Transcript) knownLines() []known {
	var out []known
	var lines []line
	for i, n := 0, t.rowCount(); i < n; {
		l := t.lineAt(i)
		lines = append(lines, l)
		i = l.to
	}
	if len(t.orphans) > 0 {
		lines = t.placeOrphans(lines, slices.Clone(t.orphans))
	}
	for _, l := range lines {
		out = append(out, known{line: l, text: t.lineText(&l, l.from, 0)})
	}
	return out
}

// match pairs lines that read the same, in order: the longest common
// subsequence where the part that differs is small, else the next equal line.
func match(a, b []known) [][2]int {
	var pairs [][2]int
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo].text == b[lo].text {
		pairs = append(pairs, [2]int{lo, lo})
		lo++
	}
	ea, eb := len(a), len(b)
	for ea > lo && eb > lo && a[ea-1].text == b[eb-1].text {
		ea, eb = ea-1, eb-1
	}
	if (ea-lo)*(eb-lo) <= 1<<20 {
		pairs = append(pairs, common(a[lo:ea], b[lo:eb], lo)...)
	} else {
		pairs = append(pairs, greedy(a[lo:ea], b[lo:eb], lo)...)
	}
	for i := ea; i < len(a); i++ {
		pairs = append(pairs, [2]int{i, eb + i - ea})
	}
	return pairs
}

func common(a, b []known, base int) (pairs [][2]int) {
	w := len(b) + 1
	best := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].text == b[j].text {
				best[i*w+j] = best[(i+1)*w+j+1] + 1
			} else {
				best[i*w+j] = max(best[(i+1)*w+j], best[i*w+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].text == b[j].text:
			pairs = append(pairs, [2]int{base + i, base + j})
			i, j = i+1, j+1
		case best[(i+1)*w+j] >= best[i*w+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

func greedy(a, b []known, base int) (pairs [][2]int) {
	const window = 200
	j := 0
	for i := range a {
		for k := j; k < min(len(b), j+window); k++ {
			if a[i].text == b[k].text {
				pairs = append(pairs, [2]int{base + i, base + k})
				j = k + 1
				break
			}
		}
	}
	return pairs
}

// carry gives matched lines their past, and the others what the reason says.
func (t *Transcript) carry(from *Transcript, old, fresh []known, pairs [][2]int, why Reason) {
	paired := make(map[int]int, len(pairs))
	for _, p := range pairs {
		paired[p[1]] = p[0]
	}
	for j, f := range fresh {
		if i, ok := paired[j]; ok && old[i].orphan == nil {
			t.inherit(from, old[i].line, f.line)
			continue
		} else if ok {
			t.revive(old[i].line, f.line)
			continue
		}
		for k := f.from; k < f.to; k++ {
			v := t.view(k)
			if why == Rewrapped {
				// Altered forms of lines that are told from the old rows.
				v.changed, v.ended, v.rewrote = 0, 0, 0
				v.born = min(v.born, 1)
			}
			t.setView(k, v)
		}
	}
}

// inherit spreads a line's past over its new rows, by the bytes they share.
func (t *Transcript) inherit(from *Transcript, old, fresh line) {
	i, oldEnd := old.from, len(from.rawText(old.from))
	start := 0
	for k := fresh.from; k < fresh.to; k++ {
		end := start + len(t.rawText(k))
		for oldEnd <= start && i+1 < old.to {
			i++
			oldEnd += len(from.rawText(i))
		}
		v := from.view(i)
		for oldEnd < end && i+1 < old.to {
			i++
			oldEnd += len(from.rawText(i))
			w := from.view(i)
			v.changed, v.rewrote = max(v.changed, w.changed), max(v.rewrote, w.rewrote)
			if v.born == 0 || w.born != 0 && w.born < v.born {
				v.born = w.born
			}
			v.left, v.gap = max(v.left, w.left), max(v.gap, w.gap)
		}
		v.id = t.view(k).id
		if k == fresh.from {
			v.id = old.id
		}
		v.ended = 0
		if k == fresh.to-1 {
			last := from.view(old.to - 1)
			v.ended = last.ended
		}
		t.setView(k, v)
		start = end
	}
}

// revive gives a line that was an orphan its place back.
func (t *Transcript) revive(old, fresh line) {
	for k := fresh.from; k < fresh.to; k++ {
		v := t.view(k)
		v.changed, v.rewrote, v.born = old.orphan.news, old.orphan.news, old.orphan.news
		if k == fresh.from {
			v.id = old.orphan.id
		}
		if v.ended != 0 {
			v.ended = old.orphan.news
		}
		t.setView(k, v)
	}
}

// setView stores what a view says, except the wrap flag.
func (t *Transcript) setView(i int, v view) {
	if i < t.history.len() {
		p := t.history.at(i)
		p.id, p.changed = v.id, v.changed
		p.born, p.ended = noBorn, noEnd
		if v.born != 0 {
			p.born = distance(v.born, v.changed)
		}
		if v.ended != 0 {
			p.ended = int32(min(max(v.ended-v.changed, noEnd+1), 1<<31-1))
		}
		p.rewrote = distance(v.rewrote, v.changed)
		p.left, p.gap = v.left != 0, v.gap != 0
		return
	}
	r := t.main()[i-t.history.len()]
	r.id, r.changed, r.born, r.rewrote, r.ended, r.left, r.gap = v.id, v.changed, v.born, v.rewrote, v.ended, v.left, v.gap
}

// movedPartials renames what readers have been given of unfinished rows.
func (t *Transcript) movedPartials(n *Transcript, old, fresh []known, pairs [][2]int) partials {
	type home struct{ pair, start int }
	homes := map[uint64]home{}
	for p, pair := range pairs {
		if old[pair[0]].orphan != nil {
			continue
		}
		start := 0
		for i := old[pair[0]].from; i < old[pair[0]].to; i++ {
			homes[t.view(i).id] = home{p, start}
			start += len(t.rawText(i))
		}
	}
	move := func(e partial) (partial, bool) {
		h, ok := homes[e.id]
		if !ok {
			return e, false
		}
		at := h.start + e.end
		l := fresh[pairs[h.pair][1]]
		for k := l.from; k < l.to; k++ {
			size := len(n.rawText(k))
			if at <= size || k == l.to-1 {
				e.id, e.end, e.col = n.view(k).id, min(at, size), math.MaxInt
				return e, true
			}
			at -= size
		}
		return e, false
	}
	var out partials
	was := &t.partials
	for i := max(was.n-len(was.ring), 0); i < was.n; i++ {
		if e, ok := move(was.ring[i%len(was.ring)]); ok {
			out.add(e)
		}
	}
	for _, e := range was.pinned {
		if e, ok := move(e); ok {
			out.pin(e)
		}
	}
	return out
}

// leftOver makes orphans of the old lines that are gone, newest first within
// the limits.
func leftOver(old, fresh []known, pairs [][2]int, older int, why Reason) []orphan {
	paired := make(map[int]int, len(pairs))
	for _, p := range pairs {
		paired[p[0]] = p[1]
	}
	var out []orphan
	before, bytes := uint64(0), 0
	if why == Interrupted { // what tmux shows below the last known line is newer
		next := 0
		for _, p := range pairs {
			next = max(next, p[1]+1)
		}
		if next < len(fresh) {
			before = fresh[next].id
		}
	}
	for i := len(old) - 1; i >= 0; i-- {
		l := old[i]
		if _, ok := paired[i]; ok {
			if l.orphan == nil {
				before = l.id // which the new line has taken over
			} else {
				before = l.orphan.id
			}
			continue
		}
		if l.orphan == nil && l.to <= older {
			break
		}
		if strings.TrimSpace(l.text) == "" || len(out) == maxOrphans || bytes+len(l.text) > maxOrphanBytes {
			continue
		}
		bytes += len(l.text)
		out = append(out, orphan{text: l.text, id: l.id, news: l.changed, before: before})
	}
	slices.Reverse(out)
	return out
}
