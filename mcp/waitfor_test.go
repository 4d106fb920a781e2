package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// matchedKinds are the conditions that held.
func matchedKinds(v map[string]any) (all []string) {
	for _, m := range v["matched"].([]any) {
		m := m.(map[string]any)
		all = append(all, fmt.Sprintf("%v:%v:%v", m["index"], m["kind"], m["paneId"]))
	}
	return all
}

func paneRow(v map[string]any, id string) map[string]any {
	for _, p := range v["panes"].([]any) {
		if p := p.(map[string]any); p["paneId"] == id {
			return p
		}
	}
	return nil
}

// TestWaitForKinds: each kind of condition is met by what it names, where it is
// asked for.
func TestWaitForKinds(t *testing.T) {
	type cond = args
	for _, c := range []struct {
		kind string
		more args // besides the kind
		pane string
		do   func(r *rig)
	}{
		{"text", cond{"pattern": "h[ae]llo", "regex": true}, "%0", func(r *rig) { r.tmux("send-keys", "-t", "%0", "hello") }},
		{"output", nil, "%0", func(r *rig) { r.tmux("send-keys", "-t", "%0", "x") }},
		{"settled", cond{"idleMs": 50}, "%0", func(r *rig) {}},
		{"pane_died", nil, "%1", func(r *rig) { r.tmux("kill-pane", "-t", "%1") }},
		{"pane_died", nil, "%1", func(r *rig) {
			r.tmux("set-option", "-g", "remain-on-exit", "on")
			r.tmux("send-keys", "-t", "%1", "C-d")
		}},
		{"pane_closed", nil, "%1", func(r *rig) { r.tmux("kill-pane", "-t", "%1") }},
		{"title_changed", nil, "%0", func(r *rig) { r.tmux("select-pane", "-t", "%0", "-T", "another") }},
		{"mode_changed", nil, "%0", func(r *rig) { r.tmux("copy-mode", "-t", "%0") }},
		{"bell", nil, "%2", func(r *rig) { r.tmux("send-keys", "-t", "%2", "Enter") }},
		{"command_changed", nil, "%2", func(r *rig) {
			r.tmux("send-keys", "-t", "%2", "Enter")
			r.tmux("send-keys", "-t", "%2", "Enter")
		}},
		{"pane_created", nil, "", func(r *rig) { r.tmux("split-window", "-d", "-t", "%0", "cat") }},
		{"window_created", cond{"session": "main"}, "", func(r *rig) { r.tmux("new-window", "-d", "-t", "main:", "cat") }},
		{"window_closed", cond{"windowId": "@2"}, "", func(r *rig) { r.tmux("kill-window", "-t", "@2") }},
		{"session_created", nil, "", func(r *rig) { r.tmux("new-session", "-d", "-s", "third", "cat") }},
		{"session_closed", cond{"session": "other"}, "", func(r *rig) { r.tmux("kill-session", "-t", "other") }},
		{"person_attached", cond{"session": "main"}, "", func(r *rig) { r.Cleanup(r.attach("main")) }},
		{"password", nil, "%3", func(r *rig) { r.tmux("send-keys", "-t", "%3", "Enter") }},
		{"prompt", nil, "%4", func(r *rig) { r.tmux("send-keys", "-t", "%4", "exec bash --norc --noprofile", "Enter") }},
		{"server_gone", nil, "", func(r *rig) { r.tmux("kill-server") }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil).start()
			r.tmux("new-window", "-d", "cat") // %1
			r.tmux("new-window", "-d", `stty -echo; read x; printf '\a'; read x; exec cat`)
			r.tmux("new-window", "-d", `read x; stty -echo; printf 'Password: '; read x; exec cat`)
			r.tmux("new-window", "-d", `read x; exec $x`)
			r.tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
			if c.kind == "prompt" {
				r.tmux("send-keys", "-t", "%4", "cat", "Enter")
				r.tmux("respawn-pane", "-k", "-t", "%4", "sh -c 'read x; exec bash --norc --noprofile'")
			}
			cond := args{"kind": c.kind}
			for k, v := range c.more {
				cond[k] = v
			}
			if c.pane != "" {
				cond["paneId"] = c.pane
			}
			// The second condition is one that never holds.
			never := args{"kind": "text", "paneId": "%0", "pattern": "never"}
			ended := r.waiting("wait_for", args{"conditions": []args{never, cond}, "timeoutMs": 100000})
			c.do(r)
			v := r.end("wait_for", ended)
			if got := matchedKinds(v); len(got) != 1 || !strings.HasPrefix(got[0], "1:"+c.kind) || v["outcome"] != outcomeMatched {
				t.Errorf("%v", v)
			}
			if c.pane != "" && matchedKinds(v)[0] != "1:"+c.kind+":"+c.pane {
				t.Errorf("%v, want pane %s", matchedKinds(v), c.pane)
			}
		})
	}
}

// TestWaitForAllOfMany: every condition must have held once; the answer has
// what each pane printed, and a cursor that goes on from there.
func TestWaitForAllOfMany(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-window", "-d", "cat")
	ended := r.waiting("wait_for", args{"mode": "all", "timeoutMs": 100000, "conditions": []args{
		{"kind": "text", "paneId": "%0", "pattern": "one"},
		{"kind": "text", "paneId": "%1", "pattern": "two"},
		{"kind": "title_changed", "paneId": "%1"},
	}})
	r.say("%0", "one")
	r.tmux("select-pane", "-t", "%1", "-T", "mine")
	r.say("%1", "two")
	v := r.end("wait_for", ended)
	if got := matchedKinds(v); !slices.Equal(got, []string{"0:text:%0", "1:text:%1", "2:title_changed:%1"}) || v["outcome"] != outcomeMatched {
		t.Errorf("%v", v)
	}
	first := paneRow(v, "%0")
	if first["text"] != "one\none\n" || first["gap"] != nil || first["missedBytes"] != 0.0 {
		t.Errorf("%v", first)
	}
	r.say("%0", "more")
	v = r.ok("wait_for", args{"conditions": []args{{"kind": "text", "paneId": "%0", "pattern": "more", "cursor": first["cursor"]}}})
	if p := paneRow(v, "%0"); p["text"] != "more\nmore\n" || v["outcome"] != outcomeMatched {
		t.Errorf("going on: %v", v)
	}
}

