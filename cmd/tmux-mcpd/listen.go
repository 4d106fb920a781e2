package main

import (
	"encoding/json"

	"tmux-mcpd/mcp"
)

// acknowledged is the method by which a daemon says what it will tell of on behalf
// of a subscriptions/listen.
const acknowledged = "notifications/subscriptions/acknowledged"

// heard notes that a daemon has agreed to a request that stays open, and tells
// whether the client is to know: only of the first daemon. Of a later one the
// client learns that everything may have changed meanwhile. Such a request is
// asked of every daemon, however many there are.
func (r *relay) heard(params json.RawMessage) bool {
	var ack struct {
		Meta map[string]json.RawMessage `json:"_meta"`

		Notifications struct {
			ToolsListChanged, ResourcesListChanged bool
			ResourceSubscriptions                  []string
		}
	}
	if json.Unmarshal(params, &ack) != nil {
		return true
	}
	id := ack.Meta["io.modelcontextprotocol/subscriptionId"]
	r.mu.Lock()
	q := r.asked[string(id)]
	again := q != nil && q.lasts
	agreed := &ack.Notifications
	if q != nil && (agreed.ToolsListChanged || agreed.ResourcesListChanged || len(agreed.ResourceSubscriptions) > 0) {
		q.lasts, q.tries = true, 0
	}
	r.mu.Unlock()
	if !again {
		return true
	}
	uris := agreed.ResourceSubscriptions
	if agreed.ResourcesListChanged {
		uris = append(uris, "")
	}
	for _, uri := range uris {
		if r.tell(mcp.Updated(uri, id)) != nil {
			break // a client that is gone will be noticed
		}
	}
	return false
}
