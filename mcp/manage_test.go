package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
)

// whole is the rest of an object's answer under its only member.
func (r *rig) whole(name, member string, a any) map[string]any {
	r.Helper()
	return r.ok(name, a)[member].(map[string]any)
}

// format asks tmux itself.
func (r *rig) format(target, format string) string {
	r.Helper()
	return r.tmux("display-message", "-p", "-t", target, format)
}

// TestManageChangesAreSeen: each tool does what it says, and its answer already
// shows it.
func TestManageChangesAreSeen(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil)
		r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "-n", "w", "cat", ";",
			"new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat", ";",
			"split-window", "-d", "-t", "%0", "cat", ";", "new-window", "-d", "-t", "main:", "cat")
		if v := r.whole("rename_session", "session", args{"session": "main", "name": "Main one"}); v["name"] != "Main one" || v["id"] != "$0" {
			t.Errorf("%v", v)
		}
		if v := r.whole("rename_window", "window", args{"windowId": "@0", "new_name": "a b"}); v["name"] != "a b" {
			t.Errorf("%v", v)
		}
		if v := r.whole("set_pane_title", "pane", args{"paneId": "%2", "title": "two: words"}); v["title"] != "two: words" || v["active"] != false {
			t.Errorf("%v", v)
		}
		if v := r.whole("select_pane", "pane", args{"paneId": "%2"}); v["active"] != true {
			t.Errorf("%v", v)
		}
		if v := r.whole("resize_pane", "pane", args{"paneId": "%0", "height": 5}); v["height"] != 5.0 {
			t.Errorf("%v", v)
		}
		if v := r.whole("resize_pane", "pane", args{"paneId": "%0", "direction": "down", "amount": 3}); v["height"] != 8.0 {
			t.Errorf("%v", v)
		}
		if v := r.whole("resize_pane", "pane", args{"paneId": "%0", "zoom": true, "height": 1}); v["height"] != 24.0 {
			t.Errorf("%v", v)
		}
		if v := r.whole("get_window_info", "window", args{"windowId": "@0"}); v["zoomed"] != true {
			t.Errorf("not zoomed: %v", v)
		}
		if v := r.whole("select_pane", "pane", args{"paneId": "%2"}); v["height"] != 24.0 || v["active"] != true {
			t.Errorf("select_pane unzoomed: %v", v)
		}
		if v := r.whole("resize_pane", "pane", args{"paneId": "%2", "zoom": true}); v["height"] == 24.0 {
			t.Errorf("still zoomed: %v", v)
		}
		nothing := r.call("resize_pane", args{"paneId": "%2", "zoom": false})
		if nothing.IsError || !strings.Contains(nothing.Text, "nothing was to be changed") {
			t.Errorf("%+v", nothing)
		}
		r.refused("resize_pane", args{"paneId": "%2", "amount": 2}, "without direction")

		v := r.whole("select_layout", "window", args{"windowId": "@0", "layout": "even-horizontal"})
		side := v["layout"].(string)
		r.whole("select_layout", "window", args{"windowId": "@0", "layout": "even-vertical"})
		if v := r.whole("select_layout", "window", args{"windowId": "@0", "layout": side}); v["layout"] != side {
			t.Errorf("layout %v, want %s", v["layout"], side)
		}
		for _, bad := range []string{"", "tile", "even-horizontal ", "0000,80x24,0,0,0", "-E", "{}", "next"} {
			r.refused("select_layout", args{"windowId": "@0", "layout": bad}, "is not a layout", "main-vertical")
		}
		if v := r.whole("resize_window", "window", args{"windowId": "@0", "width": 100, "height": 30}); !strings.Contains(v["layout"].(string), ",100x30,0,0") {
			t.Errorf("%v", v)
		}
		r.refused("resize_window", args{"windowId": "@0"}, "neither width nor height")
		r.refused("resize_window", args{"windowId": "@0", "width": 9007199254740991}, "tmux refused")
		if small := r.call("select_layout", args{"windowId": "@0", "layout": side}); !strings.Contains(small.Text, "otherwise") {
			t.Errorf("a layout of another size is not remarked on: %s", small.Text)
		}

		panes := r.ok("swap_pane", args{"paneId": "%0", "otherPaneId": "%1"})["panes"].([]any)
		if a, b := panes[0].(map[string]any), panes[1].(map[string]any); a["id"] != "%0" || a["windowId"] != "@1" || b["windowId"] != "@0" {
			t.Errorf("%v", panes)
		}
		if v := r.ok("swap_pane", args{"paneId": "%0", "otherPaneId": "%0"}); len(v["panes"].([]any)) != 1 {
			t.Errorf("%v", v)
		}
		if v := r.ok("set_history_limit", args{"lines": 12345}); v["lines"] != 12345.0 || r.tmux("show-options", "-gv", "history-limit") != "12345" {
			t.Errorf("%v", v)
		}
		r.refused("set_history_limit", args{"lines": 2000001}, "from 0 to 2000000")
		for _, on := range []bool{true, false} {
			if v := r.ok("set_mouse_enabled", args{"enabled": on}); v["enabled"] != on || r.tmux("show-options", "-gv", "mouse") != onOff(on) {
				t.Errorf("%v", v)
			}
			if v := r.ok("set_synchronize_panes", args{"enabled": on, "windowId": "@0"}); v["enabled"] != on || v["windowId"] != "@0" ||
				r.format("%2", "#{pane_synchronized}") != map[bool]string{true: "1", false: "0"}[on] {
				t.Errorf("%v", v)
			}
		}
		r.tmux("set-option", "-p", "-t", "%2", "synchronize-panes", "off")
		if res := r.call("set_synchronize_panes", args{"enabled": true, "windowId": "@0"}); !strings.Contains(res.Text, "it is off in %2") {
			t.Errorf("a pane's own setting is not told: %s", res.Text)
		}
		for name, a := range map[string]args{
			"rename_session": {"session": "mai", "name": "x"}, "rename_window": {"windowId": "@99", "name": "x"},
			"set_pane_title": {"paneId": "%99", "title": "x"}, "select_pane": {"paneId": "%99"}, "select_window": {"windowId": "@99"},
			"resize_pane": {"paneId": "%99", "width": 3}, "resize_window": {"windowId": "@99", "width": 3},
			"select_layout": {"windowId": "@99", "layout": "tiled"}, "swap_pane": {"paneId": "%0", "otherPaneId": "%99"},
			"move_window": {"windowId": "@99"}, "set_synchronize_panes": {"windowId": "@99", "enabled": true},
		} {
			r.refused(name, a, "does not exist")
		}
	})
}