// TestWaitForEndsWithReason: in time, and when a pane it waits for ends.
func TestWaitForEndsWithReason(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-window", "-d", "cat")
	conds := []args{{"kind": "text", "paneId": "%0", "pattern": "never"}, {"kind": "bell", "paneId": "%1"}}
	if v := r.ok("wait_for", args{"conditions": conds, "timeoutMs": 1}); v["outcome"] != outcomeTimedOut || v["effectiveTimeoutMs"] != 1.0 || len(v["panes"].([]any)) != 2 {
		t.Errorf("%v", v)
	}
	for want, cond := range map[string]args{
		"needs a pattern": {"kind": "text", "paneId": "%0"}, "needs a paneId": {"kind": "settled"}, "run_ended needs a runId": {"kind": "run_ended"},
		"line feed": {"kind": "text", "paneId": "%0", "pattern": "a\nb"}, "conditions[0]: invalid arguments": {"kind": "nothing"},
	} {
		r.refused("wait_for", args{"conditions": []args{cond}}, want)
	}
	ended := r.waiting("wait_for", args{"conditions": conds, "timeoutMs": 100000})
	r.tmux("kill-pane", "-t", "%1")
	if v := r.end("wait_for", ended); v["outcome"] != outcomePaneDied || len(v["matched"].([]any)) != 0 {
		t.Errorf("%v", v)
	}
	ended = r.waiting("wait_for", args{"conditions": conds[:1], "timeoutMs": 100000})
	r.tmux("kill-server")
	if v := r.end("wait_for", ended); v["outcome"] != outcomeServerGone || paneRow(v, "%0")["cursor"] != nil {
		t.Errorf("%v", v)
	}
}

// TestWhatChanged: everything between two calls is told once, in order, also
// what tmux keeps silent about.
func TestWhatChanged(t *testing.T) {
	r := newRig(t, nil).start()
	r.until(func() bool { return r.format("%0", "#{pane_current_command}") == "cat" }) // not the shell before it
	v := r.ok("what_changed", nil)
	kinds := func(v map[string]any) (all []string) {
		for _, e := range v["events"].([]any) {
			e := e.(map[string]any)
			all = append(all, fmt.Sprintf("%v %v %v>%v", e["kind"], e["paneId"], e["before"], e["after"]))
		}
		return all
	}
	next := func(a args) map[string]any {
		a["cursor"] = v["cursor"]
		v = r.ok("what_changed", a)
		return v
	}
	if got := kinds(next(args{})); len(got) != 0 || v["gap"] != false {
		t.Errorf("%v", v)
	}
	r.tmux("select-pane", "-t", "%0", "-T", "a title")
	r.tmux("rename-window", "-t", "@0", "name")
	if got := kinds(next(args{})); len(got) != 2 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "title_changed %0 ") }) ||
		!slices.Contains(got, "renamed <nil> w>name") {
		t.Errorf("%v", v)
	}
	r.tmux("rename-window", "-t", "@0", "w")
	r.tmux("new-window", "-d", "-n", "fresh", "cat")
	if got := kinds(next(args{"kinds": []string{"pane_created", "bell"}, "waitMs": 30000, "session": "main"})); len(got) != 1 || !strings.HasPrefix(got[0], "pane_created %1 <nil>>") {
		t.Errorf("%v", v)
	}
	v = r.ok("what_changed", nil) // all that there was is behind the cursor
	r.tmux("rename-window", "-t", "@0", "a")
	r.ok("what_changed", nil) // looks: otherwise the two would be one change
	r.tmux("rename-window", "-t", "@0", "b")
	for _, want := range []string{"renamed <nil> w>a", "renamed <nil> a>b"} {
		if got := kinds(next(args{"maxEvents": 1, "kinds": []string{"renamed"}})); !slices.Equal(got, []string{want}) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	ended := make(chan map[string]any, 1)
	before := v["cursor"]
	go func() { ended <- r.ok("what_changed", args{"cursor": before, "waitMs": 50000, "paneId": "%1"}) }()
	r.tmux("kill-pane", "-t", "%1")
	var got []string
	for len(got) == 0 || strings.HasPrefix(got[0], "command_changed") { // the shell before cat may have been seen
		last := await(t, ended, "the change")
		if got = kinds(last); len(got) > 1 {
			got = got[len(got)-1:]
		}
		go func() { ended <- r.ok("what_changed", args{"cursor": last["cursor"], "waitMs": 1, "paneId": "%1"}) }()
	}
	<-ended
	if !strings.HasPrefix(got[0], "pane_closed %1") {
		t.Errorf("%v", got)
	}
	if w := r.ok("what_changed", args{"cursor": "tmcpe1.0123456789ab.7"}); w["gap"] != true || len(w["events"].([]any)) == 0 {
		t.Errorf("another daemon's cursor: %v", w)
	}
	r.refused("what_changed", args{"cursor": "x"}, "a cursor that what_changed returned")
	r.refused("what_changed", args{"kinds": []string{"x"}}, "one of pane_died")
}
