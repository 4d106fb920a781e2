package mcp

import (
	"strings"
	"testing"
)

// TestTeardown: what is named ends, what else ends with it is told, and nothing
// else does; also when it is the session that the daemon is attached to, and the
// last one.
func TestTeardown(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil)
		r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "-n", "w", "seq 200; exec cat", ";",
			"new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat", ";",
			"split-window", "-d", "-t", "%0", "cat", ";", "new-window", "-d", "-t", "main:", "cat", ";",
			"new-window", "-d", "-t", "main:", "cat", ";", "link-window", "-d", "-s", "@2", "-t", "other:7")
		r.until(func() bool { return r.format("%0", "#{history_size}") != "0" })
		r.caller = everyTool()
		if v := r.ok("clear_pane_scrollback", args{"paneId": "%0"}); v["cleared"] != "%0" || r.format("%0", "#{history_size}") != "0" {
			t.Errorf("%v", v)
		}
		left := func(want string) {
			t.Helper()
			if got := strings.ReplaceAll(r.tmux("list-panes", "-a", "-F", "#{session_id}#{pane_id}"), "\n", " "); got != want {
				t.Errorf("left: %s, want %s", got, want)
			}
		}
		left("$0%0 $0%2 $0%3 $0%4 $1%1 $1%3")
		if res := r.call("kill_pane", args{"paneId": "%2"}); res.IsError || res.Text != "ended pane %2" {
			t.Errorf("%s", res.Text)
		}
		if res := r.call("kill_pane", args{"paneId": "%4"}); res.IsError || !strings.HasPrefix(res.Text, "ended pane %4; with it ended window @3 (") {
			t.Errorf("%s", res.Text)
		}
		left("$0%0 $0%3 $1%1 $1%3")
		if res := r.call("kill_session", args{"session": "main"}); res.IsError || res.Text != "ended session $0; with it ended window @0 (w)" {
			t.Errorf("%s", res.Text)
		}
		left("$1%1 $1%3") // linked elsewhere
		if v := r.ok("kill_window", args{"windowId": "@2"}); v["killed"] != "@2" {
			t.Errorf("%v", v)
		}
		left("$1%1")
		r.refused("kill_pane", args{"paneId": "%2"}, "pane %2 does not exist", "%1 (other:")
		r.refused("kill_window", args{"windowId": "@2"}, "window @2 does not exist")
		r.refused("kill_session", args{"session": "oth"}, `session "oth" does not exist`)
		r.refused("clear_pane_scrollback", args{"paneId": "%2"}, "does not exist")
		if res := r.call("kill_session", args{"session": "$1"}); res.IsError || !strings.Contains(res.Text, "ended session $1") {
			t.Errorf("%s", res.Text)
		}
		if res := r.call("list_sessions", nil); !strings.Contains(res.Text, "No tmux server") {
			t.Errorf("%s", res.Text)
		}
		r.refused("kill_pane", args{"paneId": "%0"}, "no tmux server")
	})
}

// everyTool is a caller that has selected all toolsets.
func everyTool() *Caller {
	return &Caller{Hello: Hello{Env: map[string]string{envToolsets: "inspect,manage,execute,teardown"}}}
}

// TestTeardownIsRefused: a pane that somebody looks at keeps everything around
// it, whatever is forced; the caller's own pane asks for force.
func TestTeardownIsRefused(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat", ";", "new-window", "-d", "-t", "main:", "cat", ";", "link-window", "-d", "-s", "@1", "-t", "main:5")
	r.tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
	server := r.tmux("display-message", "-p", "#{pid}")
	r.caller = everyTool()
	r.caller.Hello.TMUX, r.caller.Hello.TMUXPane = r.sock+","+server+",0", "%2"
	for tool, a := range map[string]args{
		"kill_pane": {"paneId": "%2"}, "kill_window": {"windowId": "@1"}, "kill_session": {"session": "main"},
	} {
		r.refused(tool, a, "pane %2 is your own", "force")
	}
	leave := r.attach("main") // looks at @0
	for tool, a := range map[string]args{
		"kill_pane": {"paneId": "%1"}, "kill_window": {"windowId": "@0"}, "kill_session": {"session": "main"},
	} {
		a["force"] = true
		r.refused(tool, a, "is attended", "force does not change that")
	}
	if got := r.tmux("list-panes", "-a", "-F", "#{pane_id}"); got != "%0\n%1\n%2\n%2\n%3" {
		t.Errorf("left: %q", got)
	}
	if v := r.ok("kill_window", args{"windowId": "@1", "confirm_self": true}); v["killed"] != "@1" {
		t.Errorf("%v", v)
	}
	leave()
	if v := r.ok("kill_session", args{"session": "main"}); v["killed"] != "$0" {
		t.Errorf("%v", v)
	}
	if got := r.tmux("list-panes", "-a", "-F", "#{pane_id}"); got != "%3" {
		t.Errorf("left: %q", got)
	}
}
