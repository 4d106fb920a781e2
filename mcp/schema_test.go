package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tmux-mcpd/state"
)

// seed is a published contract of the libtmux family, without its prose.
type seed struct {
	Annotations  map[string]any `json:"annotations"`
	InputSchema  map[string]any `json:"inputSchema"`
	OutputSchema map[string]any `json:"outputSchema"`
}

func readSeed(t *testing.T, name string) seed {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "seeds", name))
	if err != nil {
		t.Fatal(err)
	}
	var s seed
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// testTable is the table of a daemon that asks no tmux.
func testTable(t testing.TB, env map[string]string) *table {
	t.Helper()
	tab, err := newTable(state.New(state.Config{}), ToolConfig{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// onTheWire is a tool as a client reads it.
func onTheWire(t *testing.T, tool *sdk.Tool) map[string]any {
	t.Helper()
	b, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// plain removes descriptions: those are our own words.
func plainJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if _, prose := e.(string); k == "description" && prose {
				continue
			}
			out[k] = plainJSON(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainJSON(e)
		}
		return out
	}
	return v
}

func TestSeedsAreAdvertisedExactly(t *testing.T) {
	tab := testTable(t, nil)
	for _, name := range []string{"call_read_tools_batch", "snapshot_pane"} {
		t.Run(name, func(t *testing.T) {
			want := readSeed(t, name+".ts.json")
			got := onTheWire(t, tab.byName[name].advertised())
			for part, w := range map[string]any{
				"annotations": want.Annotations, "inputSchema": want.InputSchema, "outputSchema": want.OutputSchema,
			} {
				if d := cmp.Diff(w, plainJSON(got[part])); d != "" {
					t.Errorf("%s differs from the seed (-seed +ours):\n%s", part, d)
				}
			}
		})
	}
}

func TestTableIsComplete(t *testing.T) {
	tab := testTable(t, nil)
	missing := []string{"wait_for_text"} // comes with waiting
	for _, name := range membership[inspect] {
		if tab.byName[name] == nil && !slices.Contains(missing, name) {
			t.Errorf("no row for %s", name)
		}
	}
	for name, row := range tab.byName {
		if !slices.Contains(membership[row.toolset], name) {
			t.Errorf("%s is not listed in toolset %s", name, row.toolset)
		}
	}
}

// TestSchemaWalk checks the shapes that clients have been seen to choke on.
func TestSchemaWalk(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	for _, tool := range testTable(t, nil).tools(&Caller{}) {
		if !name.MatchString(tool.Name) {
			t.Errorf("tool name %q", tool.Name)
		}
		if tool.Title == "" || tool.Description == "" {
			t.Errorf("%s: no title or description", tool.Name)
		}
		wire := onTheWire(t, tool)
		for _, part := range []string{"inputSchema", "outputSchema"} {
			root := wire[part].(map[string]any)
			if root["type"] != "object" || root["properties"] == nil || root["$schema"] != dialect {
				t.Errorf("%s.%s: the root is not a plain object", tool.Name, part)
			}
			input := part == "inputSchema"
			walk(t, tool.Name+"."+part, root, input && tool.Name != batchName)
		}
		if _, ok := wire["inputSchema"].(map[string]any)["additionalProperties"]; ok {
			t.Errorf("%s: additionalProperties at the root of the input", tool.Name)
		}
		row := wire["_meta"].(map[string]any)[capabilityKey].(map[string]any)
		for _, part := range []string{"inputSchema", "outputSchema", "annotations", "name", "title", "description"} {
			if d := cmp.Diff(wire[part], row[part]); d != "" {
				t.Errorf("%s: the capability row's %s differs:\n%s", tool.Name, part, d)
			}
		}
	}
}

func walk(t *testing.T, at string, s map[string]any, strict bool) {
	if s["$ref"] != nil {
		t.Errorf("%s: $ref", at)
	}
	if typ, ok := s["type"].(string); strict && !ok {
		t.Errorf("%s: type %v", at, s["type"])
	} else if typ == "array" && s["items"] == nil {
		t.Errorf("%s: an array without items", at)
	} else if typ == "object" && !strict && s["additionalProperties"] == nil && !strings.HasSuffix(at, "inputSchema") {
		t.Errorf("%s: an object that is neither closed nor a map", at)
	}
	for k, v := range s {
		if m, ok := v.(map[string]any); ok && k == "properties" {
			for name, p := range m {
				walk(t, at+"."+name, p.(map[string]any), strict)
			}
		} else if ok && k == "items" && len(m) > 0 && m["anyOf"] == nil {
			walk(t, at+"[]", m, strict)
		}
	}
}

func TestCapabilityRows(t *testing.T) {
	tab := testTable(t, nil)
	check := func(name string, effects, classes []string) {
		t.Helper()
		row := tab.byName[name]
		if !slices.Equal(row.effects, effects) || !slices.Equal(slices.Sorted(slices.Values(row.classes)), classes) {
			t.Errorf("%s: effects %v, classes %v", name, row.effects, row.classes)
		}
	}
	observe := []string{effectObserve}
	check("list_panes", observe, []string{classMetadata})
	check("capture_pane", observe, []string{classTerminal, classMetadata})
	check("show_hooks", observe, []string{classConfiguration})
	check("show_environment", observe, []string{classEnvironment})
	check(batchName, observe, []string{classConfiguration, classEnvironment, classTerminal, classMetadata})
	if got := tab.byName[batchName].nested; !slices.Equal(got, nestable) {
		t.Errorf("nested authority %v", got)
	}
	pruned := batchTool(tab.byName, names{"show_environment": true})
	if slices.Contains(pruned.classes, classEnvironment) || slices.Contains(pruned.nested, "show_environment") {
		t.Errorf("an excluded tool still shows: %v, %v", pruned.classes, pruned.nested)
	}
}

// validator resolves a schema of ours; the library wants its own dialect.
func validator(t testing.TB, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	s.Schema = ""
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkAnswer validates the structured half of an answer against the tool's
// output schema, and both halves against the rules for text.
func checkAnswer(t testing.TB, tab *table, name string, res *toolResult) map[string]any {
	t.Helper()
	checkText(t, name, res.Text)
	if res.IsError {
		if res.Structured != nil {
			t.Fatalf("%s: an error with a structured half", name)
		}
		return nil
	}
	raw := res.Structured
	if res.encode != nil {
		var whole struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
		}
		if err := json.Unmarshal(res.encode(json.RawMessage("1")), &whole); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw = whole.StructuredContent
	}
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, raw)
	}
	if err := validator(t, tab.byName[name].outputJSON).Validate(v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, raw)
	}
	checkStrings(t, name, v)
	return v
}

func checkStrings(t testing.TB, name string, v any) {
	t.Helper()
	switch v := v.(type) {
	case string:
		checkText(t, name, v)
	case []any:
		for _, e := range v {
			checkStrings(t, name, e)
		}
	case map[string]any:
		for k, e := range v {
			checkText(t, name, k)
			checkStrings(t, name, e)
		}
	}
}

func checkText(t testing.TB, name, s string) {
	t.Helper()
	if c := clean(s); c != s {
		t.Fatalf("%s: text is not clean: %q", name, s)
	}
}
