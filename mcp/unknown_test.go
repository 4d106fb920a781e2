package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// client is the pid of the daemon's client with the flag: no-output of the
// structure client, which most writes go through, pause-after of the one that
// receives output, which input goes through once it is received.
func (r *rig) client(flag string) (pid string) {
	r.Helper()
	r.until(func() bool {
		for _, line := range strings.Split(r.tmux("list-clients", "-F", "#{client_pid} #{client_flags}"), "\n") {
			if id, flags, _ := strings.Cut(line, " "); strings.Contains(flags, flag) {
				pid = id
			}
		}
		return pid != ""
	})
	return pid
}

// unknown checks that an answer says that nobody knows, and where to look.
func unknown(t testing.TB, res *toolResult) (cursor string) {
	t.Helper()
	cursor, _ = res.Meta[metaCursor].(string)
	if !res.IsError || !strings.HasPrefix(res.Text, "unknown: ") || !strings.Contains(res.Text, "not sent again") || cursor == "" ||
		!strings.Contains(res.Text, "cursor "+cursor) {
		t.Errorf("%v %s", res.Meta, res.Text)
	}
	return cursor
}

// TestD08NoWriteIsRepeated: when tmux or the connection to it dies after a write
// was handed over and before its answer came, the answer says that nobody knows,
// with a cursor; and the write was made once. (The daemon's half; a daemon that is
// killed is the bridge's.)
func TestD08NoWriteIsRepeated(t *testing.T) {
	calls := map[string]func(id string) args{
		"send_keys":  func(id string) args { return args{"paneId": id, "keys": "once"} },
		"paste_text": func(id string) args { return args{"paneId": id, "text": "once"} },
	}
	for name, of := range calls {
		after := map[string]string{"send_keys": "after-send-keys", "paste_text": "after-paste-buffer"}[name]
		kill := func(flag string) func(r *rig) string {
			return func(r *rig) string {
				pid := r.client(flag) // tmux writes to its terminal itself, until it has noticed
				return fmt.Sprintf("kill -9 %s; while %s -S %s list-clients -F '#{client_pid}' | grep -q '^%s$'; do :; done", pid, r.bin, r.sock, pid)
			}
		}
		for _, c := range []struct {
			what    string
			hook    func(r *rig) string // runs when tmux has done it, before it answers
			watched bool                // the pane's output is received already
			gone    bool                // tmux is
		}{
			{"tmux killed", func(r *rig) string { return "kill -9 " + r.tmux("display-message", "-p", "#{pid}") }, false, true},
			{"connection killed", kill("no-output"), false, false},
			{"connection of the output killed", kill("pause-after"), true, false},
		} {
			if c.watched && name != "send_keys" {
				continue // goes through the structure client always
			}
			t.Run(name+" "+c.what, func(t *testing.T) {
				r := newRig(t, nil).start()
				y := r.raw("raw")
				r.ok("list_panes", nil)
				if c.watched {
					r.ok("capture_since", args{"paneId": y.id})
				}
				r.tmux("set-hook", "-g", after, fmt.Sprintf("run-shell %q", strings.ReplaceAll(c.hook(r), "#", "##")))
				cursor := unknown(t, r.call(name, of(y.id)))
				if c.gone { // what tmux had not written yet is lost with it
					if got := readAll(t, y.file); got != "" && got != "once" && got != "once\r" {
						t.Errorf("received %q", got)
					}
					return
				}
				r.tmux("set-hook", "-gu", after)
				if name == "send_keys" { // the rest of the line ran or not, but once
					if got := y.got(4); got != "once" && got != "once\r" {
						t.Errorf("received %q", got)
					}
				}
				r.ok("capture_since", args{"paneId": y.id, "cursor": cursor})
				if n := strings.Count(readAll(t, y.file), "once"); n != 1 {
					t.Errorf("made %d times", n)
				}
				r.noBuffers()
			})
		}
	}
}

