package mcp

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// R02: what runs in the pane decides how a command is framed, and whether at all:
// each known shell has its form, anything else is refused by name, and nothing
// is typed into it.
func TestR02FramedForWhatIsRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	for _, shell := range []string{"dash -i", "fish --private", plainBash} {
		if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		v := r.runs(r.shellPane(shell), "echo hi; exit 5")
		if v["outcome"] != "completed" || v["exitStatus"] != 5.0 || v["output"] != "hi\n" {
			t.Errorf("%s: %v", shell, v)
		}
	}
	refused := 0
	for program, what := range map[string]string{
		"exec cat": "cat", "exec sleep 1000": "sleep", "exec less /etc/passwd": "less", "exec python3 -q": "python", "exec vi": "vi",
	} {
		name := strings.Fields(program)[1]
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not here", name)
			continue
		}
		pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", program)
		r.until(func() bool {
			return strings.HasPrefix(r.tmux("display-message", "-p", "-t", pane, "#{pane_current_command}"), what)
		})
		before := r.tmux("capture-pane", "-p", "-t", pane)
		r.refused("run_shell_command", args{"paneId": pane, "command": "echo TYPED"}, "not at the prompt of a known shell", what)
		if after := r.tmux("capture-pane", "-p", "-t", pane); strings.Contains(after, "TYPED") || strings.Contains(after, `\.`) {
			t.Errorf("%s: the pane showed\n%s\nand shows\n%s", name, before, after)
		}
		refused++
	}
	if refused < 2 {
		t.Errorf("only %d programs were tried", refused)
	}
}

// R05: tmux itself runs nothing for a run: no pane of a person gets a view of
// output it did not ask for, which would swallow keys.
func TestR05NoPaneGetsAView(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "default-command", plainBash)
	pane := r.shellPane(plainBash)
	r.runs(pane, "seq 1 50; echo err >&2; exit 1")
	r.ok("run_shell_command", args{"paneId": pane, "command": "seq 1 50", "newPane": true})
	for line := range strings.Lines(r.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_in_mode} #{pane_mode}") + "\n") {
		var id string
		var modes int
		if fmt.Sscan(line, &id, &modes); modes != 0 {
			t.Errorf("%s", line)
		}
	}
}
