package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// far is what a client of the limited socket must never learn of the sessions
// beyond it. Every text is a word that occurs nowhere else.
type far struct {
	sessions, windows, panes []string // ids
	names                    []string // of sessions
	cursors                  []string
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
		"set-buffer", "-b", "zqbuffer", "zqpasted",
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
	}, b.names...)
	b.ids = map[string]bool{}
	for _, id := range slices.Concat(b.far.sessions, b.far.windows, b.far.panes) {
		b.ids[id] = true
	}
	b.serve(t, toolsets)
	for _, id := range b.far.panes {
		r.until(func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-t", id), "zq") })
	}
	for _, id := range b.far.panes {
		var seen struct{ Cursor string }
		b.structured(b.open, "capture_since", args{"paneId": id}, &seen)
		b.cursors = append(b.cursors, seen.Cursor)
	}
	return b
}

func (b *sides) nearSessions(near map[string]bool) { b.sessions = len(near) }

// serve opens both sockets of one server.
func (b *sides) serve(t *testing.T, toolsets []string) {
	d := startServer(t, Config{}, b.table)
	b.daemon = d
	b.open = d.open(t)
	p, err := d.NewPolicy(PolicyConfig{Sessions: []string{"agent-*"}, Toolsets: toolsets})
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

// TestBoundaryFuzz: every tool is called with every known id, name and argument
// of the other side, through a socket that may only inspect and through one
// that may do everything. Nothing of that side comes back, and nothing of it
// changes.
func TestBoundaryFuzz(t *testing.T) {
	calls := 20 // of every tool
	if n, err := strconv.Atoi(os.Getenv("TMUX_MCPD_BOUNDARY_CALLS")); err == nil {
		calls = n
	}
	for _, toolsets := range [][]string{{"inspect"}, nil} {
		t.Run(fmt.Sprint(toolsets), func(t *testing.T) {
			b := newBoundary(t, toolsets...)
			before := b.farSide()
			rng := rand.New(rand.NewPCG(8, uint64(len(toolsets))))
			for _, name := range slices.Sorted(maps.Keys(b.table.byName)) {
				row := b.table.byName[name]
				if toolsets != nil && row.toolset != inspect {
					continue
				}
				for range calls {
					a := b.guess(rng, row)
					b.check(name, b.callOn(b.limited, name, a), a)
				}
			}
			for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list", "tmux-mcpd/status"} {
				b.check(method, b.request(b.limited, method, args{}), nil)
			}
			b.resources()
			b.limited.alive()
			if after := b.farSide(); after != before {
				t.Errorf("the other side was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// addresses are those of the resources of an object, in all spellings.
func addresses(kind, id string) []string {
	var all []string
	for i := range resources {
		if r := &resources[i]; strings.HasPrefix(r.path, kind+"/") {
			for _, spelled := range []string{id, url.PathEscape(id), strings.TrimLeft(id, "$@%")} {
				all = append(all, strings.Replace(r.template(), "{"+r.variable()+"}", spelled, 1))
			}
		}
	}
	return all
}

// resources asks the limited socket for everything about the other side's
// resources, and subscribes to them.
func (b *sides) resources() {
	uris := []string{capabilitiesURI, "tmux://sessions", "tmux://windows", "tmux://panes", "tmux://zqnonsense"}
	for kind, ids := range map[string][]string{
		"sessions": slices.Concat(b.far.sessions, b.names), "windows": b.far.windows, "panes": b.far.panes,
	} {
		for _, id := range ids {
			uris = append(uris, addresses(kind, id)...)
		}
	}
	for _, uri := range uris {
		a := args{"uri": uri}
		answer := b.request(b.limited, "resources/read", a)
		if means, ok := parseAddress(uri); ok {
			a["means"] = means.id // an error names it so
			if id, ok := idOf('$', means.id); ok && means.variable() == varSession {
				a["means"] = id
			}
		}
		b.check("resources/read", answer, a)
		b.check("resources/subscribe", b.request(b.limited, "resources/subscribe", args{"uri": uri}), a)
		b.check("resources/unsubscribe", b.request(b.limited, "resources/unsubscribe", args{"uri": uri}), a)
	}
	for i := range resources {
		r := &resources[i]
		for _, typed := range append([]string{"", "$", "@", "%", "z", "zq"}, b.texts...) {
			if r.variable() == "" {
				break
			}
			a := args{"ref": args{"type": "ref/resource", "uri": r.template()}, "argument": args{"name": r.variable(), "value": typed}}
			answer := b.request(b.limited, "completion/complete", a)
			b.check("completion/complete", answer, a)
			var found struct{ Result gotCompletion }
			if err := json.Unmarshal(answer, &found); err != nil || strings.HasPrefix(typed, "z") && len(found.Result.Completion.Values) > 0 {
				b.Errorf("%s of %q: %s (%v)", r.template(), typed, answer, err)
			}
			for _, v := range found.Result.Completion.Values {
				if sigil := map[string]string{varSession: "$", varWindow: "@", varPane: "%"}[r.variable()]; b.ids[sigil+strings.TrimLeft(v, sigil)] {
					b.Errorf("%s of %q: %s", r.template(), typed, answer)
				}
			}
		}
	}
}

// TestBoundaryResourcesAsIfNot: what lies beyond is answered as what does not
// exist.
func TestBoundaryResourcesAsIfNot(t *testing.T) {
	b := newBoundary(t)
	for kind, ids := range map[string][2]string{
		"sessions": {"zqbefore", "nonesuch"}, "windows": {b.far.windows[0], "@4000001"}, "panes": {b.far.panes[0], "%4000001"},
	} {
		missing := addresses(kind, ids[1])
		for i, uri := range addresses(kind, ids[0]) {
			for _, method := range []string{"resources/read", "resources/subscribe"} {
				got, want := b.request(b.limited, method, args{"uri": uri}), b.request(b.limited, method, args{"uri": missing[i]})
				want = bytes.ReplaceAll(want, []byte(missing[i]), []byte(uri))
				want = bytes.ReplaceAll(want, []byte(ids[1]), []byte(ids[0]))
				if got, want = timeless(got), timeless(want); !bytes.Equal(got, want) || !bytes.Contains(got, []byte(`"error"`)) {
					t.Errorf("%s %s:\n%s\nbut for what does not exist:\n%s", method, uri, got, want)
				}
			}
		}
	}
}

// farSide is all that could be changed on the other side.
func (b *sides) farSide() string {
	var s strings.Builder
	for _, line := range strings.Split(b.tmux("list-panes", "-a", "-F",
		"#{session_name} #{window_id} #{window_name} #{window_layout} #{pane_id} #{pane_pid} #{pane_title} #{pane_in_mode} #{pane_synchronized} #{history_limit} #{window_active}"), "\n") {
		if strings.HasPrefix(line, "zq") {
			s.WriteString(line + "\n")
		}
	}
	for _, id := range b.far.panes {
		s.WriteString(b.tmux("capture-pane", "-p", "-S", "-", "-t", id))
	}
	s.WriteString(b.tmux("show-options", "-g") + b.tmux("show-options", "-s") + b.tmux("show-options", "-gw"))
	for _, name := range b.names {
		s.WriteString(b.tmux("show-options", "-t", name+":") + b.tmux("show-environment", "-t", name))
	}
	s.WriteString(b.tmux("show-environment", "-g") + b.tmux("show-hooks", "-g"))
	return s.String()
}

// guess makes arguments for a tool. What changes something is only asked to
// change the other side.
func (b *sides) guess(rng *rand.Rand, row *tool) args {
	a := args{}
	for i := range row.params {
		p := &row.params[i]
		if p.required || p.name == "timeoutMs" || rng.IntN(5) < 2 { // nothing waits for long
			a[p.name] = b.guessValue(rng, row, p)
		}
	}
	return a
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

var conditionKinds = []string{
	"text", "settled", "output", "pane_died", "run_ended", "prompt", "password", "command_changed", "title_changed", "bell",
	"mode_changed", "pane_created", "pane_closed", "window_created", "window_closed", "session_created", "session_closed",
	"person_attached", "person_left", "server_gone",
}

func (b *sides) guessValue(rng *rand.Rand, row *tool, p *param) any {
	switch p.kind {
	case kindInteger:
		if strings.HasSuffix(p.name, "Ms") {
			return pick(rng, 1, 5, 20)
		}
		return pick(rng, 1, 2, 5, 50, -10, -1000)
	case kindBoolean:
		return rng.IntN(2) == 0
	case kindStrings:
		list := []string{}
		for range max(p.minItems, 1+rng.IntN(3)) {
			list = append(list, b.guessText(rng, row, p))
		}
		return list
	case kindObject:
		return args{}
	case kindObjects:
		list := []args{}
		for range max(p.minItems, 1+rng.IntN(3)) {
			if row.name == batchName {
				nested := b.table.byName[pick(rng, nestable...)]
				if nested == nil {
					continue
				}
				list = append(list, args{"tool": nested.name, "arguments": b.guess(rng, nested)})
				continue
			}
			list = append(list, b.guessObject(rng, row, p))
		}
		return list
	}
	return b.guessText(rng, row, p)
}

// guessObject makes an item of a tool's own list: a condition of wait_for, an
// operation of send_keys_batch.
func (b *sides) guessObject(rng *rand.Rand, row *tool, p *param) args {
	a := args{"paneId": pick(rng, b.far.panes...)}
	switch {
	case strings.Contains(row.name, "keys"):
		a["keys"] = "zqtyped"
	default:
		a["kind"] = pick(rng, conditionKinds...)
		for key, value := range map[string]string{
			"windowId": pick(rng, b.far.windows...), "session": pick(rng, b.names...), "pattern": pick(rng, ".", "zq"),
		} {
			if rng.IntN(3) == 0 {
				a[key] = value
			}
		}
		if rng.IntN(3) == 0 {
			delete(a, "paneId")
		}
	}
	return a
}

var guessedNames = []string{
	"client_session", "client_name", "client_last_session", "server_sessions", "session_name", "session_group", "session_group_list",
	"session_group_attached_list", "window_linked_sessions_list", "window_active_sessions_list", "window_linked_sessions",
	"window_active_clients_list", "next_session_id", "buffer_name", "buffer_sample", "session_list", "ZQGLOBAL", "PWD", "OLDPWD",
	"pane_title", "pane_current_path", "session_path", "window_name", "pane_id", "window_id", "session_id", "last_session",
	"@zqoption", "zqoption", "status-left", "status-right", "command-alias", "status", "history-limit", "client-attached", "default-command",
}

func (b *sides) guessText(rng *rand.Rand, row *tool, p *param) string {
	if len(p.enum) > 0 && rng.IntN(10) > 0 {
		return pick(rng, p.enum...)
	}
	near := row.toolset == inspect && rng.IntN(4) == 0
	name := strings.ToLower(p.name)
	switch {
	case strings.Contains(name, "pane"):
		if near {
			return pick(rng, b.near...)
		}
		return pick(rng, b.far.panes...)
	case strings.Contains(name, "window") && !strings.Contains(name, "name"):
		if near {
			return b.nearWindow
		}
		return pick(rng, b.far.windows...)
	case name == "target":
		if near {
			return pick(rng, b.near[0], b.nearWindow, "agent-1")
		}
		return pick(rng, pick(rng, b.far.panes...), pick(rng, b.far.windows...), pick(rng, b.names...), pick(rng, b.far.sessions...))
	case strings.Contains(name, "session"):
		if near {
			return "agent-2"
		}
		return pick(rng, pick(rng, b.names...), pick(rng, b.far.sessions...))
	case strings.Contains(name, "cursor"):
		return pick(rng, b.cursors...)
	case name == "pattern" || name == "patterns" || name == "stop":
		return pick(rng, ".", "zq", "zqcontent", "o")
	case name == "names" || name == "name" && row.toolset == inspect:
		return pick(rng, guessedNames...)
	case name == "startdirectory":
		return "/"
	case name == "command" || name == "keys" || name == "text":
		return "zqtyped"
	}
	return pick(rng, pick(rng, b.texts...), "main", "zqtyped")
}
