package state

import (
	"context"
	"crypto/sha256"
	"fmt"

	"tmux-mcpd/controlmode"
)

// death is what tells the end of a pane's process from the end of the next one.
// tmux 3.8 has no pid for a dead pane, and the second in which a process ended
// may be that of another one, respawned in between.
type death struct {
	at    int64 // when the process ended, seconds; 0 while it lives and before tmux 3.3
	final bool  // tmux told it in a later second: no other process ended in that one
	shown [sha256.Size]byte
}

// digest is of all that tmux shows. Every death of a pane adds a row to it (tmux's
// notice scrolls the screen), so that even a program that prints the same again
// is told from the one before, unless remain-on-exit-format is empty.
func (s *paneSeed) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %d %d %t\n%d %d\n", s.Width, s.Height, s.CursorX, s.CursorY, s.HistorySize, s.Alternate, len(s.Styled), len(s.SavedStyled))
	h.Write(s.Styled)
	h.Write(s.SavedStyled)
	h.Sum(sum[:0])
	return sum
}

// sameDeath tells whether the log ended with the death tmux tells now. That the
// screen differs is taken for another death: a gap too many is better than none.
func (o *Output) sameDeath(now death) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.died.at != now.at || !o.died.final && o.died.shown != now.shown {
		return false
	}
	o.died.final = o.died.final || now.final
	return true
}

// deathUnsure tells whether the log ended with a death after which, in the same
// second, another one may have come.
func (o *Output) deathUnsure() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.epochs) > 0 && !o.open && o.died.at != 0 && !o.died.final
}

// sameDeath asks tmux whether the process that ended last is the one the log
// ended with.
func (m *Mirror) sameDeath(ctx context.Context, out *Output) (bool, error) {
	unsure, cmds := out.deathUnsure(), seedCmds(out.pane)
	if !unsure {
		cmds = cmds[:1]
	}
	blocks, err := m.onStructure(ctx, controlmode.Request{Commands: cmds, Fence: true})
	if err != nil {
		return false, err
	}
	var s *paneSeed
	if unsure {
		s, err = readSeed(out.pane, blocks)
	} else {
		s, err = readSeedWords(out.pane, blocks[0])
	}
	if err != nil {
		return false, err
	}
	if !s.dead { // another process runs already
		nudge(m.hint)
	}
	return out.sameDeath(s.died), nil
}

// deadPane makes the log of a dead pane end with what the pane shows, if it has
// not done so for this process. The caller holds the turn.
func (m *Mirror) deadPane(ctx context.Context, mod *Model, p *watch, pane *Pane, reason GapReason) error {
	switch {
	case p.out.live(0):
		return m.watches.died(ctx, mod, p, pane)
	case !p.out.sameProcess(pane.PID):
		if p.out.known() {
			reason = GapRespawned
		}
	case pane.PID != 0:
		return nil
	default: // tmux 3.8 does not say which process it was
		if same, err := m.sameDeath(ctx, p.out); same || err != nil {
			return err
		}
		reason = GapRespawned
	}
	return m.watches.bury(ctx, mod, p, pane, reason)
}
