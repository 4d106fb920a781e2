package mcp

import (
	"context"

	"tmux-mcpd/state"
)

// metaState is the key of what a pane waits for.
const metaState = "tmux-mcpd/state"

// waitingState is the value under metaState (contract section 11).
type waitingState struct {
	WaitingFor state.WaitingFor `json:"waitingFor"`
	Evidence   string           `json:"evidence"`
}

// withState adds what a pane waits for to an answer's metadata. The evidence
// holds names of programs, which can be anything.
func withState(res *toolResult, w state.Waiting) *toolResult {
	if res.Meta == nil {
		res.Meta = map[string]any{}
	}
	res.Meta[metaState] = waitingState{w.For, inline(w.Evidence)}
	return res
}

// waitingText is a state in the words of a text half, on one line.
func waitingText(w state.Waiting) string {
	return "waiting for " + string(w.For) + ": " + inline(w.Evidence)
}

// waiting is what a pane that was read just now waits for.
func (c *call) waiting(ctx context.Context, p *state.Pane) state.Waiting {
	return c.table.mirror.WaitingOf(ctx, p)
}
