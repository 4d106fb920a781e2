package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tmux-mcpd/state"
)

// markedShell is the pane of a bash that marks its commands.
func (r *rig) markedShell(t *testing.T) string {
	t.Helper()
	rc := filepath.Join(shortDir(t), "rc")
	if err := os.WriteFile(rc, []byte("PS1='$ '\nHISTFILE=\n"+state.Integration(state.ShellBash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r.shellPane("bash --rcfile " + rc + " -i")
}

// listed are the commands of a pane; done tells how many must have ended.
func (r *rig) listed(pane string, done int) (v map[string]any, rows []map[string]any) {
	r.Helper()
	r.until(func() bool {
		v, rows = r.ok("list_commands", args{"paneId": pane}), nil
		ended := 0
		for _, c := range v["commands"].([]any) {
			rows = append(rows, c.(map[string]any))
			if rows[len(rows)-1]["state"] != "running" {
				ended++
			}
		}
		return ended >= done
	})
	return v, rows
}

func TestCommands(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.markedShell(t)
	before := r.ok("what_changed", nil)["cursor"]
	v, rows := r.listed(pane, 0)
	if len(rows) != 0 || v["complete"] != true || v["marksSeen"] != false || v["gap"] != nil || !strings.Contains(v["hint"].(string), "PS0=") ||
		strings.Contains(v["hint"].(string), "zsh") {
		t.Errorf("%v", v)
	}
	r.refused("get_command_output", args{"paneId": pane}, "no command of pane "+pane+" has ended since", "PS0=")
	r.types(pane, "seq 1000; false")
	r.listed(pane, 1) // what is typed while it runs is echoed into its output
	ended := r.waiting("wait_for", args{"conditions": []args{{"kind": "command_ended", "paneId": pane}}, "timeoutMs": 100_000})
	r.types(pane, "echo small")
	if m := r.matchedOne(r.end("wait_for", ended)); m["paneId"] != pane || !strings.Contains(m["evidence"].(string), "echo small -> status 0") {
		t.Errorf("%v", m)
	}
	v, rows = r.listed(pane, 2)
	if v["hint"] != nil || v["marksSeen"] != true || len(rows) != 2 {
		t.Fatalf("%v", v)
	}
	big, small := rows[0], rows[1]
	for key, want := range map[string]any{"state": "completed", "exitStatus": 1.0, "commandLine": "seq 1000; false", "outputComplete": true, "runId": nil} {
		if big[key] != want {
			t.Errorf("%s is %v, want %v", key, big[key], want)
		}
	}
	g := r.ok("get_command_output", args{"paneId": pane})
	if g["output"] != "small\n" || g["command"].(map[string]any)["commandId"] != small["commandId"] || g["returnedBytes"] != 6.0 || g["more"] != false {
		t.Errorf("%v", g)
	}
	g = r.ok("get_command_output", args{"paneId": pane, "commandId": big["commandId"], "maxLines": 2})
	if g["output"] != "999\n1000\n" || g["droppedLines"] != 998.0 {
		t.Errorf("%v", g)
	}
	all, cursor := "", big["cursor"]
	for more := true; more; {
		g = r.ok("get_command_output", args{"paneId": pane, "commandId": big["commandId"], "cursor": cursor, "maxLines": 170})
		if g["droppedLines"] != 0.0 || g["missedBytes"] != 0.0 {
			t.Fatalf("%v", g)
		}
		all, cursor, more = all+g["output"].(string), g["cursor"], g["more"].(bool)
	}
	if lines := strings.Split(all, "\n"); len(lines) != 1001 || lines[0] != "1" || lines[999] != "1000" {
		t.Errorf("%d lines: %.40q", len(lines), all)
	}
	one := r.ok("list_commands", args{"paneId": pane, "maxEntries": 1})
	if one["complete"] != false || one["omittedEntries"] != 1.0 || len(one["commands"].([]any)) != 1 {
		t.Errorf("%v", one)
	}
	r.refused("get_command_output", args{"paneId": pane, "commandId": "c1"}, "has no command \"c1\"", big["commandId"].(string))
	r.refused("get_command_output", args{"paneId": pane, "cursor": r.cursorOf("%0")}, "cursor")
	r.refused("list_commands", args{"paneId": "%77"}, "does not exist")
	got := r.events(before, pane, 4)
	want := []string{
		got[0], // with the line or without: its prompt may not be known yet
		"command_ended seq 1000; false>status 1",
		"command_started <nil>>echo small", "command_ended echo small>status 0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

// events are the first so many of runs and commands in a pane after a cursor.
func (r *rig) events(cursor any, pane string, n int) (got []string) {
	r.Helper()
	kinds := []state.ChangeKind{state.CommandStarted, state.CommandEnded, state.RunStarted, state.RunEnded}
	r.until(func() bool {
		v := r.ok("what_changed", args{"cursor": cursor, "kinds": kindNames(kinds), "waitMs": 1000, "paneId": pane})
		for _, e := range v["events"].([]any) {
			e := e.(map[string]any)
			got = append(got, fmt.Sprintf("%v %v>%v", e["kind"], e["before"], e["after"]))
		}
		cursor = v["cursor"]
		return len(got) >= n
	})
	return got
}

// TestCommandsAndRuns: a run is one command, with its id, its own status and
// output, whether the shell marks it too or not, and its events are those of a
// run.
func TestCommandsAndRuns(t *testing.T) {
	r := newRig(t, nil).start()
	for _, pane := range []string{r.shellPane(plainBash), r.markedShell(t)} {
		before := r.ok("what_changed", nil)["cursor"]
		run := r.runs(pane, `printf '\033]133;D;7\007\033]133;C\007'; echo out; exit 3`)
		_, rows := r.listed(pane, 1)
		if len(rows) != 1 {
			t.Fatalf("%v", rows)
		}
		c := rows[0]
		if c["runId"] != run["runId"] || c["exitStatus"] != 3.0 || c["state"] != "completed" || c["commandLine"] != nil ||
			c["durationMs"] != run["durationMs"] || c["outputComplete"] != true {
			t.Errorf("%v, the run %v", c, run)
		}
		if g := r.ok("get_command_output", args{"paneId": pane}); g["output"] != "out\n" {
			t.Errorf("%v", g)
		}
		id := run["runId"].(string)
		if got := r.events(before, pane, 2); len(got) != 2 || got[0] != "run_started <nil>>"+id || got[1] != "run_ended "+id+">status 3" {
			t.Errorf("%q", got)
		}
		if _, rows = r.listed(pane, 0); len(rows) != 1 {
			t.Errorf("%v", rows)
		}
		if pane != "%2" {
			continue
		}
		// A command that prints the marks of a run is not that run, and leaves it alone.
		r.types(pane, `printf '\033]133;C;aid=`+id+`\007\033]133;D;9;aid=`+id+`\007'`)
		if _, rows = r.listed(pane, 2); len(rows) != 2 || rows[0]["exitStatus"] != 3.0 || rows[1]["runId"] != nil || rows[1]["exitStatus"] != 0.0 {
			t.Errorf("%v", rows)
		}
	}
	r.refused("get_command_output", args{"paneId": "%0"}, "no command of pane %0 has ended since", "zsh:", "fish:")
}

// TestCommandSecrets: neither command lines nor output, in whatever pages, nor
// events show secrets.
func TestCommandSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	pane := r.markedShell(t)
	r.listed(pane, 0)
	before := r.ok("what_changed", nil)["cursor"]
	file := filepath.Join(shortDir(t), "text")
	var text strings.Builder
	for _, p := range planted {
		fmt.Fprintf(&text, "padding that lets the row wrap somewhere in the middle: "+p.around+"\n", p.secret)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	word := ""
	for _, p := range planted {
		if !strings.ContainsAny(p.secret, "\n '") {
			word = fmt.Sprintf(p.around, p.secret)
			break
		}
	}
	r.types(pane, "cat "+file+" # "+strings.ReplaceAll(word, "'", ""))
	_, rows := r.listed(pane, 1)
	p, err := newPolicy(r.table, PolicyConfig{Redact: true, Toolsets: []string{"inspect"}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, a args, must bool) {
		t.Helper()
		frame := string(r.frameOf(name, a))
		found := ""
		for _, p := range planted {
			if f := shows(frame, p.secret); f != "" {
				found = f
			}
		}
		if (found != "") != must {
			t.Errorf("%s %v shows %q:\n%.3000s", name, a, found, frame)
		}
	}
	for _, open := range []bool{true, false} {
		if !open {
			r.caller = &Caller{policy: p}
		}
		check("list_commands", args{"paneId": pane}, open)
		check("what_changed", args{"cursor": before, "paneId": pane}, open)
		check("get_command_output", args{"paneId": pane}, open)
	}
	for _, lines := range []int{1, 2, 3, 7} {
		cursor := rows[0]["cursor"]
		for more := true; more; {
			a := args{"paneId": pane, "cursor": cursor, "maxLines": lines}
			check("get_command_output", a, false)
			g := r.ok("get_command_output", a)
			cursor, more = g["cursor"], g["more"].(bool)
		}
		check("get_command_output", args{"paneId": pane, "maxLines": lines}, false)
	}
}
