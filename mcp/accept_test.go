package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// additions is what tools accept beyond their advertised schemas, kept apart
// from the tool table on purpose: whoever widens a tool writes it here too.
//
// A property of its own has a schema. An alias is another name of an advertised
// property. One of a group replaces the advertised property it is named after.
type addition struct {
	schema schema
	alias  string
	group  string
}

var (
	anyString  = schema{"type": "string"}
	aBoolean   = schema{"type": "boolean"}
	bySession  = map[string]addition{"sessionId": {schema: anyString, group: "session"}, "sessionName": {schema: anyString, group: "session"}}
	javaScopes = []string{"global", "server", "session", "global-session", "window", "global-window", "pane"}
)

// confirmSelf is the Java and Go ports' word.
var confirmSelf = map[string]addition{"confirmSelf": {alias: "force"}}

// newName is the Go port's word.
var newName = map[string]addition{"newName": {alias: "name"}}

var additions = map[string]map[string]addition{
	"list_windows":          bySession,
	"list_panes":            bySession,
	"what_changed":          bySession,
	"create_window":         bySession,
	"get_session_info":      bySession,
	"move_window":           bySession,
	"kill_pane":             confirmSelf,
	"kill_session":          both(bySession, confirmSelf),
	"kill_window":           confirmSelf,
	"rename_session":        both(bySession, newName),
	"respawn_pane":          confirmSelf,
	"rename_window":         newName,
	"show_environment":      bySession,
	"capture_pane":          {"history": {schema: aBoolean}},
	"snapshot_pane":         {"history": {schema: aBoolean}},
	"show_option":           {"effective": {schema: aBoolean}},
	"find_pane_by_position": {"position": {alias: "corner"}},
	"get_tmux_variables":    {"pane": {alias: "paneId"}},
	"search_panes": both(bySession, map[string]addition{
		"maxLines": {schema: schema{"type": "integer", "exclusiveMinimum": 0, "maximum": maxSafe}},
	}),
	"show_hooks": both(bySession, map[string]addition{
		"name": {schema: anyString}, "target": {schema: anyString}, "scope": {schema: schema{"type": "string", "enum": javaScopes}},
	}),
}

