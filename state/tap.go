package state

import (
	"bytes"
	"time"
)

// tap is a run's place at a pane's log: it finds the run's marks among the bytes
// as they come, whatever the terminal's state, and keeps what was printed
// between them. So a pane that prints faster than anybody reads loses no mark.
//
// Its fields are guarded by the mutex of the Output that it is on.
type tap struct {
	id     string // of the run
	start  []byte // the whole start mark
	suffix []byte // of an end mark, after the status
	budget int    // bytes to keep

	buf   []byte // the end of the last chunk, where a mark may have begun
	early []byte // what came before the start mark, the newest
	kept  ring   // from the start mark on
	from  int64  // offset after the start mark, -1 before it
	first int64  // offset where the tap was set
	began time.Time
	ends  []endedAt
	gap   bool // bytes are missing
	still bool // nothing more is kept
	// wake, of capacity 1, is filled at a mark and at a gap.
	wake chan struct{}
}

// endedAt is an end mark.
type endedAt struct {
	at     int64 // offset of its first byte
	status int
	when   time.Time
}

const (
	markPrefix  = "\x1b]133;"
	maxMarkLen  = 64 // bytes of a mark, at most
	maxEarly    = 4 << 10
	maxEndMarks = 16 // end marks remembered; more than one are forged
)

func newTap(id string, budget int) *tap {
	return &tap{
		id:     id,
		start:  []byte(markPrefix + "C;aid=" + id + "\a"),
		suffix: []byte(";aid=" + id + "\a"),
		budget: budget, from: -1, wake: make(chan struct{}, 1),
	}
}

// feed takes bytes that begin at an offset.
func (t *tap) feed(off int64, b []byte) {
	held := len(t.buf)
	t.buf = append(t.buf, b...)
	base := off - int64(held)
	if t.from < 0 {
		i := bytes.Index(t.buf, t.start)
		if i < 0 {
			t.keepEarly(b)
		} else {
			n := i + len(t.start)
			t.from, t.began = base+int64(n), time.Now()
			t.kept.start, t.kept.end = t.from, t.from
			nudge(t.wake)
			if n > held {
				b = t.buf[n:]
			}
		}
	}
	t.findEnds(base, held)
	if t.from >= 0 && !t.still {
		t.kept.append(b, t.budget)
	}
	if n := len(t.buf) - maxMarkLen; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
}

// findEnds finds the end marks that were completed by the newest bytes; base is
// the offset of buf, and held of its bytes had been searched before.
func (t *tap) findEnds(base int64, held int) {
	prefix := []byte(markPrefix + "D;")
	for i := 0; ; {
		n := bytes.Index(t.buf[i:], prefix)
		if n < 0 {
			return
		}
		at := i + n
		i = at + len(prefix)
		status, digits := 0, 0
		for i+digits < len(t.buf) && digits < 6 && t.buf[i+digits] >= '0' && t.buf[i+digits] <= '9' {
			status = status*10 + int(t.buf[i+digits]-'0')
			digits++
		}
		if digits == 0 || !bytes.HasPrefix(t.buf[i+digits:], t.suffix) || i+digits+len(t.suffix) <= held {
			continue
		}
		if len(t.ends) == maxEndMarks { // the newest counts
			t.ends = t.ends[:maxEndMarks-1]
		}
		t.ends = append(t.ends, endedAt{base + int64(at), status, time.Now()})
		nudge(t.wake)
	}
}

func (t *tap) keepEarly(b []byte) {
	t.early = append(t.early, b...)
	if n := len(t.early) - maxEarly; n > 0 {
		t.early = append(t.early[:0], t.early[n:]...)
	}
}

// broken notes that bytes are missing before the next; the log has an offset
// that stands for them.
func (t *tap) broken() {
	t.gap, t.buf = true, t.buf[:0]
	if t.from >= 0 && !t.still {
		t.kept.append([]byte{0}, t.budget)
	}
	nudge(t.wake)
}

// heard is what a tap knows by now.
type heard struct {
	from  int64 // offset after the start mark, -1 if there was none
	began time.Time
	ends  []endedAt
	gap   bool
	end   int64 // of the log
	live  bool  // output is being delivered
	early []byte
}

// newest is the newest end mark, nothing if there is none.
func (h *heard) newest() endedAt {
	if len(h.ends) == 0 {
		return endedAt{}
	}
	return h.ends[len(h.ends)-1]
}

// tap sets a tap at the present end of the log.
func (o *Output) tap(t *tap) (Cursor, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.first = o.ring.end
	o.taps = append(o.taps, t)
	return o.cursorLocked()
}

// assume makes a tap take the present end for the place after the start mark,
// which came before its time.
func (o *Output) assume(t *tap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.from, t.began, t.gap = o.ring.end, time.Now(), true
	t.kept.start, t.kept.end = t.from, t.from
	o.commands.startedOwn(ownStart{t.id, t.first, -1})
}

// untap removes a tap. What it has kept stays with it, and is then only read.
func (o *Output) untap(t *tap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := o.taps[:0]
	for _, x := range o.taps {
		if x != t {
			kept = append(kept, x)
		}
	}
	clear(o.taps[len(kept):])
	o.taps = kept
}

func (o *Output) heard(t *tap) heard {
	o.mu.Lock()
	defer o.mu.Unlock()
	return heard{
		from: t.from, began: t.began, ends: append([]endedAt(nil), t.ends...), gap: t.gap, end: o.ring.end, live: o.open,
		early: append([]byte(nil), t.early...),
	}
}

// hush makes a tap keep nothing more; it goes on to look for marks.
func (o *Output) hush(t *tap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.still = true
}

// taken copies what a tap has kept, from its offset to the end (at most to).
func (o *Output) taken(t *tap, to int64) (b []byte, from int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := min(to, t.kept.end)
	return t.kept.copy(t.kept.start, end), t.kept.start
}
