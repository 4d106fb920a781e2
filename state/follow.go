package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// Follow is a place in a pane's output from which lines are looked at as they
// come: each logical line whose text changes is shown at least once, in a state
// no older than the end of the chunk that changed it, unless Look tells of loss.
// As long as it is not closed the pane stays watched. It belongs to one
// goroutine.
type Follow struct {
	m    *Mirror
	id   controlmode.PaneID
	out  *Output
	life ServerID
	wake chan struct{}

	closed bool

	start Cursor // where it began
	began int64  // the same as an offset of the log
	at    int64  // looked at up to here
	sight sight

	newest     string // the newest line that was seen
	cursorText string // the line under the cursor, when last looked at
	cursorLine uint64
	shown      map[uint64]string
	unknown    *Gap // the cursor was of a stream that nobody knows any more
}

// FollowOptions say from where, and what counts as news.
type FollowOptions struct {
	From *Cursor // nil: from now
	// Typed makes the echo of typed keys news, Shown what the screen shows
	// already when a Follow from now begins.
	Typed, Shown bool
}

// Follow begins to follow a pane, which it has watched. Everything that tmux had
// received from the pane when the call was made comes before "now". wake, which
// must have room for one, is nudged at every change. The error is one of those
// of Since. The caller must Close it.
func (m *Mirror) Follow(ctx context.Context, id controlmode.PaneID, opt FollowOptions, wake chan struct{}) (*Follow, error) {
	if opt.From != nil && opt.From.Stream.Pane() != id {
		return nil, fmt.Errorf("%w: it names %s", ErrOtherPane, opt.From.Stream.Pane())
	}
	att, err := m.attached(ctx)
	if err != nil {
		return nil, err
	}
	if opt.From != nil && !opt.From.Stream.Of(att.server.ID) {
		return nil, ErrOtherServer
	}
	reason := GapNotWatched
	if opt.From == nil {
		reason = GapAttached
	}
	out, err := m.caughtUp(ctx, id, reason)
	if err != nil {
		return nil, err
	}
	f := &Follow{m: m, id: id, out: out, life: att.server.ID, wake: wake}
	if err := out.awaitScreen(ctx, m.cfg.Timeout); err != nil {
		return nil, err
	}
	out.join(wake)
	m.watches.followers.Add(1)
	if err := f.begin(opt); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close ends it. It may be called again.
func (f *Follow) Close() {
	if !f.closed {
		f.closed = true
		f.out.leave(f.wake)
		f.m.watches.followers.Add(-1)
	}
}

// Pane is the pane that is followed.
func (f *Follow) Pane() controlmode.PaneID { return f.id }

// Start is where it began.
func (f *Follow) Start() Cursor { return f.start }

// Newest is the newest line that was seen, for people.
func (f *Follow) Newest() string { return f.newest }

func (f *Follow) begin(opt FollowOptions) error {
	o := f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil || len(o.epochs) == 0 {
		return fmt.Errorf("screen of %s: %w", f.id, ErrDetached)
	}
	end := o.text.Offset()
	f.at = end
	switch {
	case opt.From != nil:
		known, err := o.placeLocked(*opt.From)
		if err != nil {
			return err
		}
		f.at = opt.From.Offset
		if !known {
			f.at, f.unknown = o.epochs[0].from, &Gap{Reason: f.m.watches.unknown(opt.From.Stream)}
		}
		f.at = min(f.at, end)
		f.start = *opt.From
	default:
		if o.held < 0 {
			o.text.Pin()
		}
		f.start = o.streamLocked(end)
	}
	f.began = f.at
	f.sight.typed = opt.Typed
	f.sight.before = map[uint64]string{}
	if o.text.Alternate() && f.at == end {
		f.sight.screen = map[string]bool{}
	}
	for _, l := range o.text.ScreenLines() {
		if l.Offset <= f.at {
			f.sight.before[l.ID] = l.Text
			f.newest = l.Text
			if f.sight.screen != nil {
				f.sight.screen[l.Text] = true
			}
		}
	}
	f.shown = f.sight.before
	if opt.Shown && opt.From == nil {
		f.sight.before, f.sight.screen = nil, nil
		f.at = -1 // everything is looked at; only the screen is news
	}
	if l := o.text.CursorLine(); l.Offset <= f.at {
		f.cursorLine, f.cursorText = l.ID, l.Text
	}
	f.sight.take(o.typed)
	f.forgetEchoes(o)
	return nil
}

// forgetEchoes lets the echoes that came before the place be known. The caller
// holds the lock.
func (f *Follow) forgetEchoes(o *Output) {
	if len(f.sight.echoes) == 0 || f.sight.echoes[0].at >= f.began {
		return
	}
	for _, l := range o.text.NewLines(f.sight.echoes[0].at) {
		if l.Offset > f.began {
			continue
		}
		for i := range f.sight.echoes {
			f.sight.echoes[i].in(&l)
		}
	}
}

// Fresh is a line with news.
type Fresh struct {
	transcript.NewLine
	old []region
}

// Has tells whether there is a match in the line's news.
func (l *Fresh) Has(p *Pattern) bool { return p.news(l.Text, l.old) }

// Any tells whether there is any news in the line but blanks.
func (l *Fresh) Any() bool {
	for i := range len(l.Text) {
		if l.Text[i] != ' ' && !covered(region{i, i + 1}, l.old) {
			return true
		}
	}
	return false
}

// Sight is what a Look found.
type Sight struct {
	Lines []Fresh // changed since the last look, in the order of the rows
	// Moved tells that the pane has printed something, be it only colours.
	Moved bool
	// Lost tells that lines have gone before they could be looked at.
	Lost bool
	// Gap is where output may be missing, nil for nowhere.
	Gap *Gap
	// Over tells that nothing more comes by itself: see Why.
	Over bool
}

// Look shows what has changed since the last look. It does not ask tmux, and
// costs time in proportion to what has changed.
func (f *Follow) Look() Sight {
	s, lines := f.look()
	for i := range lines {
		l := &lines[i]
		s.Lines = append(s.Lines, Fresh{*l, f.sight.old(l)})
		if l.Text != "" {
			f.newest = l.Text
		}
	}
	return s
}

func (f *Follow) look() (s Sight, lines []transcript.NewLine) {
	f.m.watches.looks.Add(1)
	o := f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil || o.held >= 0 {
		return s, nil // it is woken when the screen is known
	}
	end := o.text.Offset()
	f.sight.take(o.typed)
	s.Moved = end > f.at
	if f.at < 0 { // what is on the screen counts
		s.Moved = end > f.began
		for _, l := range o.text.ScreenLines() {
			lines = append(lines, transcript.NewLine{Line: l, Typed: -1})
		}
		f.at = min(f.began, end)
		lines = append(lines, o.text.NewLines(f.at)...)
	} else if end > f.at {
		s.Lost = o.text.LostTo() > f.at
		s.Gap = o.gapLocked(f.at, end)
		lines = o.text.NewLines(f.at)
	}
	if l := o.text.CursorLine(); l.ID != f.cursorLine || l.Text != f.cursorText {
		// Blanks before the cursor are no change, but they may be looked for.
		if n := len(lines); l.Offset > f.began && (n == 0 || lines[n-1].ID != l.ID) {
			lines = append(lines, l)
		}
		f.cursorLine, f.cursorText = l.ID, l.Text
	}
	if f.unknown != nil {
		s.Gap, f.unknown = f.unknown, nil
	}
	f.at = max(f.at, end)
	s.Over = !o.open
	return s, lines
}

// Printed answers what the pane has printed since the start, and the cursor to
// go on from. It does not ask tmux.
func (f *Follow) Printed(opt SinceOptions) (*Since, error) {
	s, _, ready, err := f.out.since(f.start, f.m.watches.unknown(f.start.Stream), opt)
	if err == nil && !ready {
		c, _ := f.out.cursor()
		s = &Since{Cursor: c}
	}
	return s, err
}

// Why a pane is not followed any more.
type Why string

// The reasons.
const (
	WhyPaneDied   Why = "pane_died"   // its process has ended, or it is gone
	WhyServerGone Why = "server_gone" // tmux has ended, or another one runs now
	WhyGap        Why = "gap"         // output was lost; the pane lives
)

// Why finds out why nothing more comes, asking tmux.
func (f *Follow) Why(ctx context.Context) (Why, error) {
	att, err := f.m.attached(ctx)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, ErrNoServer), errors.Is(err, errEmpty), err == nil && att.server.ID != f.life:
		return WhyServerGone, nil
	case err != nil:
		return WhyGap, nil
	}
	mod, err := f.m.onePane(ctx, f.id)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, ErrNotFound):
		return WhyPaneDied, nil
	case errors.Is(err, ErrNoServer), errors.Is(err, errEmpty):
		return WhyServerGone, nil
	case err == nil && mod.Server.ID != f.life:
		return WhyServerGone, nil
	case err == nil && mod.Panes[0].Dead:
		return WhyPaneDied, nil
	}
	return WhyGap, nil
}

