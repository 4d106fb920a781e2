package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// callsOf are calls that together call every tool, about one pane and the names
// given.
func callsOf(pane, window, session, text string) map[string][]args {
	all := map[string][]args{
		"capture_pane":          {{"paneId": pane}, {"paneId": pane, "joinWrapped": true}, {"paneId": text}},
		"capture_since":         {{"paneId": pane}, {"paneId": pane, "cursor": text}},
		"find_pane_by_position": {{"windowId": window, "corner": "top-left"}, {"windowId": window, "corner": text}},
		"get_pane_info":         {{"paneId": pane}, {"paneId": text}},
		"get_command_output":    {{"paneId": pane}, {"paneId": pane, "commandId": text}, {"paneId": text}},
		"get_run":               {{"runId": text}},
		"get_server_info":       {nil},
		"get_session_info":      {{"session": session}, {"session": text}, {"sessionName": text}},
		"get_tmux_variables": {
			{"names": []string{"pane_title", "window_name", "session_name", "pane_current_path", "host"}, "paneId": pane}, {"names": text},
		},
		"get_window_info":   {{"windowId": window}, {"windowId": text}},
		"list_panes":        {nil, {"session": text}},
		"interrupt_run":     {{"runId": text}, {"runId": "x", "signal": text}},
		"list_commands":     {{"paneId": pane}, {"paneId": text}},
		"list_runs":         {nil, {"paneId": pane}, {"paneId": text}},
		"list_sessions":     {nil},
		"list_windows":      {nil, {"session": session}, {"session": text}},
		"run_shell_command": {{"paneId": pane, "command": text}, {"paneId": text, "command": text}},
		"search_panes":      {{"pattern": "."}, {"pattern": ".", "regex": true}, {"pattern": text + "x", "regex": true}, {"pattern": text + "x"}},
		"show_environment":  {nil, {"session": session}, {"session": text}},
		"show_hooks":        {nil, {"session": session}},
		"show_option": {
			{"name": "@hostile", "scope": "session", "target": session},
			{"name": text + "x"},
			{"name": "status", "scope": "session", "target": text},
			{"name": "@hostile", "scope": text},
		},
		"snapshot_pane":  {{"paneId": pane}, {"paneId": pane, text + "x": 1}},
		"signal_channel": {{"channel": text + "x"}},
		"wait_for": {
			{"conditions": []args{{"kind": "text", "paneId": pane, "pattern": text + "x"}, {"kind": "settled", "paneId": pane, "idleMs": 1}}, "timeoutMs": 100},
			{"conditions": []args{{"kind": "pane_died", "paneId": text}, {"kind": text}}},
			{"conditions": []args{{"kind": "bell", "session": text}}, "timeoutMs": 1},
			{"conditions": []args{{"kind": "run_ended", "runId": text}}, "timeoutMs": 1},
			{"conditions": []args{{"kind": "run_ended", "paneId": pane}}, "timeoutMs": 1},
		},
		"what_changed":     {nil, {"session": session}, {"kinds": []string{text}}, {"cursor": text}},
		"wait_for_channel": {{"channel": text + "y", "timeoutMs": 1}},
		"wait_for_text": {
			{"paneId": pane, "timeoutMs": 1},
			{"paneId": pane, "patterns": []string{"[^ ]+"}, "regex": true, "includeScreen": true, "timeoutMs": 1},
			{"paneId": pane, "patterns": []string{text + "x"}, "stop": []string{text + "x"}, "timeoutMs": 1},
			{"paneId": text, "cursor": text},
		},
		"send_keys":  {{"paneId": pane, "keys": text}, {"paneId": pane, "keys": text, "literal": true}, {"paneId": text, "keys": text}},
		"paste_text": {{"paneId": pane, "text": text}, {"paneId": text, "text": text}},
		sendBatchName: {
			{"operations": []args{{"pane_id": pane, "keys": text}, {"session_name": text, "keys": text}, {"window_id": text, "keys": text}}, "on_error": "continue"},
			{"operations": []args{{"pane_id": pane, "keys": text, text + "x": 1}}},
			{"operations": []args{}, "socket_name": text},
		},

		"move_window":           {{"windowId": window}, {"windowId": window, "session": text}, {"windowId": window, "sourceSession": text}},
		"rename_session":        {{"session": session, "name": text}, {"session": text, "name": "x"}},
		"rename_window":         {{"windowId": window, "name": text}},
		"resize_pane":           {{"paneId": pane, "width": 10}, {"paneId": pane, "direction": text}},
		"resize_window":         {{"windowId": window, "width": 90}, {"windowId": text, "width": 90}},
		"select_layout":         {{"windowId": window, "layout": text}, {"windowId": window, "layout": "tiled"}},
		"select_pane":           {{"paneId": pane}, {"paneId": text}},
		"select_window":         {{"windowId": window}, {"windowId": window, "sourceSession": text}},
		"set_history_limit":     {{"lines": 2000}},
		"set_mouse_enabled":     {{"enabled": true}},
		"set_pane_title":        {{"paneId": pane, "title": text}},
		"set_synchronize_panes": {{"windowId": window, "enabled": false}},
		"swap_pane":             {{"paneId": pane, "otherPaneId": pane}, {"paneId": pane, "otherPaneId": text}},

		"create_session": {{"name": text, "windowName": text, "startDirectory": "/" + text}, {"name": text}},
		"create_window":  {{"session": session, "name": text}, {"session": text + "x"}, {"session": session, "startDirectory": text}},
		"split_window":   {{"paneId": pane, "startDirectory": "/" + text}, {"paneId": pane, "direction": text}},
		"respawn_pane":   {{"paneId": pane}, {"paneId": text}, {"paneId": pane, "startDirectory": text, "killFirst": true}},

		"clear_pane_scrollback": {{"paneId": pane}, {"paneId": text}},
		"kill_pane":             {{"paneId": "%999"}, {"paneId": text}},
		"kill_window":           {{"windowId": "@999"}, {"windowId": text}},
		"kill_session":          {{"session": text + "x"}},
	}
	var some []args
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(nestable, name) {
			some = append(some, args{"tool": name, "arguments": all[name][len(all[name])-1]})
		}
	}
	all[batchName] = []args{{"operations": some[:min(len(some), maxOperations)], "onError": "continue"}, {"operations": []args{{"tool": text}}}}
	return all
}