func both(a, b map[string]addition) map[string]addition {
	all := map[string]addition{}
	for _, m := range []map[string]addition{a, b} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// acceptance says which arguments a tool is to accept: exactly what its
// advertised schema accepts, and the additions, without unknown properties.
type acceptance struct {
	tool     string
	required []string
	valid    *jsonschema.Resolved // the advertised schema, nothing required
	extra    map[string]*jsonschema.Resolved
	groups   map[string]string // hidden name to the advertised one
	names    map[string]string // every spelling to the property
}

func newAcceptance(t testing.TB, row *tool) *acceptance {
	t.Helper()
	a := &acceptance{
		tool: row.name, extra: map[string]*jsonschema.Resolved{}, groups: map[string]string{}, names: map[string]string{},
	}
	advertised := decodedSchema(row.input)
	for name := range advertised["properties"].(map[string]any) {
		a.names[name], a.names[snake(name)] = name, name
	}
	if list, ok := advertised["required"].([]any); ok {
		for _, name := range list {
			a.required = append(a.required, name.(string))
		}
	}
	delete(advertised, "required")
	a.valid = validator(t, encodeOnce(advertised))
	for name, add := range additions[row.name] {
		a.names[name], a.names[snake(name)] = name, name
		if add.alias != "" {
			a.names[name], a.names[snake(name)] = add.alias, add.alias
			continue
		}
		a.extra[name] = validator(t, add.schema.raw())
		if add.group != "" {
			a.groups[name] = add.group
		}
	}
	return a
}

// accepts reports whether the arguments, members in order, are to be accepted.
func (a *acceptance) accepts(t *rapid.T, members [][2]any) bool {
	given := map[string]any{}
	for _, m := range members {
		name, known := a.names[m[0].(string)]
		if _, twice := given[name]; !known || twice {
			return false
		}
		given[name] = m[1]
	}
	for hidden, advertised := range a.groups {
		if _, ok := given[hidden]; !ok {
			continue
		}
		if _, twice := given[advertised]; twice {
			return false
		}
		given[advertised] = given[hidden] // a string, as the advertised one
		delete(given, hidden)
	}
	for _, name := range a.required {
		if _, ok := given[name]; !ok {
			return false
		}
	}
	for name, schema := range a.extra {
		if v, ok := given[name]; ok {
			if schema.Validate(plainValue(t, v)) != nil {
				return false
			}
			delete(given, name)
		}
	}
	// The documented values of other ports.
	if s, ok := given["names"].(string); ok && a.tool == "get_tmux_variables" {
		given["names"] = []any{s}
	}
	if given["scope"] == "global" && a.tool == "show_option" {
		given["scope"] = "server"
	}
	return a.valid.Validate(plainValue(t, given)) == nil
}

// plainValue is a value as encoding/json decodes it.
func plainValue(t *rapid.T, v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// drawArguments draws members for a tool: any accepted spelling, now and then
// one twice or one that nobody knows, with values that fit, nearly fit or do not.
func drawArguments(t *rapid.T, row *tool, a *acceptance) [][2]any {
	var spellings []string
	for name := range a.names {
		spellings = append(spellings, name)
	}
	slices.Sort(spellings)
	var members [][2]any
	give := func(spelling string) {
		name := a.names[spelling]
		i := slices.IndexFunc(row.params, func(p param) bool { return p.name == name })
		if i < 0 {
			t.Fatalf("%s has no property %s, which is documented", row.name, name)
		}
		members = append(members, [2]any{spelling, drawLikely(t, &row.params[i])})
	}
	for _, name := range a.required {
		if rapid.IntRange(0, 9).Draw(t, "leave out "+name) > 0 {
			give(name)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		if len(spellings) > 0 {
			give(rapid.SampledFrom(spellings).Draw(t, "spelling"))
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
		name := rapid.SampledFrom([]string{"paneID", "PaneId", "", "socket_name", "pane-id", "Session", "arguments"}).Draw(t, "name")
		members = append(members, [2]any{name, 1})
	}
	return members
}

// drawLikely draws a value that mostly fits.
func drawLikely(t *rapid.T, p *param) any {
	if rapid.IntRange(0, 3).Draw(t, "any "+p.name) == 0 {
		return drawValue(t, p)
	}
	switch p.kind {
	case kindInteger:
		return rapid.SampledFrom([]any{1, 2, 30_000, json.Number("3.0"), json.Number("1e3"), maxSafe}).Draw(t, p.name)
	case kindBoolean:
		return rapid.Bool().Draw(t, p.name)
	case kindStrings:
		return rapid.SliceOfN(rapid.SampledFrom([]string{"pid", "pane_id", "A1"}), 1, 4).Draw(t, p.name)
	}
	texts := p.enum
	if texts == nil {
		for _, s := range []string{"%0", "%17", "@3", "$1", "main", "x", "ltxc1." + strings.Repeat("0a", 16) + ".0", "tmcpe1.0123456789ab.7"} {
			if p.match == nil || p.match(s) {
				texts = append(texts, s)
			}
		}
	}
	return rapid.SampledFrom(texts).Draw(t, p.name)
}

// encodeMembers keeps the order and repeated names, which a map would lose.
func encodeMembers(t *rapid.T, members [][2]any) json.RawMessage {
	var parts []string
	for _, m := range members {
		name, _ := json.Marshal(m[0])
		value, err := json.Marshal(m[1])
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(name)+":"+string(value))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// TestEveryToolAcceptsWhatIsDocumented: the strict decoder accepts exactly what
// the advertised schema accepts, plus the additions above, minus unknown
// properties; and a row of a batch accepts what the tool accepts alone.
func TestEveryToolAcceptsWhatIsDocumented(t *testing.T) {
	tab := testTable(t, nil)
	for name := range additions {
		if tab.byName[name] == nil {
			t.Errorf("additions to %s, which is no tool", name)
		}
	}
	rows := newBatch(tab)
	for name, row := range tab.byName {
		if name == batchName || name == sendBatchName || name == "wait_for" { // see TestSendBatchAcceptsItsSchema
			continue
		}
		a := newAcceptance(t, row)
		t.Run(name, func(t *testing.T) {
			accepted, refused := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				members := drawArguments(t, row, a)
				raw := encodeMembers(t, members)
				_, err := row.decode(raw)
				if want := a.accepts(t, members); want != (err == nil) {
					t.Fatalf("%s:\nto be accepted: %v\ndecoder: %v", raw, want, err)
				}
				if err == nil {
					accepted++
				} else {
					refused++
				}
				if !slices.Contains(nestable, name) {
					return
				}
				op := encodeOnce(map[string]any{"tool": name, "arguments": raw})
				ops, bad := rows.operations([]json.RawMessage{op})
				if bad != nil {
					t.Fatalf("%s: the batch is refused: %v", op, bad)
				}
				if (ops[0].err == nil) != (err == nil) {
					t.Fatalf("%s:\nalone: %v\nin a batch: %v", raw, err, ops[0].err)
				}
			})
			if accepted == 0 || refused == 0 {
				t.Errorf("%d were accepted and %d refused: the test says little", accepted, refused)
			}
		})
	}
}

// newBatch is the batch's own reading of operations.
func newBatch(tab *table) *batch {
	b := &batch{rows: map[string]*tool{}}
	for _, name := range nestable {
		b.rows[name] = tab.byName[name]
	}
	b.operation = newDecoder([]param{
		{name: "tool", required: true, enum: nestable},
		{name: "arguments", kind: kindObject},
	})
	return b
}

// TestBatchAcceptsItsSchema: what the advertised variants accept runs, in the
// seed's spelling; what they do not accept is refused as a whole or fails its
// row, unless the tool alone takes it.
func TestBatchAcceptsItsSchema(t *testing.T) {
	tab := testTable(t, nil)
	schema := validator(t, tab.byName[batchName].input)
	rows := newBatch(tab)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(nestable).Draw(t, "tool")
		row := tab.byName[name]
		args := map[string]any{}
		for i := range row.params {
			if p := &row.params[i]; !p.hidden && (p.required || rapid.Bool().Draw(t, "give "+p.name)) {
				args[p.name] = drawLikely(t, p)
			}
		}
		op := map[string]any{"tool": name, "arguments": args}
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0:
			delete(op, "arguments")
		case 1:
			op["extra"] = 1
		case 2:
			op["arguments"] = rapid.SampledFrom([]any{"x", []any{}, 1}).Draw(t, "arguments")
		}
		whole := map[string]any{"operations": []any{op}}
		if rapid.Bool().Draw(t, "mode") {
			whole["onError"] = rapid.SampledFrom([]any{"stop", "continue", "halt", 1}).Draw(t, "onError")
		}
		raw := encodeOnce(whole)
		args2, err := tab.byName[batchName].decode(raw)
		var ops []operation
		if err == nil {
			ops, err = rows.operations(args2.(batchArgs).Operations)
		}
		ours := err == nil && ops[0].err == nil
		theirs := schema.Validate(plainValue(t, whole)) == nil
		if op["arguments"] == nil {
			// The seed lets arguments be left out everywhere; they are {} then.
			op["arguments"] = map[string]any{}
			theirs = theirs && schema.Validate(plainValue(t, whole)) == nil
		}
		if theirs && !ours {
			t.Fatalf("%s: advertised, and refused: %v %v", raw, err, ops)
		}
		if ours && !theirs {
			if _, alone := row.decode(encodeOnce(op["arguments"])); alone != nil {
				t.Fatalf("%s: accepted, and neither advertised nor accepted alone: %v", raw, alone)
			}
		}
	})
}
