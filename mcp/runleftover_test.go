package mcp

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// TestRunFindsOwnText: text that was typed through the daemon and not entered keeps
// a run from being typed behind it, in every shell, whatever marks its prompts; once
// it is not there any more, by whomever, nothing does.
func TestRunFindsOwnText(t *testing.T) {
	r := newRig(t, nil).start()
	for _, shell := range []string{plainBash, "zsh -f -i", "dash -i", "busybox ash -i", "mksh -i", "ksh93 -i", "fish --no-config"} {
		t.Run(shell, func(t *testing.T) {
			if name, _, _ := strings.Cut(shell, " "); !installed(name) {
				t.Skipf("%s is not installed", name)
			}
			pane := r.shellPane(shell)
			id, _ := controlmode.ParsePaneID(pane)
			line := func() string { return r.tmux("capture-pane", "-p", "-t", pane) }
			caught := func() { // the daemon has what tmux shows
				if _, err := r.table.mirror.Place(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			prompt := func() { // read, and drawn: fish moves the cursor about before
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				r.table.mirror.AwaitWaiting(ctx, id, patience, func(w state.Waiting) bool { return w.For == state.WaitsPrompt && w.Settled })
				r.until(func() bool {
					s := strings.TrimSpace(line())
					return s != "" && strings.ContainsAny(s[len(s)-1:], "#$%>")
				})
			}
			left := func(text string) {
				t.Helper()
				before := line()
				res := r.call("run_shell_command", args{"paneId": pane, "command": "echo no"})
				if !res.IsError || !strings.Contains(res.Text, "text on its command line") || !strings.Contains(res.Text, text) {
					t.Fatalf("%s", res.Text)
				}
				if after := line(); after != before {
					t.Errorf("something was typed:\n%s\nbefore:\n%s", after, before)
				}
			}
			for n, clears := range []func(){
				func() { r.ok("send_keys", args{"paneId": pane, "keys": "C-c"}) },
				func() { r.tmux("send-keys", "-t", pane, "C-c") }, // a person
				func() { r.tmux("send-keys", "-t", pane, "Enter") },
			} {
				prompt()
				if n > 0 { // at first nobody watches the pane
					caught()
				}
				text := fmt.Sprintf("echo left %d", n)
				r.ok("send_keys", args{"paneId": pane, "keys": "echo", "enter": false})
				r.until(func() bool { return strings.HasSuffix(strings.TrimSpace(line()), "echo") })
				caught()
				r.ok([]string{"send_keys", "paste_text", "send_keys"}[n], args{"paneId": pane, []string{"keys", "text", "keys"}[n]: text[4:], "enter": false})
				r.until(func() bool { return strings.HasSuffix(strings.TrimSpace(line()), text) })
				left(text[len("echo "):]) // at least what was typed last
				clears()
				r.until(func() bool { return !strings.HasSuffix(strings.TrimSpace(line()), text) })
				prompt()
				if v := r.runs(pane, "echo on"); v["output"] != "on\n" {
					t.Fatalf("%v", v)
				}
			}
			r.tmux("kill-pane", "-t", pane)
		})
	}
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
