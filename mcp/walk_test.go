package mcp

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listedTools is the answer to tools/list as a client reads it.
func listedTools(t *testing.T) []map[string]any {
	t.Helper()
	w := serveTable(t, nil).open(t)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var all []map[string]any
	for _, tool := range plainOf(t, w.line()).(map[string]any)["result"].(map[string]any)["tools"].([]any) {
		all = append(all, tool.(map[string]any))
	}
	if len(all) < 17 {
		t.Fatalf("%d tools", len(all))
	}
	return all
}

// TestX07ToolNames: clients refuse other names, and put their own prefix before
// ours within 64 characters. The order is stable.
func TestX07ToolNames(t *testing.T) {
	fit := regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	var names []string
	for _, tool := range listedTools(t) {
		name := tool["name"].(string)
		names = append(names, name)
		if !fit.MatchString(name) {
			t.Errorf("tool name %q", name)
		}
		if tool["title"] == "" || tool["description"] == "" {
			t.Errorf("%s: no title or description", name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("order: %v", names)
	}
	for _, set := range membership { // those that are still to come, too
		for _, name := range set {
			if !fit.MatchString(name) {
				t.Errorf("tool name %q", name)
			}
		}
	}
}

// nullable are the values of results that may be null by the contract, and free
// the places that may hold anything. There are no others.
var (
	nullable = []string{
		"call_read_tools_batch.results[].error", "call_read_tools_batch.results[].result", "call_read_tools_batch.stoppedAt",
		"capture_pane.effectiveEnd", "capture_pane.effectiveStart", "capture_since.cursor",
		"capture_since.gap", "capture_since.gap|.bytes", "capture_since.rawBase64",
		"get_command_output.command.commandLine", "get_command_output.command.cursor", "get_command_output.command.durationMs",
		"get_command_output.command.endedAt", "get_command_output.command.exitStatus", "get_command_output.command.runId",
		"get_command_output.command.startedAt", "get_command_output.cursor",
		"list_commands.commands[].commandLine", "list_commands.commands[].cursor", "list_commands.commands[].durationMs",
		"list_commands.commands[].endedAt", "list_commands.commands[].exitStatus", "list_commands.commands[].runId",
		"list_commands.commands[].startedAt", "list_commands.gap", "list_commands.gap|.bytes", "list_commands.hint",
		"get_run.cursor", "get_run.run.cursor", "get_run.run.durationMs", "get_run.run.endedAt", "get_run.run.exitStatus",
		"interrupt_run.run.cursor", "interrupt_run.run.durationMs", "interrupt_run.run.endedAt", "interrupt_run.run.exitStatus",
		"list_runs.runs[].cursor", "list_runs.runs[].durationMs", "list_runs.runs[].endedAt", "list_runs.runs[].exitStatus",
		"run_shell_command.cursor", "run_shell_command.durationMs", "run_shell_command.exitStatus",
		"get_server_info.pid", "get_server_info.socketPath", "search_panes.matches[].cursor",
		"show_environment.environment{}", "show_option.value", "wait_for.matched[].paneId", "wait_for.panes[].cursor", "wait_for.panes[].gap", "wait_for.panes[].gap|.bytes",
		"what_changed.events[].after", "what_changed.events[].before", "what_changed.events[].paneId",
		"what_changed.events[].sessionId", "what_changed.events[].windowId",
		"wait_for_text.cursor", "wait_for_text.matched",
		"wait_for_text.streamFailure",
	}
	free = []string{
		"call_read_tools_batch.results[].result|.content[]", "call_read_tools_batch.results[].result|.structuredContent{}",
		"call_read_tools_batch.results[].result|{}",
	}
)

// TestX05SchemaWalk: every root is a plain object, every type one string, every
// array has items, and nothing is a reference. Clients drop tools, or all of
// them, that differ. The exceptions are the contract's own.
func TestX05SchemaWalk(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range listedTools(t) {
		name := tool["name"].(string)
		if name == sendBatchName { // the seed's schemas, combinators and all
			continue
		}
		w := walker{fault: t.Errorf, seen: seen}
		for _, part := range []string{"inputSchema", "outputSchema"} {
			root := tool[part].(map[string]any)
			if _, ok := root["properties"].(map[string]any); !ok || root["type"] != "object" || root["$schema"] != dialect {
				t.Errorf("%s.%s: the root is not a plain object: %v", name, part, root)
			}
			for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if"} {
				if root[key] != nil {
					t.Errorf("%s.%s: %s at the root", name, part, key)
				}
			}
			w.output = part == "outputSchema"
			w.walk(name, root)
		}
		if _, ok := tool["inputSchema"].(map[string]any)["additionalProperties"]; ok {
			t.Errorf("%s: additionalProperties at the root of the input", name)
		}
		row := tool["_meta"].(map[string]any)[capabilityKey].(map[string]any)
		for _, part := range []string{"inputSchema", "outputSchema", "annotations", "name", "title", "description"} {
			if d := cmp.Diff(tool[part], row[part]); d != "" {
				t.Errorf("%s: the capability row's %s differs:\n%s", name, part, d)
			}
		}
		if len(row) != 15 {
			t.Errorf("%s: the capability row has %d fields: %v", name, len(row), slices.Sorted(maps.Keys(row)))
		}
	}
	for _, at := range append(slices.Clone(nullable), free...) {
		if !seen[at] {
			t.Errorf("%s is said to be an exception, and is none", at)
		}
	}
}

// walker visits a schema. seen are the exceptions it has met.
type walker struct {
	fault  func(format string, a ...any)
	seen   map[string]bool
	output bool
}

func (w *walker) walk(at string, s map[string]any) {
	for key := range s {
		if key == "$ref" || key == "$defs" || key == "definitions" || key == "oneOf" || key == "allOf" || key == "default" {
			w.fault("%s: %s", at, key)
		}
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		w.alternatives(at, alternatives)
		return
	}
	switch typ := s["type"].(type) {
	case string:
		w.typed(at, typ, s)
	case []any:
		w.except(at, nullable, w.output && len(typ) == 2 && typ[1] == "null")
	default:
		w.except(at, free, w.output && len(s) == 0)
	}
}

// except allows what is an exception and has its form.
func (w *walker) except(at string, list []string, fits bool) {
	if !fits || !slices.Contains(list, at) {
		w.fault("%s: neither a plain type nor an exception", at)
	}
	w.seen[at] = true
}

func (w *walker) alternatives(at string, list []any) {
	if !w.output { // the operations of the batch
		if at != batchName+".operations[]" {
			w.fault("%s: anyOf", at)
		}
		for _, v := range list {
			w.walk(at, v.(map[string]any))
		}
		return
	}
	null := map[string]any{"type": "null"}
	w.except(at, nullable, len(list) == 2 && cmp.Equal(list[1], any(null)))
	w.walk(at+"|", list[0].(map[string]any))
}

func (w *walker) typed(at, typ string, s map[string]any) {
	switch typ {
	case "object":
		w.object(at, s)
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			w.fault("%s: an array without items", at)
			return
		}
		w.walk(at+"[]", items)
	case "string", "integer", "boolean":
	default:
		w.fault("%s: type %s", at, typ)
	}
}

func (w *walker) object(at string, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		w.walk(at+"."+name, properties[name].(map[string]any))
	}
	switch more := s["additionalProperties"].(type) {
	case map[string]any: // a map
		w.walk(at+"{}", more)
	case bool:
		if more {
			w.fault("%s: open", at)
		}
		if list, _ := s["required"].([]any); w.output && len(list) != len(properties) {
			w.fault("%s: %d properties, %d required", at, len(properties), len(list))
		}
	default:
		if w.output || strings.ContainsAny(at, ".[") {
			w.fault("%s: an object that is neither closed nor a map", at)
		}
	}
}

// TestWalkFindsFaults shows that the walk can fail.
func TestWalkFindsFaults(t *testing.T) {
	for _, s := range []map[string]any{
		{"type": []any{"string", "null"}},
		{"type": "array"},
		{"$ref": "#/x"},
		{"anyOf": []any{}},
		{"type": "object", "properties": map[string]any{"x": map[string]any{"type": []any{"integer", "string"}}}},
	} {
		faults := 0
		w := walker{fault: func(string, ...any) { faults++ }, seen: map[string]bool{}}
		w.walk("some_tool", s)
		if faults == 0 {
			t.Errorf("%v passes", s)
		}
	}
}
