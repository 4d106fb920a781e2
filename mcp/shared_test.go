package mcp

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// limitedTo makes the rig's caller one of a socket that is limited to sessions.
func (r *rig) limitedTo(socket string, sessions ...string) {
	r.Helper()
	p, err := newPolicy(r.table, PolicyConfig{Sessions: sessions, Toolsets: []string{"inspect", "manage", "execute", "teardown"}})
	if err != nil {
		r.Fatal(err)
	}
	r.caller = &Caller{policy: p, socket: socket}
}

// Channels of a socket with a limited sight are its own: the same name on another
// one, or in tmux itself, is another channel, and nobody is told what tmux calls
// it.
func TestChannelsOfSockets(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "agent-1", "cat")
	sockets := map[string]func(){
		"limited": func() { r.limitedTo("/run/one", "agent-*") },
		"other":   func() { r.limitedTo("/run/two", "agent-*") },
		"open":    func() { r.caller = &Caller{socket: "/run/three"} },
	}
	signalled := func() bool {
		res := r.call("wait_for_channel", args{"channel": "built", "timeoutMs": 1})
		if !strings.Contains(res.Text, `channel "built"`) || strings.Contains(res.Text, ChannelPrefix("")[:10]) {
			t.Errorf("the name is not what it was called: %s", res.Text)
		}
		return !res.IsError
	}
	for _, from := range slices.Sorted(maps.Keys(sockets)) {
		sockets[from]()
		if v := r.ok("signal_channel", args{"channel": "built"}); v["channel"] != "built" {
			t.Errorf("%v", v)
		}
		for _, to := range slices.Sorted(maps.Keys(sockets)) {
			if to == from {
				continue
			}
			if sockets[to](); signalled() {
				t.Errorf("a signal of %s came to %s", from, to)
			}
		}
		sockets[from]()
		if v := r.ok("wait_for_channel", args{"channel": "built"}); v["channel"] != "built" {
			t.Errorf("%v", v)
		}
	}
	// A script that is to be heard says the name in tmux, over restarts the same.
	sockets["limited"]()
	r.tmux("wait-for", "-S", ChannelPrefix("/run/one")+"built")
	r.ok("wait_for_channel", args{"channel": "built"})
	if got := ChannelPrefix("/run/one"); got != "tmux-mcpd/8ef978201fd2/" {
		t.Errorf("the prefix is %s", got)
	}
}

// onShared says what every tool that is not of inspect may do through a socket
// that sees only one of the sessions that have a window in common: nothing that
// the other session would see, but input.
var onShared = map[string]struct {
	refused args // is to what is shared
	allowed args // is not, or is only input
}{
	"rename_window":         {refused: args{"windowId": "@0", "name": "x"}},
	"rename_session":        {allowed: args{"session": "agent-1", "name": "agent-1b"}},
	"move_window":           {refused: args{"windowId": "@0", "session": "agent-2"}},
	"set_pane_title":        {refused: args{"paneId": "%0", "title": "x"}},
	"select_pane":           {refused: args{"paneId": "%1"}},
	"select_window":         {allowed: args{"windowId": "@0"}},
	"swap_pane":             {refused: args{"paneId": "%2", "otherPaneId": "%0"}},
	"resize_pane":           {refused: args{"paneId": "%0", "height": 5}},
	"resize_window":         {refused: args{"windowId": "@0", "width": 70, "height": 20}},
	"select_layout":         {refused: args{"windowId": "@0", "layout": "tiled"}},
	"set_history_limit":     {refused: args{"lines": 9}},
	"set_mouse_enabled":     {refused: args{"enabled": true}},
	"set_synchronize_panes": {refused: args{"windowId": "@0", "enabled": true}},
	"wait_for_channel":      {allowed: args{"channel": "c", "timeoutMs": 1}},
	"signal_channel":        {allowed: args{"channel": "c"}},
	"send_keys":             {allowed: args{"paneId": "%0", "keys": "x", "enter": false}},
	"send_keys_batch":       {allowed: args{"operations": []any{args{"pane_id": "%0", "keys": "x", "enter": false}}}},
	"paste_text":            {allowed: args{"paneId": "%0", "text": "x"}},
	"run_shell_command":     {refused: args{"paneId": "%0", "command": "true", "newPane": true}},
	"interrupt_run":         {}, // of a run in the pane: input
	"create_session":        {allowed: args{"name": "agent-9"}},
	"create_window":         {allowed: args{"session": "agent-1"}},
	"split_window":          {refused: args{"paneId": "%0"}},
	"respawn_pane":          {refused: args{"paneId": "%0", "killFirst": true}},
	"clear_pane_scrollback": {refused: args{"paneId": "%0"}},
	"kill_pane":             {refused: args{"paneId": "%1"}},
	"kill_window":           {refused: args{"windowId": "@0"}},
	"kill_session":          {allowed: args{"session": "agent-1b"}}, // last: what it shares lives on
}

