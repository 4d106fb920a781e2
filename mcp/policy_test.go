package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

func TestSessionPatterns(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		name     string
		want     bool
	}{
		{nil, "any", true},
		{[]string{}, "any", false},
		{[]string{"a"}, "a", true},
		{[]string{"a"}, "ab", false},
		{[]string{"a*"}, "a", true},
		{[]string{"a*"}, "ab\nc/d", true},
		{[]string{"a*"}, "ba", false},
		{[]string{"a?c"}, "abc", true},
		{[]string{"a?c"}, "aéc", true},
		{[]string{"a?c"}, "ac", false},
		{[]string{"a.c", "[x]"}, "abc", false},
		{[]string{"a.c", "[x]"}, "[x]", true},
		{[]string{"[x]*"}, "x", false},
		{[]string{"*"}, "", true},
		{[]string{"a", "b*"}, "bc", true},
		{[]string{"a\\*"}, "a*", false},
	} {
		p := &policy{sees: matcher(c.patterns)}
		if got := p.visible(c.name); got != c.want {
			t.Errorf("%q, %q: %v", c.patterns, c.name, got)
		}
	}
}

// The rate is kept over time, and a batch is paid off before the next call.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &policy{}
		p.meter.start(10, 0)
		begin := func(want bool) {
			t.Helper()
			if _, err := p.begin(); (err == nil) != want {
				t.Errorf("begin: %v", err)
			}
		}
		for range 10 {
			begin(true)
		}
		begin(false)
		time.Sleep(100 * time.Millisecond)
		begin(true)
		begin(false)
		time.Sleep(time.Hour)
		begin(true)
		if err := p.spend(15); err != nil { // the rest of a batch of 16
			t.Error(err)
		}
		begin(false)
		time.Sleep(600 * time.Millisecond)
		begin(false)
		time.Sleep(100 * time.Millisecond)
		begin(true)
		if _, err := p.begin(); err == nil || !strings.Contains(err.Error(), "10 calls a second") || !strings.Contains(err.Error(), "ms") {
			t.Errorf("%v", err)
		}
	})
}

func TestConcurrencyLimit(t *testing.T) {
	p := &policy{}
	p.meter.start(0, 2)
	first, err := p.begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.begin(); err == nil || !strings.Contains(err.Error(), "2 calls") {
		t.Errorf("%v", err)
	}
	first()
	if _, err := p.begin(); err != nil {
		t.Error(err)
	}
}

// A limited socket's calls are refused by the table, not only by the meter.
func TestLimitsOnCalls(t *testing.T) {
	tab := newRig(t, nil).table
	p, err := newPolicy(tab, PolicyConfig{Rate: 2})
	if err != nil {
		t.Fatal(err)
	}
	caller := &Caller{policy: p}
	ops := `{"operations":[{"tool":"list_panes"},{"tool":"list_panes"},{"tool":"list_panes"}],"onError":"continue"}`
	if res, err := tab.call(t.Context(), caller, batchName, json.RawMessage(ops), nil); err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err := tab.call(t.Context(), caller, "list_panes", json.RawMessage("{}"), nil)
	if err != nil || !res.IsError || !strings.Contains(res.Text, "2 calls a second") {
		t.Errorf("%+v, %v", res, err)
	}
	if err := p.Set(PolicyConfig{Toolsets: []string{"nonsense"}}); err == nil {
		t.Error("a faulty policy was taken")
	}
	if err := p.Set(PolicyConfig{}); err != nil {
		t.Fatal(err)
	}
	if res, err := tab.call(t.Context(), caller, "list_panes", json.RawMessage("{}"), nil); err != nil || strings.Contains(res.Text, "a second") {
		t.Errorf("after the limit was taken away: %+v, %v", res, err)
	}
}

