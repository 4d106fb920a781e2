package mcp

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// busy waits until a pane's program reads nothing.
func (r *rig) busy(pane string) {
	r.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		r.Skip("what a terminal waits for is read from /proc, which this system lacks")
	}
	id, err := controlmode.ParsePaneID(pane)
	if err != nil {
		r.Fatal(err)
	}
	w, err := r.table.mirror.AwaitWaiting(r.Context(), id, patience, func(w state.Waiting) bool { return w.For == state.WaitsBusy })
	if err != nil || w.For != state.WaitsBusy {
		r.Fatalf("%s is not busy: %+v, %v", pane, w, err)
	}
}

// TestInputIsHeld: what is to be typed into a pane that does not read is held as
// long as the caller says, and typed once the pane reads, or not at all.
func TestInputIsHeld(t *testing.T) {
	for tool, a := range map[string]args{"send_keys": {"keys": "held"}, "paste_text": {"text": "held", "enter": true}} {
		t.Run(tool, func(t *testing.T) {
			r := newRig(t, nil).start()
			path, open := r.gate("gate")
			pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", fmt.Sprintf("read x <%s; exec cat", path))
			r.busy(pane)
			a["paneId"], a["waitReadyMs"] = pane, 50
			r.refused(tool, a, "did not read input within 50 ms, nothing was typed", "waiting for busy", "Hold it longer")
			a["waitReadyMs"] = patience.Milliseconds()
			done := make(chan error, 1)
			go func() {
				res, err := r.table.call(r.Context(), r.caller, tool, encodeOnce(a), nil)
				if err == nil && res.IsError {
					err = fmt.Errorf("%s", res.Text)
				}
				done <- err
			}()
			if got := strings.TrimSpace(r.tmux("capture-pane", "-p", "-t", pane)); got != "" {
				t.Errorf("typed into a busy pane: %q", got)
			}
			open()
			if err := await(t, done, "the held input"); err != nil {
				t.Fatal(err)
			}
			r.until(func() bool { return strings.TrimSpace(r.tmux("capture-pane", "-p", "-t", pane)) == "held\nheld" })
		})
	}
}

// TestRunIsHeld: a run can be held until the shell is at its prompt again.
func TestRunIsHeld(t *testing.T) {
	r := newRig(t, nil).start()
	pane := r.shellPane(plainBash)
	path, open := r.gate("gate")
	r.ok("send_keys", args{"paneId": pane, "keys": "read x <" + path})
	r.busy(pane)
	r.refused("run_shell_command", args{"paneId": pane, "command": "echo ran", "waitReadyMs": 50}, "nothing was typed", "waiting for busy")
	done := make(chan *toolResult, 1)
	go func() {
		res, err := r.table.call(r.Context(), r.caller, "run_shell_command",
			encodeOnce(args{"paneId": pane, "command": "echo ran", "waitReadyMs": patience.Milliseconds()}), nil)
		if err != nil {
			res = errorResult(err.Error())
		}
		done <- res
	}()
	open()
	if res := await(t, done, "the held run"); res.IsError || !strings.Contains(res.Text, "ran") {
		t.Errorf("%+v", res)
	}
}

// TestHoldIsBounded: the connection's ceiling bounds it.
func TestHoldIsBounded(t *testing.T) {
	c := &call{sel: &selection{}}
	c.sel.limits.wait = 7 * time.Millisecond
	if got := c.wait(1 << 40); got != 7*time.Millisecond {
		t.Errorf("%v", got)
	}
}
