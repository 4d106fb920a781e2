package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// guards says what a write must be kept from (contract 3.1, promise P7).
type guards struct {
	// scope is what the write is about.
	scope state.Scope
	// pane is the target of input, which also must be alive, out of every mode
	// and take input; nil for an end of panes (respawn, kill), where only whose
	// panes they are matters.
	pane *controlmode.PaneID
	// one restricts an end to one pane of its window, so that it alone is checked.
	one *controlmode.PaneID
	// unlinks: what ends is a session, and windows that it shares live on.
	unlinks bool
	// force allows the caller's own pane. It allows nothing else.
	force bool
}

// inputTo guards input to a pane, and to the panes that are synchronised with it.
func inputTo(id controlmode.PaneID, force bool) guards {
	return guards{scope: state.PaneScope(id), pane: &id, force: force}
}

// endOfPane, endOfWindow and endOfSession guard the end of everything in them.
func endOfPane(id controlmode.PaneID, force bool) guards {
	return guards{scope: state.PaneScope(id), one: &id, force: force}
}

func endOfWindow(id controlmode.WindowID, force bool) guards {
	return guards{scope: state.WindowScope(id), force: force}
}

func endOfSession(id controlmode.SessionID, force bool) guards {
	return guards{scope: state.SessionScope(id), unlinks: true, force: force}
}

// guarded is a write that has been permitted, in the hands of the function that
// does it.
type guarded struct {
	call *call
	// panes are those that the write reaches, by id: the configured cohort of
	// input, all panes of an end. The first look found them.
	panes []*state.Pane
	model *state.Model // the panes and the clients, of one instant

	look  *state.Preflight
	wrote bool // something may have been run
}

// write runs commands in one line whose first command is the second look: they
// run only if nothing that was checked has changed. It may be called several
// times; every line looks again. Its errors are those of state.Mirror.Write, and
// after state.ErrChanged guard starts over unless something was written before.
func (g *guarded) write(ctx context.Context, cmds ...controlmode.Command) error {
	return g.note(g.call.table.mirror.Write(ctx, g.look, cmds...))
}

// note remembers from the error of a write whether something may have been run.
func (g *guarded) note(err error) error {
	var refused *controlmode.CommandError
	if err == nil || errors.Is(err, state.ErrUnknown) || errors.As(err, &refused) {
		g.wrote, g.call.wrote = true, true
	}
	return err
}

// ids are the ids of the panes that the write reaches.
func (g *guarded) ids() []controlmode.PaneID {
	ids := make([]controlmode.PaneID, len(g.panes))
	for i, p := range g.panes {
		ids[i] = p.ID
	}
	return ids
}

// maxLooks is how often a write is tried whose checks keep changing. A change
// need not be anybody's: a client of our own that attaches is one.
const maxLooks = 5

// guard is the way to every write to panes, in the order of contract 3.1: look
// and check; take the turn of every pane that the write reaches; then write,
// which looks again in the instant of the write and does nothing if what was
// found differs. In that case all of it is done again, as nothing was written.
//
// The first look for input may be that of the write before, which is checked
// anew for this caller: if it does not hold any more, the second look finds that.
//
// write must send everything through guarded.write. The turns are given back
// when it returns. The error is a *problem where the write is refused.
func (c *call) guard(ctx context.Context, what guards, write func(*guarded) error) error {
	for try := 1; ; try++ {
		g, err := c.plan(ctx, what, try == 1)
		if err != nil {
			return err
		}
		give, err := c.table.turns.take(ctx, g.ids()...)
		if errors.Is(err, errTurn) {
			return &problem{
				reason: fmt.Sprintf("pane %s is busy: %s; nothing was sent", g.panes[0].ID, err),
				hint:   "Try again in a moment.",
			}
		}
		if err != nil {
			return err
		}
		err = write(g)
		give()
		if !errors.Is(err, state.ErrChanged) || g.wrote {
			return err
		}
		if try == maxLooks {
			return &problem{
				reason: "what was checked changed during setup; no input was sent and nothing was done",
				hint:   "Look at the pane with snapshot_pane and try again.",
			}
		}
	}
}

// plan is the first look, and its checks. A look that is recalled refuses
// nothing.
func (c *call) plan(ctx context.Context, what guards, recall bool) (*guarded, error) {
	signature := state.EndSignature
	if what.pane != nil {
		signature = state.InputSignature
	}
	if recall && what.pane != nil {
		if look := c.table.mirror.Recall(what.scope, signature); look != nil {
			if g, err := c.permitted(ctx, what, look); err == nil {
				return g, nil
			}
		}
	}
	look, err := c.table.mirror.Preflight(ctx, what.scope, signature)
	if err != nil {
		return nil, err
	}
	return c.permitted(ctx, what, look)
}

