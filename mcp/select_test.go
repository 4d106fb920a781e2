package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"tmux-mcpd/state"
)

func selected(t *testing.T, tab *table, env map[string]string) []string {
	t.Helper()
	var list []string
	for _, tool := range tab.tools(&Caller{Hello: Hello{Env: env}}) {
		list = append(list, tool.Name)
	}
	if !slices.IsSorted(list) {
		t.Errorf("not in a stable order: %v", list)
	}
	return list
}

// toolsOf are the tools of toolsets that there are.
func toolsOf(t *testing.T, sets ...toolset) (list []string) {
	for _, row := range testTable(t, nil).byName {
		if slices.Contains(sets, row.toolset) {
			list = append(list, row.name)
		}
	}
	slices.Sort(list)
	return list
}

func TestSelection(t *testing.T) {
	all := selected(t, testTable(t, nil), nil)
	reads := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !slices.Contains(membership[inspect], s) })
	for _, set := range toolsets[:3] { // not teardown
		for _, name := range membership[set] {
			if testTable(t, nil).byName[name] != nil && !slices.Contains(all, name) {
				t.Errorf("%s is not selected", name)
			}
		}
	}
	if len(reads) < 17 || len(reads) == len(all) || slices.ContainsFunc(all, func(s string) bool { return slices.Contains(membership[teardown], s) }) {
		t.Fatalf("%d tools, %d of them read: %v", len(all), len(reads), all)
	}
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(gone, s) })
	}
	type env = map[string]string
	for _, c := range []struct {
		name        string
		daemon, own env
		want        []string
	}{
		{"nothing said", nil, nil, all},
		{"inspect", nil, env{envToolsets: " inspect "}, reads},
		{"none", nil, env{envToolsets: ""}, nil},
		{"one tool", nil, env{envToolsets: "", envTools: "list_panes"}, []string{"list_panes"}},
		{"excluded wins", nil, env{envTools: "list_panes", envExclude: "list_panes"}, without("list_panes")},
		{"daemon's own", env{envToolsets: "", envTools: "list_panes , list_windows"}, nil, []string{"list_panes", "list_windows"}},
		{"beyond the ceiling", env{envToolsets: "", envTools: "list_panes"}, env{envToolsets: "inspect"}, []string{"list_panes"}},
		{"daemon excludes", env{envExclude: "list_panes"}, env{envTools: "list_panes"}, without("list_panes")},
		{"daemon says manage, caller inspect", env{envToolsets: "manage"}, env{envToolsets: "inspect"}, nil},
		{"one fewer", nil, env{envExclude: "capture_pane"}, without("capture_pane")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := selected(t, testTable(t, c.daemon), c.own); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestSelectionFailures(t *testing.T) {
	for _, env := range []map[string]string{
		{envToolsets: "inspect,"},
		{envToolsets: "Inspect"},
		{envToolsets: "readonly"},
		{envTools: ""},
		{envTools: "list_panes,,"},
		{envTools: "no_such_tool"},
		{envExclude: " "},
		{envExclude: "no_such_tool"},
		{"LIBTMUX_SAFETY": "readonly"},
		{"LIBTMUX_MCP_TOOLS": ""},
		{"LIBTMUX_SOCKET_NAME": "x"},
		{envSocket: "a", envSocketPath: "/b"},
	} {
		if err := CheckSelection(env); err == nil {
			t.Errorf("a bridge starts with %v", env)
		}
		tab, caller := testTable(t, nil), &Caller{Hello: Hello{Env: env}}
		if got := tab.tools(caller); got == nil || len(got) != 0 {
			t.Errorf("%v: %d tools", env, len(got))
		}
		res, err := tab.call(t.Context(), caller, "list_sessions", nil, nil)
		if err != nil || !res.IsError || !strings.Contains(res.Text, "no tools are selected") {
			t.Errorf("%v: %+v, %v", env, res, err)
		}
	}
	if err := CheckSelection(map[string]string{envToolsets: "", envMaxLines: "junk"}); err != nil {
		t.Error(err)
	}
}

func TestDedicatedServerSelectsTeardown(t *testing.T) {
	for _, dedicated := range []bool{false, true} {
		tab, err := newTable(state.New(state.Config{}), ToolConfig{Dedicated: dedicated})
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.open.now.Load().picks.own.tools["kill_pane"]; got != dedicated {
			t.Errorf("dedicated %v: kill_pane selected %v", dedicated, got)
		}
		if !tab.open.now.Load().picks.ceiling["kill_pane"] {
			t.Error("kill_pane is beyond the ceiling")
		}
	}
}

func TestLimitVariables(t *testing.T) {
	type env = map[string]string
	for _, c := range []struct {
		daemon, own env
		lines       int
		wait, long  time.Duration
	}{
		{nil, nil, 200, 55 * time.Second, 10 * time.Minute},
		{nil, env{envMaxLines: "10000", envWaitMax: "1000"}, 10_000, time.Second, time.Second},
		{nil, env{envMaxLines: "99999999999999999999", envWaitMax: "99999999999999999999"}, 10_000, 55 * time.Second, 120 * time.Second},
		{nil, env{envMaxLines: "junk", envWaitMax: "-1"}, 200, 55 * time.Second, 10 * time.Minute},
		{nil, env{envMaxLines: "0", envWaitMax: "1"}, 200, time.Second, time.Second},
		{env{envMaxLines: "50", envWaitMax: "120001"}, nil, 50, 120 * time.Second, 120 * time.Second},
		{env{envMaxLines: "50"}, env{envMaxLines: "60"}, 50, 55 * time.Second, 10 * time.Minute},
		{env{envMaxLines: "50"}, env{envMaxLines: "10"}, 10, 55 * time.Second, 10 * time.Minute},
	} {
		sel, err := testTable(t, c.daemon).open.now.Load().picks.of(&Caller{Hello: Hello{Env: c.own}})
		if err != nil {
			t.Fatal(err)
		}
		if sel.limits != (limits{c.lines, c.wait, c.long}) {
			t.Errorf("%v %v: %+v", c.daemon, c.own, sel.limits)
		}
	}
}

// TestExcludedToolsLeaveTheBatch: from its schema, and from its reach.
func TestExcludedToolsLeaveTheBatch(t *testing.T) {
	tab := testTable(t, nil)
	caller := &Caller{Hello: Hello{Env: map[string]string{envExclude: "list_panes,show_environment"}}}
	for _, tool := range tab.tools(caller) {
		if tool.Name == batchName && strings.Contains(string(tool.InputSchema.(json.RawMessage)), `"list_panes"`) {
			t.Error("list_panes is still a variant")
		}
	}
	res, err := tab.call(t.Context(), caller, batchName, json.RawMessage(`{"operations":[{"tool":"list_panes"}]}`), nil)
	if err != nil || !res.IsError || !strings.Contains(res.Text, "operations[0]") {
		t.Errorf("%+v, %v", res, err)
	}
	// Not selected alone, but not excluded either: the batch may reach it.
	sel, err := tab.open.now.Load().picks.of(&Caller{Hello: Hello{Env: map[string]string{envToolsets: "", envTools: batchName}}})
	if err != nil || len(sel.tools) != 1 || !slices.Equal(sel.tools[batchName].nested, nestable) {
		t.Errorf("%v, %v", sel, err)
	}
	every := map[string]string{envToolsets: "", envTools: batchName, envExclude: strings.Join(nestable, ",")}
	sel, err = tab.open.now.Load().picks.of(&Caller{Hello: Hello{Env: every}})
	if err != nil || len(sel.tools) != 1 {
		t.Fatalf("%v", err)
	}
	schema := validator(t, sel.tools[batchName].input)
	for _, op := range []any{map[string]any{"tool": "list_panes"}, map[string]any{}, "x"} {
		if schema.Validate(map[string]any{"operations": []any{op}}) == nil {
			t.Errorf("%v satisfies the empty batch", op)
		}
	}
}

func TestUnknownTool(t *testing.T) {
	tab := testTable(t, nil)
	for name, want := range map[string]string{
		"list_pane": "did you mean list_panes?", "kill_everything": "unknown tool", "": "unknown tool",
	} {
		_, err := tab.call(t.Context(), &Caller{}, name, nil, nil)
		e, ok := err.(*jsonrpc.Error)
		if !ok || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	caller := &Caller{Hello: Hello{Env: map[string]string{envExclude: "list_panes"}}}
	if _, err := tab.call(t.Context(), caller, "list_panes", nil, nil); err == nil || !strings.Contains(err.Error(), "not selected") {
		t.Error(err)
	}
}

// TestSelectionsAreBounded: callers cannot fill the daemon's memory with
// environments.
func TestSelectionsAreBounded(t *testing.T) {
	tab := testTable(t, nil)
	for i := range 3 * maxPicks {
		env := maps.Clone(map[string]string{envMaxLines: strings.Repeat("1", i+1)})
		if _, err := tab.open.now.Load().picks.of(&Caller{Hello: Hello{Env: env}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(tab.open.now.Load().picks.known) > maxPicks {
		t.Errorf("%d kept", len(tab.open.now.Load().picks.known))
	}
}

// A bridge that means another tmux server than the daemon serves is told so.
func TestSelectionOtherTmuxServer(t *testing.T) {
	tab := testTable(t, nil)
	if err := tab.selection(&Caller{Hello: Hello{TMUXSocket: tab.mirror.SocketPath()}}); err != nil {
		t.Error(err)
	}
	err := tab.selection(&Caller{Hello: Hello{TMUXSocket: "/nowhere/tmux-1/default"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/tmux-1/default") || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("%v", err)
	}
}
