package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestD08NoWriteIsRepeatedByABridge: a daemon that is killed after tmux has done
// what a call asked for, and before the call is answered, leaves a bridge whose
// client hears that nobody knows, with a place in the pane's output to go on from.
// The next daemon does not do it again, and knows the run that was begun.
func TestD08NoWriteIsRepeatedByABridge(t *testing.T) {
	x := startTmux(t)
	window := func(command string) string { return x.run("new-window", "-d", "-P", "-F", "#{pane_id}", command) }
	reader := window("stty raw -echo; echo ready; exec cat >" + filepath.Join(x.dir, "got"))
	until(t, "the program", func() bool { return strings.Contains(x.run("capture-pane", "-p", "-t", reader), "ready") })
	shell, spare := x.shellPane(), window("exec cat")
	prog, socket := program(t, raced), filepath.Join(x.dir, "m")
	env := append(slices.Clone(x.env), "GORACE=atexit_sleep_ms=0", "TMUX_MCPD_LISTEN="+socket,
		"TMUX_MCPD_TMUX_SOCKET_PATH="+x.sock, "TMUX_MCPD_TMUX_BIN="+x.bin, "XDG_STATE_HOME="+x.dir, "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown")
	t.Cleanup(func() { endDaemonOn(t, socket) })
	b := startBridge(t, env, prog, "stdio")
	b.waitsFor(shell, "prompt")

	// killed calls a tool; the daemon dies when tmux has run its command.
	killed := func(hook, tool string, a args) {
		t.Helper()
		b.ok(nil, "list_panes", args{}) // its ids are known to the next daemon's connection
		raw, err := b.request("tmux-mcpd/status", map[string]any{})
		var s struct{ PID int }
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil || s.PID == 0 {
			t.Fatalf("pid %d, %v", s.PID, err)
		}
		// Once, whatever the next daemon does.
		x.run("set-hook", "-g", hook, fmt.Sprintf("set-hook -gu %s ; run-shell 'kill -9 %d'", hook, s.PID))
		got := b.call(tool, a)
		if !got.isError || !strings.HasPrefix(got.text, "unknown: ") || !strings.Contains(got.text, "not sent again") {
			t.Errorf("%s: %s", tool, got.text)
		}
		cursors, _ := got.meta["tmux-mcpd/cursor"].(map[string]any) // a batch has one for each pane
		if one := got.meta["tmux-mcpd/cursor"]; cursors == nil && one != nil {
			cursors = map[string]any{reader: one}
			if tool != "send_keys" && tool != "paste_text" {
				cursors = map[string]any{shell: one}
			}
		}
		if wanted := tool != "rename_window" && tool != "create_window" && tool != "kill_pane"; len(cursors) == 0 && wanted { // that pane is gone
			t.Errorf("%s: no cursor", tool)
		}
		for pane, cursor := range cursors {
			b.ok(nil, "capture_since", args{"paneId": pane, "cursor": cursor})
		}
	}
	received := func(want string) {
		t.Helper()
		x.run("send-keys", "-t", reader, "-l", "|") // nothing is behind it
		until(t, "the input", func() bool {
			b, _ := os.ReadFile(filepath.Join(x.dir, "got"))
			return strings.HasSuffix(string(b), "|")
		})
		if got, _ := os.ReadFile(filepath.Join(x.dir, "got")); string(got) != want+"|" {
			t.Errorf("received %q, want %q", got, want)
		}
	}

	killed("after-send-keys", "send_keys", args{"paneId": reader, "keys": "a", "literal": true, "enter": false})
	received("a")
	killed("after-paste-buffer", "paste_text", args{"paneId": reader, "text": "b"})
	received("a|b")
	killed("after-send-keys", "send_keys_batch", args{"operations": []args{
		{"pane_id": reader, "keys": "c", "enter": false}, {"pane_id": reader, "keys": "never", "enter": false},
	}})
	received("a|b|c")
	killed("after-rename-window", "rename_window", args{"windowId": x.run("display-message", "-p", "-t", spare, "#{window_id}"), "name": "once"})
	killed("after-new-window", "create_window", args{"session": "main", "name": "made"})
	if n := strings.Count(x.run("list-windows", "-t", "main", "-F", "#{window_name}"), "made"); n != 1 {
		t.Errorf("made %d windows", n)
	}
	killed("after-kill-pane", "kill_pane", args{"paneId": spare})

	killed("after-send-keys", "run_shell_command", args{"paneId": shell, "command": "echo once >>ran; read x; exit 7"})
	var list runOf
	b.ok(&list, "list_runs", args{"paneId": shell})
	if len(list.Runs) != 1 || list.Runs[0].State != "running" {
		t.Fatalf("%+v", list)
	}
	b.waitsFor(shell, "line")
	x.run("send-keys", "-t", shell, "Enter")
	if got := b.ended(list.Runs[0].RunID); got.Run.State != "completed" || *got.Run.ExitStatus != 7 {
		t.Errorf("%+v", got)
	}
	if ran, err := os.ReadFile(filepath.Join(x.dir, "ran")); err != nil || string(ran) != "once\n" {
		t.Errorf("ran %q, %v", ran, err)
	}

	b.waitsFor(shell, "prompt")
	var run runOf
	b.ok(&run, "run_shell_command", args{"paneId": shell, "command": "trap 'echo int >>ints' INT; echo >ints; read x; read x; exit 9", "timeoutMs": 1})
	until(t, "the trap", func() bool { _, err := os.Stat(filepath.Join(x.dir, "ints")); return err == nil })
	b.waitsFor(shell, "line")
	killed("after-send-keys", "interrupt_run", args{"runId": run.RunID})
	x.run("send-keys", "-t", shell, "Enter", "Enter")
	if got := b.ended(run.RunID); got.Run.State != "completed" {
		t.Errorf("%+v", got)
	}
	if ints, err := os.ReadFile(filepath.Join(x.dir, "ints")); err != nil || string(ints) != "\nint\n" {
		t.Errorf("interrupted %q, %v", ints, err)
	}
}