// TestMoveWindow: by placement where there are several, and nobody's current
// window changes but where there is no other way.
func TestMoveWindow(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil)
		r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat", ";",
			"new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat", ";",
			"new-window", "-d", "-t", "main:", "cat", ";", "new-window", "-d", "-t", "main:5", "cat")
		current := func() string {
			return strings.ReplaceAll(r.tmux("list-windows", "-a", "-f", "#{window_active}", "-F", "#{session_id}:#{window_index}#{window_id}"), "\n", " ")
		}
		places := func(v map[string]any) (s string) {
			for _, p := range v["placements"].([]any) {
				p := p.(map[string]any)
				s += fmt.Sprintf("%v:%v ", p["sessionId"], p["index"])
			}
			return strings.TrimSpace(s)
		}
		if v := r.whole("move_window", "window", args{"windowId": "@0", "index": 9}); places(v) != "$0:9" || current() != "$0:9@0 $1:0@1" {
			t.Errorf("%v, current %s", v, current())
		}
		if v := r.whole("move_window", "window", args{"windowId": "@2", "session": "other"}); places(v) != "$1:1" || current() != "$0:9@0 $1:0@1" {
			t.Errorf("%v, current %s", v, current())
		}
		if v := r.whole("move_window", "window", args{"windowId": "@2"}); places(v) != "$1:2" {
			t.Errorf("to the next free index: %v", v)
		}
		r.refused("move_window", args{"windowId": "@2", "session": "$0", "index": 9}, "tmux refused: ", "9")
		r.refused("move_window", args{"windowId": "@2", "session": "mai"}, `session "mai" does not exist`)
		r.tmux("rename-window", "-t", "@3", "7") // a name that looks like an index
		if v := r.whole("move_window", "window", args{"windowId": "@2", "session": "main", "index": 7}); places(v) != "$0:7" {
			t.Errorf("%v", v)
		}

		// Several placements, two of them in one session.
		r.tmux("link-window", "-d", "-s", "@2", "-t", "other:3", ";", "link-window", "-d", "-s", "@2", "-t", "other:4")
		for _, a := range []args{
			{}, {"sourceSession": "other"}, {"sourceIndex": 3},
		} {
			a["windowId"] = "@2"
			for _, tool := range []string{"move_window", "select_window"} {
				r.refused(tool, a, "is in 3 places", "both sourceSession and sourceIndex", "$0 (main) index 7, $1 (other) index 3, $1 (other) index 4")
			}
		}
		r.refused("move_window", args{"windowId": "@2", "sourceSession": "other", "sourceIndex": 9}, "is not where", "$1 (other) index 4")
		r.refused("move_window", args{"windowId": "@0", "sourceSession": "other"}, "is not where", "$0 (main) index 9")
		if v := r.whole("move_window", "window", args{"windowId": "@2", "sourceSession": "other", "sourceIndex": 4, "index": 8}); places(v) != "$0:7 $1:3 $1:8" {
			t.Errorf("%v", v)
		}
		if r.ok("select_window", args{"windowId": "@2", "sourceSession": "$1", "sourceIndex": 8}); current() != "$0:9@0 $1:8@2" {
			t.Errorf("current %s", current())
		}
		if v := r.whole("select_window", "window", args{"windowId": "@3"}); places(v) != "$0:5" || current() != "$0:5@3 $1:8@2" {
			t.Errorf("%v, current %s", v, current())
		}

		// The last window of a session takes it along; the daemon's own client
		// may well be there.
		r.tmux("new-session", "-d", "-s", "third", "-x", "80", "-y", "24", "cat")
		res := r.call("move_window", args{"windowId": "@4", "session": "main"})
		if res.IsError || !strings.Contains(res.Text, "session $2 (third) has ended") {
			t.Errorf("%s", res.Text)
		}
		if res := r.call("list_sessions", nil); strings.Contains(res.Text, "third") {
			t.Errorf("%s", res.Text)
		}
	})
}

