package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// GapReason names why output is missing.
type GapReason string

// The gap reasons of the tool contract, section 11.
const (
	GapAttached     GapReason = "attached"
	GapOwnerChanged GapReason = "owner_changed"
	GapPaused       GapReason = "paused"
	GapPaneDied     GapReason = "pane_died"
	GapRespawned    GapReason = "respawned"
	GapEvicted      GapReason = "evicted"
	GapNotWatched   GapReason = "not_watched"
	GapRestarted    GapReason = "daemon_restarted"
)

// Gap is output that a reader will not get. Bytes is nil when nobody knows how
// much it was.
type Gap struct {
	Reason GapReason
	Bytes  *int64
}

// StartWatch starts (or joins) the watch of a pane and captures its screen and
// up to history rows above it, with the cursor that continues exactly after it.
func (m *Mirror) StartWatch(ctx context.Context, id controlmode.PaneID, r CaptureRange) (*Capture, Cursor, error) {
	if s, out := m.watches.liveStream(id); s != nil {
		c, g, at, err := m.captureAt(ctx, s, out, id, r)
		switch {
		case err == nil && out.live(g.pid):
			out.touch(time.Now())
			return c, at, nil
		case err != nil && !lostStream(err):
			return nil, Cursor{}, err
		}
	}
	s, out, err := m.watch(ctx, id, GapAttached)
	if err != nil {
		return nil, Cursor{}, err
	}
	if s == nil { // dead: nothing more will come
		at, _ := out.cursor()
		c, err := m.Capture(ctx, id, r)
		return c, at, err
	}
	c, _, at, err := m.captureAt(ctx, s, out, id, r)
	return c, at, err
}

// captureAt captures on the connection that receives the pane's output; the
// cursor is taken when the answer begins, so it continues exactly after what
// the capture shows.
func (m *Mirror) captureAt(ctx context.Context, s *stream, out *Output, id controlmode.PaneID, r CaptureRange) (*Capture, grid, Cursor, error) {
	var at Cursor
	c, g, err := m.captureBy(ctx, id, r, func(ctx context.Context, req controlmode.Request) ([]controlmode.BlockEnd, error) {
		req.Begin = func(i int) {
			if i == 0 {
				at, _ = out.cursor()
			}
		}
		return s.ask(ctx, req)
	})
	return c, g, at, err
}

// watch makes the pane watched, beginning a new epoch if it is not being
// delivered now. A dead pane is never let through again (its respawn could crash
// tmux, control-mode 12.1): the stream is then nil, the log ended.
//
// It takes turns, so it has a deadline of its own: behind a tmux that has
// stopped, those who wait would otherwise time out one after the other.
func (m *Mirror) watch(ctx context.Context, id controlmode.PaneID, reason GapReason) (*stream, *Output, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.Timeout+attachLimit, controlmode.ErrTimeout)
	defer cancel()
	s, out, err := m.watchNow(ctx, id, reason)
	if err != nil && context.Cause(ctx) == controlmode.ErrTimeout {
		err = fmt.Errorf("watch pane %s: %w", id, controlmode.ErrTimeout)
	}
	return s, out, err
}

