package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// far is what a client of the limited socket must never learn of the sessions
// beyond it. Every text is a word that occurs nowhere else.
type far struct {
	sessions, windows, panes []string // ids
	names                    []string // of sessions
	cursors                  []string // of panes and runs
	runIDs                   []string // one has ended, one goes on
	journal                  string   // a cursor of what_changed
	texts                    []string // titles, content, paths, values, names of options
	ids                      map[string]bool
}

// sides is a tmux server with sessions on both sides of a socket's limit.
type sides struct {
	*rig
	far
	near           []string // panes within
	nearWindow     string
	open, limited  *wire
	sessions       int // within
	windows, panes int
}

// newBoundary makes the server, and two sockets to it: an open one and one that
// is limited to agent-* and to the toolsets.
func newBoundary(t *testing.T, toolsets ...string) *sides {
	t.Helper()
	return newSides(t, []string{"agent-*"}, toolsets)
}

// newSides is newBoundary with another limit, nil for none.
func newSides(t *testing.T, sessions, toolsets []string) *sides {
	t.Helper()
	r := newRig(t, nil)
	b := &sides{rig: r}
	dir := filepath.Join(shortDir(t), "zqpath")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	show := func(text string) string { return fmt.Sprintf("stty -echo; printf '%s\\n'; exec cat", text) }
	// In one line, so that it is all there before anybody attaches. The ids with a 1
	// are within: tools' descriptions name them as examples.
	r.tmux(
		"new-session", "-d", "-s", "zqbefore", "-n", "zqfirst", "-c", dir, "-e", "ZQSESSION=zqvalue", show("zqcontent"), ";",
		"new-session", "-d", "-s", "agent-1", "-n", "work", show("one"), ";",
		"split-window", "-t", "zqbefore", "-c", dir, show("zqsplit"), ";",
		"select-pane", "-t", "zqbefore:", "-T", "zqtitle", ";",
		"new-window", "-d", "-t", "agent-1:", "-n", "more", show("two"), ";",
		"new-session", "-d", "-s", "agent-2", "-n", "other", show("three"), ";",
		"new-session", "-d", "-s", "zqlater", "-n", "zqsecond", "-c", dir, show("zqshared"), ";",
		// A window of both sides, which is the caller's only through agent-2, and
		// which the far side has under another index and looks at.
		"link-window", "-d", "-s", "agent-2:other", "-t", "zqbefore:7", ";",
		"select-window", "-t", "zqbefore:7", ";",
		// A group that is named after a session beyond.
		"new-session", "-d", "-s", "zqgrouped", "-t", "zqlater", ";",
		"set-option", "-g", "@zqoption", "zqsetting", ";",
		"set-option", "-s", "command-alias[50]", "zqalias=display-message zqaliased", ";",
		"set-option", "-t", "zqbefore", "status-left", "zqleft", ";",
		"set-option", "-g", "status-right", "zqright", ";",
		"set-hook", "-g", "client-attached", "display-message zqhook", ";",
		"set-hook", "-t", "zqbefore", "client-attached", "display-message zqsessionhook", ";",
		"set-environment", "-g", "ZQGLOBAL", "zqglobal", ";",
		"set-buffer", "-b", "zqbuffer", "zqpasted", ";",
		"new-window", "-d", "-t", "zqbefore:", "-n", "zqshell", "echo zqgreeting; exec bash --norc -i",
	)
	for _, row := range []struct {
		into *[]string
		list []string
	}{
		{&b.far.sessions, []string{"list-sessions", "-F", "#{session_id} #{session_name}"}},
		{&b.far.windows, []string{"list-windows", "-a", "-F", "#{window_id} #{session_name}"}},
		{&b.far.panes, []string{"list-panes", "-a", "-F", "#{pane_id} #{session_name}"}},
	} {
		far, near := map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(r.tmux(row.list...) + "\n") {
			id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(name, "agent-") {
				near[id] = true
			} else {
				far[id] = true
			}
		}
		for id := range far {
			if !near[id] {
				*row.into = append(*row.into, id)
			}
		}
		slices.Sort(*row.into)
		switch row.list[0] {
		case "list-panes":
			b.near, b.panes = slices.Sorted(maps.Keys(near)), len(near)
		case "list-windows":
			b.windows, b.nearWindow = len(near), slices.Sorted(maps.Keys(near))[0]
		default:
			b.nearSessions(near)
		}
	}
	b.names = []string{"zqbefore", "zqlater", "zqgrouped"}
	b.texts = append([]string{
		"zqpath", "zqfirst", "zqsecond", "zqvalue", "zqcontent", "zqsplit", "zqtitle", "zqshared", "@zqoption", "zqsetting",
		"zqalias", "zqaliased", "zqleft", "zqright", "zqhook", "zqsessionhook", "ZQGLOBAL", "zqglobal", "ZQSESSION", "zqbuffer", "zqpasted",
		"zqshell", "zqgreeting", "zqprinted", "zqrunning",
	}, b.names...)
	b.ids = map[string]bool{}
	for _, id := range slices.Concat(b.far.sessions, b.far.windows, b.far.panes) {
		b.ids[id] = true
	}
	b.serve(t, toolsets, sessions)
	for _, id := range b.far.panes {
		r.until(func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-t", id), "zq") })
	}
	for _, id := range b.far.panes {
		var seen struct{ Cursor string }
		b.structured(b.open, "capture_since", args{"paneId": id}, &seen)
		b.cursors = append(b.cursors, seen.Cursor)
	}
	b.runBeyond()
	var changed struct{ Cursor string }
	b.structured(b.open, "what_changed", nil, &changed)
	b.journal = changed.Cursor
	b.structured(b.open, "signal_channel", args{"channel": "zqsignalled"}, &struct{}{})
	return b
}

// runBeyond starts two runs on the far side, and waits for one.
func (b *sides) runBeyond() {
	b.Helper()
	id, err := controlmode.ParsePaneID(b.tmux("display-message", "-p", "-t", "zqbefore:zqshell", "#{pane_id}"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if w, err := b.table.mirror.WaitReady(ctx, id, patience); err != nil || w.For != state.WaitsPrompt {
		b.Fatalf("%+v, %v", w, err)
	}
	for _, command := range []string{"echo zqprinted", "echo zqrunning; exec cat"} {
		var run struct{ RunID, Cursor, Outcome string }
		wait := patience.Milliseconds()
		if strings.Contains(command, "cat") {
			wait = 1
		}
		b.structured(b.open, "run_shell_command", args{"paneId": id.String(), "command": command, "timeoutMs": wait}, &run)
		b.runIDs, b.texts = append(b.runIDs, run.RunID), append(b.texts, run.RunID)
		b.cursors = append(b.cursors, run.Cursor)
	}
	b.until(func() bool { return strings.Contains(b.tmux("capture-pane", "-p", "-t", id.String()), "zqrunning") })
}

func (b *sides) nearSessions(near map[string]bool) { b.sessions = len(near) }

// serve opens both sockets of one server.
func (b *sides) serve(t *testing.T, toolsets, sessions []string) {
	d := startServer(t, Config{}, b.table)
	b.daemon = d
	b.open = d.open(t)
	p, err := d.NewPolicy(PolicyConfig{Sessions: sessions, Toolsets: toolsets})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	l.Under(p)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.Close()
	})
	b.limited = (&daemon{Server: d.Server, path: l.Path()}).open(t)
}

// request sends one request and gives the line of its answer. The deadline of
// the wire is the test's.
func (b *sides) request(w *wire, method string, params any) []byte {
	b.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		b.Fatal(err)
	}
	w.SetDeadline(time.Now().Add(patience))
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, method, raw))
	for {
		line := w.line()
		if m := decode(b, line); m["id"] == "q" {
			return line
		}
	}
}

