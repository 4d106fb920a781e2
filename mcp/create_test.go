package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tmux-mcpd/state"
)

// quickShell makes panes run a shell that reads no files of the machine's.
func (r *rig) quickShell() *rig {
	r.Helper()
	r.tmux("set-option", "-g", "default-command", "PS1='$ ' exec sh")
	return r
}

// TestCreateSessionStartsTmux: where no tmux runs it is started, and neither it
// nor a session made later gets what is only the daemon's.
func TestCreateSessionStartsTmux(t *testing.T) {
	t.Setenv("TMUX", "/nowhere,1,0")
	t.Setenv("TMUX_PANE", "%7")
	t.Setenv("LIBTMUX_TOOLSETS", "inspect")
	t.Setenv("TMUX_MCPD_LISTEN", "/x")
	t.Setenv("NOTIFY_SOCKET", "/x")
	t.Setenv("SSH_AUTH_SOCK", "/of/the/daemon")
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil)
		home := t.TempDir()
		t.Setenv("HOME", home)
		v := r.ok("create_session", args{"name": "first one", "windowName": "w", "width": 101, "height": 33})
		if v["paneId"] != "%0" || v["windowId"] != "@0" || v["session"].(map[string]any)["name"] != "first one" {
			t.Errorf("%v", v)
		}
		if got := r.format("%0", "#{window_name} #{window_width}x#{window_height} #{session_path} #{session_attached}"); got != "w 101x33 "+home+" 0" &&
			got != "w 101x33 "+home+" 1" { // the daemon's own client may be there by now
			t.Errorf("%q", got)
		}
		global := r.tmux("show-environment", "-g")
		for _, name := range []string{"TMUX=", "TMUX_PANE", "LIBTMUX_", "TMUX_MCPD_", "NOTIFY_SOCKET"} {
			if strings.Contains("\n"+global, "\n"+name) {
				t.Errorf("%s is in the new server's environment:\n%s", name, global)
			}
		}
		if !strings.Contains(global, "SSH_AUTH_SOCK=/of/the/daemon") || !strings.Contains(global, "HOME="+home) {
			t.Errorf("the new server lacks what programs need:\n%s", global)
		}
		r.tmux("set-environment", "-g", "SSH_AUTH_SOCK", "/of/a/person")
		second := r.ok("create_session", nil)
		for _, session := range []string{"$0", second["session"].(map[string]any)["id"].(string)} {
			if own := r.tmux("show-environment", "-t", session); own != "" {
				t.Errorf("session %s has an environment of its own: %q", session, own)
			}
		}
		if got := r.tmux("show-environment", "-g", "SSH_AUTH_SOCK"); got != "SSH_AUTH_SOCK=/of/a/person" {
			t.Errorf("%q", got)
		}
		r.refused("create_session", args{"name": "first one"}, "tmux refused: duplicate session: first one")
		r.refused("create_session", args{"name": "x", "windowName": strings.Repeat("'", 3000)}, "the limit is 8182")
		r.refused("create_session", args{"name": "a\x00b"}, "NUL")
	})
}

