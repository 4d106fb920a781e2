package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBoundaryFuzz: every tool is called with every known id, name and argument
// of the other side, through a socket that may only inspect and through one
// that may do everything. Nothing of that side comes back, and nothing of it
// changes.
func TestBoundaryFuzz(t *testing.T) {
	t.Parallel()
	calls := 20 // of every tool
	if n, err := strconv.Atoi(os.Getenv("TMUX_MCPD_BOUNDARY_CALLS")); err == nil {
		calls = n
	}
	for _, toolsets := range [][]string{{"inspect"}, nil} {
		t.Run(fmt.Sprint(toolsets), func(t *testing.T) {
			b := newBoundary(t, toolsets...)
			before := b.farSide()
			b.tryAll(toolsets, calls, b.check)
			for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list", "tmux-mcpd/status"} {
				b.check(method, b.request(b.limited, method, args{}), nil)
			}
			b.resources()
			b.limited.alive()
			b.channelsApart()
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

// tryAll calls every tool of the toolsets with what is known of the far side.
func (b *sides) tryAll(toolsets []string, calls int, check func(tool string, answer []byte, asked any)) {
	b.Helper()
	rng := rand.New(rand.NewPCG(8, uint64(len(toolsets))))
	for _, name := range slices.Sorted(maps.Keys(b.table.byName)) {
		row := b.table.byName[name]
		if toolsets != nil && row.toolset != inspect {
			continue
		}
		for range calls {
			a := b.guess(rng, row)
			check(name, b.callOn(b.limited, name, a), a)
		}
	}
}

// channelsApart checks that what was signalled and waited for through the limited
// socket was no channel of the other side's.
func (b *sides) channelsApart() {
	b.Helper()
	var v struct{ Signalled bool }
	b.structured(b.open, "wait_for_channel", args{"channel": "zqsignalled"}, &v)
	if answer := b.callOn(b.open, "wait_for_channel", args{"channel": "zqwaited", "timeoutMs": 1}); !bytes.Contains(answer, []byte("timed out")) {
		b.Errorf("a signal came through: %s", answer)
	}
}

// TestBoundaryFuzzFinds: on a socket without a limit the same calls tell of the
// other side, each tool that can.
func TestBoundaryFuzzFinds(t *testing.T) {
	t.Parallel()
	b := newSides(t, nil, []string{"inspect"})
	found := map[string]int{}
	b.tryAll([]string{"inspect"}, 40, func(tool string, answer []byte, asked any) { found[tool] += len(b.leaks(answer, asked)) })
	silent := []string{ // of what is not named in the question
		"get_server_info",
	}
	for name, row := range b.table.byName {
		if row.toolset == inspect && found[name] == 0 && !slices.Contains(silent, name) {
			t.Errorf("%s tells nothing of the other side", name)
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
	for _, id := range b.runIDs {
		var v struct{ Run struct{ State string } }
		b.structured(b.open, "get_run", args{"runId": id}, &v)
		s.WriteString(id + " " + v.Run.State + "\n")
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
			"runId": pick(rng, b.runIDs...), "cursor": pick(rng, b.cursors...),
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
		return pick(rng, append([]string{"zqfirst", "zqbefore:zqsecond"}, b.far.windows...)...)
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
	case name == "runid":
		return pick(rng, b.runIDs...)
	case name == "channel" && row.name == "signal_channel":
		return "zqwaited"
	case name == "channel":
		return "zqsignalled"
	case strings.Contains(name, "cursor") && row.name == "what_changed":
		return pick(rng, b.journal, b.cursors[0])
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
