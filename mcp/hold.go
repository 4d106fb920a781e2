package mcp

import (
	"context"
	"fmt"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

func holdParam() param {
	return param{
		name: "waitReadyMs", kind: kindInteger, added: true,
		doc: "If what runs in the pane does not read input now, wait at most this many milliseconds until it does, and type nothing if " +
			"it does not. Default 0: type at once.",
	}
}

// hold waits until what a pane waits for satisfies ready, at most as long as
// the caller has asked for. A pane that is dead is left to the guards, which say
// so. The pane is looked at by the guards after it, so a person who comes to look
// at it meanwhile still keeps the input out.
func (c *call) hold(ctx context.Context, id controlmode.PaneID, ms int64, ready func(state.WaitingFor) bool) error {
	if ms <= 0 {
		return nil
	}
	limit := c.wait(ms)
	w, err := c.table.mirror.AwaitWaiting(ctx, id, limit, func(w state.Waiting) bool {
		return w.For == state.WaitsDead || ready(w.For)
	})
	switch {
	case err != nil:
		return err
	case w.Settled && (w.For == state.WaitsDead || ready(w.For)):
		return nil
	}
	return &problem{
		reason: fmt.Sprintf("pane %s did not read input within %d ms, nothing was typed: it is %s", id, limit.Milliseconds(), waitingText(w)),
		hint:   "Hold it longer, or look with snapshot_pane what goes on there.",
	}
}

// readsInput tells whether a program takes what is typed now.
func readsInput(w state.WaitingFor) bool {
	return w == state.WaitsLine || w == state.WaitsPassword || w == state.WaitsFullscreen || atPrompt(w)
}

func atPrompt(w state.WaitingFor) bool { return w == state.WaitsPrompt }
