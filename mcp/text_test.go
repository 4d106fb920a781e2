package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waiting begins a call that waits, and comes back when its wait has begun.
func (r *rig) waiting(name string, a args) <-chan *toolResult {
	r.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		r.Fatal(err)
	}
	before := r.table.mirror.Status().Followers
	panes := map[any]bool{a["paneId"]: true}
	if list, ok := a["conditions"].([]args); ok {
		clear(panes)
		for _, c := range list {
			if c["paneId"] != nil {
				panes[c["paneId"]] = true
			}
		}
	}
	ended := make(chan *toolResult, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	r.Cleanup(cancel)
	go func() {
		defer close(ended)
		res, err := r.table.call(ctx, r.caller, name, raw, func(string) {})
		if err != nil {
			r.Errorf("%s: %v", name, err)
			return
		}
		ended <- res
	}()
	r.until(func() bool { return r.table.mirror.Status().Followers >= before+len(panes) || len(ended) > 0 })
	return ended
}

// end gives the structured half of a call that must succeed.
func (r *rig) end(name string, ended <-chan *toolResult) map[string]any {
	r.Helper()
	res := await(r.TB, ended, name)
	if res == nil || res.IsError {
		r.Fatalf("%s: %+v", name, res)
	}
	return checkAnswer(r, r.table, name, res)
}

// text waits for text at most a moment: what tmux has received already counts.
func (r *rig) text(pane string, a args) map[string]any {
	r.Helper()
	a = maps.Clone(a)
	a["paneId"], a["timeoutMs"] = pane, 1
	return r.ok("wait_for_text", a)
}

// cursorOf is the end of a pane's output.
func (r *rig) cursorOf(pane string) any {
	r.Helper()
	return r.ok("capture_since", args{"paneId": pane})["cursor"]
}

// gate is a named pipe: a program that reads it goes on when it is opened.
func (r *rig) gate(name string) (path string, open func()) {
	r.Helper()
	path = filepath.Join(filepath.Dir(r.sock), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.Fatal(err)
	}
	return path, func() {
		if err := os.WriteFile(path, []byte("\n"), 0); err != nil {
			r.Fatal(err)
		}
	}
}

// shell is a pane with a shell, at its prompt.
func (r *rig) shell(command, prompt string) string {
	r.Helper()
	// Not by the window's environment: the shell between sets its own PS1.
	id := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "exec env HISTFILE= 'PS1="+prompt+"' "+command)
	r.until(func() bool { return strings.ContainsAny(r.tmux("capture-pane", "-p", "-t", id), "$#") })
	return id
}

// types types a line through the daemon.
func (r *rig) types(pane, line string) {
	r.Helper()
	r.ok("send_keys", args{"paneId": pane, "keys": line, "literal": true})
}

func (r *rig) shows(pane, text string) {
	r.Helper()
	r.until(func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-J", "-t", pane), text) })
}

// TestW01EchoOfTypedCommand: the echo of what was typed through the daemon does
// not end a wait, from a cursor taken before it or from now, in a line editor or
// in a program that reads lines.
func TestW01EchoOfTypedCommand(t *testing.T) {
	for _, shell := range []string{"bash --norc --noprofile", "dash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil).start()
			gate, open := r.gate("g")
			pane := r.shell(shell, "$ ")
			cursor := r.cursorOf(pane)
			line := fmt.Sprintf("read x < %s; echo READY-7", gate)
			now := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"READY-7"}, "timeoutMs": 40000})
			r.types(pane, line)
			r.shows(pane, "READY-7")
			want := args{"patterns": []string{"READY-7"}, "cursor": cursor}
			if v := r.text(pane, want); v["outcome"] != outcomeTimedOut || v["matched"] != nil || v["alreadyOnScreen"] != false {
				t.Fatalf("the echo: %v", v)
			}
			want["includeEcho"] = true
			if v := r.text(pane, want); v["outcome"] != outcomeMatched {
				t.Fatalf("the echo, asked for: %v", v)
			}
			delete(want, "includeEcho")
			open()
			v := r.end("wait_for_text", now)
			if v["outcome"] != outcomeMatched || v["matched"] != "READY-7" || !strings.Contains(v["output"].(string), "\nREADY-7\n") {
				t.Errorf("%v", v)
			}
			if v := r.text(pane, want); v["outcome"] != outcomeMatched {
				t.Errorf("from the cursor: %v", v)
			}
		})
	}
}

