package mcp

import (
	"context"
	"fmt"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// extent is what a change of tmux is to, as far as it can be shared between
// sessions: a window that is linked, or a session whose group has all its windows
// in common.
type extent struct {
	windows []controlmode.WindowID  // are, or end, otherwise than before
	fills   []controlmode.SessionID // get a window, and so does their group
}

// alone refuses a change to what also lives in a session that does not exist for
// the caller: it may be read there and typed into, no more. Which session that is
// the caller must not learn. It looks anew, as the call may have waited.
func (c *call) alone(ctx context.Context, e extent) error {
	if !c.policy.restricted() || len(e.windows)+len(e.fills) == 0 {
		return nil
	}
	const tables = state.Windows | state.Sessions
	all, err := c.table.mirror.Arrive(tables).Model(ctx, tables)
	if err != nil {
		return err
	}
	for _, id := range e.windows {
		if w, ok := all.Window(id); ok && len(state.LinksWithin(w.Links, c.policy.sees)) < len(w.Links) {
			return shared("window " + id.String() + " is")
		}
	}
	for _, id := range e.fills {
		s, ok := all.Session(id)
		if !ok || s.Group == "" {
			continue
		}
		for _, o := range all.Sessions {
			if o.Group == s.Group && !c.policy.visible(o.Name) {
				return shared("the windows of session " + id.String() + " are")
			}
		}
	}
	return nil
}

func shared(what string) error {
	return &problem{
		reason: fmt.Sprintf("%s shared with a session outside those that this socket is limited to; nothing was changed", what),
		hint:   "Its panes can be read and given input. Anything else is for somebody who sees both sides.",
	}
}