// Again has a pane whose output was lost watched again, and waits until its
// screen is known. A pane that is gone is no error.
func (f *Follow) Again(ctx context.Context) error {
	if out, err := f.m.caughtUp(ctx, f.id, GapAttached); err == nil && out == f.out {
		_ = out.awaitScreen(ctx, f.m.cfg.Timeout) // without it, what comes is matched all the same
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Gone tells whether a life of the tmux server is known to have ended. It does
// not ask tmux, but may try the socket.
func (m *Mirror) Gone(life ServerID) bool {
	if att := m.attachedNow(); att != nil {
		return att.server.ID != life
	}
	return life == (ServerID{}) || !m.serverListens()
}

// CatchUp waits until everything has come that tmux had received from the pane
// when the call was made.
func (f *Follow) CatchUp(ctx context.Context) error {
	s, out := f.m.watches.liveStream(f.id)
	if s == nil || out != f.out {
		return nil
	}
	_, err := s.ask(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
	if err != nil && !lostStream(err) {
		return err
	}
	return nil
}

// Typing tells that a text is about to be typed into a pane, so that whoever
// waits for text knows its echo. Text is what is sent, key names left out. It
// must be called before the text is sent, and is without effect on a pane that
// is not watched.
func (m *Mirror) Typing(id controlmode.PaneID, text string) {
	w := &m.watches
	w.mu.Lock()
	p := w.panes[id]
	w.mu.Unlock()
	if p != nil {
		p.out.typing(text)
		p.out.touch(time.Now())
	}
}

// OnScreen tells which patterns the screen showed when the Follow began, in
// lines that have not changed since.
func (f *Follow) OnScreen(patterns []Pattern) []bool {
	seen := make([]bool, len(patterns))
	for _, line := range f.shown {
		for i := range patterns {
			seen[i] = seen[i] || patterns[i].in(line)
		}
	}
	return seen
}
