package state

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// Output is the log of one watched pane: the bytes tmux delivered, with absolute
// offsets that grow for as long as the daemon knows the pane, and the transcript
// rendered from them. It keeps the newest bytes up to a budget.
//
// The stream of bytes is divided into epochs: within one no byte is missing,
// between two some may be. The first offset of every epoch but the first stands
// for the gap before it and is no byte of the pane, so that a reader at the end
// of one epoch and a reader at the beginning of the next are at different
// offsets.
//
// One reader goroutine of a stream client appends; any goroutine reads. No
// method blocks on anything but the short critical sections of the others.
type Output struct {
	pane   controlmode.PaneID
	budget int
	by     maker

	mu     sync.Mutex // guards the fields that follow
	ring   ring
	epochs []epoch   // oldest first, never empty once begun
	open   bool      // the newest epoch is being delivered
	pid    int       // process generation of the newest epoch
	died   death     // of that process, as tmux told with the last screen
	used   time.Time // last use by a reader
	// resumed is where the stream was taken over from an earlier daemon: what
	// came before is not kept. 0 if it was not.
	resumed int64
	wake    chan struct{}
	// Readers that stay: while there are any the log counts as used.
	readers map[chan<- struct{}]int
	// typed are the newest lines that this daemon has typed.
	typed    []typedText
	typedSeq int
	bells    uint64    // of the transcript, as told
	rang     time.Time // when a bell was last told

	// text is nil until the first screen is known. While held is not negative,
	// text stands at that offset and waits for the screen tmux has there; what
	// comes meanwhile is only in the ring.
	text  *transcript.Transcript
	held  int64
	ends  []int64 // where the chunks end that came meanwhile: cursors may stand there
	stale bool    // text must be started again before it is read

	taps []*tap // of runs in the pane
	left leftover
	// typedText is on the command line, as far as this daemon knows.
	typedText unentered
	commands  commandLog

	counted int64 // bytes of memory, as last told

	sure sure // as last found out

	audits, misses int       // screens compared, and found different
	audited        time.Time // last start for a difference
}

// epoch is an unbroken stretch of the stream.
type epoch struct {
	stream Stream
	from   int64
	reason GapReason // what broke the chain before it
}

const maxEpochs = 64 // per pane; older ones are forgotten, their cursors get a gap

func newOutput(pane controlmode.PaneID, budget int) *Output {
	return &Output{pane: pane, budget: max(budget, minRing), held: -1}
}

// begin starts a new epoch at the present end, whose screen is being asked for
// at this very place, and returns its cursor.
func (o *Output) begin(server ServerID, pid int, reason GapReason) Cursor {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.epochs); n > 0 && !o.open && reason != GapRespawned && o.epochs[n-1].from == o.ring.end {
		reason = o.epochs[n-1].reason // what ended the delivery says more than that it had ended
	}
	c := o.epochLocked(server, reason)
	o.open, o.pid, o.held = true, pid, c.Offset
	return c
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

// bury ends the open epoch because the process has ended, or for a process that
// nothing was delivered of makes an epoch with a reason; its screen is being
// asked for. It answers the offset to start from.
func (o *Output) bury(server ServerID, pid int, reason GapReason) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		reason = GapPaneDied
	}
	if !o.open || pid != 0 { // tmux 3.8 does not say whose death it was
		o.pid = pid
	}
	o.epochLocked(server, reason)
	o.open, o.held = false, o.ring.end
	return o.held
}

func (o *Output) epochLocked(server ServerID, reason GapReason) Cursor {
	o.commands.begin(time.Now())
	if len(o.epochs) > 0 {
		o.catchUpLocked()
		o.commands.broken(o.ring.end, reason, time.Now())
		o.ring.append([]byte{0}, o.budget)
		if o.text != nil {
			o.text.Skip(1)
		}
		for _, t := range o.taps {
			t.broken()
		}
	}
	var salt [4]byte
	rand.Read(salt[:])
	s := newStream(server, o.pane, o.by, salt)
	o.epochs = append(o.epochs, epoch{s, o.ring.end, reason})
	if len(o.epochs) > maxEpochs {
		o.epochs = append(o.epochs[:0], o.epochs[len(o.epochs)-maxEpochs:]...)
	}
	o.stale = true
	o.wakeLocked()
	return Cursor{s, o.ring.end}
}

