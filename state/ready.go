package state

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// What a pane waits for is not an event: no notification tells that a program
// has begun to read. So there are three ways to learn it, all without a trace in
// the pane:
//
//   - Waiting looks now, for whoever is about to type. WaitingOf is cheaper, for
//     reads that show it.
//   - AwaitWaiting blocks until it is what the caller wants. WaitReady does so for
//     a new pane.
//   - FollowWaiting tells changes on a channel, for waits on several things.
//
// The last two look every 20 to 50 ms, and when the pane prints if it is
// watched, only as long as somebody waits.
const (
	lookApart  = 20 * time.Millisecond // between two looks that settle a state
	lookOften  = time.Second           // after which looks become rarer
	lookRarely = 50 * time.Millisecond
	// screenAge is how old the answer may be whether a pane that is read key by
	// key shows the alternate screen.
	screenAge = 250 * time.Millisecond
	looksMost = 5 // for one answer
	// questionTime is how long a new pane may wait for something else than a
	// command line before WaitReady takes that for its state.
	questionTime = time.Second
)

// looks are the newest looks at panes, for reads.
type looks struct {
	mu   sync.Mutex // guards the field that follows
	last map[controlmode.PaneID]looked
}

type looked struct {
	w     Waiting
	since time.Time // it has been seen unchanged
}

const maxLooks = 4096 // panes remembered

// note remembers a look and tells whether it is the same as one at least
// lookApart before.
func (l *looks) note(id controlmode.PaneID, w Waiting, now time.Time) (settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, ok := l.last[id]; ok && was.w.same(w) {
		return now.Sub(was.since) >= lookApart
	}
	if l.last == nil || len(l.last) >= maxLooks {
		l.last = map[controlmode.PaneID]looked{}
	}
	l.last[id] = looked{w, now}
	return false
}

// Waiting tells what a pane waits for: two equal looks 20 ms apart, or after
// 100 ms of changes the newest look, which is then not Settled. One round trip
// to tmux and no effect on the pane. ErrNotFound, ErrNoServer.
func (m *Mirror) Waiting(ctx context.Context, id controlmode.PaneID) (Waiting, error) {
	mod, err := m.onePane(ctx, id)
	if err != nil {
		return Waiting{}, err
	}
	w := m.lookAt(mod.Panes[0])
	for n := 1; n < looksMost && !w.Settled; n++ {
		if !pause(ctx, lookApart) {
			return w, context.Cause(ctx)
		}
		next := m.lookAt(mod.Panes[0])
		next.Settled = next.Settled || next.same(w)
		w = next
	}
	return w, nil
}

// WaitingOf is Waiting for a read that has the pane from tmux just now. It asks
// tmux nothing, and answers at once if the pane was seen like this at least 20
// ms ago: what it tells is true of the moment, but between the looks another
// program may have run. Whoever wants to type calls Waiting.
func (m *Mirror) WaitingOf(ctx context.Context, p *Pane) Waiting {
	for n := 1; ; n++ {
		w := m.lookAt(p)
		w.Settled = m.looks.note(p.ID, w, time.Now()) || w.Settled
		if w.Settled || n == looksMost || !pause(ctx, lookApart) {
			return w
		}
	}
}

// lookAt looks once. What tmux itself says of the pane comes first: a dead pane
// reads nothing, one in a mode gives its keys to tmux.
func (m *Mirror) lookAt(p *Pane) Waiting {
	switch {
	case p.Dead:
		w := Waiting{For: WaitsDead, Evidence: "the pane's process has ended", Settled: true}
		if p.DeadSignal != "" {
			w.Evidence += " by signal " + p.DeadSignal
		} else if p.DeadStatus != "" {
			w.Evidence += " with status " + p.DeadStatus
		}
		return w
	case p.InMode > 0:
		return Waiting{For: WaitsMode, Evidence: "the pane is in " + p.Mode, Settled: true}
	case p.PID <= 1: // tmux 3.8 forgets the process before the pane counts as dead
		return Waiting{For: WaitsDead, Evidence: "the pane has no process any more", Settled: true}
	case p.TTY == "":
		return Waiting{For: WaitsUnknown, Evidence: "tmux names no terminal for the pane", Settled: true}
	}
	s := look(p.PID, p.TTY)
	s.alternate = p.Alternate
	s.paste = m.watches.pasteMode(p.ID)
	return classify(s)
}

// WaitReady waits until a new pane's program reads its terminal, at most limit,
// and answers what the pane waits for then: ready is WaitsPrompt, reached when
// the shell has run its rc files and reads a command line. Anything else that is
// waited for, a question or a full screen, is answered when it has lasted a
// second. At the limit, and when the pane has died, the answer is what it is;
// callers show its evidence. The limit is no error; ErrNotFound (the pane has
// gone), ErrNoServer.
func (m *Mirror) WaitReady(ctx context.Context, id controlmode.PaneID, limit time.Duration) (Waiting, error) {
	var first Waiting
	var since time.Time
	return m.AwaitWaiting(ctx, id, limit, func(w Waiting) bool {
		if !w.same(first) {
			first, since = w, time.Now()
		}
		switch w.For {
		case WaitsPrompt, WaitsDead:
			return true
		case WaitsBusy:
			return false
		}
		return time.Since(since) >= questionTime
	})
}