// permitted checks what a look has found.
func (c *call) permitted(ctx context.Context, what guards, look *state.Preflight) (*guarded, error) {
	if err := c.sameServer(look.Model.Server.ID); err != nil {
		return nil, err
	}
	g := &guarded{call: c, look: look, model: look.Model, panes: look.Model.Panes}
	target := what.one
	if what.pane != nil {
		target = what.pane
	}
	if target != nil {
		// The look shows one placement, which need not be the one in sight.
		if err := c.arrival.see(ctx, *target); err != nil {
			return nil, err
		}
		p, ok := g.model.Pane(*target)
		if !ok {
			return nil, fmt.Errorf("pane %s: %w", *target, state.ErrNotFound)
		}
		g.panes = []*state.Pane{p}
	}
	if what.pane != nil {
		g.panes = cohort(g.model, g.panes[0])
	}
	v := c.views(g.model)
	if p := v.callerProblem(); p != nil {
		return nil, p
	}
	for _, p := range g.panes {
		err := v.whose(p, what.force)
		if err == nil && what.pane != nil {
			err = receives(p)
		}
		if err == nil {
			continue
		}
		if what.pane != nil && p.ID != *what.pane {
			err.reason += fmt.Sprintf(" (synchronize-panes sends input for %s there, too)", *what.pane)
		}
		return nil, err
	}
	if what.pane == nil && !what.unlinks {
		return g, c.alone(ctx, extent{windows: windowsOf(g.panes)})
	}
	return g, nil
}

func windowsOf(panes []*state.Pane) []controlmode.WindowID {
	var ids []controlmode.WindowID
	for _, p := range panes {
		if !slices.Contains(ids, p.Window) {
			ids = append(ids, p.Window)
		}
	}
	return ids
}

// cohort is the panes that input for a pane reaches: itself, and where
// synchronize-panes is on for it every pane of its window that has it on.
func cohort(m *state.Model, p *state.Pane) []*state.Pane {
	if !p.Synced {
		return []*state.Pane{p}
	}
	var all []*state.Pane
	for _, o := range m.Panes {
		if o.Window == p.Window && o.Synced {
			all = append(all, o)
		}
	}
	return all
}

// whose refuses panes that are the caller's own or that a person looks at.
func (v *views) whose(p *state.Pane, force bool) *problem {
	if client := v.model.LookingAt(p); client != nil {
		reason := fmt.Sprintf("pane %s is attended: a person is looking at it", p.ID)
		if !v.policy.restricted() { // it may look through a session that is not the caller's to know
			reason += " on " + inline(client.Name)
		}
		return &problem{
			reason: reason,
			hint:   "It is left to them; force does not change that. Use another pane, or ask the person to look elsewhere.",
		}
	}
	if v.isCaller(p) && !force {
		return &problem{
			reason: fmt.Sprintf("pane %s is your own: this call comes from a process in it", p.ID),
			hint:   "What is typed there reaches yourself, and what ends it ends you. If that is meant, set force to true.",
		}
	}
	return nil
}

// receives refuses panes whose program would not get input.
func receives(p *state.Pane) *problem {
	switch {
	case p.Dead:
		return &problem{reason: fmt.Sprintf("pane %s is dead: %s", p.ID, howEnded(p)), hint: "respawn_pane starts its command again."}
	case p.InMode > 0:
		return &problem{
			reason: fmt.Sprintf("pane %s is in %s, which would swallow the input", p.ID, mode(p)),
			hint:   "Somebody may be reading there. It ends when they leave it; reads work meanwhile.",
		}
	case p.InputOff:
		return &problem{reason: fmt.Sprintf("input to pane %s is disabled", p.ID), hint: "select-pane -e enables it; that is for the person who disabled it."}
	}
	return nil
}

func mode(p *state.Pane) string {
	if p.Mode == "" {
		return "a mode"
	}
	return inline(p.Mode)
}

// howEnded tells a dead pane's exit status or signal, and when.
func howEnded(p *state.Pane) string {
	s := "its process has ended"
	switch {
	case p.DeadSignal != "":
		s += " by signal " + inline(p.DeadSignal)
	case p.DeadStatus != "":
		s += " with status " + inline(p.DeadStatus)
	}
	if p.DeadTime > 0 {
		s += " at " + time.Unix(p.DeadTime, 0).UTC().Format(time.RFC3339)
	}
	return s
}

// callerProblem tells a caller whose environment contradicts itself, so that
// nobody knows which pane is its own. Process ancestry that leads to a pane
// settles it all the same.
func (v *views) callerProblem() *problem {
	bad := badContext(v.context)
	if bad == "" || slices.ContainsFunc(v.model.Panes, func(p *state.Pane) bool { return !p.Dead && slices.Contains(v.ancestors, p.PID) }) {
		return nil
	}
	return &problem{
		reason: "it is unknown which pane this call comes from: " + bad + "; no input is sent from such a caller",
		hint:   "The environment was fixed when the client started tmux-mcpd. Start it with both TMUX and TMUX_PANE as tmux set them, or with neither.",
	}
}

// badContext says what is wrong with a caller's TMUX and TMUX_PANE, "" for
// nothing. That they name another server or a pane that is gone is not wrong:
// they are inherited by processes that have left their pane (M11).
func badContext(h *Hello) string {
	switch {
	case h == nil || h.TMUX == "" && h.TMUXPane == "":
		return ""
	case h.TMUXPane == "":
		return "TMUX is set and TMUX_PANE is not"
	case h.TMUX == "":
		return "TMUX_PANE is set and TMUX is not"
	case !isPaneID(h.TMUXPane):
		return "TMUX_PANE is " + quote(h.TMUXPane) + ", which is no pane id"
	case strings.Count(h.TMUX, ",") < 2:
		return "TMUX is " + quote(h.TMUX) + ", which is not PATH,PID,SESSION"
	}
	return ""
}
