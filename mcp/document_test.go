package mcp

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write TOOLS.md anew")

// TestToolsDocument keeps TOOLS.md what the tool table says. It is written with
//
//	go test ./mcp -run TestToolsDocument -update
func TestToolsDocument(t *testing.T) {
	want := toolsDocument(testTable(t, nil))
	if *update {
		if err := os.WriteFile("TOOLS.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("TOOLS.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")); d != "" {
		t.Errorf("TOOLS.md differs from the table; go test ./mcp -run TestToolsDocument -update (-file +table):\n%s", d)
	}
}

const toolsIntroduction = `# Tools

Generated from the tool table; do not edit. ` + "`go test ./mcp -run TestToolsDocument -update`" + ` writes it.

Properties are spelled in camelCase and are accepted in snake_case too. A property that is not listed is an error, which
names the nearest one that is. Required properties of the input are bold. Every property of an output is always there;
what is absent is ` + "`null`" + `. "Also" names what is accepted beside the advertised schema: properties and values of other ports.
`

func toolsDocument(tab *table) string {
	var b strings.Builder
	b.WriteString(toolsIntroduction)
	for _, set := range toolsets {
		var rows []*tool
		for _, name := range slices.Sorted(maps.Keys(tab.byName)) {
			if row := tab.byName[name]; row.toolset == set {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| tool | reach | effects | output holds | input | also |\n| --- | --- | --- | --- | --- | --- |\n", set)
		for _, row := range rows {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s |\n", row.name, row.name, row.reach, strings.Join(row.effects, ", "),
				strings.Join(row.classes, ", "), inputNames(row), hiddenNames(row))
		}
		for _, row := range rows {
			documentTool(&b, row)
		}
	}
	return b.String()
}

func inputNames(row *tool) string {
	var all []string
	for _, p := range row.params {
		switch {
		case p.hidden:
		case p.required:
			all = append(all, "**"+p.name+"**")
		default:
			all = append(all, p.name)
		}
	}
	return strings.Join(all, ", ")
}

func hiddenNames(row *tool) string {
	var all []string
	for _, p := range row.params {
		if p.hidden {
			all = append(all, p.name)
		}
		all = append(all, p.also...)
		for _, v := range p.alias {
			all = append(all, fmt.Sprintf("%s %q", p.name, v))
		}
		if p.single {
			all = append(all, p.name+" as one string")
		}
	}
	return strings.Join(all, ", ")
}

func documentTool(b *strings.Builder, row *tool) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n", row.name, row.description())
	if row.rawInput != nil {
		b.WriteString("\n| input | type | |\n| --- | --- | --- |\n")
		documentOutput(b, "", decodedSchema(row.input))
	} else if inputNames(row) != "" {
		b.WriteString("\n| input | type | |\n| --- | --- | --- |\n")
		for _, p := range row.params {
			if p.hidden {
				continue
			}
			name := p.name
			if p.required {
				name = "**" + name + "**"
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", name, cell(typeOf(p.schema())), cell(p.doc))
		}
	}
	b.WriteString("\n| output | type | |\n| --- | --- | --- |\n")
	documentOutput(b, "", decodedSchema(row.outputJSON))
}

// documentOutput writes a row for each property, those of nested objects with a
// path.
func documentOutput(b *strings.Builder, at string, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := properties[name].(map[string]any)
		doc, _ := p["description"].(string)
		fmt.Fprintf(b, "| %s%s | %s | %s |\n", at, name, cell(typeOf(p)), cell(doc))
		if list, ok := p["anyOf"].([]any); ok {
			p = list[0].(map[string]any) // the other is null
		}
		if items, ok := p["items"].(map[string]any); ok {
			documentOutput(b, at+name+"[].", items)
		} else {
			documentOutput(b, at+name+".", p)
		}
	}
}

// typeOf says in words what a schema allows.
func typeOf(v any) string {
	s := decodedSchema(encodeOnce(v))
	if any, ok := s["anyOf"].([]any); ok {
		var all []string
		for _, a := range any {
			all = append(all, typeOf(a))
		}
		return strings.Join(all, " or ")
	}
	if list, ok := s["type"].([]any); ok {
		var all []string
		for _, a := range list {
			all = append(all, fmt.Sprint(a))
		}
		return strings.Join(all, " or ")
	}
	switch s["type"] {
	case "array":
		items, _ := s["items"].(map[string]any)
		text := "array"
		if s["maxItems"] != nil {
			text = fmt.Sprintf("%v to %v", s["minItems"], s["maxItems"])
		}
		if n, ok := items["anyOf"].([]any); ok {
			return fmt.Sprintf("%s of operations, in %d variants", text, len(n))
		}
		return text + " of " + typeOf(items)
	case "object":
		if free, ok := s["additionalProperties"].(map[string]any); ok && s["propertyNames"] != nil {
			return "map of " + typeOf(free)
		}
		return "object"
	case "string":
		return typeOfString(s)
	case "integer":
		return "integer" + bounds(s)
	case nil:
		return "any"
	}
	return fmt.Sprint(s["type"])
}

func typeOfString(s map[string]any) string {
	switch {
	case s["enum"] != nil:
		var all []string
		for _, v := range s["enum"].([]any) {
			all = append(all, fmt.Sprint(v))
		}
		return strings.Join(all, ", ")
	case s["pattern"] != nil:
		return fmt.Sprintf("string `%v`", s["pattern"])
	case s["minLength"] != nil:
		return "string, not empty"
	}
	return "string"
}

// bounds leaves out the bounds that every integer has.
func bounds(s map[string]any) string {
	if s["exclusiveMinimum"] != nil {
		return " > 0"
	}
	if low := fmt.Sprint(s["minimum"]); low != fmt.Sprint(minSafe) {
		return " >= " + low
	}
	return ""
}

func decodedSchema(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var s map[string]any
	if err := d.Decode(&s); err != nil {
		panic(err)
	}
	return s
}

// cell is text for one cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