// TestW01EchoWhileAnotherCommandRuns: what is typed ahead is echoed by the
// terminal, and once more by the line editor when it comes to read it.
func TestW01EchoWhileAnotherCommandRuns(t *testing.T) {
	r := newRig(t, nil).start()
	first, openFirst := r.gate("a")
	second, openSecond := r.gate("b")
	pane := r.shell("bash --norc --noprofile", "$ ")
	cursor := r.cursorOf(pane)
	r.types(pane, "echo go; read x < "+first)
	r.shows(pane, "\ngo\n") // the terminal is no line editor's any more
	line := "read y < " + second + "; echo READY-7"
	r.types(pane, line)
	r.shows(pane, "READY-7")
	want := args{"patterns": []string{"READY-7"}, "cursor": cursor}
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut {
		t.Fatalf("the terminal's echo: %v", v)
	}
	openFirst()
	r.shows(pane, " "+line) // behind the prompt
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut {
		t.Fatalf("the line editor's echo: %v", v)
	}
	openSecond()
	want["paneId"] = pane
	if v := r.ok("wait_for_text", want); v["outcome"] != outcomeMatched {
		t.Fatalf("%v", v)
	}
}

// TestW01EchoedLineIsNotTheAnswer: a program that repeats what was typed has
// answered, though the text is the same.
func TestW01EchoedLineIsNotTheAnswer(t *testing.T) {
	r := newRig(t, nil).start()
	gate, open := r.gate("g")
	pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", fmt.Sprintf("read l; read x < %s; echo \"$l\"; exec cat", gate))
	cursor := r.cursorOf(pane)
	r.types(pane, "READY-7")
	r.shows(pane, "READY-7")
	want := args{"patterns": []string{"READY-7"}, "cursor": cursor}
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut {
		t.Fatalf("the echo: %v", v)
	}
	open()
	want["paneId"] = pane
	if v := r.ok("wait_for_text", want); v["outcome"] != outcomeMatched || v["output"] != "READY-7\nREADY-7\n" {
		t.Fatalf("%v", v)
	}
}

// TestW01ShellMarksTellTypedText: with OSC 133 marks what a person types is known
// for it, too.
func TestW01ShellMarksTellTypedText(t *testing.T) {
	r := newRig(t, nil).start()
	gate, open := r.gate("g")
	pane := r.shell("bash --norc --noprofile", `\[\e]133;A\a\]$ \[\e]133;B\a\]`)
	r.cursorOf(pane)
	r.tmux("send-keys", "-t", pane, "Enter") // a prompt that the daemon has received
	r.until(func() bool { return strings.Count(r.tmux("capture-pane", "-p", "-t", pane), "$") == 2 })
	cursor := r.cursorOf(pane)
	r.tmux("send-keys", "-t", pane, "-l", "read x < "+gate+"; echo READY-7")
	r.tmux("send-keys", "-t", pane, "Enter")
	r.shows(pane, "READY-7")
	want := args{"patterns": []string{"READY-7"}, "cursor": cursor}
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut {
		t.Fatalf("the echo: %v", v)
	}
	open()
	want["paneId"] = pane
	if v := r.ok("wait_for_text", want); v["outcome"] != outcomeMatched {
		t.Fatalf("%v", v)
	}
}

// TestW01Case32: a wait that begins after a line with the text is out.
func TestW01Case32(t *testing.T) {
	r := newRig(t, nil).start()
	gate, open := r.gate("g")
	pane := r.printed("c", `'$ sleep 4; echo READY-7\n'`)
	r.tmux("kill-pane", "-t", pane)
	pane = r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}",
		fmt.Sprintf(`printf '$ sleep 4; echo READY-7\n'; read x < %s; printf 'READY-7\n$ '; exec cat`, gate))
	r.shows(pane, "READY-7")
	want := args{"patterns": []string{"READY-7"}}
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut || v["alreadyOnScreen"] != true {
		t.Fatalf("the line before: %v", v)
	}
	now := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"READY-7"}})
	line := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"^READY-7$"}, "regex": true, "includeScreen": true})
	open()
	for _, ended := range []<-chan *toolResult{now, line} {
		if v := r.end("wait_for_text", ended); v["outcome"] != outcomeMatched || v["alreadyOnScreen"] != false {
			t.Errorf("%v", v)
		}
	}
}

// TestW02OldText: text that is there already does not match unless asked for,
// and the answer says which it was.
func TestW02OldText(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.printed("p", `'BUILD OK\nnext\n'`)
	want := args{"patterns": []string{"BUILD OK"}}
	if v := r.text(pane, want); v["outcome"] != outcomeTimedOut || v["alreadyOnScreen"] != true || !strings.Contains(v["screen"].(string), "BUILD OK") {
		t.Errorf("%v", v)
	}
	want["includeScreen"] = true
	if v := r.text(pane, want); v["outcome"] != outcomeMatched || v["alreadyOnScreen"] != true || v["screen"] != "" {
		t.Errorf("asked for: %v", v)
	}
	delete(want, "includeScreen")
	want["paneId"] = pane
	again := r.waiting("wait_for_text", want)
	r.tmux("send-keys", "-t", pane, "-l", "the BUILD OK")
	r.tmux("send-keys", "-t", pane, "Enter")
	if v := r.end("wait_for_text", again); v["outcome"] != outcomeMatched || v["alreadyOnScreen"] != false || v["output"] != "the BUILD OK\n" {
		t.Errorf("new: %v", v)
	}
}

