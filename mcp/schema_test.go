package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// policyIn is the policy of a daemon with these variables in its environment.
func policyIn(env map[string]string) PolicyConfig {
	var cfg PolicyConfig
	for name, list := range map[string]*[]string{envToolsets: &cfg.Toolsets, envTools: &cfg.Tools, envExclude: &cfg.Exclude} {
		if v, ok := env[name]; ok {
			*list = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	cfg.MaxLines, _ = linesOf(env)
	if wait, ok := waitOf(env); ok {
		cfg.MaxWait = wait
	}
	return cfg
}

// testTable is the table of a daemon that asks no tmux.
func testTable(t testing.TB, env map[string]string) *table {
	t.Helper()
	tab, err := newTable(state.New(state.Config{}), ToolConfig{Policy: policyIn(env)})
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
	for name, port := range map[string]string{"call_read_tools_batch": "ts", "snapshot_pane": "ts", sendBatchName: "py"} {
		t.Run(name, func(t *testing.T) {
			want := readSeed(t, name+"."+port+".json")
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

// resolved are the schemas that validator has resolved, by their text: resolving
// takes longer than most calls do.
var resolved sync.Map

// validator resolves a schema of ours; the library wants its own dialect.
func validator(t testing.TB, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	if r, ok := resolved.Load(string(raw)); ok {
		return r.(*jsonschema.Resolved)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	s.Schema = ""
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	resolved.Store(string(raw), r)
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