// What crosses the limit of somebody's sight is created or closed for him.
func TestChangesInSight(t *testing.T) {
	in := []state.Link{{Session: 1, SessionName: "agent-1", Index: 2}}
	out := []state.Link{{Session: 9, SessionName: "private", Index: 3}}
	both := append(append([]state.Link{}, out...), in...)
	pane, window, session, other := controlmode.PaneID(4), controlmode.WindowID(5), controlmode.SessionID(1), controlmode.SessionID(9)
	c := &call{policy: &policy{sees: matcher([]string{"agent-*"})}}
	for _, tt := range []struct {
		name string
		in   state.Change
		want string // kind, before, after, session; "" for nothing
	}{
		{"elsewhere", state.Change{Kind: state.TitleChanged, Pane: &pane, Window: &window, Before: "a", After: "b", Was: out, Is: out}, ""},
		{"within", state.Change{Kind: state.TitleChanged, Pane: &pane, Window: &window, Before: "a", After: "b", Was: in, Is: in}, "title_changed a b $1"},
		{"of both", state.Change{Kind: state.TitleChanged, Pane: &pane, Window: &window, Session: &other, Before: "a", After: "b", Was: both, Is: both}, "title_changed a b $1"},
		{"moved in", state.Change{Kind: state.Moved, Window: &window, Before: "$9:3", After: "$1:2", Was: out, Is: in}, "window_created   $1"},
		{"moved out", state.Change{Kind: state.Moved, Window: &window, Before: "$1:2", After: "$9:3", Was: in, Is: out}, "window_closed   $1"},
		{"pane moved out", state.Change{Kind: state.Moved, Pane: &pane, Window: &window, Before: "@1", After: "@9", Was: in, Is: out}, "pane_closed   $1"},
		{"linked elsewhere", state.Change{Kind: state.Moved, Window: &window, Before: "$1:2", After: "$1:2 $9:3", Was: in, Is: both}, ""},
		{"renamed in", state.Change{Kind: state.Renamed, Session: &session, Before: "private", After: "agent-1", Was: out, Is: in}, "session_created  agent-1 $1"},
		{"renamed out", state.Change{Kind: state.Renamed, Session: &session, Before: "agent-1", After: "private", Was: in, Is: out}, "session_closed agent-1  $1"},
		{"closed", state.Change{Kind: state.PaneClosed, Pane: &pane, Window: &window, Before: "sh", Was: in}, "pane_closed sh  $1"},
		{"closed elsewhere", state.Change{Kind: state.PaneClosed, Pane: &pane, Window: &window, Before: "sh", Was: out}, ""},
		{"a person", state.Change{Kind: state.PersonAttached, Session: &session, After: "/dev/pts/1", Is: in}, "person_attached  /dev/pts/1 $1"},
		{"a person elsewhere", state.Change{Kind: state.PersonLeft, Session: &other, Before: "/dev/pts/1", Was: out}, ""},
		{"died while it was moved away", state.Change{Kind: state.PaneDied, Pane: &pane, After: "status 1", Was: in, Is: out}, ""},
	} {
		got := ""
		if ch, ok := c.change(tt.in); ok {
			got = fmt.Sprintf("%s %s %s %s", ch.Kind, ch.Before, ch.After, ch.Session)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	everything := &call{policy: &policy{}}
	if ch, ok := everything.change(state.Change{Kind: state.Moved, Before: "$9:3", Was: out}); !ok || ch.Before != "$9:3" {
		t.Errorf("without a limit: %+v, %v", ch, ok)
	}
}

// A pane that leaves the caller's sight during a call takes what it printed with
// it.
func TestPaneLeavesSight(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "agent", "-n", "w", "cat", ";", "new-window", "-d", "-t", "agent:", "-n", "more", "cat", ";",
		"new-session", "-d", "-s", "private", "cat")
	p, err := newPolicy(r.table, PolicyConfig{Sessions: []string{"agent"}})
	if err != nil {
		t.Fatal(err)
	}
	r.caller = &Caller{policy: p}
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	answered := make(chan *toolResult, 1)
	go func() {
		raw, _ := json.Marshal(args{"paneId": "%0", "cursor": cursor, "waitMs": 30_000})
		res, err := r.table.call(t.Context(), r.caller, "capture_since", raw, nil)
		if err != nil {
			res = errorResult(err.Error())
		}
		answered <- res
	}()
	r.tmux("move-window", "-s", "agent:w", "-t", "private:9")
	r.tmux("send-keys", "-t", "%0", "secret", "Enter")
	if res := await(t, answered, "the answer"); !res.IsError || strings.Contains(res.Text, "secret") || !strings.Contains(res.Text, "%0") {
		t.Errorf("%+v", res)
	}
	r.refused("get_pane_info", args{"paneId": "%0"}, "does not exist", "%1 (agent:more")
}

// A listener lets in the users that its policy names, and no others, also after
// the policy has changed.
func TestPolicyAdmitsUsers(t *testing.T) {
	p, err := newPolicy(newRig(t, nil).table, PolicyConfig{AllowUIDs: []int{1001}})
	if err != nil {
		t.Fatal(err)
	}
	if !p.admits(1001) || p.admits(1002) || (*Policy)(nil).admits(1001) {
		t.Error("not those that were named")
	}
	if err := p.Set(PolicyConfig{AllowUIDs: []int{1002}}); err != nil {
		t.Fatal(err)
	}
	if p.admits(1001) || !p.admits(1002) {
		t.Error("as before")
	}
}

func TestMayName(t *testing.T) {
	c := &call{policy: &policy{cfg: PolicyConfig{Sessions: []string{"agent-*"}}, sees: matcher([]string{"agent-*"})}}
	if err := c.mayName("agent-x"); err != nil {
		t.Error(err)
	}
	if err := c.mayName("mine"); err == nil || !strings.Contains(err.Error(), `"agent-*"`) {
		t.Errorf("%v", err)
	}
}

// Options, hooks and environment: what is of all sessions is shown only where it
// cannot tell of them.
func TestGlobalsInSight(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "agent", "cat", ";", "set-option", "-t", "agent", "status-left", "own", ";",
		"set-option", "-g", "history-limit", "1234", ";", "set-option", "-g", "@count", "7", ";", "set-environment", "-t", "agent", "OWN", "1", ";",
		"set-hook", "-t", "agent", "client-attached", "display-message x")
	p, err := newPolicy(r.table, PolicyConfig{Sessions: []string{"agent"}})
	if err != nil {
		t.Fatal(err)
	}
	r.caller = &Caller{policy: p}
	value := func(a args) any { return r.ok("show_option", a)["value"] }
	if got := value(args{"name": "status-left", "scope": "session", "target": "agent"}); got != "own" {
		t.Errorf("its own option: %v", got)
	}
	if got := value(args{"name": "status-left", "scope": "session", "target": "agent", "effective": true}); got != "own" {
		t.Errorf("its own option in effect: %v", got)
	}
	if got := value(args{"name": "history-limit", "scope": "session", "target": "agent", "effective": true}); got != "1234" {
		t.Errorf("an inherited number: %v", got)
	}
	if got := value(args{"name": "mouse", "scope": "global-session"}); got != "off" {
		t.Errorf("a global switch: %v", got)
	}
	const beyond = "outside the sessions"
	r.refused("show_option", args{"name": "status-right", "scope": "session", "target": "agent", "effective": true}, beyond)
	r.refused("show_option", args{"name": "status-right", "scope": "global-session"}, beyond)
	r.refused("show_option", args{"name": "@count", "scope": "global-session"}, beyond)
	r.refused("show_hooks", nil, beyond)
	r.refused("show_hooks", args{"scope": "global-window"}, beyond)
	r.refused("show_environment", nil, beyond)
	if got := r.ok("show_environment", args{"session": "agent"})["environment"].(map[string]any); got["OWN"] != "1" {
		t.Errorf("its own environment: %v", got)
	}
	if got := r.ok("show_hooks", args{"session": "agent"})["hooks"].(map[string]any); len(got) != 1 {
		t.Errorf("its own hooks: %v", got)
	}
	r.refused("get_tmux_variables", args{"names": []string{"session_name"}}, beyond, "paneId")
	if got := r.ok("get_tmux_variables", args{"names": []string{"version", "pid"}})["values"].(map[string]any); got["version"] == "" || got["pid"] == "" {
		t.Errorf("variables of the server: %v", got)
	}
	r.refused("get_tmux_variables", args{"names": []string{"client_session"}, "paneId": "%0"}, beyond)
	r.refused("get_tmux_variables", args{"names": []string{"PATH"}, "paneId": "%0"}, beyond)
	if got := r.ok("get_tmux_variables", args{"names": []string{"session_name", "version"}, "paneId": "%0"})["values"].(map[string]any); got["session_name"] != "agent" {
		t.Errorf("variables of a pane: %v", got)
	}
}

// Reports of progress are not looked at again before they leave.
func TestProgressInSight(t *testing.T) {
	var got []string
	tell := func(m string) { got = append(got, m) }
	line := fmt.Sprintf(planted[0].around, planted[0].secret)
	(&policy{}).progress(tell)(line)
	(&policy{sees: matcher([]string{"a"})}).progress(tell)(line)
	(&policy{redact: testRedactor(t)}).progress(tell)(line)
	if d := cmp.Diff([]string{line, "", redacted}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if (&policy{sees: matcher(nil)}).progress(nil) != nil {
		t.Error("reports that nobody asked for")
	}
}