// TestD10TmuxIsStartedInItsOwnScope: a daemon that is a systemd service starts
// tmux outside of its control group, if a systemd answers, and once.
func TestD10TmuxIsStartedInItsOwnScope(t *testing.T) {
	// As systemd-run does it, and says it of what it does not know (252).
	const scope = "while [ \"$1\" != -- ]; do shift; done\nshift\nexport INVOCATION_ID=f00\nexec \"$@\"\n"
	for _, tt := range []struct {
		name, script string
		asked        int // whether it answers
		started      bool
	}{
		{"answers", scope, 1, true},
		{"does not know all", "case \"$*\" in *OOMPolicy*) exit 1;; esac\n" + scope, 2, true},
		{"does not answer", "exit 1\n", 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			script := "#!/bin/sh\necho \"$@\" >>" + log + "\n" + tt.script
			if err := os.WriteFile(filepath.Join(dir, "systemd-run"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			t.Setenv("INVOCATION_ID", "0123")
			r := newRig(t, nil)
			r.ok("create_session", args{"name": "one"})
			r.ok("create_session", args{"name": "two"}) // needs none: tmux runs
			b, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			want := tt.asked
			if tt.started {
				want++
			}
			if len(lines) != want || !strings.Contains(lines[0], "--scope") || tt.started && !strings.Contains(lines[want-1], "new-session") {
				t.Errorf("%q", lines)
			}
			if strings.Contains(r.tmux("show-environment", "-g"), "INVOCATION_ID") {
				t.Error("the new server takes itself for the service")
			}
		})
	}
}

// TestS17FocusStays: what is made is selected nowhere, and a zoomed window stays
// zoomed.
func TestS17FocusStays(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start().quickShell()
		r.tmux("split-window", "-d", "-t", "%0", "cat", ";", "resize-pane", "-Z", "-t", "%0")
		defer r.attach("main")()
		focus := func() string {
			return r.tmux("list-windows", "-a", "-f", "#{==:#{session_id},$0}", "-F", "#{window_id}#{window_active}#{window_zoomed_flag}#{window_width}") +
				r.tmux("list-panes", "-t", "@0", "-f", "#{pane_active}", "-F", "#{pane_id}") +
				r.tmux("list-clients", "-F", "#{client_session}")
		}
		before := r.format("%0", "#{window_id}#{window_zoomed_flag}#{pane_active}")
		r.ok("create_session", args{"name": "beside"})
		w := r.ok("create_window", args{"session": "main", "name": "more"})
		if !strings.HasPrefix(w["window"].(map[string]any)["name"].(string), "more") || w["paneId"] == "%0" {
			t.Errorf("%v", w)
		}
		for _, side := range []string{"above", "below", "left", "right"} {
			if p := r.whole("split_window", "pane", args{"paneId": "%0", "direction": side}); p["active"] != false {
				t.Errorf("%s: %v", side, p)
			}
		}
		if got := r.format("%0", "#{window_id}#{window_zoomed_flag}#{pane_active}"); got != before {
			t.Errorf("focus was %s, is %s: %s", before, got, focus())
		}
		if got := r.tmux("list-windows", "-t", "main", "-f", "#{window_active}", "-F", "#{window_id}"); got != "@0" {
			t.Errorf("the current window is %s", got)
		}
	})
}

// TestSplitSides: the new pane is where it was asked for.
func TestSplitSides(t *testing.T) {
	r := newRig(t, nil).start().quickShell()
	for side, corner := range map[string]string{"above": "top-left", "below": "bottom-left", "left": "top-left", "right": "top-right"} {
		w := r.ok("create_window", args{"session": "main"})
		window, pane := w["window"].(map[string]any)["id"], w["paneId"]
		p := r.whole("split_window", "pane", args{"paneId": pane, "direction": side})
		at := r.whole("find_pane_by_position", "pane", args{"windowId": window, "corner": corner})
		if p["id"] != at["id"] || (p["width"].(float64) == 80) != (side == "above" || side == "below") {
			t.Errorf("%s: %v, in the corner %v", side, p, at["id"])
		}
	}
	r.refused("split_window", args{"paneId": "%99"}, "does not exist")
	r.tmux("resize-window", "-t", "@0", "-x", "3", "-y", "1")
	r.refused("split_window", args{"paneId": "%0"}, "tmux refused: ", "no space")
	r.refused("create_window", args{"session": "mai"}, "does not exist", "$0 (main)")
}