// frameOf is the answer to a call as it stands on the wire.
func (r *rig) frameOf(name string, a args) []byte {
	r.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res, err := r.table.call(ctx, r.caller, name, raw, nil)
	if err != nil {
		r.Fatalf("%s %s: %v", name, raw, err)
	}
	checkAnswer(r, r.table, name, res)
	frame, err := encodeResult(json.RawMessage("1"), res, false, nil)
	if err != nil {
		r.Fatalf("%s %s: %v", name, raw, err)
	}
	return frame
}

// checkWire wants one line of JSON in valid UTF-8, whose strings hold no
// control characters but LF and TAB.
func checkWire(t testing.TB, what string, frame []byte) {
	t.Helper()
	line, ended := bytes.CutSuffix(frame, []byte("\n"))
	if !ended || bytes.ContainsAny(line, "\n\r") || !utf8.Valid(line) || !json.Valid(line) {
		t.Fatalf("%s: not one line of JSON in UTF-8: %q", what, frame)
	}
	// Readers that take them for the end of a line are known.
	if bytes.Contains(line, []byte("\u2028")) || bytes.Contains(line, []byte("\u2029")) || bytes.Contains(line, []byte("\u0085")) {
		t.Fatalf("%s: a raw line separator on the wire: %q", what, frame)
	}
	checkStrings(t, what, plainOf(t, line))
}

func plainOf(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	return v
}

// hostileBytes are the contents of testdata/cases, and some bytes at random.
func hostileBytes(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.bin"))
	if err != nil || len(files) != 5 {
		t.Fatalf("cases: %v, %v", files, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".bin")] = b
	}
	for i := range 2 {
		all[fmt.Sprint("drawn-", i)] = []byte(hostileText().Example(i) + "\x80\xff\x1b]2;\x9c")
	}
	return all
}