// shapeOf is what a session looks like.
func (r *rig) shapeOf(session string) string {
	return r.tmux("list-panes", "-s", "-t", "="+session, "-F",
		"#{window_index} #{window_id} #{window_name} #{window_layout} #{pane_id} #{pane_pid} #{pane_title} #{pane_active} #{pane_synchronized} #{history_size}")
}

// A window that also lives in a session which does not exist for the caller can be
// read and given input, and is not changed.
func TestSharedWindowIsNotChanged(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "agent-1", "-x", "80", "-y", "24", "-n", "shared", "cat", ";", "split-window", "-d", "-t", "agent-1:", "cat", ";",
		"new-window", "-d", "-t", "agent-1:", "cat", ";", "new-session", "-d", "-s", "agent-2", "cat", ";",
		"new-session", "-d", "-s", "zqprivate", "cat", ";", "link-window", "-d", "-s", "agent-1:shared", "-t", "zqprivate:7")
	r.limitedTo("/s", "agent-*")
	before := r.shapeOf("zqprivate")
	unchanged := func(what string) {
		t.Helper()
		if now := r.shapeOf("zqprivate"); now != before {
			t.Errorf("%s: the other session was\n%s\nand is\n%s", what, before, now)
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.table.byName)), func(name string) bool {
		return r.table.byName[name].toolset == inspect || name == "kill_session" || name == "rename_session"
	})
	for _, name := range append(names, "rename_session", "kill_session") {
		row, known := onShared[name]
		if !known {
			t.Errorf("%s: nobody has said what it may do to a shared window", name)
		}
		if row.refused != nil {
			res := r.call(name, row.refused)
			if !res.IsError || !strings.Contains(res.Text, "shared with a session outside") && !strings.Contains(res.Text, "outside the sessions") {
				t.Errorf("%s %v: %s", name, row.refused, res.Text)
			}
			if strings.Contains(res.Text, "zq") {
				t.Errorf("%s tells with whom: %s", name, res.Text)
			}
		}
		if row.allowed != nil {
			if res := r.call(name, row.allowed); res.IsError && name != "wait_for_channel" {
				t.Errorf("%s %v: %s", name, row.allowed, res.Text)
			}
		}
		unchanged(name)
	}
	if len(onShared) != len(names)+2 {
		t.Errorf("%d tools are told of, there are %d", len(onShared), len(names)+2)
	}
	// What nobody else sees, and what somebody who sees both changes, is changed.
	r.ok("rename_window", args{"windowId": "@2", "name": "own"})
	r.caller = &Caller{}
	r.ok("rename_window", args{"windowId": "@0", "name": "both"})
	if r.shapeOf("zqprivate") == before {
		t.Error("what is compared does not tell of changes")
	}
}

// Sessions of a group have all their windows in common.
func TestGroupWithHiddenSessionIsNotChanged(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "agent-1", "-x", "80", "-y", "24", "cat", ";", "new-window", "-d", "-t", "agent-1:", "cat", ";",
		"new-session", "-d", "-s", "zqprivate", "-t", "agent-1", ";", "new-session", "-d", "-s", "agent-2", "-n", "own", "cat", ";",
		"new-session", "-d", "-s", "agent-3", "-t", "agent-2")
	r.limitedTo("/s", "agent-*")
	before := r.shapeOf("zqprivate")
	own, linked := r.tmux("display-message", "-p", "-t", "agent-2:", "#{window_id}"), r.tmux("display-message", "-p", "-t", "agent-1:1", "#{window_id}")
	const why = "shared with a session outside"
	r.refused("create_window", args{"session": "agent-1"}, why)
	r.refused("move_window", args{"windowId": own, "session": "agent-1", "sourceSession": "agent-2", "sourceIndex": 0}, why)
	r.refused("move_window", args{"windowId": linked, "index": 5}, why)
	r.refused("rename_window", args{"windowId": linked, "name": "x"}, why)
	r.refused("kill_window", args{"windowId": linked}, why)
	r.refused("kill_pane", args{"paneId": "%1"}, why)
	if now := r.shapeOf("zqprivate"); now != before {
		t.Errorf("the other session was\n%s\nand is\n%s", before, now)
	}
	// A group of which the caller sees every session is his.
	r.ok("create_window", args{"session": "agent-2"})
	r.ok("rename_window", args{"windowId": own, "name": "renamed"})
	r.ok("kill_window", args{"windowId": own})
	r.ok("kill_session", args{"session": "agent-1"})
	if now := r.shapeOf("zqprivate"); now != before {
		t.Errorf("after the end of the session in sight the other was\n%s\nand is\n%s", before, now)
	}
}