// TestW04EndOfPaneAndServer: a wait ends with the reason when what it waits for
// cannot come any more, and what was printed last counts before that.
func TestW04EndOfPaneAndServer(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     func(r *rig, pane string)
		outcome string
		failure any
		cursor  bool
	}{
		{"kill-pane", func(r *rig, pane string) { r.tmux("kill-pane", "-t", pane) }, outcomePaneDied, nil, true},
		{"exit", func(r *rig, pane string) { r.tmux("send-keys", "-t", pane, "C-d") }, outcomePaneDied, nil, true},
		{"dead", func(r *rig, pane string) {
			r.tmux("set-option", "-p", "-t", pane, "remain-on-exit", "on")
			r.tmux("send-keys", "-t", pane, "C-d")
		}, outcomePaneDied, nil, true},
		{"kill-server", func(r *rig, pane string) { r.tmux("kill-server") }, outcomeStreamLost, failureConnection, false},
		{"pause", func(r *rig, pane string) {
			for _, c := range strings.Fields(r.tmux("list-clients", "-F", "#{client_name}")) {
				r.command("refresh-client", "-t", c, "-A", pane+":pause").Run()
			}
		}, outcomeStreamLost, failureDropped, true},
		{"other session", func(r *rig, pane string) {
			r.tmux("move-pane", "-d", "-s", pane, "-t", "aside:")
		}, outcomeStreamLost, failureTopology, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil).start()
			r.tmux("new-session", "-d", "-s", "aside", "-x", "80", "-y", "24", "cat")
			pane := r.printed("p", `'hello\n'`, "-t", "main:")
			ended := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"never"}, "timeoutMs": 55000})
			c.end(r, pane)
			v := r.end("wait_for_text", ended)
			if v["outcome"] != c.outcome || v["streamFailure"] != c.failure || (v["cursor"] != nil) != c.cursor {
				t.Errorf("%v", v)
			}
		})
	}
}

// TestW04LastWordsCount: text that a program prints just before it ends is seen.
func TestW04LastWordsCount(t *testing.T) {
	for _, remain := range []string{"off", "on"} {
		t.Run(remain, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil).start()
			gate, open := r.gate("g")
			r.tmux("set-option", "-g", "remain-on-exit", remain)
			pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", fmt.Sprintf("read x < %s; echo FAREWELL", gate))
			ended := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"FAREWELL"}, "timeoutMs": 55000})
			open()
			v := r.end("wait_for_text", ended)
			// tmux forgets what a closed pane has printed and it has not sent yet.
			if v["outcome"] != outcomeMatched && (remain == "on" || v["outcome"] != outcomePaneDied) {
				t.Errorf("%v", v)
			}
		})
	}
}

// TestW05ColouredWrappedUnfinished: lines are matched as they look, an unfinished
// one too, and anchors mean lines.
func TestW05ColouredWrappedUnfinished(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-session", "-d", "-s", "narrow", "-x", "10", "-y", "6", "cat")
	gate, open := r.gate("g")
	pane := r.tmux("new-window", "-d", "-t", "narrow:", "-P", "-F", "#{pane_id}",
		fmt.Sprintf(`read x < %s; printf '12345678\033[31mREA\033[0mDY\n\nsure? [y/n] '; exec cat`, gate))
	cursor := r.cursorOf(pane)
	open()
	for _, p := range []struct {
		pattern string
		regex   bool
	}{
		{"READY", false}, {"^12345678READY$", true}, {"8READY", false}, {"? [y/n] ", false}, {`^sure\? .* $`, true}, {"", true},
	} {
		if p.pattern == "" {
			continue
		}
		v := r.ok("wait_for_text", args{"paneId": pane, "patterns": []string{p.pattern}, "regex": p.regex, "cursor": cursor})
		if v["outcome"] != outcomeMatched || v["matched"] != p.pattern {
			t.Errorf("%q: %v", p.pattern, v)
		}
	}
	if v := r.text(pane, args{"patterns": []string{"^READY"}, "regex": true, "cursor": cursor}); v["outcome"] != outcomeTimedOut {
		t.Errorf("a row is no line: %v", v)
	}
	r.refused("wait_for_text", args{"paneId": pane, "patterns": []string{"(?=x)"}, "regex": true}, "RE2")
	r.refused("wait_for_text", args{"paneId": pane, "patterns": []string{"a\nb"}}, "line feed")
	r.refused("wait_for_text", args{"paneId": "%99"}, "pane %99 does not exist")
	r.refused("wait_for_text", args{"paneId": "%0", "cursor": cursor}, "belongs to pane")
}

