package state

import (
	"time"

	"tmux-mcpd/state/transcript"
)

// SinceOptions say how much Since answers and when.
type SinceOptions struct {
	// Wait is how long to wait for something new, 0 for not at all.
	Wait time.Duration
	// Settle, with Wait, puts the answer off until the pane has printed nothing
	// for so long.
	Settle time.Duration
	// MaxLines and MaxBytes bound the text; 0 is no limit. The newest lines are
	// given and the others counted, or with Oldest the oldest, and the cursor
	// goes only so far.
	MaxLines, MaxBytes int
	Oldest             bool
	// Raw asks for the bytes instead of the text.
	Raw bool
}

// Since is what a pane printed after a cursor.
type Since struct {
	// Text is what lines look like that have changed, as a reader would see
	// them: see transcript.Delta for how deltas join. Empty with Raw.
	Text            string
	ContinuesLine   bool // the first line is only the new part of one already given
	AlternateScreen bool // Text is the alternate screen as it is now
	More            bool // there is more after Cursor already
	Lines           int  // in Text
	DroppedLines    int  // cut from the front by MaxLines
	OmittedBytes    int  // cut from the front by MaxBytes
	// Raw is the bytes, with Raw asked for; at most MaxBytes of them, the oldest
	// or the newest.
	Raw []byte
	// Missed is the number of bytes of the stream that cannot be answered any
	// more.
	Missed int64
	Gap    *Gap   // the newest gap between the two cursors, nil for none
	Cursor Cursor // where the reader stands afterwards
}

// news tells whether there is anything to tell a waiting reader.
func (s *Since) news() bool {
	return s.Text != "" || len(s.Raw) > 0 || s.Gap != nil || s.Missed > 0 || s.DroppedLines > 0
}

// since answers what followed the cursor. A cursor of a stream this log does
// not know is answered with everything retained and a gap of unknown size. more
// is closed at the next change. ready is false while the transcript waits for a
// screen; the answer is then to be asked for again after more.
func (o *Output) since(from Cursor, unknown GapReason, opt SinceOptions) (s *Since, more <-chan struct{}, ready bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, err := o.placeLocked(from)
	if err != nil {
		return nil, nil, false, err
	}
	if !opt.Raw && (o.text == nil || o.held >= 0) {
		return nil, o.waitLocked(), false, nil
	}
	at := from.Offset
	if !known {
		at = o.epochs[0].from
	}
	var before int64 // what only the daemon before could have told
	if at < o.resumed {
		before, at = o.resumed-at, o.resumed
	}
	if opt.Raw {
		s = o.rawLocked(at, opt)
	} else {
		s = o.textLocked(at, opt)
	}
	if gap := o.gapLocked(at, s.Cursor.Offset); gap != nil {
		s.Gap = gap
	} else if !known {
		s.Gap = &Gap{Reason: unknown}
	} else if before > 0 {
		s.Missed += before
		s.Gap = &Gap{GapRestarted, &s.Missed}
	}
	return s, o.waitLocked(), true, nil
}

func (o *Output) textLocked(at int64, opt SinceOptions) *Since {
	s := &Since{}
	if to := o.text.LostTo(); to > at {
		s.Missed = to - at
		s.Gap = &Gap{GapEvicted, &s.Missed}
	}
	d := o.text.Since(at, transcript.SinceOptions{MaxLines: opt.MaxLines, MaxBytes: opt.MaxBytes, Oldest: opt.Oldest})
	s.Text, s.ContinuesLine, s.AlternateScreen, s.More = d.Text, d.ContinuesLine, d.AlternateScreen, d.More
	s.Lines, s.DroppedLines, s.OmittedBytes = d.Lines, d.DroppedLines, d.OmittedBytes
	s.Cursor = o.streamLocked(d.Offset)
	if d.Offset == o.text.Offset() {
		o.text.Pin()
	}
	return s
}

// rawLocked answers bytes. The offsets that stand for gaps are not bytes.
func (o *Output) rawLocked(at int64, opt SinceOptions) *Since {
	s := &Since{}
	if lost := o.ring.start - at; lost > 0 {
		s.Missed, s.Gap = lost, &Gap{GapEvicted, &lost}
		at = o.ring.start
	}
	end := o.ring.end
	if opt.MaxBytes > 0 && end-at > int64(opt.MaxBytes) {
		if opt.Oldest {
			end, s.More = at+int64(opt.MaxBytes), true
		} else {
			s.OmittedBytes = int(end - at - int64(opt.MaxBytes))
			at = end - int64(opt.MaxBytes)
		}
	}
	for i := 1; i < len(o.epochs); i++ {
		if mark := o.epochs[i].from - 1; mark >= at && mark < end {
			s.Raw = append(s.Raw, o.ring.copy(at, mark)...)
			at = mark + 1
		}
	}
	s.Raw = append(s.Raw, o.ring.copy(at, end)...)
	s.Cursor = o.streamLocked(end)
	return s
}

// probe is where a transcript stood when tmux began to answer a question.
type probe struct {
	ok                      bool
	offset                  int64
	width, height           int
	x, y, history           int
	alternate, stale, begun bool
}

// probe notes the transcript's state; called on the reader goroutine when a
// reply begins, it is of the same instant as the reply.
func (o *Output) probe() (p probe) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.begun = o.text != nil
	if o.text == nil || o.held >= 0 {
		return p
	}
	p.ok, p.offset, p.stale = true, o.text.Offset(), o.stale || o.text.Stale()
	p.width, p.height = o.text.Size()
	p.x, p.y = o.text.Cursor()
	p.history, p.alternate = o.text.HistorySize(), o.text.Alternate()
	return p
}

// agrees tells whether the transcript stood as the grid of that instant.
func (p probe) agrees(g grid) bool {
	return p.ok && !p.stale && p.width == g.width && p.height == g.height &&
		p.x == g.cursorX && p.y == g.cursorY && p.history == g.history && p.alternate == g.alternate
}

// audit compares what a transcript thought with what tmux said at the same
// instant and answers why it must be started again, if it must.
func (o *Output) audit(p probe, g grid) (why transcript.Reason, again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !p.begun:
		return transcript.Interrupted, true
	case !p.ok:
		return 0, false
	case p.stale, p.width != g.width, p.height != g.height:
		return transcript.Rewrapped, true
	}
	o.audits++
	if p.agrees(g) {
		return 0, false
	}
	o.misses++
	if time.Since(o.audited) < auditPause {
		return 0, false
	}
	o.audited = time.Now()
	if p.history > g.history { // cleared
		return transcript.Rewrapped, true
	}
	return transcript.Corrected, true
}

// fits tells whether the transcript has the pane's size.
func (o *Output) fits(p *Pane) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil {
		return false
	}
	w, h := o.text.Size()
	return w == p.Width && h == p.Height
}

// auditPause keeps a pane that our rules do not fit from being read whole again
// and again.
const auditPause = 2 * time.Second
