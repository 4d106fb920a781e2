package mcp

import (
	"maps"
	"slices"
	"sync/atomic"

	"tmux-mcpd/state"
)

// knownLife is the life of the tmux server whose ids a connection has been told.
// Ids begin at 0 again when tmux is restarted, so that %3 of before is somebody
// else's pane (M01).
type knownLife struct{ atomic.Pointer[state.ServerID] }

// naming are the properties through which a call names something that exists.
var naming = []string{"paneId", "windowId", "session", "otherPaneId", "operations"}

// names tells whether a call of the tool can name something that exists.
func (t *tool) names() bool {
	return slices.ContainsFunc(t.params, func(p param) bool { return slices.Contains(naming, p.name) })
}

// begin notes what life of the server there is when a call of the tool comes, and
// refuses one that would change something if tmux was restarted since the
// connection was last told ids: what it names is not what it means. A read makes
// the connection know the ids of now.
func (c *call) begin(row *tool) error {
	known := c.caller.known
	if known == nil {
		return nil
	}
	c.life = c.table.mirror.Life()
	if c.life == (state.ServerID{}) || known.CompareAndSwap(nil, &c.life) {
		return nil
	}
	if row.toolset == inspect || !row.names() {
		return nil
	}
	return c.sameServer(c.life)
}

// sameServer refuses to change something on another life of the server than the
// one whose ids the connection has been told. A restart may be noticed only
// when tmux is asked, so a write asks this with the life that answered its first
// look.
func (c *call) sameServer(now state.ServerID) error {
	known := c.caller.known
	if known == nil {
		return nil
	}
	if told := known.Load(); told == nil || *told == now {
		return nil
	}
	return &problem{
		reason: "the tmux server was restarted since you last looked: the ids you have may name others now; nothing was done",
		hint:   "List again (list_panes), then call with the ids of now.",
	}
}

// learn notes that the connection has been told ids of this life. An answer
// during which tmux was restarted tells nothing for certain; the first
// attachment is no restart.
func (c *call) learn(row *tool, res *toolResult) {
	known := c.caller.known
	if known == nil || row.toolset != inspect || res.IsError {
		return
	}
	now := c.table.mirror.Life()
	if now != (state.ServerID{}) && (c.life == now || c.life == (state.ServerID{})) {
		known.Store(&now)
	}
}

// metaServer names in the metadata of answers the tmux server on which something
// was changed (M11).
const metaServer = "tmux-mcpd/server"

// located names the server in the answer of a tool that may have changed it.
func (t *table) located(row *tool, res *toolResult) *toolResult {
	life := t.mirror.Life()
	if row.toolset == inspect || life == (state.ServerID{}) {
		return res
	}
	named := *res
	named.Meta = maps.Clone(res.Meta)
	if named.Meta == nil {
		named.Meta = map[string]any{}
	}
	named.Meta[metaServer] = map[string]any{"socketPath": clean(t.mirror.SocketPath()), "pid": life.PID}
	return &named
}