// TestX04HostileBytes: whatever a pane shows, and whatever names, titles,
// paths, options, hooks and variables hold, every tool answers one line of
// valid JSON without control characters; so it does to hostile arguments.
func TestX04HostileBytes(t *testing.T) {
	for name, b := range hostileBytes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil).start()
			r.caller = everyTool()
			file := filepath.Join(filepath.Dir(r.sock), "case")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			// What a name may hold: no NUL, which no argument can, and no slash.
			word := strings.NewReplacer("\x00", "", "/", "").Replace(string(b))
			dir := filepath.Join(filepath.Dir(r.sock), word[:min(len(word), 100)])
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			shows := func(channel string) string {
				pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-c", dir, "-t", "main:",
					fmt.Sprintf("stty -echo; cat %s; %s -S %s wait-for -S %s; exec cat", file, r.bin, r.sock, channel))
				r.tmux("wait-for", channel)
				return pane
			}
			// The calls type into one pane, resize, clear and restart it, in any order;
			// the other keeps what it shows.
			pane, kept := shows("printed"), shows("kept")
			window := r.tmux("display-message", "-p", "-t", pane, "#{window_id}")
			// tmux refuses some of these, in some versions: all the same to us.
			for _, command := range [][]string{
				{"rename-window", "-t", window, "--", word},
				{"select-pane", "-t", pane, "-T", word},
				{"set-option", "-t", "main", "@hostile", word},
				{"set-environment", "-t", "main", "HOSTILE", word},
				{"set-environment", "-g", "HOSTILE", word},
				{"set-hook", "-t", "main", "session-renamed", "display-message '" + word + "'"},
				{"new-session", "-d", "-s", word, "cat"},
				{"rename-session", "-t", "main", "--", word},
			} {
				_ = r.command(command...).Run()
			}
			calls := callsOf(pane, window, "$0", word)
			for tool := range r.table.byName {
				if len(calls[tool]) == 0 {
					t.Errorf("%s is not called", tool)
				}
				for _, a := range calls[tool] {
					checkWire(t, fmt.Sprintf("%s %q", tool, a), r.frameOf(tool, a))
				}
			}
			// The round trip keeps what may be kept.
			switch name {
			case "36-json-hostile":
				want := `{"a":"\u0000","b":"</script>"}`
				if got := r.ok("capture_pane", args{"paneId": kept})["text"].(string); !strings.HasPrefix(got, want) {
					t.Errorf("%q, want %q first", got, want)
				}
			case "37-bidi-zero-width":
				if got := r.ok("capture_pane", args{"paneId": kept})["text"].(string); !strings.HasPrefix(got, "safe \u202egnp.exe\u202c txt\nzero\u200bwidth") {
					t.Errorf("%q", got)
				}
				for _, tool := range []string{"capture_pane", "snapshot_pane", "capture_since"} {
					res := r.call(tool, args{"paneId": kept})
					if res.Meta[metaControls] == nil || !strings.HasPrefix(res.Text, "[") || !strings.Contains(res.Text, "that hide or reorder text") {
						t.Errorf("%s: not flagged: %q %v", tool, res.Text, res.Meta)
					}
				}
			}
		})
	}
}

