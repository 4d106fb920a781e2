package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// shellPane opens a window with a shell and answers its pane, ready.
func (r *rig) shellPane(command string) string {
	r.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		r.Skip("what a terminal waits for is read from /proc, which this system lacks")
	}
	r.ok("list_panes", args{}) // attached: tmux 3.3a can die of a change during that
	text := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", command)
	id, err := controlmode.ParsePaneID(text)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A shell can run something at its first start, such as fish what makes its completions.
	atPrompt := func(w state.Waiting) bool { return w.For == state.WaitsPrompt }
	if w, err := r.table.mirror.AwaitWaiting(ctx, id, time.Minute, atPrompt); err != nil || !atPrompt(w) {
		r.Fatalf("%s: %+v, %v", command, w, err)
	}
	return text
}

const plainBash = "bash --norc -i"

// runs runs a command to its end.
func (r *rig) runs(pane, command string) map[string]any {
	r.Helper()
	v := r.ok("run_shell_command", args{"paneId": pane, "command": command})
	for n := 0; v["stillRunning"] == true && n < 20; n++ {
		g := r.ok("get_run", args{"runId": v["runId"], "waitMs": 25_000})
		if g["run"].(map[string]any)["state"] != "running" {
			r.Fatalf("%q took longer than the test waits: %v", command, g)
		}
	}
	return v
}

func TestRunShellCommand(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.shellPane(plainBash)
	v := r.runs(pane, "echo out; echo err >&2; exit 3")
	for key, want := range map[string]any{
		"outcome": "completed", "exitStatus": 3.0, "output": "out\nerr\n", "outputComplete": true, "stillRunning": false,
		"paneId": pane, "foreignOutputSuspected": false, "interrupted": false, "droppedLines": 0.0, "returnedBytes": 8.0,
		"effectiveTimeoutMs": 25000.0,
	} {
		if v[key] != want {
			t.Errorf("%s is %v, want %v", key, v[key], want)
		}
	}
	if v["durationMs"] == nil || v["cursor"] == nil {
		t.Errorf("%v", v)
	}
	g := r.ok("get_run", args{"runId": v["runId"]})
	if run := g["run"].(map[string]any); g["output"] != "out\nerr\n" || run["state"] != "completed" || run["exitStatus"] != 3.0 {
		t.Errorf("%v", g)
	}
	all := r.ok("list_runs", args{"paneId": pane})["runs"].([]any)
	if len(all) != 1 || all[0].(map[string]any)["runId"] != v["runId"] {
		t.Errorf("%v", all)
	}
	r.refused("run_shell_command", args{"paneId": pane, "command": " \n"}, "blank")
	r.refused("run_shell_command", args{"paneId": "%0", "command": "echo"}, "not at the prompt of a known shell", "cat reads a line", "newPane")
	r.refused("run_shell_command", args{"paneId": "%77", "command": "echo"}, "does not exist")
	r.refused("get_run", args{"runId": "feedfeedfeedfeed"}, "does not exist", v["runId"].(string))
	r.refused("interrupt_run", args{"runId": "x"}, "does not exist")
}

// TestRunTimesOutAndIsCollected: a wait that ends before the command costs
// nothing: the same run is waited for again, by another client too.
func TestRunTimesOutAndIsCollected(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.shellPane(plainBash)
	v := r.ok("run_shell_command", args{"paneId": pane, "command": "echo before; read x; echo after $x; exit 4", "timeoutMs": 500})
	if v["outcome"] != "timed_out" || v["exitStatus"] != nil {
		t.Fatalf("%v", v)
	}
	r.refused("run_shell_command", args{"paneId": pane, "command": "echo"}, "busy", v["runId"].(string), "nothing was typed")
	r.caller = &Caller{} // another client
	r.tmux("send-keys", "-t", pane, "-l", "in")
	r.tmux("send-keys", "-t", pane, "Enter")
	g := r.ok("get_run", args{"runId": v["runId"], "waitMs": 25000})
	run := g["run"].(map[string]any)
	if run["state"] != "completed" || run["exitStatus"] != 4.0 || g["output"] != "before\nin\nafter in\n" {
		t.Errorf("%v", g)
	}
}

func TestInterruptRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	pane := r.shellPane(plainBash)
	for _, tt := range []struct {
		signal any
		state  string
		status any
	}{{nil, "completed", 130.0}, {"INT", "completed", 130.0}, {"TERM", "completed", 143.0}, {"KILL", "unknown", nil}} {
		v := r.ok("run_shell_command", args{"paneId": pane, "command": "sleep 1000", "timeoutMs": 1})
		// Before the command has been started, C-c is the wrapper's.
		id, _ := controlmode.ParsePaneID(pane)
		asleep := func(w state.Waiting) bool { return w.Program == "sleep" }
		if w, err := r.table.mirror.AwaitWaiting(t.Context(), id, patience, asleep); err != nil || !asleep(w) {
			t.Fatalf("%+v, %v", w, err)
		}
		a := args{"runId": v["runId"]}
		if tt.signal != nil {
			a["signal"] = tt.signal
		}
		if got := r.ok("interrupt_run", a); got["sent"] != true {
			t.Errorf("%v", got)
		}
		g := r.ok("get_run", args{"runId": v["runId"], "waitMs": 25000})
		run := g["run"].(map[string]any)
		if run["state"] != tt.state || run["exitStatus"] != tt.status || run["interrupted"] != true {
			t.Errorf("%v: %v", tt.signal, g)
		}
		if got := r.ok("interrupt_run", a); got["sent"] != false {
			t.Errorf("a run that has ended: %v", got)
		}
	}
}

