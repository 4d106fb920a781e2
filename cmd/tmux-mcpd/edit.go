package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// serversJSON and serversTOML are where clients keep their MCP servers.
const (
	serversJSON = "mcpServers"
	serversTOML = "mcp_servers"
)

// editJSON puts an entry into mcpServers of a JSON text, which may have comments
// and trailing commas, or takes it out. Everything else stays as it is written.
func editJSON(text []byte, e *entry) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		if e == nil {
			return text, nil
		}
		text = []byte("{\n}\n")
	}
	doc, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	root, ok := doc.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	member := findMember(root, serversJSON)
	if member == nil {
		if e == nil {
			return text, nil
		}
		member = addMember(root, serversJSON, "  ")
		member.Value = hujson.Value{Value: &hujson.Object{}, BeforeExtra: hujson.Extra(" ")}
	}
	servers, ok := member.Value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", serversJSON)
	}
	old := findMember(servers, entryName)
	if e == nil {
		if old == nil {
			return text, nil
		}
		removeMember(servers, entryName)
		return doc.Pack(), nil
	}
	want, err := json.MarshalIndent(e, "    ", "  ")
	if err != nil {
		return nil, err
	}
	if old != nil {
		if sameJSON(old.Value, want) {
			return text, nil
		}
	} else {
		old = addMember(servers, entryName, "    ")
	}
	value, err := hujson.Parse(want)
	if err != nil {
		return nil, err
	}
	value.BeforeExtra, value.AfterExtra = hujson.Extra(" "), old.Value.AfterExtra
	old.Value = value
	return doc.Pack(), nil
}

func findMember(o *hujson.Object, name string) *hujson.ObjectMember {
	for i := range o.Members {
		if lit, ok := o.Members[i].Name.Value.(hujson.Literal); ok && lit.String() == name {
			return &o.Members[i]
		}
	}
	return nil
}

// addMember appends a member without a value on a line of its own, behind the
// comments that end the object.
func addMember(o *hujson.Object, name, indent string) *hujson.ObjectMember {
	own := hujson.Extra("\n" + indent)
	if len(o.Members) > 0 { // as its neighbours are
		if at := o.Members[0].Name.BeforeExtra; bytes.HasPrefix(at, []byte("\n")) && len(bytes.TrimSpace(at)) == 0 {
			own = at
		}
	}
	comments := bytes.TrimRight(o.AfterExtra, " \t\r\n")
	o.Members = append(o.Members, hujson.ObjectMember{
		Name: hujson.Value{Value: hujson.String(name), BeforeExtra: append(bytes.Clone(comments), own...)},
	})
	o.AfterExtra = hujson.Extra("\n" + indent[:len(indent)-2])
	return &o.Members[len(o.Members)-1]
}

// removeMember takes a member out; comments before it and behind it stay.
func removeMember(o *hujson.Object, name string) {
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool {
		lit, ok := m.Name.Value.(hujson.Literal)
		return ok && lit.String() == name
	})
	m := o.Members[i]
	o.Members = slices.Delete(o.Members, i, i+1)
	next := &o.AfterExtra
	if i < len(o.Members) {
		next = &o.Members[i].Name.BeforeExtra
	}
	// A line comment in them ends in its newline.
	if kept := slices.Concat(m.Name.BeforeExtra, m.Value.AfterExtra); len(bytes.TrimSpace(kept)) > 0 {
		*next = append(kept, *next...)
	}
	if n := len(o.Members); n > 0 && i == n && m.Value.AfterExtra == nil {
		if last := &o.Members[n-1].Value; len(bytes.TrimSpace(last.AfterExtra)) == 0 {
			last.AfterExtra = nil // there was no comma behind the last one
		}
	}
}

// sameJSON tells whether a value with comments says what plain JSON says.
func sameJSON(v hujson.Value, plain []byte) bool {
	v = v.Clone()
	v.Standardize()
	var a, b any
	return json.Unmarshal(v.Pack(), &a) == nil && json.Unmarshal(plain, &b) == nil && reflect.DeepEqual(a, b)
}

// tableHead is the line that begins a TOML table, its name as written.
var tableHead = regexp.MustCompile(`^\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$`)

// ownKey is a whole line of our table that we decide about.
var ownKey = regexp.MustCompile(`^\s*(command|args)\s*=`)

// editTOML puts an entry into the table mcp_servers.tmux of a TOML text, or takes
// that table out, with the tables below it. Everything else stays as it is
// written; a text in which that cannot be done line by line is refused.
func editTOML(text []byte, e *entry) ([]byte, error) {
	before := map[string]any{}
	if err := toml.Unmarshal(text, &before); err != nil {
		return nil, fmt.Errorf("not TOML: %w", err)
	}
	servers, _ := before[serversTOML].(map[string]any)
	old, there := servers[entryName].(map[string]any)
	if e == nil && !there || e != nil && there && sameEntry(old, e) {
		return text, nil
	}
	lines := strings.SplitAfter(string(text), "\n")
	var out []string
	found, inside, below := false, false, false
	for _, line := range lines {
		if m := tableHead.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			name := strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(m[1])
			inside = name == serversTOML+"."+entryName
			below = strings.HasPrefix(name, serversTOML+"."+entryName+".")
			if inside && e != nil {
				found = true
				out = append(out, line, entryTOML(e))
				continue
			}
		} else if strings.HasPrefix(strings.TrimSpace(line), "[[") {
			inside, below = false, false
		}
		if e == nil && (inside || below) || inside && ownKey.MatchString(line) {
			continue
		}
		out = append(out, line)
	}
	result := strings.Join(out, "")
	if e != nil && !found {
		if result != "" && !strings.HasSuffix(result, "\n") {
			result += "\n"
		}
		if result != "" {
			result += "\n"
		}
		result += "[" + serversTOML + "." + entryName + "]\n" + entryTOML(e)
	}
	return []byte(result), checkTOML(result, before, e)
}

func entryTOML(e *entry) string {
	args, _ := json.Marshal(e.Args) // a JSON array of strings is a TOML one
	command, _ := json.Marshal(e.Command)
	return fmt.Sprintf("command = %s\nargs = %s\n", command, args)
}

// sameEntry tells whether a table starts the bridge as wanted.
func sameEntry(table map[string]any, e *entry) bool {
	args, _ := table["args"].([]any)
	if table["command"] != e.Command || len(args) != len(e.Args) {
		return false
	}
	for i, a := range args {
		if a != e.Args[i] {
			return false
		}
	}
	return true
}

// checkTOML demands that an edited text says what it said before, but for our
// entry.
func checkTOML(text string, before map[string]any, e *entry) error {
	after := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &after); err != nil {
		return fmt.Errorf("it is written in a way that cannot be edited: %w", err)
	}
	servers, _ := after[serversTOML].(map[string]any)
	table, there := servers[entryName].(map[string]any)
	if there != (e != nil) || there && !sameEntry(table, e) {
		return errors.New("it is written in a way that cannot be edited")
	}
	for _, doc := range []map[string]any{before, after} {
		if s, ok := doc[serversTOML].(map[string]any); ok {
			delete(s, entryName)
			if len(s) == 0 {
				delete(doc, serversTOML)
			}
		}
	}
	if !reflect.DeepEqual(before, after) {
		return errors.New("it is written in a way that cannot be edited without changing the rest")
	}
	return nil
}
