package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// seedRows is how much history a transcript starts with.
const seedRows = 2000

// seedCmds ask for all a transcript starts from; they must run in one line.
// capture-pane -a is about the saved screen while the alternate one is shown,
// and with -q silent otherwise.
func seedCmds(id controlmode.PaneID) []controlmode.Command {
	capture := func(args ...string) controlmode.Command {
		return controlmode.Cmd("capture-pane", append(args, "-t", id.String())...)
	}
	from := strconv.Itoa(-seedRows)
	return []controlmode.Command{
		controlmode.Cmd("display-message", "-p", "-t", id.String(), seedListing.format),
		capture("-p", "-e", "-N", "-S", from),
		capture("-p", "-J", "-S", from),
		capture("-p", "-q", "-a", "-e", "-N"),
		capture("-p", "-q", "-a", "-J"),
		capture("-p", "-P", "-C"),
	}
}

// paneSeed is the answer to seedCmds.
type paneSeed struct {
	transcript.SeedState
	options transcript.Options
	pid     int
	dead    bool
	// activity is when tmux last read from a pane of the window, seconds.
	activity int64
	died     death
}

func readSeed(id controlmode.PaneID, blocks []controlmode.BlockEnd) (*paneSeed, error) {
	s, err := readSeedWords(id, blocks[0])
	if err != nil {
		return nil, err
	}
	s.Styled, s.Joined = blocks[1].Body, blocks[2].Body
	s.SavedStyled, s.SavedJoined, s.Pending = blocks[3].Body, blocks[4].Body, blocks[5].Body
	if s.dead {
		s.died.shown = s.digest()
	}
	return s, nil
}