func TestFormatControls(t *testing.T) {
	for s, want := range map[string]int{
		"":                      0,
		"plain \t text\n":       0,
		"e\u0301 \u6f22 \u2500": 0, // combining, wide, a frame
		"\U0001f469\u200d\U0001f4bb \u2764\ufe0f": 0, // emoji with joiner and selector
		"safe \u202egnp.exe\u202c txt":            2,
		"zero\u200bwidth\u2060\ufeff":             3,
		"\u2066\u2069\u061c\u200e\u200f":          5,
		"run \U000e0072\U000e006d":                2,
		"\xe2\x80 \xf3 \xff":                      0,
	} {
		if got := formatControls(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
		res := flagged(&toolResult{Text: s, Meta: map[string]any{"a": 1}})
		if (res.Meta[metaControls] != nil) != (want > 0) || res.Meta["a"] != 1 || !strings.HasSuffix(res.Text, s) {
			t.Errorf("%q: %+v", s, res)
		}
	}
}

// TestM04TitlesAreData: a title is shown as it is, cut to a size, and never
// acted on, whether a program or a person set it.
func TestM04TitlesAreData(t *testing.T) {
	r := newRig(t, nil).start()
	trap := filepath.Join(filepath.Dir(r.sock), "trap")
	title := "#{pane_id}#(touch " + trap + ")#[fg=red] %end 1 2 1"
	r.tmux("select-pane", "-t", "%0", "-T", strings.ReplaceAll(title, "#", "##"))
	if got := r.tmux("display-message", "-p", "-t", "%0", "#{pane_title}"); !strings.Contains(got, "#(touch") {
		t.Fatalf("the trap is not set: %q", got)
	}
	want := r.tmux("display-message", "-p", "-t", "%0", "#{pane_title}")
	for range 2 { // a job's output would show at the second time of asking
		for _, name := range []string{"get_pane_info", "snapshot_pane"} {
			if got := r.ok(name, args{"paneId": "%0"})["pane"].(map[string]any)["title"]; got != want {
				t.Errorf("%s: title %q, want %q", name, got, want)
			}
		}
		if got := r.ok("get_tmux_variables", args{"names": []string{"pane_title"}, "paneId": "%0"})["values"].(map[string]any)["pane_title"]; got != want {
			t.Errorf("variable: %q, want %q", got, want)
		}
		r.ok("list_panes", nil)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("the title was run")
	}
	for _, name := range []string{"16-titles-hostile", "17-dcs-sixel-apc"} {
		file, err := filepath.Abs(filepath.Join("testdata", "cases", name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		pane := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:",
			fmt.Sprintf("cat %s; %s -S %s wait-for -S %s; exec cat", file, r.bin, r.sock, name))
		r.tmux("wait-for", name)
		v := r.ok("get_pane_info", args{"paneId": pane})["pane"].(map[string]any)
		if want := clean(r.tmux("display-message", "-p", "-t", pane, "#{pane_title}")); v["title"] != want {
			t.Errorf("%s: title %q, want %q", name, v["title"], want)
		}
		text := r.ok("capture_pane", args{"paneId": pane})["text"].(string)
		if strings.Contains(text, "iVBOR") || strings.Contains(text, "#(") {
			t.Errorf("%s: title or image data in the text: %q", name, text)
		}
	}
}

// TestM02NamesAreExact: a session's name is never a prefix, a pattern or a
// target, in any tool that takes one; what is near is listed.
func TestM02NamesAreExact(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "build-2", "-x", "80", "-y", "24", "cat")
	r.ok("get_session_info", args{"session": "build-2"})
	for _, name := range []string{"build", "buil", "build*", "build-?", "=build-2", "build-2:", "build-2:0", ":0", "", "Build-2", "build-2 ", "!", "-2"} {
		for _, tool := range []string{"get_session_info", "list_windows", "list_panes", "search_panes", "show_environment", "show_hooks"} {
			for _, by := range []string{"session", "sessionName"} {
				a := args{by: name}
				if tool == "search_panes" {
					a["pattern"] = "x"
				}
				r.refused(tool, a, "does not exist", "$0 (build-2)")
			}
		}
		r.refused("show_option", args{"name": "status", "scope": "session", "target": name}, "does not exist", "$0 (build-2)")
	}
}

// TestX08EmptyResultsAreValid: every tool with nothing to show answers with
// empty lists and maps, not with null, and holds to its own schema.
func TestX08EmptyResultsAreValid(t *testing.T) {
	t.Parallel()
	none := newRig(t, nil)
	r := newRig(t, nil)
	r.caller = everyTool()
	r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "-n", "w", "cat", ";", "new-window", "-d", "-t", "main:", "cat", ";",
		"new-window", "-d", "-t", "main:", "cat", ";", "new-session", "-d", "-s", "gone", "cat", ";", // to be ended
		"new-session", "-d", "-s", "stays", "-x", "80", "-y", "24", "cat")
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	shell := r.shellPane(plainBash)
	run := r.runs(shell, "true")["runId"]
	for _, name := range strings.Split(r.tmux("show-environment", "-t", "main"), "\n") {
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		r.tmux("set-environment", "-t", "main", "-u", name)
	}
	r.tmux("set-option", "-g", "@empty", "")
	empty := map[string]string{} // the member that holds nothing, by tool
	calls := map[string]args{
		"list_sessions": nil, "list_windows": nil, "list_panes": {"window": "@99"},
		"search_panes": {"pattern": "no such text"}, "capture_since": {"paneId": "%0", "cursor": cursor},
		"capture_pane": {"paneId": "%0", "start": -100, "end": -90}, "snapshot_pane": {"paneId": "%0"},
		"show_environment": {"session": "main"}, "show_hooks": {"session": "main"},
		"show_option":        {"name": "status-left", "scope": "session", "target": "main"},
		"get_tmux_variables": {"names": []string{"no_such_variable"}}, "get_server_info": nil,
		"get_pane_info": {"paneId": "%0"}, "get_window_info": {"windowId": "@0"}, "get_session_info": {"session": "main"},
		"find_pane_by_position": {"windowId": "@0", "corner": "top-left"},
		"wait_for_text":         {"paneId": "%0", "timeoutMs": 1},
		"wait_for":              {"conditions": []args{{"kind": "bell"}}, "timeoutMs": 1}, "what_changed": {"kinds": []string{"bell"}},
		"signal_channel": {"channel": "d"}, "wait_for_channel": {"channel": "c"},
		"send_keys": {"paneId": "%0", "keys": "", "enter": false}, "paste_text": {"paneId": "%0", "text": ""},
		sendBatchName: {"operations": []args{}},
		"move_window": {"windowId": "@0"}, "rename_session": {"session": "main", "name": "main"},
		"rename_window": {"windowId": "@0", "name": ""}, "resize_pane": {"paneId": "%0"},
		"resize_window": {"windowId": "@0", "width": 80}, "select_layout": {"windowId": "@0", "layout": "tiled"},
		"select_pane": {"paneId": "%0"}, "select_window": {"windowId": "@0"},
		"set_history_limit": {"lines": 0}, "set_mouse_enabled": {"enabled": false},
		"set_pane_title": {"paneId": "%0", "title": ""}, "set_synchronize_panes": {"windowId": "@0", "enabled": false},
		"swap_pane":      {"paneId": "%0", "otherPaneId": "%0"},
		"create_session": nil, "create_window": {"session": "main"}, "split_window": {"paneId": "%4"},
		"respawn_pane":      {"paneId": "%4", "killFirst": true},
		"run_shell_command": {"paneId": shell, "command": "true"}, "get_run": {"runId": run},
		"interrupt_run": {"runId": run}, "list_runs": {"paneId": "%0"},
		"list_commands": {"paneId": "%0"}, "get_command_output": {"paneId": shell},
		"clear_pane_scrollback": {"paneId": "%0"}, "kill_pane": {"paneId": "%1"}, "kill_window": {"windowId": "@2"},
		"kill_session": {"session": "gone"},
		batchName: {"operations": []args{
			{"tool": "list_panes", "arguments": args{"window": "@99"}},
			{"tool": "search_panes", "arguments": args{"pattern": "no such text"}},
			{"tool": "show_hooks", "arguments": args{"session": "main"}},
		}},
	}
	for tool, member := range map[string]string{
		"list_sessions": "sessions", "list_windows": "windows", "list_panes": "panes", "search_panes": "matches",
		"show_environment": "environment", "show_hooks": "hooks", "capture_since": "text", "capture_pane": "text",
		"run_shell_command": "output", "get_run": "output", "list_runs": "runs", "list_commands": "commands",
		"get_command_output": "output",
		sendBatchName:        "results",
	} {
		empty[tool] = member
	}
	for name := range r.table.byName {
		on := r
		if name == "list_sessions" || name == "list_windows" || name == "get_server_info" {
			on = none
		}
		a, ok := calls[name]
		if !ok {
			t.Errorf("%s is not called", name)
			continue
		}
		if name == "wait_for_channel" {
			r.tmux("wait-for", "-S", "c")
		}
		v := on.ok(name, a) // validates against the schema
		if name == "wait_for_channel" {
			r.tmux("wait-for", "-S", "c")
		}
		checkWire(t, name, on.frameOf(name, a))
		if member := empty[name]; member != "" && length(v[member]) != 0 {
			t.Errorf("%s: %s is %#v, which is not empty", name, member, v[member])
		}
	}
}

// length is that of a list, map or text; -1 for anything else, null too.
func length(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	case string:
		return len(v)
	}
	return -1
}