// TestStartDirectory: it is taken literally, by default it is what the contract
// says, and if tmux cannot use it the answer says so.
func TestStartDirectory(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start().quickShell()
		base := filepath.Join(filepath.Dir(r.sock), "d")
		trap := filepath.Join(filepath.Dir(r.sock), "trap")
		odd := filepath.Join(base, "a #{pane_id} #S %H 'q' \"Q\" $HOME ~ ;\u00e9 #(touch trap) ##[x")
		for _, d := range []string{base, odd} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		ready := args{"waitReadyMs": 30000}
		with := func(more args) args {
			all := args{}
			for _, m := range []args{ready, more} {
				for k, v := range m {
					all[k] = v
				}
			}
			return all
		}
		cwd := func(name string, a args) string {
			t.Helper()
			res := r.call(name, with(a))
			if res.IsError || strings.Contains(res.Text, "[") && strings.Contains(res.Text, "did not use") {
				t.Fatalf("%s: %s", name, res.Text)
			}
			pane := checkAnswer(r, r.table, name, res)["paneId"]
			if pane == nil {
				pane = checkAnswer(r, r.table, name, res)["pane"].(map[string]any)["id"]
			}
			if st, ok := res.Meta[metaState].(waitingState); !ok || st.WaitingFor != state.WaitsPrompt {
				t.Errorf("%s: not ready: %v", name, res.Meta)
			}
			return r.whole("get_pane_info", "pane", args{"paneId": pane})["cwd"].(string)
		}
		if got := cwd("create_session", args{"startDirectory": odd, "name": "s"}); got != odd {
			t.Errorf("session in %q", got)
		}
		if got := cwd("create_window", args{"session": "main", "startDirectory": odd}); got != odd {
			t.Errorf("window in %q", got)
		}
		if got := cwd("create_window", args{"session": "s"}); got != odd {
			t.Errorf("by default a window is in %q", got)
		}
		p := r.whole("split_window", "pane", args{"paneId": "%0", "startDirectory": odd, "waitReadyMs": 30000})
		if p["cwd"] != odd {
			t.Errorf("split in %q", p["cwd"])
		}
		r.tmux("select-pane", "-t", "%0") // the session's active pane is elsewhere
		if got := cwd("split_window", args{"paneId": p["id"]}); got != odd {
			t.Errorf("by default a split is in %q", got)
		}
		if got := cwd("respawn_pane", args{"paneId": p["id"], "killFirst": true, "startDirectory": base}); got != base {
			t.Errorf("respawned in %q", got)
		}
		for tool, a := range map[string]args{
			"create_session": {"startDirectory": odd + "/none"}, "create_window": {"session": "main", "startDirectory": odd + "/none"},
			"split_window": {"paneId": p["id"], "startDirectory": odd + "/none"}, "respawn_pane": {"paneId": p["id"], "killFirst": true, "startDirectory": odd + "/none"},
		} {
			if res := r.call(tool, a); res.IsError || !strings.Contains(res.Text, "tmux did not use the directory") || !strings.Contains(res.Text, "does not exist") {
				t.Errorf("%s: %s", tool, res.Text)
			}
		}
		if _, err := os.Stat(trap); err == nil {
			t.Error("a directory's name was run")
		}
	})
}

// TestCreatedNamesAreLiteral: M07 for the names given at the making.
func TestM07CreatedNamesAreLiteral(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start().quickShell()
		trap := filepath.Join(filepath.Dir(r.sock), "trap")
		for i, text := range []string{"#(touch " + trap + ")", "a#{pane_id}", "##[fg=red]%H", "-x; kill-server"} {
			name := fmt.Sprint(i, text)
			v := r.ok("create_session", args{"name": name, "windowName": text})
			if got := r.format(v["paneId"].(string), "#{session_name}|#{window_name}"); got != name+"|"+text {
				t.Errorf("%q", got)
			}
			w := r.whole("create_window", "window", args{"session": "main", "name": text})
			if w["name"] != text {
				t.Errorf("%v", w)
			}
		}
		r.ok("list_panes", nil)
		if _, err := os.Stat(trap); err == nil {
			t.Error("a name was run")
		}
	})
}

// TestWindowSizeManual: tmux before 3.7 would crash; nothing is made there.
func TestWindowSizeManual(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start().quickShell()
		r.tmux("set-option", "-gw", "window-size", "manual")
		server := r.tmux("display-message", "-p", "#{pid}")
		for tool, a := range map[string]args{"create_window": {"session": "main"}, "create_session": {"name": "x"}} {
			if res := r.call(tool, a); res.IsError && !strings.Contains(res.Text, "window-size is manual") {
				t.Errorf("%s: %s", tool, res.Text)
			}
		}
		r.ok("split_window", args{"paneId": "%0"})
		if got := r.tmux("display-message", "-p", "#{pid}"); got != server {
			t.Error("the server is another one")
		}
	})
}

// TestEndedAtOnce: what ends before it can be read is no success, and no reason
// to try again blindly.
func TestEndedAtOnce(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "default-command", "exit 3")
	for tool, a := range map[string]args{
		"create_session": {"waitReadyMs": 20000}, "create_window": {"session": "main", "waitReadyMs": 20000},
		"split_window": {"paneId": "%0", "waitReadyMs": 20000},
	} {
		r.refused(tool, a, "was made and has ended before it could be read")
	}
	r.tmux("set-option", "-g", "remain-on-exit", "on")
	res := r.call("split_window", args{"paneId": "%0", "waitReadyMs": 20000})
	if st := res.Meta[metaState].(waitingState); res.IsError || st.WaitingFor != state.WaitsDead || !strings.Contains(res.Text, "waiting for dead") {
		t.Errorf("%s %v", res.Text, res.Meta)
	}
}
