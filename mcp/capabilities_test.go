package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// serveTable serves a table that asks no tmux.
func serveTable(t testing.TB, env map[string]string, edit ...func(*Server)) *daemon {
	t.Helper()
	return startServer(t, Config{}, testTable(t, env), edit...)
}

func readCapabilities(t *testing.T, tab *table, c *Caller) map[string]any {
	t.Helper()
	raw, err := tab.capabilities(c)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, raw)
}

// TestCapabilitiesResource: what a connection reads is its own selection, in
// the fields of the contract.
func TestCapabilitiesResource(t *testing.T) {
	tab := testTable(t, nil)
	c := readCapabilities(t, tab, &Caller{Hello: Hello{Env: map[string]string{
		envToolsets: "inspect", envExclude: "list_panes,show_environment",
	}}})
	rows := c["tools"].([]any)
	delete(c, "tools")
	var tools []any
	for _, row := range rows {
		tools = append(tools, row.(map[string]any)["name"])
	}
	connection := c["connection"].(map[string]any)
	if path, _ := connection["resolvedSocketPath"].(string); !strings.HasSuffix(path, "/default") {
		t.Errorf("socket path %q", path)
	}
	delete(connection, "resolvedSocketPath")
	want := map[string]any{
		"schemaVersion": json.Number("1"), "contractVersion": json.Number("1"), "frozen": true,
		"executionAuthority": "tmux-user", "operatingSystemBoundary": "none",
		"toolFilteringBoundary": "interface-shaping-not-authorization", "hostCommandTools": json.Number("0"),
		"selectedToolsets": []any{"inspect"}, "excludeTools": []any{"list_panes", "show_environment"},
		"toolCount": json.Number(strconv.Itoa(len(tools))), "effectiveTools": tools,
		"boundary": map[string]any{
			"oneSocketPerProcess": true, "perCallSocketSelection": false, "hostCommandExecution": false, "dynamicResources": true,
		},
		"connection": map[string]any{
			"attachCommand": "tmux attach-session", "configurationProvenance": "operator-current", "serverState": "unprobed",
			"socketProvenance": "operator-current", "socketSelector": "name:default",
		},
		"socket": map[string]any{
			"configurationProvenance": "operator-current", "namespaceBoundary": "tmux-objects-only",
			"selectionProvenance": "operator-current", "selector": "name:default", "serverState": "unprobed",
		},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if len(tools) != len(toolsOf(t, inspect))-2 || slices.Contains(tools, any("list_panes")) {
		t.Errorf("tools: %v", tools)
	}
	none := readCapabilities(t, tab, &Caller{Hello: Hello{Env: map[string]string{envToolsets: ""}}})
	if none["boundary"].(map[string]any)["dynamicResources"] != false {
		t.Error("nothing selected, and yet resources")
	}
	for _, list := range []string{"selectedToolsets", "excludeTools", "effectiveTools", "tools"} {
		if got, ok := none[list].([]any); !ok || len(got) != 0 {
			t.Errorf("%s of nothing selected: %v", list, none[list])
		}
	}
	if _, err := tab.capabilities(&Caller{Hello: Hello{Env: map[string]string{envToolsets: "x"}}}); err == nil {
		t.Error("a faulty selection has capabilities")
	}
}

func TestCapabilitiesNameTheServer(t *testing.T) {
	for _, c := range []struct {
		socket    controlmode.Socket
		dedicated bool
		want      map[string]string
	}{
		{controlmode.Socket{Name: "a b"}, false, map[string]string{
			"attachCommand": "tmux -L 'a b' attach-session", "socketSelector": "name:a b", "socketProvenance": "operator-name",
		}},
		{controlmode.Socket{Path: "/x/it's\x1b"}, false, map[string]string{
			"attachCommand": `tmux -S '/x/it'\''s\x1b' attach-session`, "socketSelector": `path:/x/it's\x1b`,
			"resolvedSocketPath": `/x/it's\x1b`, "socketProvenance": "operator-path",
		}},
		{controlmode.Socket{Name: "tmux-mcpd"}, true, map[string]string{
			"attachCommand": "tmux -L tmux-mcpd attach-session", "socketSelector": "name:tmux-mcpd",
			"socketProvenance": "default-dedicated", "configurationProvenance": "none", "serverState": "created",
		}},
	} {
		tab, err := newTable(state.New(state.Config{}), ToolConfig{Socket: c.socket, Dedicated: c.dedicated})
		if err != nil {
			t.Fatal(err)
		}
		got := readCapabilities(t, tab, &Caller{})["connection"].(map[string]any)
		for field, want := range c.want {
			if got[field] != want {
				t.Errorf("%+v: %s is %q, want %q", c.socket, field, got[field], want)
			}
		}
		checkStrings(t, "capabilities", got)
	}
}

// TestCapabilitiesOnTheWire: listed, read, and only that where nothing can be read
// by tools.
func TestCapabilitiesOnTheWire(t *testing.T) {
	w := serveTable(t, map[string]string{envToolsets: "manage"}).dial(t)
	w.send(initialize)
	offers := w.next()["result"].(map[string]any)["capabilities"]
	if d := cmp.Diff(map[string]any{
		"tools": map[string]any{"listChanged": true}, "resources": map[string]any{"listChanged": true, "subscribe": true}, "completions": map[string]any{},
	}, offers); d != "" {
		t.Errorf("capabilities of the server:\n%s", d)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	list := w.next()["result"].(map[string]any)["resources"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["uri"] != capabilitiesURI || list[0].(map[string]any)["mimeType"] != "application/json" {
		t.Errorf("resources: %v", list)
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"tmux://capabilities"}}`)
	contents := w.next()["result"].(map[string]any)["contents"].([]any)
	if text := contents[0].(map[string]any)["text"].(string); len(contents) != 1 || decode(t, []byte(text))["frozen"] != true {
		t.Errorf("contents: %v", contents)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"tmux://panes"}}`)
	if m := w.next(); m["error"] == nil {
		t.Errorf("an unknown resource: %v", m)
	}
	for _, method := range []string{"resources/templates/list", "prompts/list"} {
		w.send(`{"jsonrpc":"2.0","id":4,"method":"` + method + `"}`)
		if m := w.next(); m["error"] == nil && !strings.Contains(string(encodeOnce(m)), ":[]") {
			t.Errorf("%s: %v", method, m)
		}
	}
	w.alive()
}

// TestListingIsTheOrdinaryOne: the prebuilt answer to tools/list is what the SDK
// would send, in both eras, with the one member that the SDK does not know.
func TestListingIsTheOrdinaryOne(t *testing.T) {
	ours := serveTable(t, nil)
	theirs := serveTable(t, nil, func(s *Server) { s.ordinary = true })
	const stateless = `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	for _, params := range []string{"", stateless} {
		var got [2]map[string]any
		for i, d := range []*daemon{ours, theirs} {
			w := d.dial(t)
			if params == "" {
				w.handshake()
			}
			w.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"` + params + `}`)
			got[i] = w.next()
		}
		for _, tool := range got[0]["result"].(map[string]any)["tools"].([]any) {
			tool := tool.(map[string]any)
			if d := cmp.Diff(map[string]any{"taskSupport": "forbidden"}, tool["execution"]); d != "" {
				t.Errorf("%v: execution %s", tool["name"], d)
			}
			delete(tool, "execution")
		}
		if d := cmp.Diff(got[1], got[0]); d != "" {
			t.Errorf("with params %q (-theirs +ours):\n%s", params, d)
		}
		if n := len(got[0]["result"].(map[string]any)["tools"].([]any)); n < 17 {
			t.Errorf("%d tools", n)
		}
	}
}

