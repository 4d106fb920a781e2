package mcp

import "tmux-mcpd/state"

// change is a change of the journal as the caller may see it; false if the
// caller may not. Whatever enters or leaves the caller's sight is created or
// closed.
func (c *call) change(ch state.Change) (state.Change, bool) {
	p := c.policy
	if !p.restricted() || ch.Kind == state.ServerGone {
		return ch, true
	}
	was, is := state.LinksWithin(ch.Was, p.sees), state.LinksWithin(ch.Is, p.sees)
	if len(was) == 0 && len(is) == 0 {
		return ch, false
	}
	now := is
	if len(now) == 0 {
		now = was
	}
	session := now[0].Session
	ch.Session, ch.Was, ch.Is = &session, was, is
	entered := len(was) == 0 && ch.Kind != state.PersonAttached
	left := len(is) == 0 && ch.Kind != state.PersonLeft
	switch {
	case entered || left:
		return crossed(ch, entered)
	case ch.Kind == state.Moved && ch.Pane == nil:
		ch.Before, ch.After = state.Placements(was), state.Placements(is)
		return ch, ch.Before != ch.After
	}
	return ch, true
}

// crossed is the change for somebody who sees only one side of it: what moved or
// was renamed into sight is created, what went out of it closed.
func crossed(ch state.Change, entered bool) (state.Change, bool) {
	kinds := [2]state.ChangeKind{state.SessionClosed, state.SessionCreated}
	switch {
	case ch.Pane != nil:
		kinds = [2]state.ChangeKind{state.PaneClosed, state.PaneCreated}
	case ch.Window != nil:
		kinds = [2]state.ChangeKind{state.WindowClosed, state.WindowCreated}
	}
	kind := kinds[0]
	if entered {
		kind = kinds[1]
	}
	switch ch.Kind {
	case kind:
		return ch, true
	case state.Renamed: // the name on the other side is not the caller's to know
		if entered {
			ch.Before = ""
		} else {
			ch.After = ""
		}
	case state.Moved:
		ch.Before, ch.After = "", ""
	default:
		return ch, false
	}
	ch.Kind = kind
	return ch, true
}