// TestM07NothingIsExpanded: what is asked for is what tmux stores, whatever it
// looks like, and no command in it runs.
func TestM07NothingIsExpanded(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		show := func(target, format string) string {
			return r.do(t, controlmode.Cmd("display-message", "-p", "-t", target, format))
		}
		trap := filepath.Join(filepath.Dir(r.sock), "trap")
		for i, text := range []string{
			"a#{pane_id}b#(touch " + trap + ")", "#(touch " + trap + ")", "##(touch " + trap + ")", "###{pane_id}", "#[fg=red]x", "##[fg=red]x#",
			"#{?1,#(touch " + trap + "),}", "#{l:x}", "%H %% %Y", "#,#}", "#", "a##b###c", "#{E:@x}#S#W#T",
		} {
			r.do(t, controlmode.Cmd("set-option", "-g", "@x", "#(touch "+trap+")"))
			if v := r.whole("rename_window", "window", args{"windowId": "@0", "name": text}); v["name"] != text || show("%0", "#{window_name}") != text {
				t.Errorf("window name %q, want %q", v["name"], text)
			}
			if v := r.whole("set_pane_title", "pane", args{"paneId": "%0", "title": text}); v["title"] != text || show("%0", "#{pane_title}") != text {
				t.Errorf("title %q, want %q", v["title"], text)
			}
			stored := []any{text, strings.NewReplacer(":", "_", ".", "_").Replace(text)} // the latter before tmux 3.7
			if v := r.whole("rename_session", "session", args{"session": "$0", "name": text}); !slices.Contains(stored, v["name"]) ||
				show("%0", "#{session_name}") != v["name"] {
				t.Errorf("session name %q, want %q", v["name"], text)
			}
			// A job runs when its text is expanded, at the first time of asking.
			r.ok("list_panes", nil)
			if _, err := os.Stat(trap); err == nil {
				t.Fatalf("%d: %q was run", i, text)
			}
		}
	})
}