func (m *Mirror) watchNow(ctx context.Context, id controlmode.PaneID, reason GapReason) (*stream, *Output, error) {
	w := &m.watches
	if err := w.take(ctx); err != nil {
		return nil, nil, err
	}
	defer w.give()
	for try := 0; ; try++ {
		mod, err := m.onePane(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		pane := mod.Panes[0]
		p := w.entry(mod.Server.ID, id)
		p.out.touch(time.Now())
		if pane.Dead {
			return nil, p.out, m.deadPane(ctx, mod, p, pane, reason)
		}
		w.mu.Lock()
		s := p.stream
		w.mu.Unlock()
		if s != nil && s.session == pane.Links[0].Session && p.out.live(pane.PID) {
			return s, p.out, nil // somebody else was faster
		}
		if p.out.known() && !p.out.sameProcess(pane.PID) {
			reason = GapRespawned
		}
		s, err = w.open(ctx, mod.Server, pane.Links[0].Session)
		if err == nil {
			err = w.begin(ctx, s, p, pane.PID, reason)
		}
		if err == nil {
			return s, p.out, nil
		}
		if s != nil && errors.Is(err, controlmode.ErrClosed) {
			w.closed(s, nil)
		}
		lost := errors.Is(err, controlmode.ErrClosed) || errors.Is(err, ErrDetached)
		if try == 3 || !lost || errors.Is(err, controlmode.ErrTimeout) {
			return nil, nil, missing(id, err)
		}
	}
}

// liveStream finds the client that is receiving the pane's output now.
func (w *watches) liveStream(id controlmode.PaneID) (*stream, *Output) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.panes[id]
	if p == nil || p.stream == nil || !p.out.live(0) {
		return nil, nil
	}
	return p.stream, p.out
}

// ask runs a request that only reads on the stream client; every command must
// succeed.
func (s *stream) ask(ctx context.Context, req controlmode.Request) ([]controlmode.BlockEnd, error) {
	reply, err := s.proc.Do(ctx, req)
	if err == nil {
		err = reply.Err(req)
	}
	return reply.Blocks, err
}

// Since answers what the pane printed after the cursor, as lines or bytes. With
// Wait it waits for something to tell, at most that long; a timeout is an empty
// answer. A pane that has ended is answered at once.
// ErrOtherServer, ErrOtherPane, ErrNotFound, ErrNoServer, ErrCursor.
func (m *Mirror) Since(ctx context.Context, id controlmode.PaneID, from Cursor, opt SinceOptions) (*Since, error) {
	if from.Stream.Pane() != id {
		return nil, fmt.Errorf("%w: it names %s", ErrOtherPane, from.Stream.Pane())
	}
	var late <-chan time.Time
	if opt.Wait > 0 {
		deadline := time.NewTimer(opt.Wait)
		defer deadline.Stop()
		late = deadline.C
	}
	reason := GapNotWatched
	for {
		att, err := m.attached(ctx)
		if err != nil {
			return nil, err
		}
		if !from.Stream.Of(att.server.ID) {
			return nil, ErrOtherServer
		}
		out, err := m.caughtUp(ctx, id, reason)
		if err != nil {
			return nil, err
		}
		s, waited, err := m.await(ctx, out, from, opt, late)
		if err != nil || !waited || s.Gap == nil || s.Text != "" || len(s.Raw) > 0 {
			return s, err
		}
		// The chain broke during the wait: find out whether the pane and the
		// server are still there before that counts as an answer.
		reason, opt.Wait = s.Gap.Reason, 0
	}
}

// await reads from a log, and waits, if opt says so, until there is something to
// tell or late fires. waited tells whether it did.
func (m *Mirror) await(ctx context.Context, out *Output, from Cursor, opt SinceOptions, late <-chan time.Time) (s *Since, waited bool, err error) {
	for may := opt.Wait > 0; ; {
		s, more, ready, err := out.since(from, m.watches.unknown(from.Stream), opt)
		switch {
		case err != nil:
			return nil, waited, err
		case !ready && !may:
			if err := out.awaitScreen(ctx, m.cfg.Timeout); err != nil {
				return nil, waited, err
			}
			continue
		case ready && (!may || !out.live(0) || s.news() && (opt.Settle <= 0 || s.Gap != nil)):
			return s, waited, nil
		case ready && s.news():
			if err := out.settle(ctx, opt.Settle, more, late); err != nil {
				return nil, waited, err
			}
			may, waited = false, true
			continue
		}
		waited = true
		select {
		case <-more:
		case <-late:
			may = false
		case <-ctx.Done():
			return nil, waited, context.Cause(ctx)
		}
		out.touch(time.Now())
	}
}

