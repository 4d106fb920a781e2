package integration

import (
	"strings"
	"testing"
)

// TestP6DaemonChangesNothing: a daemon that attaches, reads and watches
// everything it can, and leaves, changes no size, environment, focus, mode,
// option, buffer or client of anybody.
func TestP6DaemonChangesNothing(t *testing.T) {
	x := startTmux(t)
	x.run("split-window", "-t", "%0", "-h", "exec cat")                                         // %1, active
	x.run("new-window", "-d", "-t", "main:3", "-n", "three", "seq 100; exec cat")               // %2
	x.run("new-session", "-d", "-s", "side", "-n", "four", "-x", "190", "-y", "50", "exec cat") // %3, of no client
	x.run("rename-window", "-t", "@0", "one")                                                   // names that do not follow the program
	x.run("new-session", "-d", "-s", "other", "-t", "main")                                     // grouped, another focus
	x.run("select-window", "-t", "other:3")
	x.run("resize-pane", "-Z", "-t", "%0") // zoomed, active
	x.run("select-pane", "-m", "-t", "%1") // marked
	x.run("set-buffer", "-b", "kept", "text")
	until(t, "the seq", func() bool { return strings.Contains(x.run("capture-pane", "-p", "-t", "%2"), "\n100\n") })
	x.run("copy-mode", "-t", "%2")
	x.run("send-keys", "-X", "-t", "%2", "-N", "30", "cursor-up")
	x.run("send-keys", "-X", "-t", "%2", "begin-selection")
	small := x.person("main", 70, 20)
	x.person("other", 120, 40)
	// After the people, whose clients change these.
	x.run("set-environment", "-t", "main", "DISPLAY", ":7")
	x.run("set-environment", "-t", "main", "SSH_AUTH_SOCK", "/nowhere")
	x.run("set-environment", "-rt", "main", "SSH_CONNECTION")

	x.settle(func(int) bool { return true })
	before := x.traces()
	// Variables of update-environment: one that sessions have otherwise, one
	// that they do not have, and the absence of others.
	d := x.daemon("DISPLAY=:99", "SSH_AGENT_PID=1", "WINDOWID=5", "TMUX_MCPD_WATCH=all")
	same := func(when string) {
		t.Helper()
		if d := changed(before, x.traces()); d != "" {
			t.Errorf("%s:\n%s", when, d)
		}
	}
	b := d.bridge()
	readEverything(d.dial())
	readEverything(b.caller)
	same("while attached")
	own := 0
	for line := range strings.Lines(x.run("list-clients", "-F", "#{client_control_mode}")) {
		own += strings.Count(line, "1")
	}
	if own < 3 { // for the structure, for main's output, for side's
		t.Errorf("%d control clients: the test tests little", own)
	}
	b.leave()
	d.stop()
	same("after the daemon")
	if got := x.run("list-clients", "-F", "#{client_control_mode}"); got != "0\n0" {
		t.Errorf("clients after the daemon: %q", got)
	}
	// What a client that is not careful does is seen.
	small.leave()
	x.env = append(x.env, "DISPLAY=:99")
	x.person("main", 60, 20)
	if d := changed(before, x.traces()); !strings.Contains(d, "DISPLAY=:99") || !strings.Contains(d, "60x") {
		t.Errorf("another client is not noticed:\n%s", d)
	}
}

// readEverything makes every read there is, of every pane and window.
func readEverything(c *caller) {
	c.t.Helper()
	var list struct {
		Panes []struct{ ID, WindowID string }
	}
	c.ok(&list, "list_panes", nil)
	c.ok(nil, "list_sessions", nil)
	c.ok(nil, "list_windows", nil)
	c.ok(nil, "get_server_info", nil)
	c.ok(nil, "get_session_info", args{"session": "side"})
	var ops []args
	for _, p := range list.Panes {
		var d since
		c.ok(nil, "get_window_info", args{"windowId": p.WindowID})
		c.ok(nil, "find_pane_by_position", args{"windowId": p.WindowID, "corner": "top-left"})
		c.ok(nil, "get_pane_info", args{"paneId": p.ID})
		c.ok(nil, "capture_pane", args{"paneId": p.ID, "start": -50})
		c.ok(&d, "capture_since", args{"paneId": p.ID})
		c.ok(nil, "capture_since", args{"paneId": p.ID, "cursor": d.Cursor, "waitMs": 1})
		c.ok(nil, "snapshot_pane", args{"paneId": p.ID})
		ops = append(ops, args{"tool": "capture_pane", "arguments": args{"paneId": p.ID, "joinWrapped": true}})
	}
	var batch struct{ Failed int }
	if c.ok(&batch, "call_read_tools_batch", args{"operations": ops}); batch.Failed != 0 {
		c.t.Errorf("%d operations of a batch failed", batch.Failed)
	}
}