// TestD08ChangesAtTheEnd: a call that the daemon's end cuts off after it has
// changed something does not invite the caller to call again.
func TestD08ChangesAtTheEnd(t *testing.T) {
	r := newRig(t, nil).start()
	r.caller = everyTool()
	// cut calls a tool, ends the daemon when ready says so, and answers the result.
	cut := func(t *testing.T, tool string, a args, ready func()) *toolResult {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		done := make(chan *toolResult, 1)
		go func() {
			defer close(done)
			res, err := r.table.call(ctx, r.caller, tool, encodeOnce(a), nil)
			if err != nil {
				t.Error(err)
				return
			}
			done <- res
		}()
		ready()
		cancel(errShutdown)
		res := <-done
		if res == nil {
			t.Fatal("no answer")
		}
		checkAnswer(r, r.table, tool, res)
		return res
	}
	y := r.raw("raw")
	r.ok("capture_since", args{"paneId": y.id})
	for _, tt := range []struct {
		tool, hook string
		args       args
		cursor     bool
	}{
		{"send_keys", "after-send-keys", args{"paneId": y.id, "keys": "once"}, true},
		{"paste_text", "after-paste-buffer", args{"paneId": y.id, "text": "once"}, true},
		{"rename_window", "after-rename-window", args{"windowId": "@0", "name": "once"}, false},
		{"resize_pane", "after-resize-pane", args{"paneId": y.id, "height": 10}, true},
		{"create_window", "after-new-window", args{"session": "main", "name": "once"}, false},
		{"kill_pane", "after-kill-pane", args{"paneId": y.id}, true},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			r.tmux("set-hook", "-g", tt.hook, fmt.Sprintf("run-shell %q", fmt.Sprintf("%[1]s -S %[2]s wait-for -S reached; %[1]s -S %[2]s wait-for release", r.bin, r.sock)))
			res := cut(t, tt.tool, tt.args, func() { r.tmux("wait-for", "reached") })
			r.tmux("set-hook", "-gu", tt.hook)
			r.tmux("wait-for", "-S", "release")
			if tt.cursor {
				unknown(t, res)
			} else if !res.IsError || !strings.HasPrefix(res.Text, "unknown: ") || !strings.Contains(res.Text, "not sent again") {
				t.Errorf("%s", res.Text)
			}
		})
	}
	t.Run("create_window that waits", func(t *testing.T) {
		before := r.tmux("list-windows", "-F", "#{window_id}")
		res := cut(t, "create_window", args{"session": "main", "waitReadyMs": 30_000}, func() {
			r.until(func() bool { return r.tmux("list-windows", "-F", "#{window_id}") != before })
		})
		if !res.IsError || !strings.HasPrefix(res.Text, "unknown: ") {
			t.Errorf("%s", res.Text)
		}
	})
	t.Run("run_shell_command", func(t *testing.T) {
		pane := r.shellPane(plainBash)
		id, _ := controlmode.ParsePaneID(pane)
		reads := func(w state.Waiting) bool { return w.For == state.WaitsLine }
		res := cut(t, "run_shell_command", args{"paneId": pane, "command": "echo before; read x; exit 7"}, func() {
			if w, err := r.table.mirror.AwaitWaiting(t.Context(), id, patience, reads); err != nil || !reads(w) {
				t.Errorf("%+v, %v", w, err)
			}
		})
		var v struct {
			RunID, Outcome string
			StillRunning   bool
		}
		if err := json.Unmarshal(res.Structured, &v); err != nil || v.Outcome != "cancelled" || !v.StillRunning {
			t.Fatalf("%s", res.Text)
		}
		r.tmux("send-keys", "-t", pane, "Enter")
		got := r.ok("get_run", args{"runId": v.RunID, "waitMs": 25_000})["run"].(map[string]any)
		if got["state"] != "completed" || got["exitStatus"] != 7.0 {
			t.Errorf("%v", got)
		}
	})
}

func readAll(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