// AwaitWaiting waits until done says yes to what the pane waits for, at most
// limit, and answers the newest look; done said yes to it exactly when done of
// it is true. done is only asked about settled states, on this goroutine. The
// limit is no error. ErrNotFound, ErrNoServer.
func (m *Mirror) AwaitWaiting(ctx context.Context, id controlmode.PaneID, limit time.Duration, done func(Waiting) bool) (Waiting, error) {
	mod, err := m.onePane(ctx, id)
	if err != nil {
		return Waiting{}, err
	}
	var last Waiting
	late := time.NewTimer(max(limit, 0))
	defer late.Stop()
	err = m.watchWaiting(ctx, mod, id, late.C, func(w Waiting) bool {
		last = w
		return w.Settled && done(w)
	})
	return last, err
}

// FollowWaiting tells what a pane waits for, and every change of it, settled
// states only. The channel holds the newest state: a reader that is slow misses
// those between. It is closed when ctx ends, when the pane has gone, and when
// tmux cannot be asked; the caller finds out which. It costs a look every 20 to 50 ms
// until then, so ctx must end with the wait.
func (m *Mirror) FollowWaiting(ctx context.Context, id controlmode.PaneID) <-chan Waiting {
	c := make(chan Waiting, 1)
	go func() {
		defer close(c)
		mod, err := m.onePane(ctx, id)
		if err != nil {
			return
		}
		var told Waiting
		m.watchWaiting(ctx, mod, id, nil, func(w Waiting) bool {
			if w.Settled && !w.same(told) {
				told = w
				select { // drop what was not read
				case <-c:
				default:
				}
				c <- w
			}
			return false
		})
	}()
	return c
}

// watchWaiting looks at a pane until f says yes, late fires, or the pane has
// gone.
func (m *Mirror) watchWaiting(ctx context.Context, mod *Model, id controlmode.PaneID, late <-chan time.Time, f func(Waiting) bool) error {
	began := time.Now()
	pane, asked := mod.Panes[0], began
	var last looked
	for {
		now := time.Now()
		newest := m.Model()
		if newest.Asked.After(mod.Asked) {
			p, ok := newest.Pane(id)
			if !ok || newest.Server.ID != mod.Server.ID {
				return m.gone(ctx, id, mod.Server.ID)
			}
			pane = p
		}
		w := m.lookAt(pane)
		// That a program shows the alternate screen is told by nobody.
		doubt := w.keys && now.Sub(asked) >= screenAge
		unsaid := w.For == WaitsDead && (!pane.Dead || pane.DeadStatus == "" && pane.DeadSignal == "")
		if doubt || unsaid && now.Sub(asked) >= lookRarely {
			// The process has ended before tmux said so, or said how, or has only begun.
			own, err := m.onePane(ctx, id)
			if err != nil {
				return err
			}
			mod, pane, asked = own, own.Panes[0], now
			continue
		}
		if !w.same(last.w) || last.since.IsZero() {
			last = looked{w, now}
		}
		if lasted := now.Sub(last.since); unsaid {
			w.Settled = lasted >= questionTime // tmux is not going to say so
		} else {
			w.Settled = w.Settled || lasted >= lookApart
		}
		if f(w) {
			return nil
		}
		every := lookApart
		if now.Sub(began) > lookOften {
			every = lookRarely
		}
		if over, err := m.untilNextLook(ctx, id, newest, every, late); over || err != nil {
			return err
		}
	}
}

// untilNextLook waits for the next time to look: a while, or less when the pane
// has printed or tmux has told of a change. over tells that late fired.
func (m *Mirror) untilNextLook(ctx context.Context, id controlmode.PaneID, mod *Model, every time.Duration, late <-chan time.Time) (over bool, err error) {
	const least = 5 * time.Millisecond // a pane that floods is not looked at for every line
	var printed <-chan struct{}
	if _, out := m.watches.liveStream(id); out != nil {
		printed = out.changed()
	}
	began := time.Now()
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return false, nil
		case <-late:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-printed:
			printed = nil
		case <-mod.Superseded():
			return false, nil
		}
		t.Reset(max(0, least-time.Since(began)))
	}
}

// gone finds out whether a pane that a model does not have has gone, or the
// server it was on.
func (m *Mirror) gone(ctx context.Context, id controlmode.PaneID, life ServerID) error {
	mod, err := m.onePane(ctx, id)
	switch {
	case err != nil:
		return err
	case mod.Server.ID != life:
		return ErrOtherServer
	}
	return fmt.Errorf("pane %s: %w", id, ErrNotFound)
}

// pasteMode is what the stream last set bracketed paste to, h or l, as far as it
// was received lately; 0 if unknown. Shells with a line editor set it while they
// read, except where the user has turned that off.
func (w *watches) pasteMode(id controlmode.PaneID) byte {
	_, out := w.liveStream(id)
	if out == nil {
		return 0
	}
	const far = 16 << 10
	out.mu.Lock()
	b := out.ring.copy(max(out.ring.start, out.ring.end-far), out.ring.end)
	out.mu.Unlock()
	set := []byte("\x1b[?2004")
	for i := bytes.LastIndex(b, set); i >= 0; i = bytes.LastIndex(b[:i], set) {
		if rest := b[i+len(set):]; len(rest) > 0 && (rest[0] == 'h' || rest[0] == 'l') {
			return rest[0]
		}
	}
	return 0
}