// unknown is why a cursor of this server names a stream that its pane's log does
// not know: the pane was not watched for a while, or the daemon is another one.
func (w *watches) unknown(s Stream) GapReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.resumed[s]; ok || s.madeBy() == w.by {
		return GapNotWatched
	}
	return GapRestarted
}

// settle waits until nothing has changed for a while, or until late fires.
func (o *Output) settle(ctx context.Context, quiet time.Duration, more <-chan struct{}, late <-chan time.Time) error {
	t := time.NewTimer(quiet)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return nil
		case <-more:
			more = o.changed()
			t.Reset(quiet)
		case <-late:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitScreen waits until the transcript can be read.
func (o *Output) awaitScreen(ctx context.Context, limit time.Duration) error {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		o.mu.Lock()
		ready, open, more := o.text != nil && o.held < 0, o.open || o.held >= 0, o.waitLocked()
		o.mu.Unlock()
		switch {
		case ready:
			return nil
		case !open:
			return fmt.Errorf("pane %s ended before its screen could be read: %w", o.pane, ErrDetached)
		}
		select {
		case <-more:
		case <-t.C:
			return fmt.Errorf("screen of %s: %w", o.pane, controlmode.ErrTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// caughtUp answers the pane's log when it holds all that tmux had received from
// the pane when the call was made (P1): one round trip on the connection that
// delivers it, unless that can be known without. The answer also tells whether the transcript shows what tmux
// shows; if not it is started anew. reason is why output is missing if the pane
// has to be watched anew.
func (m *Mirror) caughtUp(ctx context.Context, id controlmode.PaneID, reason GapReason) (*Output, error) {
	if s, out := m.watches.liveStream(id); s != nil {
		out.touch(time.Now())
		if s.still(out) {
			return out, nil
		}
		var at probe
		var told uint64
		blocks, err := s.ask(ctx, controlmode.Request{
			Commands: []controlmode.Command{gridCmd(id), insideCmd(s.session, id)}, Fence: true,
			Begin: func(i int) {
				if i == 0 {
					at, told = out.probe(), s.told.Load()
				}
			},
		})
		if err == nil {
			var g grid
			if g, err = readGrid(blocks[0].Body); err == nil && !g.found {
				return nil, fmt.Errorf("pane %s: %w", id, ErrNotFound)
			}
			// A dead pane is paused before anybody respawns it, and then shows what
			// was not delivered: the transcript must not be corrected by that.
			if err == nil && out.live(g.pid) && !g.dead {
				if at.agrees(g) {
					out.assure(sure{s, told, at.offset, g.pid})
				}
				return out, m.startAgain(ctx, s, out, at, g)
			}
		}
		switch {
		case outside(err):
			reason = GapOwnerChanged
		case err != nil && !lostStream(err):
			return nil, missing(id, err)
		}
	}
	_, out, err := m.watch(ctx, id, reason)
	return out, err
}

// insideCmd prints nothing, and fails if the pane is not in the session: a
// client receives the output of its session's panes only, and is not told at
// once when one moves away. display-message could not tell: it never fails, and
// answers with this target for a pane that is elsewhere, too (tmux 3.3a to 3.8).
func insideCmd(s controlmode.SessionID, id controlmode.PaneID) controlmode.Command {
	return controlmode.Cmd("list-panes", "-t", s.String()+":."+id.String(), "-f", "0")
}

// outside tells insideCmd's failure.
func outside(err error) bool {
	var refused *controlmode.CommandError
	return errors.As(err, &refused) && refused.Words[0] == "list-panes"
}

// startAgain reads the screen again if the transcript differs from it.
func (m *Mirror) startAgain(ctx context.Context, s *stream, out *Output, at probe, g grid) error {
	why, again := out.audit(at, g)
	if !again {
		return nil
	}
	w := &m.watches
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.give()
	if err := w.reseed(ctx, s, out, why); err != nil && !errors.Is(err, controlmode.ErrClosed) {
		m.log.Warn("transcript", zap.Stringer("pane", out.pane), zap.Error(err))
	}
	return nil
}