// TestWaitForTextSplitAndColoured: a text that comes in three writes with a
// colour in the middle of it.
func TestWaitForTextSplitAndColoured(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}",
		`stty -echo; echo begun; read x; printf 'READ'; read x; printf '\033[1;3'; read x; printf '5mY-7\033[0m'; exec cat`)
	r.shows(pane, "begun")
	ended := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"READY-7"}, "timeoutMs": 50000})
	for range 3 {
		r.tmux("send-keys", "-t", pane, "Enter")
	}
	if v := r.end("wait_for_text", ended); v["outcome"] != outcomeMatched || v["output"] != "READY-7" {
		t.Errorf("%v", v)
	}
}

// TestWaitForTextStops: failure patterns, any output, and progress bars.
func TestWaitForTextStops(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}",
		`stty -echo; echo begun; read x; printf '10%%\r50%%\r100%%'; read x; printf '\nerror: no\ndone\n'; exec cat`)
	r.shows(pane, "begun")
	any := r.waiting("wait_for_text", args{"paneId": pane})
	bar := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"100%"}})
	stop := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"done"}, "stop": []string{"error:", "fatal"}})
	r.tmux("send-keys", "-t", pane, "Enter")
	if v := r.end("wait_for_text", bar); v["outcome"] != outcomeMatched {
		t.Errorf("progress: %v", v)
	}
	if v := r.end("wait_for_text", any); v["outcome"] != outcomeMatched || v["matched"] != v["output"] {
		t.Errorf("any output: %v", v)
	}
	r.tmux("send-keys", "-t", pane, "Enter")
	if v := r.end("wait_for_text", stop); v["outcome"] != outcomeStopped || v["matched"] != "error:" || v["screen"] != "" {
		t.Errorf("stop: %v", v)
	}
}

// TestWaitForTextAmongManyLines: one marker among 100,000 lines is always seen.
func TestWaitForTextAmongManyLines(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "history-limit", "200000") // should this machine be so slow that tmux pauses the pane
	gate, open := r.gate("g")
	pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}",
		fmt.Sprintf(`read x < %s; awk 'BEGIN { for (i = 0; i < 100000; i++) print (i == 54321 ? "MARK" "ER" : i) }'; exec cat`, gate))
	cursor := r.cursorOf(pane)
	ended := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"MARKER"}, "timeoutMs": 300000, "maxLines": 3})
	open()
	// Checked for races and beside other work, this takes minutes.
	if v := checkAnswer(t, r.table, "wait_for_text", <-ended); v["outcome"] != outcomeMatched {
		t.Errorf("%v", v)
	}
	last := r.waiting("wait_for_text", args{"paneId": pane, "patterns": []string{"99999"}, "cursor": cursor, "timeoutMs": 300000, "maxLines": 3})
	if v := checkAnswer(t, r.table, "wait_for_text", <-last); v["outcome"] != outcomeMatched {
		t.Errorf("the end: %v", v)
	}
}

// TestW08WaitsEndInTime: what is asked for is clamped, and said.
func TestW08WaitsEndInTime(t *testing.T) {
	r := newRig(t, nil).start()
	cursor := r.cursorOf("%0")
	r.say("%0", "here")
	call := func(ms int, progress func(string)) float64 {
		a := args{"paneId": "%0", "patterns": []string{"here"}, "cursor": cursor}
		if ms > 0 {
			a["timeoutMs"] = ms
		}
		raw, _ := json.Marshal(a)
		res, err := r.table.call(t.Context(), r.caller, "wait_for_text", raw, progress)
		if err != nil {
			t.Fatal(err)
		}
		return checkAnswer(t, r.table, "wait_for_text", res)["effectiveTimeoutMs"].(float64)
	}
	told := func(string) {}
	for _, c := range []struct {
		ms       int
		progress func(string)
		want     float64
	}{{0, nil, 25_000}, {0, told, 25_000}, {300_000, nil, 55_000}, {300_000, told, 300_000}, {3_600_000, told, 600_000}, {7, nil, 7}} {
		if got := call(c.ms, c.progress); got != c.want {
			t.Errorf("timeoutMs %d, progress %t: %v, want %v", c.ms, c.progress != nil, got, c.want)
		}
	}
	narrow := &Caller{Hello: Hello{Env: map[string]string{envWaitMax: "2000"}}}
	r.caller = narrow
	if got := call(300_000, told); got != 2000 {
		t.Errorf("a connection's own ceiling: %v", got)
	}
}