// TestPreciseAnnotations: by the operator's choice the hints say what a tool
// does; by default they are the contract's on every tool.
func TestPreciseAnnotations(t *testing.T) {
	for _, precise := range []bool{false, true} {
		tab, err := newTable(state.New(state.Config{}), ToolConfig{Policy: PolicyConfig{Precise: precise}})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tab.tools(&Caller{Hello: Hello{Env: map[string]string{envToolsets: "inspect"}}}) {
			open := !precise || slices.Contains(tab.byName[tool.Name].classes, classTerminal)
			want := map[string]any{
				"readOnlyHint": precise, "destructiveHint": !precise, "idempotentHint": precise, "openWorldHint": open,
			}
			wire := onTheWire(t, tool)
			if d := cmp.Diff(want, wire["annotations"]); d != "" {
				t.Errorf("%s, precise %v:\n%s", tool.Name, precise, d)
			}
		}
	}
	for _, c := range []struct {
		row                       tool
		readOnly, destroys, world bool
	}{
		{tool{toolset: manage, reach: reachNone, effects: []string{effectObserve, effectChange}}, false, false, false},
		{tool{toolset: execute, reach: reachConfigured, effects: []string{effectChange}}, false, false, true},
		{tool{toolset: execute, reach: reachInput, effects: []string{effectChange}}, false, true, true},
		{tool{toolset: teardown, reach: reachNone, effects: []string{effectDelete}}, false, true, false},
	} {
		c.row.precise = true
		a := c.row.annotations()
		if a.ReadOnlyHint != c.readOnly || *a.DestructiveHint != c.destroys || *a.OpenWorldHint != c.world {
			t.Errorf("%+v: %+v", c.row, a)
		}
	}
}

// TestCapabilitiesAtOnce runs everything that reads the table at once; the race
// detector looks on.
func TestCapabilitiesAtOnce(t *testing.T) {
	tab := testTable(t, nil)
	done := make(chan struct{})
	envs := []map[string]string{nil, {envExclude: "list_panes"}, {envToolsets: "inspect"}}
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			c := &Caller{Hello: Hello{Env: maps.Clone(envs[i%len(envs)])}}
			if _, err := tab.capabilities(c); err != nil {
				t.Error(err)
			}
			_, _ = tab.toolsJSON(c), tab.tools(c)
		}()
	}
	for range 8 {
		<-done
	}
}

// TestProtocolVersions: every version with a handshake is spoken as asked for,
// an unknown one is answered with the newest, and tools work in all.
func TestProtocolVersions(t *testing.T) {
	d := serveTable(t, nil)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25", "": "2025-11-25",
	} {
		w := d.dial(t)
		w.send(strings.Replace(initialize, "2025-11-25", asked, 1))
		if got := w.next()["result"].(map[string]any)["protocolVersion"]; got != want {
			t.Errorf("%q: %v, want %s", asked, got, want)
		}
		w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, args := range []string{`{}`, `null`} {
			w.call(1, "get_pane_info", args)
			if m := w.next(); !strings.Contains(text(t, m), "paneId is missing") {
				t.Errorf("%q, arguments %s: %v", asked, args, m)
			}
		}
		w.send(`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
		if m := w.next(); m["id"] != nil || !strings.Contains(string(encodeOnce(m["error"])), "batches are not accepted") {
			t.Errorf("%q: a batch: %v", asked, m)
		}
		w.alive()
	}
}