// TestRunLeavesOnlyItsLine: the screen shows the typed line and the output.
func TestRunLeavesOnlyItsLine(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.shellPane("PS1='$ ' bash --norc -i")
	v := r.runs(pane, "echo 'one\ntwo'")
	var shot map[string]any
	want := fmt.Sprintf("$  (\\. %s/%s)\none\ntwo\n$", r.table.mirror.RunDir(), v["runId"])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.table.mirror.AwaitWaiting(ctx, 1, patience, func(w state.Waiting) bool { return w.For == state.WaitsPrompt })
	shot = r.ok("snapshot_pane", args{"paneId": pane})
	if got := strings.TrimSpace(shot["content"].(string)); got != want {
		t.Errorf("the screen is\n%s\nwant\n%s", got, want)
	}
}

// TestR01OneRunPerPane: 20 callers on one pane get their turn or hear that it is
// busy; no text is mixed, and every run has its own output.
func TestR01OneRunPerPane(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.shellPane(plainBash)
	type answer struct {
		n   int
		res *toolResult
	}
	answers := make(chan answer)
	for n := range 20 {
		go func() {
			raw, _ := json.Marshal(args{"paneId": pane, "command": fmt.Sprintf("echo begin %d; sleep 0.0%d; echo end %d", n, n%5, n)})
			res, err := r.table.call(context.Background(), &Caller{}, "run_shell_command", raw, nil)
			if err != nil {
				res = errorResult(err.Error())
			}
			answers <- answer{n, res}
		}()
	}
	ran := 0
	for range 20 {
		a := <-answers
		if a.res.IsError {
			if !strings.Contains(a.res.Text, "busy") {
				t.Errorf("%d: %s", a.n, a.res.Text)
			}
			continue
		}
		ran++
		var v struct{ Output string }
		if err := json.Unmarshal(a.res.Structured, &v); err != nil || v.Output != fmt.Sprintf("begin %d\nend %d\n", a.n, a.n) {
			t.Errorf("%d: %s", a.n, a.res.Structured)
		}
	}
	if ran == 0 {
		t.Error("nobody got a turn")
	}
}

// TestO14RunInANewPane: a run can have a pane of its own, beside the one named
// and without taking the focus, which is there until the output has been read.
func TestO14RunInANewPane(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "default-command", plainBash)
	r.ok("list_panes", args{})
	panes := func() string { return r.tmux("list-panes", "-t", "main:0", "-F", "#{pane_id} #{pane_active}") }
	before := panes()
	v := r.ok("run_shell_command", args{"paneId": "%0", "command": "seq 1 5000", "newPane": true, "maxLines": 2, "timeoutMs": 50000})
	if v["output"] != "4999\n5000\n" || v["exitStatus"] != 0.0 || v["droppedLines"] != 4998.0 || v["paneId"] == "%0" {
		t.Errorf("%v", v)
	}
	if got := panes(); got != before {
		t.Errorf("panes %q, before %q", got, before)
	}
	v = r.ok("run_shell_command", args{"paneId": "%0", "command": "read x; seq 1 5000", "newPane": true, "timeoutMs": 1})
	own := v["paneId"].(string)
	if got := panes(); !strings.HasPrefix(got, before+"\n"+own+" 0") {
		t.Errorf("panes %q, before %q", got, before)
	}
	id, _ := controlmode.ParsePaneID(own)
	reads := func(w state.Waiting) bool { return w.For == state.WaitsLine }
	if w, err := r.table.mirror.AwaitWaiting(t.Context(), id, patience, reads); err != nil || !reads(w) {
		t.Fatalf("%+v, %v", w, err)
	}
	r.tmux("send-keys", "-t", own, "Enter")
	if run, err := r.table.mirror.AwaitRun(t.Context(), v["runId"].(string), patience); err != nil || !run.Ended() {
		t.Fatalf("%+v, %v", run, err)
	}
	if got := panes(); got == before {
		t.Error("the pane has gone before its output was read")
	}
	g := r.ok("get_run", args{"runId": v["runId"]})
	if g["output"] == "" || g["run"].(map[string]any)["exitStatus"] != 0.0 {
		t.Errorf("%v", g)
	}
	if got := panes(); got != before {
		t.Errorf("panes %q, before %q", got, before)
	}
	g = r.ok("get_run", args{"runId": v["runId"], "maxLines": 1}) // again, without a pane
	if g["output"] != "5000\n" {
		t.Errorf("%v", g)
	}
}