// hold stops the transcript at the present end, which it answers, until start
// or release.
func (o *Output) hold() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUpLocked()
	o.held = o.ring.end
	return o.held
}

// release gives up on the start that was to come for the hold at an offset.
func (o *Output) release(at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held >= 0 && o.held == at {
		o.catchUpLocked()
		o.stale = true
		o.wakeLocked()
	}
}

// start makes the transcript begin, or go on, from what tmux showed where it was
// held, and renders what has come since.
func (o *Output) start(s *paneSeed, at int64, p transcript.Profile, why transcript.Reason) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held != at {
		return nil // another start has come between, its screen is newer
	}
	if o.text == nil {
		t, err := transcript.Seed(s.SeedState, at, p)
		if err != nil {
			return err
		}
		t.Keep(textBudget * o.budget)
		t.OnMark(o.marked)
		o.text = t
	} else if err := o.text.Reseed(s.SeedState, why); err != nil {
		return err
	}
	o.text.SetOptions(s.options)
	if s.pid != 0 {
		o.pid = s.pid
	}
	o.died, o.stale = s.died, o.ring.start > at && o.ring.end > at
	o.catchUpLocked()
	o.wakeLocked()
	return nil
}

// catchUpLocked ends a hold: it renders what is in the ring and not yet in the
// transcript. What the ring has lost meanwhile makes it stale.
func (o *Output) catchUpLocked() {
	if o.held < 0 {
		return
	}
	from, ends := o.held, append(o.ends, o.ring.end)
	o.held, o.ends = -1, o.ends[:0]
	if o.text == nil {
		return
	}
	if lost := o.ring.start - from; lost > 0 {
		o.text.Skip(lost)
		from, o.stale = o.ring.start, true
	}
	now := time.Now()
	for _, end := range ends {
		if end > from {
			o.text.Write(o.ring.copy(from, end), now)
			from = end
		}
	}
}

// append adds delivered bytes, which it copies, and answers by how many bytes of
// memory the log has grown since that was last told, in steps of growthStep.
// Bytes of no open epoch are not kept.
func (o *Output) append(b []byte) (grew int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open || len(b) == 0 {
		return 0
	}
	for _, t := range o.taps {
		waits := t.from < 0
		if t.feed(o.ring.end, b); waits && t.from >= 0 {
			o.commands.startedOwn(ownStart{t.id, t.first, t.from})
		}
	}
	o.ring.append(b, o.budget)
	if o.held >= 0 {
		if len(o.ends) == maxEnds {
			o.ends = o.ends[:maxEnds-1]
		}
		o.ends = append(o.ends, o.ring.end)
	} else if o.text != nil {
		o.text.Write(b, time.Now())
	}
	o.wakeLocked()
	if size := o.sizeLocked(); size-o.counted >= growthStep || size < o.counted {
		grew, o.counted = size-o.counted, size
	}
	return grew
}

const (
	growthStep = 16 << 10
	// maxEnds bounds what is noted of chunks that wait for a screen.
	maxEnds = 1 << 16
)

// newBell tells whether the pane has rung, at most once a second.
func (o *Output) newBell() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil || o.text.Bells() == o.bells {
		return false
	}
	o.bells = o.text.Bells()
	if now := time.Now(); now.Sub(o.rang) >= time.Second {
		o.rang = now
		return true
	}
	return false
}

// textBudget is how many bytes of history the transcript holds for each byte of
// the ring's budget: short lines cost more as rows than as bytes.
const textBudget = 8