// TestM07NamesAreStoredAsAsked: a name goes through our encoding to what tmux
// makes of the very same bytes: those it gets from an option's value, which it
// does not expand.
func TestM07NamesAreStoredAsAsked(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		r.tmux("new-window", "-d", "-n", "w", "-t", "main:", "cat")
		r.tmux("select-pane", "-t", "%1", "-T", r.format("%0", "#{pane_title}"))
		tame := rapid.SampledFrom([]rune("ab #{}()[]%$'\"\\;,:.=~!@^&*<>|`-_\u00e9\u6f22\u2028\u200b\U0001f469\x01\x1b\t\n\x7f\u0085"))
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.StringOfN(rapid.OneOf(tame, rapid.Rune().Filter(func(r rune) bool { return r != 0 })), 1, 60, 400).Draw(t, "name")
			given := controlmode.Cmd("set-option", "-g", "--", "@given", text)
			name := func(what, target string) string {
				return r.do(t, controlmode.Cmd("display-message", "-p", "-t", target, "#{q:"+what+"}"))
			}
			// The oracle of windows is the second one, that of sessions the same before.
			r.do(t, given, controlmode.Cmd("rename-window", "-t", "@1", "--", "#{@given}"))
			res := r.call("rename_window", args{"windowId": "@0", "name": text})
			checkWire(r, "rename_window", mustEncode(r, res))
			if got, want := name("window_name", "@0"), name("window_name", "@1"); got != want {
				t.Fatalf("window %q is stored as %q, by tmux alone as %q: %s", text, got, want, res.Text)
			}
			if !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				r.do(t, given, controlmode.Cmd("select-pane", "-t", "%1", "-T", "#{@given}"))
				checkWire(r, "set_pane_title", mustEncode(r, r.call("set_pane_title", args{"paneId": "%0", "title": text})))
				if got, want := name("pane_title", "%0"), name("pane_title", "%1"); got != want {
					t.Fatalf("title %q is stored as %q, by tmux alone as %q", text, got, want)
				}
			}
			r.do(t, given, controlmode.Cmd("rename-session", "-t", "$0", "--", "#{@given}"))
			want := name("session_name", "%0")
			r.do(t, controlmode.Cmd("rename-session", "-t", "$0", "between"))
			res = r.call("rename_session", args{"session": "$0", "name": text})
			checkWire(r, "rename_session", mustEncode(r, res))
			if got := name("session_name", "%0"); got != want && !(res.IsError && got == "between") {
				t.Fatalf("session %q is stored as %q, by tmux alone as %q: %s", text, got, want, res.Text)
			}
			r.do(t, controlmode.Cmd("rename-session", "-t", "$0", "between"),
				controlmode.Cmd("rename-window", "-t", "@0", "w"), controlmode.Cmd("rename-window", "-t", "@1", "w"))
		})
	})
}

// do runs commands on the daemon's own connection, faster than tmux processes,
// and gives what the last one printed. A refusal is no failure.
func (r *rig) do(t interface{ Fatal(...any) }, commands ...controlmode.Command) string {
	reply, err := r.table.mirror.Do(context.Background(), controlmode.Request{Commands: commands, Fence: true})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(reply.Blocks[len(reply.Blocks)-1].Body), "\n")
}

func mustEncode(t testing.TB, res *toolResult) []byte {
	t.Helper()
	b, err := encodeResult([]byte("1"), res, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestM01NoStrangersAreChanged: ids looked up on one life of the server are not
// used on the next.
func TestM01NoStrangersAreChanged(t *testing.T) {
	r := newRig(t, nil).start()
	m, err := r.table.mirror.Arrive(0).Pane(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	if v := r.whole("get_pane_info", "pane", args{"paneId": "%0"}); v["id"] != "%0" { // attached again
		t.Fatal(v)
	}
	c := &call{table: r.table, caller: r.caller, policy: r.table.policyOf(r.caller)}
	_, err = c.write(t.Context(), write{
		life: m.Server.ID, commands: []controlmode.Command{controlmode.Cmd("rename-window", "-t", "@0", "stranger")}, look: "list_windows",
	})
	res, err := r.table.failure(t.Context(), err)
	if err != nil || !strings.Contains(res.Text, "restarted") {
		t.Errorf("%v %v", res, err)
	}
	if name := r.format("%0", "#{window_name}"); name != "w" {
		t.Errorf("a stranger was renamed to %q", name)
	}
}
