package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

var testEntry = &entry{Command: "/bin/tmux-mcpd", Args: []string{"stdio"}}

func TestEditJSON(t *testing.T) {
	const added = `"tmux": {
      "command": "/bin/tmux-mcpd",
      "args": [
        "stdio"
      ]
    }`
	for _, c := range []struct{ name, text, with, without string }{
		{"nothing", "", "{\n  \"mcpServers\": {\n    " + added + "\n  }\n}\n", "{\n  \"mcpServers\": {\n  }\n}\n"},
		{
			"others and comments",
			"{\n  // mine\n  \"theme\": 1,\n  \"mcpServers\": {\n    // one\n    \"a\": {}, // two\n  },\n}\n",
			"{\n  // mine\n  \"theme\": 1,\n  \"mcpServers\": {\n    // one\n    \"a\": {}, // two\n    " + added + "\n  },\n}\n",
			"{\n  // mine\n  \"theme\": 1,\n  \"mcpServers\": {\n    // one\n    \"a\": {} // two\n\n  },\n}\n",
		},
		{
			"no servers yet", "{\n  \"x\": [1, 2]\n}\n",
			"{\n  \"x\": [1, 2],\n  \"mcpServers\": {\n    " + added + "\n  }\n}\n",
			"{\n  \"x\": [1, 2],\n  \"mcpServers\": {\n  }\n}\n",
		},
		{
			"in the middle, another command", "{\"mcpServers\":{\"a\":{},\"tmux\":{\"command\":\"old\"},\"z\":{}}}",
			"{\"mcpServers\":{\"a\":{},\"tmux\": {\n      \"command\": \"/bin/tmux-mcpd\",\n      \"args\": [\n        \"stdio\"\n      ]\n    },\"z\":{}}}",
			"{\"mcpServers\":{\"a\":{},\"z\":{}}}",
		},
	} {
		with, err := editJSON([]byte(c.text), testEntry)
		if err != nil || string(with) != c.with {
			t.Errorf("%s: with (%v)\n%s\nwant\n%s", c.name, err, with, c.with)
		}
		if again, err := editJSON(with, testEntry); err != nil || string(again) != string(with) {
			t.Errorf("%s: done again (%v)\n%s", c.name, err, again)
		}
		without, err := editJSON(with, nil)
		if err != nil || strings.TrimSpace(squeeze(string(without))) != strings.TrimSpace(squeeze(c.without)) {
			t.Errorf("%s: without (%v)\n%s\nwant\n%s", c.name, err, without, c.without)
		}
	}
	for _, text := range []string{"[]", "{", `{"mcpServers": 1}`, "nonsense"} {
		if got, err := editJSON([]byte(text), testEntry); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// squeeze leaves line structure out of a comparison.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// Whatever else is in a file is there afterwards, and comments are.
func TestEditJSONKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comment := rapid.SampledFrom([]string{"", " ", "\n", "// c\n", "/* c */", " // c\n  "})
		var b strings.Builder
		put := func(s string) { b.WriteString(s + comment.Draw(t, "comment")) }
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "tmux", "d"}), 0, 4, rapid.ID).Draw(t, "names")
		put("")
		put("{")
		if rapid.Bool().Draw(t, "first") {
			put(`"x"`)
			put(":")
			put(`[1,{"mcpServers":2}]`)
			put(",")
		}
		put(`"mcpServers"`)
		put(":")
		put("{")
		for i, n := range names {
			if n == "tmux" { // what is inside of it is ours
				put(`"tmux":{"k":"v"}`)
			} else {
				put(`"` + n + `"`)
				put(":")
				put(`{"k":"v"}`)
			}
			if i < len(names)-1 || rapid.Bool().Draw(t, "comma") {
				put(",")
			}
		}
		put("}")
		put("}")
		text := b.String()
		before, comments := plainJSON(t, text), strings.Count(text, "c")
		with, err := editJSON([]byte(text), testEntry)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		after := plainJSON(t, string(with))
		servers := after["mcpServers"].(map[string]any)
		if want := map[string]any{"command": "/bin/tmux-mcpd", "args": []any{"stdio"}}; !reflect.DeepEqual(servers["tmux"], want) {
			t.Fatalf("%q became %q", text, with)
		}
		without, err := editJSON(with, nil)
		if err != nil {
			t.Fatal(err)
		}
		delete(before["mcpServers"].(map[string]any), "tmux")
		if got := plainJSON(t, string(without)); !reflect.DeepEqual(got, before) {
			t.Fatalf("%q became %q", text, without)
		}
		// The word mcpServers holds a c, "command" and "tmux-mcpd" do.
		if got := strings.Count(string(without), "c"); got < comments {
			t.Fatalf("comments of %q are lost in %q", text, without)
		}
	})
}

func plainJSON(t *rapid.T, text string) (v map[string]any) {
	plain, err := hujson.Standardize([]byte(text))
	if err == nil {
		err = json.Unmarshal(plain, &v)
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

func TestEditTOML(t *testing.T) {
	const table = "[mcp_servers.tmux]\ncommand = \"/bin/tmux-mcpd\"\nargs = [\"stdio\"]\n"
	for _, c := range []struct{ name, text, with, without string }{
		{"nothing", "", table, ""},
		{"others", "# mine\na = 1 # x", "# mine\na = 1 # x\n\n" + table, "# mine\na = 1 # x\n\n"},
		{
			"another command", "[mcp_servers.tmux] # own\ncommand = \"old\"\nstartup_timeout_sec = 5\n\n[z]\nb = 2\n",
			"[mcp_servers.tmux] # own\ncommand = \"/bin/tmux-mcpd\"\nargs = [\"stdio\"]\nstartup_timeout_sec = 5\n\n[z]\nb = 2\n",
			"[z]\nb = 2\n",
		},
		{
			"tables below", "[mcp_servers.a]\nx = 1\n[mcp_servers.tmux.env]\nA = \"1\"\n[[list]]\ny = 2\n",
			"[mcp_servers.a]\nx = 1\n[mcp_servers.tmux.env]\nA = \"1\"\n[[list]]\ny = 2\n\n" + table,
			"[mcp_servers.a]\nx = 1\n[[list]]\ny = 2\n\n",
		},
	} {
		with, err := editTOML([]byte(c.text), testEntry)
		if err != nil || string(with) != c.with {
			t.Errorf("%s: with (%v)\n%s\nwant\n%s", c.name, err, with, c.with)
		}
		if again, err := editTOML(with, testEntry); err != nil || string(again) != string(with) {
			t.Errorf("%s: done again (%v)\n%s", c.name, err, again)
		}
		if without, err := editTOML(with, nil); err != nil || string(without) != c.without {
			t.Errorf("%s: without (%v)\n%q\nwant\n%q", c.name, err, without, c.without)
		}
	}
	for _, text := range []string{
		"=", "mcp_servers = 1", "mcp_servers.tmux = {command = \"x\"}", "[mcp_servers]\ntmux = {command = \"x\"}",
		"[mcp_servers.tmux]\nargs = [\n\"a\",\n]\ncommand = \"x\"\n",
	} {
		got, err := editTOML([]byte(text), testEntry)
		if err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
	// A line inside a string is no table.
	const tricky = "s = '''\n[mcp_servers.tmux]\ncommand = \"x\"\n'''\n"
	got, err := editTOML([]byte(tricky), testEntry)
	var doc map[string]any
	if err == nil && (toml.Unmarshal(got, &doc) != nil || doc["s"] != "[mcp_servers.tmux]\ncommand = \"x\"\n") {
		t.Errorf("%q became %q", tricky, got)
	}
}