// shrink gives back the history of bytes and of rows. What it held counts as
// evicted for readers that are behind.
func (o *Output) shrink() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUpLocked()
	o.ring.drop()
	if o.text != nil {
		o.text.Keep(0)
		o.text.Keep(textBudget * o.budget)
	}
}

func (o *Output) wakeLocked() {
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
	for r := range o.readers {
		nudge(r)
	}
}

// join has a channel nudged at every change until leave, once for each join. It must
// have room for one.
func (o *Output) join(wake chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.readers == nil {
		o.readers = map[chan<- struct{}]int{}
	}
	o.readers[wake]++
}

func (o *Output) leave(wake chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.readers[wake]--; o.readers[wake] <= 0 {
		delete(o.readers, wake)
	}
	o.used = time.Now()
}

// changed returns the channel closed at the next change.
func (o *Output) changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waitLocked()
}

func (o *Output) waitLocked() <-chan struct{} {
	if o.wake == nil {
		o.wake = make(chan struct{})
	}
	return o.wake
}

// cursor is the place after the newest byte, for a reader who goes on from there.
// ok is false before the first epoch.
func (o *Output) cursor() (c Cursor, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text != nil && o.held < 0 {
		o.text.Pin()
	}
	return o.cursorLocked()
}

func (o *Output) cursorLocked() (c Cursor, ok bool) {
	if len(o.epochs) == 0 {
		return c, false
	}
	return Cursor{o.epochs[len(o.epochs)-1].stream, o.ring.end}, true
}

func (o *Output) touch(now time.Time) {
	o.mu.Lock()
	o.used = now
	o.mu.Unlock()
}

func (o *Output) lastUse() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.readers) > 0 {
		return time.Now()
	}
	return o.used
}

// live tells whether output is being delivered for the process pid (0: any).
func (o *Output) live(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open && (pid == 0 || o.pid == pid)
}

// sameProcess tells whether the newest epoch is of that process generation. A
// dead pane has no pid on tmux 3.8, it counts as the one that was known.
func (o *Output) sameProcess(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.epochs) > 0 && (pid == 0 || o.pid == pid)
}

// known tells whether the log has ever begun an epoch.
func (o *Output) known() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.epochs) > 0
}

// measure answers how many bytes of memory the log takes, and counts them as told.
func (o *Output) measure() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counted = o.sizeLocked()
	return o.counted
}

func (o *Output) sizeLocked() int64 {
	n := int64(len(o.ring.buf))
	if o.text != nil {
		n += int64(o.text.Held())
	}
	return n
}

// place finds the epoch a cursor names. known is false for a stream this log
// does not know: one from before a restart, or forgotten.
func (o *Output) placeLocked(from Cursor) (known bool, err error) {
	for i := range o.epochs {
		e := &o.epochs[i]
		if e.stream != from.Stream {
			continue
		}
		end := o.ring.end
		if i+1 < len(o.epochs) {
			end = o.epochs[i+1].from - 1 // not the offset of the gap
		}
		if from.Offset > end {
			return false, fmt.Errorf("%w: its offset lies %d bytes beyond the end of the stream", ErrCursor, from.Offset-end)
		}
		if from.Offset < e.from {
			return false, fmt.Errorf("%w: its offset lies %d bytes before the stream began", ErrCursor, e.from-from.Offset)
		}
		return true, nil
	}
	return false, nil
}

// gapLocked is the newest gap in (from, to], nil for none.
func (o *Output) gapLocked(from, to int64) *Gap {
	for i := len(o.epochs) - 1; i > 0; i-- {
		if e := &o.epochs[i]; e.from > from && e.from <= to {
			return &Gap{Reason: e.reason}
		}
	}
	return nil
}

// streamLocked names the place at an offset.
func (o *Output) streamLocked(offset int64) Cursor {
	for i := len(o.epochs) - 1; i >= 0; i-- {
		if e := &o.epochs[i]; e.from <= offset || i == 0 {
			return Cursor{e.stream, max(offset, e.from)}
		}
	}
	return Cursor{}
}
