package mcp

import (
	"strings"
	"testing"
)

// matchedOne is the only condition that held.
func (r *rig) matchedOne(v map[string]any) map[string]any {
	r.Helper()
	all := v["matched"].([]any)
	if len(all) != 1 || v["outcome"] != outcomeMatched {
		r.Fatalf("%v", v)
	}
	return all[0].(map[string]any)
}

// begins starts a run that reads a line, and waits until it does.
func (r *rig) begins(pane, then string) string {
	r.Helper()
	v := r.ok("run_shell_command", args{"paneId": pane, "command": "echo begun; read x; " + then, "timeoutMs": 1})
	id, _ := v["runId"].(string)
	began := r.ok("wait_for", args{"timeoutMs": 100000, "conditions": []args{
		{"kind": "text", "paneId": pane, "pattern": "begun", "cursor": v["cursor"]},
	}})
	if began["outcome"] != outcomeMatched {
		r.Fatalf("%v", began)
	}
	return id
}

// TestWaitForRunEnded: a run's end is told with its state and exit status,
// whether it comes or has come, and what its pane printed meanwhile.
func TestWaitForRunEnded(t *testing.T) {
	r := newRig(t, nil).start()
	pane, other := r.shellPane(plainBash), r.shellPane(plainBash)
	wait := func(cond ...args) args { return args{"conditions": cond, "timeoutMs": 100000} }
	run := r.begins(pane, "echo after; exit 3")
	if v := r.ok("wait_for", args{"conditions": []args{{"kind": "run_ended", "runId": run}}, "timeoutMs": 1}); v["outcome"] != outcomeTimedOut ||
		len(v["matched"].([]any)) != 0 {
		t.Errorf("it runs: %v", v)
	}
	r.refused("wait_for", wait(args{"kind": "run_ended", "runId": run, "paneId": other}), "run "+run+" is in pane "+pane+", not "+other)
	r.refused("wait_for", wait(args{"kind": "run_ended", "paneId": other}), "no run has pane "+other)
	r.refused("wait_for", wait(args{"kind": "run_ended", "runId": "feedfeedfeedfeed"}), "conditions[0]", "does not exist", run)

	for i, cond := range []args{{"kind": "run_ended", "runId": run, "paneId": pane}, {"kind": "run_ended", "paneId": pane}} {
		if i > 0 {
			run = r.begins(pane, "echo after; exit 3")
		}
		never := args{"kind": "text", "paneId": "%0", "pattern": "never"}
		ended := r.waiting("wait_for", wait(never, cond))
		r.tmux("send-keys", "-t", pane, "Enter")
		v := r.end("wait_for", ended)
		m := r.matchedOne(v)
		if e := m["evidence"].(string); m["index"] != 1.0 || m["kind"] != kindRunEnded || m["paneId"] != pane ||
			!strings.HasPrefix(e, "run "+run+" completed: exit status 3") {
			t.Errorf("%v", v)
		}
		if p := paneRow(v, pane); p == nil || !strings.Contains(p["text"].(string), "after\n") || p["cursor"] == nil {
			t.Errorf("its pane: %v", v)
		}
		m = r.matchedOne(r.ok("wait_for", wait(args{"kind": "run_ended", "runId": run})))
		if !strings.Contains(m["evidence"].(string), "completed: exit status 3") || m["paneId"] != pane {
			t.Errorf("ended already: %v", m)
		}
	}
}

// TestWaitForAllRuns: every run of several, one of which the pane's end ends: it
// has a status then if the hangup left the shell the time to put it on record.
func TestWaitForAllRuns(t *testing.T) {
	r := newRig(t, nil).start()
	first, second := r.shellPane(plainBash), r.shellPane(plainBash)
	a, b := r.begins(first, "true"), r.begins(second, "true")
	conds := args{"mode": "all", "timeoutMs": 100000, "conditions": []args{{"kind": "run_ended", "runId": a}, {"kind": "run_ended", "runId": b}}}
	ended := r.waiting("wait_for", conds)
	r.tmux("kill-pane", "-t", second)
	r.tmux("send-keys", "-t", first, "Enter")
	for _, v := range []map[string]any{r.end("wait_for", ended), r.ok("wait_for", conds)} {
		all := v["matched"].([]any)
		if len(all) != 2 || v["outcome"] != outcomeMatched {
			t.Fatalf("%v", v)
		}
		for i, want := range []string{"run " + a + " completed: exit status 0", "run " + b + " "} {
			if e := all[i].(map[string]any)["evidence"].(string); !strings.HasPrefix(e, want) {
				t.Errorf("%s, want %s", e, want)
			}
		}
	}
	if v := r.ok("wait_for", conds); paneRow(v, first) == nil || paneRow(v, second) != nil {
		t.Errorf("only the pane that is there is shown: %v", v)
	}
}

// TestWaitForRunOutOfSight: the run of a pane that a limited caller does not see
// is no run.
func TestWaitForRunOutOfSight(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-session", "-d", "-s", "second", "cat")
	pane := r.shellPane(plainBash)
	run := r.runs(pane, "exit 3")["runId"]
	in := r.tmux("display-message", "-p", "-t", pane, "#{session_name}")
	for session, seen := range map[string]bool{"main": in == "main", "second": in == "second"} {
		p, err := newPolicy(r.table, PolicyConfig{Sessions: []string{session}})
		if err != nil {
			t.Fatal(err)
		}
		r.caller = &Caller{policy: p}
		a := args{"conditions": []args{{"kind": "run_ended", "runId": run}}, "timeoutMs": 100000}
		if seen {
			r.matchedOne(r.ok("wait_for", a))
			continue
		}
		r.refused("wait_for", a, "does not exist", "No runs are remembered")
		r.refused("wait_for", args{"conditions": []args{{"kind": "run_ended", "paneId": pane}}}, pane, "does not exist")
	}
}