func (b *sides) callOn(w *wire, name string, a args) []byte {
	b.Helper()
	if a == nil {
		a = args{}
	}
	return b.request(w, callMethod, args{"name": name, "arguments": a})
}

func (b *sides) structured(w *wire, name string, a args, into any) {
	b.Helper()
	line := b.callOn(w, name, a)
	var m struct {
		Result struct {
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Result.StructuredContent == nil {
		b.Fatalf("%s %v: %s (%v)", name, a, line, err)
	}
	if err := json.Unmarshal(m.Result.StructuredContent, into); err != nil {
		b.Fatalf("%s: %v", name, err)
	}
}

var rawBase64 = regexp.MustCompile(`"rawBase64":"([^"]*)"`)

var idToken = regexp.MustCompile(`[$@%][0-9]+`)

// addressToken is a resource's address in an answer.
var addressToken = regexp.MustCompile(`tmux://(sessions|windows|panes)/([0-9]+)`)

// leaks finds what an answer tells of the far side beyond what the question
// named itself.
func (f *far) leaks(answer []byte, asked any) []string {
	said := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			said[v] = true
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	raw, _ := json.Marshal(asked)
	var plain any
	_ = json.Unmarshal(raw, &plain)
	walk(plain)
	for _, m := range rawBase64.FindAllSubmatch(answer, -1) {
		if plain, err := base64.StdEncoding.DecodeString(string(m[1])); err == nil {
			answer = append(slices.Clone(answer), plain...)
		}
	}
	var found []string
	for _, text := range f.texts {
		if bytes.Contains(answer, []byte(text)) && !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(s string) bool { return strings.Contains(s, text) }) {
			found = append(found, text)
		}
	}
	ids := idToken.FindAllString(string(answer), -1)
	for _, m := range addressToken.FindAllSubmatch(answer, -1) {
		ids = append(ids, map[string]string{"sessions": "$", "windows": "@", "panes": "%"}[string(m[1])]+string(m[2]))
	}
	for _, id := range ids {
		// The answers of a cursor's tools repeat the cursor, which names a pane.
		if f.ids[id] && !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(s string) bool { return strings.Contains(s, id) }) {
			found = append(found, id)
		}
	}
	return found
}