// readSeedWords reads what a seed has besides captures.
func readSeedWords(id controlmode.PaneID, b controlmode.BlockEnd) (*paneSeed, error) {
	var s *paneSeed
	err := seedListing.each(b.Body, func(r *row) {
		if !r.has(0) {
			return
		}
		saved := func(i int) int { // tmux prints UINT_MAX for none
			if n := r.num64(i); n < math.MaxInt32 {
				return int(n)
			}
			return -1
		}
		s = &paneSeed{
			SeedState: transcript.SeedState{
				Width: r.num(1), Height: r.num(2), CursorX: r.num(3), CursorY: r.num(4), Upper: r.num(5), Lower: r.num(6),
				Wrap: r.flag(7), Insert: r.flag(8), Origin: r.flag(9), Alternate: r.flag(10),
				AlternateX: saved(11), AlternateY: saved(12), HistorySize: r.num(13), HistoryLimit: r.num(14),
				Tabs: r.text(0),
			},
			options: transcript.Options{AlternateScreen: !r.has(17) || r.on(17), ScrollOnClear: !r.has(18) || r.on(18)},
			pid:     r.num(15), dead: r.flag(16), activity: r.num64(19),
		}
		if s.dead && r.has(20) {
			s.died.at = r.num64(20)
			s.died.final = b.Guard.Time > uint64(s.died.at)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("seed of %s: %w", id, err)
	}
	if s == nil {
		return nil, fmt.Errorf("pane %s: %w", id, ErrNotFound)
	}
	return s, nil
}

// deathNotice begins what tmux writes into the last row of a pane that is kept
// after its process has ended (the default of remain-on-exit-format).
const deathNotice = "Pane is dead"

// withoutNotice takes tmux's own words about the death from a dead pane's rows: no
// program printed them. tmux marks the row above as wrapped (server-fn.c,
// server_destroy_pane), so in the joined capture they end that row's line.
func (s *paneSeed) withoutNotice() {
	styled := bytes.TrimSuffix(s.Styled, []byte("\n"))
	at := bytes.LastIndexByte(styled, '\n') + 1
	row, _ := transcript.Unstyle(string(styled[at:]), false)
	row = strings.TrimRight(row, " ")
	joined := bytes.TrimRight(s.Joined, " \n")
	if !s.dead || !strings.HasPrefix(row, deathNotice) || !bytes.HasSuffix(joined, []byte(row)) {
		return
	}
	joined = joined[:len(joined)-len(row)]
	if len(joined) > 0 && joined[len(joined)-1] != '\n' {
		joined = append(slices.Clone(joined), '\n')
	}
	s.Styled, s.Joined = append(slices.Clone(styled[:at]), '\n'), append(slices.Clone(joined), '\n')
}

// begin starts a new epoch of a pane on its owner: in one line the pane's output
// is let through and its screen asked for; the epoch begins where the first
// question does, so the transcript starts exactly there. The caller holds the
// turn.
func (w *watches) begin(ctx context.Context, s *stream, p *watch, pid int, reason GapReason) error {
	id := p.out.pane
	w.own(p, s)
	lead := s.unmute(id)
	s.route(id, p.out)
	err := w.seed(ctx, s, p.out, lead, transcript.Interrupted, func() int64 {
		return p.out.begin(s.server.ID, pid, reason).Offset
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", id, err)
	}
	w.watchProcess(s, p, pid)
	return nil
}

// bury ends the log of a pane whose process has ended with what the pane shows:
// its last output may be on the screen without having been delivered
// (control-mode 3.4). Nothing is delivered any more, so any connection may be
// asked. The caller holds the turn.
func (w *watches) bury(ctx context.Context, mod *Model, p *watch, pane *Pane, reason GapReason) error {
	w.mu.Lock()
	if mod.Asked.After(p.began) { // older models say that it lives, and would have it let through again
		p.began = mod.Asked
	}
	w.mu.Unlock()
	at := p.out.bury(mod.Server.ID, pane.PID, reason)
	defer p.out.release(at)
	blocks, err := w.m.onStructure(context.WithoutCancel(ctx), controlmode.Request{Commands: seedCmds(pane.ID), Fence: true})
	if err != nil {
		return fmt.Errorf("read the last screen of %s: %w", pane.ID, err)
	}
	s, err := readSeed(pane.ID, blocks)
	if err == nil {
		s.withoutNotice()
		err = p.out.start(s, at, transcript.ProfileFor(mod.Server.Version), transcript.Interrupted)
	}
	return err
}

// own makes s the client that delivers the pane.
func (w *watches) own(p *watch, s *stream) {
	w.mu.Lock()
	old := p.stream
	p.stream, p.began = s, time.Now()
	w.mu.Unlock()
	if old != nil && old != s {
		old.route(p.out.pane, nil)
		p.out.finish(s.server.ID, GapOwnerChanged)
	}
}

// reseed asks tmux for the screen again and starts the transcript anew from it,
// without ending the stream: after a resize, or where an audit found a
// difference. The caller holds the turn.
func (w *watches) reseed(ctx context.Context, s *stream, out *Output, why transcript.Reason) error {
	if err := w.seed(ctx, s, out, nil, why, out.hold); err != nil {
		return fmt.Errorf("read the screen of %s again: %w", out.pane, err)
	}
	return nil
}

// seed runs lead and seedCmds in one line. mark is called where the first of
// them begins and answers the offset there; until the transcript has been
// started from it, output is only kept. It does not end with ctx: the request's
// own deadline is enough, and a transcript half begun would have to be begun
// again.
func (w *watches) seed(ctx context.Context, s *stream, out *Output, lead []controlmode.Command,
	why transcript.Reason, mark func() int64,
) error {
	at := int64(-1)
	blocks, err := s.ask(context.WithoutCancel(ctx), controlmode.Request{
		Commands: append(lead, seedCmds(out.pane)...), Fence: true,
		Begin: func(i int) {
			if i == len(lead) {
				at = mark()
			}
		},
	})
	if err != nil {
		out.release(at)
		return err
	}
	seed, err := readSeed(out.pane, blocks[len(lead):])
	switch {
	case err != nil:
	case seed.dead && why != transcript.Interrupted:
		// It has ended just now: what it shows besides is news, see bury.
		nudge(w.m.hint)
		out.release(at)
	default:
		if was, ok := w.saved(s.server.ID, out.pane); ok && out.resume(seed, was) {
			at = was.End
			w.goneOn(was)
		}
		seed.withoutNotice()
		err = out.start(seed, at, transcript.ProfileFor(s.server.Version), why)
	}
	if err != nil {
		out.release(at)
		if errors.Is(err, transcript.ErrSeed) {
			w.m.log.Error("seed", zap.Stringer("pane", out.pane), zap.Error(err))
		}
	}
	return err
}

// watchProcess has the pane paused as soon as tmux has noticed that its process
// has ended: a dead pane must be paused before anybody respawns it, or an old
// tmux can crash (control-mode 12.1). It waits for no refresh and no turn, which
// on a busy machine can take longer than a user's hand.
func (w *watches) watchProcess(s *stream, p *watch, pid int) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.mu.Lock()
	if p.forget != nil {
		p.forget()
	}
	p.forget = cancel
	w.mu.Unlock()
	w.wg.Go(func() {
		defer cancel()
		if !awaitExit(ctx, pid) {
			return
		}
		for wait := 2 * time.Millisecond; wait < time.Second; wait *= 2 {
			if dead, err := w.pauseDead(ctx, s, p.out, pid); dead || err != nil {
				nudge(w.m.hint) // for the rest
			}
			if !p.out.live(pid) || !pause(ctx, wait) {
				return
			}
		}
	})
}

// pauseDead pauses a pane if it is dead.
func (w *watches) pauseDead(ctx context.Context, s *stream, out *Output, pid int) (dead bool, err error) {
	blocks, err := s.ask(ctx, controlmode.Request{Commands: []controlmode.Command{
		controlmode.Cmd("display-message", "-p", "-t", out.pane.String(), "#{pane_dead}"),
	}, Fence: true})
	if err != nil || string(bytes.TrimSpace(blocks[0].Body)) != "1" || !out.live(pid) {
		return false, err
	}
	if err := s.pauseNow(ctx, out.pane); err != nil {
		return true, err
	}
	if !out.live(pid) {
		// Somebody has respawned it, and begun to watch that process, in between:
		// its output may be what has been paused away.
		out.finish(s.server.ID, GapPaused)
		w.poke()
	}
	return true, nil
}

// pauseNow pauses one pane, watched or not; until it has answered, what tmux
// still delivers goes where it went.
func (s *stream) pauseNow(ctx context.Context, id controlmode.PaneID) error {
	s.mu.Lock()
	s.muted[id] = true
	s.mu.Unlock()
	_, err := s.proc.Do(ctx, controlmode.Request{
		Commands: []controlmode.Command{refreshClient("pause", id)}, Fence: true,
	})
	return err
}
