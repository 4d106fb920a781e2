package state

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// Output is the byte log of one watched pane: everything tmux delivered, with
// absolute offsets that grow for as long as the daemon knows the pane. It keeps
// the newest bytes up to a budget. The stream of bytes is divided into epochs:
// within one no byte is missing, between two some may be.
//
// One reader goroutine of a stream client appends; any goroutine reads. No
// method blocks on anything but the short critical sections of the others.
type Output struct {
	pane   controlmode.PaneID
	budget int

	mu     sync.Mutex // guards the fields that follow
	ring   []byte     // len(ring) is the present capacity, a power of two
	start  int64      // offset of the oldest byte held
	end    int64      // offset after the newest byte
	epochs []epoch    // oldest first, never empty once begun
	open   bool       // the newest epoch is being delivered
	pid    int        // process generation of the newest epoch
	used   time.Time  // last use by a reader
	wake   chan struct{}
}

// epoch is an unbroken stretch of the stream.
type epoch struct {
	stream Stream
	from   int64
	reason GapReason // what broke the chain before it
}

const (
	minRing   = 4 << 10
	maxEpochs = 64 // per pane; older ones are forgotten, their cursors get a gap
)

func newOutput(pane controlmode.PaneID, budget int) *Output {
	return &Output{pane: pane, budget: max(budget, minRing)}
}

// begin starts a new epoch at the present end and returns its cursor.
func (o *Output) begin(server ServerID, pid int, reason GapReason) Cursor {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.pid = true, pid
	return o.epochLocked(server, reason)
}

// finish ends the open epoch: nothing more will be delivered in it. The empty
// epoch that follows lets a reader be told of the gap once.
func (o *Output) finish(server ServerID, reason GapReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		o.open = false
		o.epochLocked(server, reason)
	}
}

func (o *Output) epochLocked(server ServerID, reason GapReason) Cursor {
	var salt [7]byte
	rand.Read(salt[:])
	s := newStream(server, o.pane, salt)
	o.epochs = append(o.epochs, epoch{s, o.end, reason})
	if len(o.epochs) > maxEpochs {
		o.epochs = append(o.epochs[:0], o.epochs[len(o.epochs)-maxEpochs:]...)
	}
	o.wakeLocked()
	return Cursor{s, o.end}
}

// append adds delivered bytes. It copies b. Bytes of no open epoch are not kept.
func (o *Output) append(b []byte) (grew int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open || len(b) == 0 {
		return 0
	}
	grew = o.growLocked(len(b))
	if n := len(b) - len(o.ring); n > 0 { // only the newest fit
		o.end += int64(n)
		b = b[n:]
	}
	at := int(o.end & int64(len(o.ring)-1))
	n := copy(o.ring[at:], b)
	copy(o.ring, b[n:])
	o.end += int64(len(b))
	o.start = max(o.start, o.end-int64(len(o.ring)))
	o.wakeLocked()
	return grew
}

// growLocked makes room for n more bytes as far as the budget allows and
// returns by how many bytes the ring grew.
func (o *Output) growLocked(n int) int {
	old := len(o.ring)
	if old >= o.budget || int(o.end-o.start)+n <= old {
		return 0
	}
	size := max(old, minRing)
	for size < int(o.end-o.start)+n && size*2 <= o.budget {
		size *= 2
	}
	if size == old {
		return 0
	}
	ring := make([]byte, size)
	for off := o.start; off < o.end; {
		src := o.ring[off&int64(old-1):]
		src = src[:min(int64(len(src)), o.end-off)]
		at := off & int64(size-1)
		n := copy(ring[at:], src)
		off += int64(n)
	}
	o.ring = ring
	return size - old
}

// shrink gives back the whole ring and returns its size. What it held counts as
// evicted.
func (o *Output) shrink() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.ring)
	o.ring, o.start = nil, o.end
	return n
}

func (o *Output) wakeLocked() {
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
}

// waitLocked returns the channel closed at the next change.
func (o *Output) waitLocked() <-chan struct{} {
	if o.wake == nil {
		o.wake = make(chan struct{})
	}
	return o.wake
}

// cursor is the place after the newest byte. ok is false before the first epoch.
func (o *Output) cursor() (c Cursor, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cursorLocked()
}

func (o *Output) cursorLocked() (c Cursor, ok bool) {
	if len(o.epochs) == 0 {
		return c, false
	}
	return Cursor{o.epochs[len(o.epochs)-1].stream, o.end}, true
}

func (o *Output) touch(now time.Time) {
	o.mu.Lock()
	o.used = now
	o.mu.Unlock()
}

func (o *Output) lastUse() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used
}

// live tells whether output is being delivered for the process pid (0: any).
func (o *Output) live(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open && (pid == 0 || o.pid == pid)
}

// size is the bytes of memory the ring takes.
func (o *Output) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ring)
}

// since answers what followed the cursor. more, if not nil, is closed at the
// next change. A cursor of a stream this log does not know is answered with
// everything retained and a gap of unknown size.
func (o *Output) since(from Cursor, unknown GapReason) (s *Since, more <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s = &Since{}
	s.Cursor, _ = o.cursorLocked()
	at, err := o.placeLocked(from, s, unknown)
	if err != nil {
		return nil, nil, err
	}
	if at < o.start {
		lost := o.start - at
		s.Missed += lost
		if s.Gap == nil {
			s.Gap = &Gap{GapEvicted, &lost}
		}
		at = o.start
	}
	s.Data = o.copyLocked(at, o.end)
	return s, o.waitLocked(), nil
}

// placeLocked turns the cursor into an offset of the log and notes the gaps
// between it and the end.
func (o *Output) placeLocked(from Cursor, s *Since, unknown GapReason) (int64, error) {
	for i := range o.epochs {
		e := &o.epochs[i]
		if e.stream != from.Stream {
			continue
		}
		end := o.end
		if i+1 < len(o.epochs) {
			end = o.epochs[i+1].from
			s.Gap = &Gap{Reason: o.epochs[len(o.epochs)-1].reason}
		}
		if from.Offset > end {
			return 0, fmt.Errorf("%w: its offset lies %d bytes beyond the end of the stream", ErrCursor, from.Offset-end)
		}
		if from.Offset < e.from {
			return 0, fmt.Errorf("%w: its offset lies %d bytes before the stream began", ErrCursor, e.from-from.Offset)
		}
		return from.Offset, nil
	}
	s.Gap = &Gap{Reason: unknown}
	return o.start, nil
}

func (o *Output) copyLocked(from, to int64) []byte {
	b := make([]byte, 0, to-from)
	mask := int64(len(o.ring) - 1)
	for from < to {
		src := o.ring[from&mask:]
		src = src[:min(int64(len(src)), to-from)]
		b = append(b, src...)
		from += int64(len(src))
	}
	return b
}

// sameProcess tells whether the newest epoch is of that process generation.
func (o *Output) sameProcess(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pid == pid
}

// known tells whether the log has ever begun an epoch.
func (o *Output) known() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.epochs) > 0
}