// The check itself finds what it is for.
func TestBoundaryCheckFinds(t *testing.T) {
	f := &far{texts: []string{"zqname"}, ids: map[string]bool{"%7": true}}
	for answer, want := range map[string]int{
		`{"text":"zqname"}`: 1, `{"id":"%7"}`: 1, `{"id":"%70"}`: 0, `{"text":"other"}`: 0, `pane %7 of zqname`: 2,
		`{"uri":"tmux://panes/7/content"}`: 1, `{"uri":"tmux://panes/71/content"}`: 0, `{"uri":"tmux://windows/7/panes"}`: 0,
		`{"rawBase64":"` + base64.StdEncoding.EncodeToString([]byte("a zqname")) + `"}`: 1,
	} {
		if got := f.leaks([]byte(answer), nil); len(got) != want {
			t.Errorf("%s: found %q", answer, got)
		}
	}
	if got := f.leaks([]byte(`pane %7 does not exist`), args{"paneId": "%7"}); len(got) != 0 {
		t.Errorf("an echo is no leak: %q", got)
	}
	if got := f.leaks([]byte(`pane %7 of zqname`), args{"operations": []any{args{"paneId": "%7"}}}); len(got) != 1 {
		t.Errorf("beside an echo: %q", got)
	}
}

func (b *sides) check(what string, answer []byte, asked any) {
	b.Helper()
	if found := b.leaks(answer, asked); len(found) > 0 {
		raw, _ := json.Marshal(asked)
		b.Errorf("%s %s tells %q:\n%.2000s", what, raw, found, answer)
	}
}

// TestBoundaryCounts: what is counted is what exists for the client.
func TestBoundaryCounts(t *testing.T) {
	b := newBoundary(t, "inspect")
	var info struct{ Sessions, Windows, Panes int }
	b.structured(b.limited, "get_server_info", nil, &info)
	if info.Sessions != b.sessions || info.Windows != b.windows || info.Panes != b.panes {
		t.Errorf("%+v, want %d sessions, %d windows, %d panes", info, b.sessions, b.windows, b.panes)
	}
	var searched struct{ PanesSearched int }
	b.structured(b.limited, "search_panes", args{"pattern": "o"}, &searched)
	if searched.PanesSearched != b.panes {
		t.Errorf("%d panes searched, want %d", searched.PanesSearched, b.panes)
	}
	for tool, want := range map[string]int{"sessions": b.sessions, "windows": b.windows, "panes": b.panes} {
		var rows map[string]any
		b.structured(b.limited, "list_"+tool, nil, &rows)
		if got := rows[tool].([]any); len(got) != want || rows["omittedEntries"] != 0.0 {
			t.Errorf("list_%s: %v", tool, rows)
		}
	}
	var windows struct {
		Windows []struct{ Placements []any }
	}
	b.structured(b.limited, "list_windows", nil, &windows)
	for _, w := range windows.Windows {
		if len(w.Placements) != 1 {
			t.Errorf("a window with %d placements, one is in sight", len(w.Placements))
		}
	}
	// The open socket sees all of it.
	b.structured(b.open, "get_server_info", nil, &info)
	if info.Sessions != b.sessions+3 {
		t.Errorf("the open socket sees %d sessions", info.Sessions)
	}
}

// TestBoundaryAsIfNot: what lies beyond is answered as what does not exist.
func TestBoundaryAsIfNot(t *testing.T) {
	b := newBoundary(t)
	none := []string{"%4000001", "@4000001", "nonesuch", "none"}
	hidden := []string{b.far.panes[0], b.far.windows[0], "zqbefore", "none"}
	missing := callsOf(none[0], none[1], none[2], none[3])
	for name, calls := range callsOf(hidden[0], hidden[1], hidden[2], hidden[3]) {
		if b.table.byName[name] == nil {
			continue
		}
		for i, a := range calls {
			got, want := b.callOn(b.limited, name, a), b.callOn(b.limited, name, missing[name][i])
			b.check(name, got, a)
			for j := range none {
				want = bytes.ReplaceAll(want, []byte(none[j]), []byte(hidden[j]))
			}
			got, want = timeless(got), timeless(want)
			if !bytes.Equal(got, want) && !bytes.Contains(want, []byte(`"isError":false`)) {
				t.Errorf("%s %v:\n%s\nbut for what does not exist:\n%s", name, a, got, want)
			}
		}
	}
}

// timeless leaves out what differs between two equal calls: how long they took,
// and the order of equally near alternatives.
func timeless(line []byte) []byte {
	line = regexp.MustCompile(`"(durationMs|elapsed_seconds)":[0-9.e+-]+`).ReplaceAll(line, []byte(`"$1":0`))
	line = regexp.MustCompile(`(Panes|Windows|Sessions): [^"\\]*`).ReplaceAll(line, []byte("$1"))
	return regexp.MustCompile(`\\n\\n.*`).ReplaceAll(line, nil)
}
