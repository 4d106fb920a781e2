package mcp

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
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
func unknown(t *testing.T, res *toolResult) (cursor string) {
	t.Helper()
	cursor, _ = res.Meta[metaCursor].(string)
	if !res.IsError || !strings.HasPrefix(res.Text, "unknown: ") || !strings.Contains(res.Text, "not sent again") || cursor == "" ||
		!strings.Contains(res.Text, "cursor "+cursor) {
		t.Errorf("%v %s", res.Meta, res.Text)
	}
	return cursor
}

// TestD08NoWriteIsRepeated: when tmux or the connection to it dies, or the daemon
// is told to end, after a write was handed over and before its answer came, the
// answer says that nobody knows, with a cursor; and the write was made once. (The
// daemon's half; a daemon that is killed is the bridge's.)
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
	t.Run("daemon ends", func(t *testing.T) {
		r := newRig(t, nil).start()
		y := r.raw("raw")
		r.ok("list_panes", nil)
		r.tmux("set-hook", "-g", "after-send-keys", fmt.Sprintf("run-shell %q", r.bin+" -S "+r.sock+" wait-for release"))
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan *toolResult, 1)
		go func() {
			res, err := r.table.call(ctx, r.caller, "send_keys", encodeOnce(args{"paneId": y.id, "keys": "once"}), nil)
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		if got := y.got(4); got != "once" {
			t.Errorf("received %q", got)
		}
		cancel(errShutdown)
		if res := <-done; res != nil {
			unknown(t, res)
		}
		r.tmux("set-hook", "-gu", "after-send-keys")
		r.tmux("wait-for", "-S", "release")
	})
}

func readAll(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
