package mcp

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// attach attaches a bare control client that nobody of us started, and returns
// when tmux has done it.
func (r *rig) attach(session string) (leave func()) {
	r.Helper()
	cmd := r.command("-C", "attach-session", "-t", session)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	buf, seen := make([]byte, 4096), ""
	for !strings.Contains(seen, "%session-changed") {
		n, err := out.Read(buf)
		if err != nil {
			r.Fatal(err)
		}
		seen += string(buf[:n])
	}
	return func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
	}
}

// M13: no tool lets tmux choose what is meant. What names its target is refused
// without one, and what does not name any answers the same whoever is attached
// wherever.
func TestM13NothingIsGuessed(t *testing.T) {
	r := newRig(t, nil).start()
	r.caller = everyTool()
	r.tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
	r.tmux("split-window", "-d", "-t", "other:0", "cat")
	for _, row := range r.table.byName {
		var in struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err := json.Unmarshal(row.input, &in); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"paneId", "windowId", "session"} {
			if slices.Contains(in.Required, target) {
				r.refused(row.name, args{}, target)
			}
		}
	}

	vague := []struct {
		tool string
		args any
	}{
		{"get_tmux_variables", args{"names": []string{
			"pane_id", "window_id", "session_id", "session_name", "window_index", "pane_pid", "pid", "version", "socket_path",
		}}},
		{"show_environment", nil},
		{"show_hooks", nil},
		{"show_option", args{"name": "exit-empty"}},
		{"list_panes", nil},
		{"list_windows", nil},
		{"search_panes", args{"pattern": "x"}},
	}
	answers := func() string {
		var all strings.Builder
		for _, c := range vague {
			v := r.ok(c.tool, c.args)
			for _, list := range []string{"panes", "windows"} {
				rows, _ := v[list].([]any)
				for _, row := range rows { // who looks where is what changes here
					delete(row.(map[string]any), "isAttended")
				}
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(c.tool + " " + string(b) + "\n")
		}
		return all.String()
	}
	want := answers()
	if !strings.Contains(want, `"pane_id":""`) || strings.Contains(want, `"pid":""`) {
		t.Errorf("variables of no pane:\n%s", want)
	}
	for _, where := range [][]string{{"main"}, {"other"}, {"main", "other"}, {"other", "main"}} {
		var leave []func()
		for _, session := range where {
			leave = append(leave, r.attach(session))
		}
		if got := answers(); got != want {
			t.Errorf("with people on %v:\n%s\nbefore:\n%s", where, got, want)
		}
		for _, f := range leave {
			f()
		}
	}
}

// M10: whatever a name has in it, every tool takes it as one word, and it names
// what it names.
func TestM10NamesAreOneWord(t *testing.T) {
	r := newRig(t, nil).start()
	name := `a b;c 'd' "e" $HOME {f} ~ #{pane_id} \ ; kill-server`
	r.tmux("new-session", "-d", "-s", strings.ReplaceAll(name, "#", "##"), "-x", "80", "-y", "24", "-n", "w", "cat")
	// Some releases store a name otherwise than it was given (a doubled backslash).
	stored := r.tmux("display-message", "-p", "-t", "$1", "#{session_name}")
	if !strings.HasPrefix(stored, "a b;c 'd' \"e\" ") {
		t.Fatalf("tmux stored %q", stored)
	}
	r.tmux("set-option", "-t", "$1", "@one", "word")
	r.tmux("set-environment", "-t", "$1", "ONE", "word")
	r.tmux("set-hook", "-t", "$1", "client-attached", "display-message word")
	for tool, want := range map[string]string{
		"get_session_info": `"id":"$1"`, "list_windows": `"id":"@1"`, "list_panes": `"id":"%1"`,
		"show_environment": `"ONE":"word"`, "show_hooks": `display-message word`, "search_panes": `"`,
	} {
		a := args{"session": stored}
		if tool == "search_panes" {
			a["pattern"] = "x"
		}
		b, err := json.Marshal(r.ok(tool, a))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), want) || strings.Contains(string(b), `"id":"%0"`) {
			t.Errorf("%s: %s", tool, b)
		}
	}
	if v := r.ok("show_option", args{"name": "@one", "scope": "session", "target": stored}); v["value"] != "word" {
		t.Errorf("show_option: %v", v)
	}
	if got := r.tmux("list-sessions", "-F", "#{session_id}"); len(strings.Fields(got)) != 2 {
		t.Errorf("sessions afterwards: %q", got)
	}
}
