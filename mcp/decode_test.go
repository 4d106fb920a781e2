package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/state"
)

func TestDecodeRefusals(t *testing.T) {
	tab := testTable(t, nil)
	for _, c := range []struct {
		tool, args string
		want       []string // in the error
	}{
		{"capture_pane", `{}`, []string{"paneId is missing", "a pane id such as %1", "paneId (required)"}},
		{"capture_pane", `{"paneId":"%1","paneID":"%1"}`, []string{`there is no property "paneID"`, "did you mean paneId?"}},
		{"capture_pane", `{"paneId":"%1","maxline":3}`, []string{"did you mean maxLines?"}},
		{"capture_pane", `{"paneId":"%1","pane_id":"%1"}`, []string{"paneId is given twice"}},
		{"capture_pane", `{"paneId":"%1","paneId":"%2"}`, []string{"paneId is given twice"}},
		{"capture_pane", `{"paneId":7}`, []string{"paneId must be a pane id such as %1, not 7"}},
		{"capture_pane", `{"paneId":null}`, []string{"not null (leave the property out instead)"}},
		{"capture_pane", `{"paneId":"1"}`, []string{`not "1"`}},
		{"capture_pane", `{"paneId":"%1","maxLines":0}`, []string{"maxLines must be an integer from 1 to 9007199254740991, not 0"}},
		{"capture_pane", `{"paneId":"%1","maxLines":"5"}`, []string{`not the string "5"`}},
		{"capture_pane", `{"paneId":"%1","maxLines":1.5}`, []string{"not 1.5"}},
		{"capture_pane", `{"paneId":"%1","start":9007199254740992}`, []string{"start must be"}},
		{"capture_pane", `{"paneId":"%1","start":1e400}`, []string{"start must be"}},
		{"capture_pane", `{"paneId":"%1","joinWrapped":1}`, []string{"joinWrapped must be true or false, not 1"}},
		{"capture_pane", `{"paneId":"%1","join_wrapped":"yes"}`, []string{"join_wrapped must be true or false"}},
		{"capture_pane", `["%1"]`, []string{"arguments must be an object, not an array"}},
		{"list_sessions", `{"session":"x"}`, []string{"there is no property", "takes no arguments"}},
		{"list_windows", `{"session":"a","session_id":"$1"}`, []string{"more than one way"}},
		{"list_windows", `{"session_id":"$1","session_name":"a"}`, []string{"more than one way"}},
		{"get_session_info", `{}`, []string{"session is missing"}},
		{"find_pane_by_position", `{"windowId":"@1","corner":"middle"}`, []string{"one of top-left, top-right", `not "middle"`}},
		{"find_pane_by_position", `{"windowId":"@1","position":"mid"}`, []string{"position (corner) must be"}},
		{"get_tmux_variables", `{"names":[]}`, []string{"an array of 1 to 32 strings", "not 0 of them"}},
		{"get_tmux_variables", `{"names":["a b"]}`, []string{"each a variable name"}},
		{"search_panes", `{"pattern":""}`, []string{"not an empty string"}},
		{"capture_since", `{"paneId":"%1","cursor":"x"}`, []string{"a cursor that capture_since"}},
	} {
		res, err := tab.call(t.Context(), &Caller{}, c.tool, json.RawMessage(c.args), nil)
		if err != nil || !res.IsError || res.Structured != nil {
			t.Errorf("%s %s: %+v, %v", c.tool, c.args, res, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(res.Text, w) {
				t.Errorf("%s %s:\n%s\nlacks %q", c.tool, c.args, res.Text, w)
			}
		}
		checkText(t, c.tool, res.Text)
	}
}

func TestDecodeNamesEveryFault(t *testing.T) {
	d := testTable(t, nil).byName["capture_pane"].decoder
	_, err := d.decode(json.RawMessage(`{"start":"a","end":"b","maxLines":-1,"x":1}`))
	for _, w := range []string{"start", "end", "maxLines", `"x"`, "paneId is missing"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nlacks %s", err, w)
		}
	}
	_, err = d.decode(json.RawMessage(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`))
	if !strings.Contains(err.Error(), "and 3 more faults") {
		t.Error(err)
	}
}

func TestDecodeAccepts(t *testing.T) {
	tab := testTable(t, nil)
	for _, c := range []struct{ tool, args, want string }{
		{"list_sessions", ``, `{}`},
		{"list_sessions", `null`, `{}`},
		{"list_sessions", ` { } `, `{}`},
		{
			"capture_pane", `{"paneId":"%1","maxLines":3.0,"start":-1e2,"end":-0,"joinWrapped":true}`,
			`{PaneID:%1 Start:-100 End:0 JoinWrapped:true MaxLines:3 History:false}`,
		},
		{
			"capture_pane", `{"pane_id":"%1","max_lines":3,"join_wrapped":false,"history":true}`,
			`{PaneID:%1 Start:nil End:nil JoinWrapped:false MaxLines:3 History:true}`,
		},
		{"get_tmux_variables", `{"names":"pid","pane":"%2"}`, `{Names:[pid] PaneID:%2}`},
		{
			"show_option", `{"name":"status","scope":"global","effective":true}`,
			`{Name:status Scope:global Target:nil Effective:true}`,
		},
		{"find_pane_by_position", `{"window_id":"@3","position":"top-left"}`, `{WindowID:@3 Corner:top-left}`},
		{"search_panes", `{"pattern":"x","max_lines":2,"max_matches_per_pane":5,"regex":true}`, ``},
		{"show_hooks", `{"scope":"pane","target":"%1","name":"pane-died"}`, ``},
	} {
		args, err := tab.byName[c.tool].decode(json.RawMessage(c.args))
		if err != nil {
			t.Errorf("%s %s: %v", c.tool, c.args, err)
			continue
		}
		if got := show(args); c.want != "" && got != c.want {
			t.Errorf("%s %s:\n%s, want\n%s", c.tool, c.args, got, c.want)
		}
	}
}

// show prints arguments with pointers followed.
func show(args any) string {
	b, _ := json.Marshal(args)
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	_ = d.Decode(&v)
	var order []string
	for line := range strings.SplitSeq(string(b), `":`) {
		if i := strings.LastIndexByte(line, '"'); i >= 0 {
			order = append(order, line[i+1:])
		}
	}
	var parts []string
	for _, k := range order {
		if e, ok := v[k]; ok && e == nil {
			parts = append(parts, k+":nil")
		} else if ok {
			parts = append(parts, fmt.Sprintf("%s:%v", k, e))
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// TestDecoderAgreesWithSchema: for arguments made of advertised names, the
// decoder accepts exactly what the advertised schema accepts.
func TestDecoderAgreesWithSchema(t *testing.T) {
	tab := testTable(t, nil)
	for name, row := range tab.byName {
		if name == batchName || name == sendBatchName {
			continue // the first's nested arguments fail their row, the second's have a test of their own
		}
		schema := validator(t, row.input)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				args := map[string]any{}
				for i := range row.params {
					if p := &row.params[i]; !p.hidden && rapid.Bool().Draw(t, "give "+p.name) {
						args[p.name] = drawValue(t, p)
					}
				}
				raw, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				var seen any
				if err := json.Unmarshal(raw, &seen); err != nil {
					t.Fatal(err)
				}
				advertised := schema.Validate(seen)
				_, strict := row.decode(raw)
				// Beyond the schema, for callers of other ports: one string
				// for a list of one, and the scope "global".
				if advertised != nil && strict == nil && (args["names"] != nil || args["scope"] == scopeGlobal) {
					_, single := args["names"].(string)
					if single || args["scope"] == scopeGlobal {
						return
					}
				}
				if (advertised == nil) != (strict == nil) {
					t.Fatalf("%s:\nschema: %v\ndecoder: %v", raw, advertised, strict)
				}
			})
		})
	}
}

// drawValue draws a value that is right for the property, nearly right, or wrong.
func drawValue(t *rapid.T, p *param) any {
	text := rapid.SampledFrom(append([]string{
		"", "x", "%1", "%", "%1x", "@1", "$1", "@", "%01", "%99999999999", "pid", "a b", "_a", "a1_",
		"global", "ltxc1." + strings.Repeat("0a", 16) + ".0", "ltxc1." + strings.Repeat("0a", 16) + ".01",
		"ltxc1." + strings.Repeat("0A", 16) + ".1", "ltxc1." + strings.Repeat("0a", 16) + ".99999999999999999999",
	}, p.enum...))
	number := rapid.OneOf(
		rapid.Map(rapid.Int64Range(minSafe-2, maxSafe+2), func(n int64) any { return json.Number(fmt.Sprint(n)) }),
		rapid.Map(rapid.Int64Range(-3, 3), func(n int64) any { return n }),
		rapid.Map(rapid.SampledFrom([]string{"3.0", "1e2", "-0", "0.5", "1e-1", "-1e3", "9007199254740991.0", "1e30"}),
			func(s string) any { return json.Number(s) }))
	list := rapid.Map(rapid.SliceOfN(text, 0, 34), func(l []string) any { return l })
	anything := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), number, list,
		rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
		rapid.Just[any](map[string]any{"a": 1}), rapid.Just[any]([]any{"pid", 1}))
	fitting := map[kind]*rapid.Generator[any]{
		kindString:  rapid.Map(text, func(s string) any { return s }),
		kindInteger: number,
		kindBoolean: rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		kindStrings: list,
		kindNumber:  number,
		// What is inside is the tool's own affair.
		kindObjects: rapid.Just[any]([]any{map[string]any{"kind": "bell"}}),
	}[p.kind]
	if p.kind == kindObjects { // the tool looks into the items itself, and says which is wrong
		anything = rapid.OneOf(number, rapid.Just[any]("x"), rapid.Just[any](nil), rapid.Just[any](map[string]any{"a": 1}))
	}
	if p.nullable {
		fitting = rapid.OneOf(fitting, rapid.Just[any](nil))
	}
	return rapid.OneOf(fitting, fitting, anything).Draw(t, p.name)
}

// TestConditionsAgreeWithSchema: the items of wait_for's conditions are read
// exactly as the advertised schema accepts them, and the list's bounds hold.
func TestConditionsAgreeWithSchema(t *testing.T) {
	row := testTable(t, nil).byName["wait_for"]
	schema := validator(t, row.input)
	params := conditionParams()
	read := conditionReader(params)
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		list := []any{}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, maxConditions, maxConditions + 1}).Draw(t, "many") {
			item := map[string]any{}
			for i := range params {
				p := &params[i]
				if odds := rapid.IntRange(0, 9).Draw(t, "give "+p.name); odds < 3 || p.required && odds < 9 {
					item[p.name] = drawLikely(t, p)
				}
				if len(list) > 3 { // a long list is about its length
					break
				}
			}
			if rapid.IntRange(0, 19).Draw(t, "unknown") == 0 {
				item["force"] = true
			}
			list = append(list, rapid.SampledFrom([]any{item, item, item, item, item, item, item, item, nil, "x", []any{item}}).Draw(t, "item"))
		}
		raw := encodeOnce(map[string]any{"conditions": list})
		decoded, err := row.decode(raw)
		if err == nil {
			_, err = read(decoded.(waitForArgs).Conditions)
		}
		if want := schema.Validate(plainValue(t, map[string]any{"conditions": list})); (want == nil) != (err == nil) {
			t.Fatalf("%s:\nschema: %v\nwe: %v", raw, want, err)
		}
		if err == nil {
			accepted++
		} else {
			refused++
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d were accepted and %d refused: the test says little", accepted, refused)
	}
}

// TestIDChecksAreThePatterns: the hand-written checks are the advertised
// patterns.
func TestIDChecksAreThePatterns(t *testing.T) {
	for pattern, match := range map[string]func(string) bool{
		panePattern: isPaneID, windowPattern: isWindowID, sessionPattern: isSessionID,
		variablePattern: isVariable, state.CursorPattern: isCursor,
	} {
		re := regexp.MustCompile(pattern)
		hex := rapid.StringMatching(`(ltxc1|ltxc2)\.[0-9a-fA-F]{30,34}[.x][0-9]{0,3}x?`)
		rapid.Check(t, func(t *rapid.T) {
			s := rapid.OneOf(rapid.StringMatching(`[%@$_a-z]?[0-9a-zA-Z_]{0,4}[\n%]?`), rapid.String(), hex,
				rapid.StringMatching(`ltxc1\.[0-9a-f]{32}\.[0-9]{1,3}`)).Draw(t, "s")
			if re.MatchString(s) != match(s) {
				t.Fatalf("%s and its check differ on %q", pattern, s)
			}
		})
	}
}

// TestSnakeCaseIsAcceptedEverywhere: every property under its other spelling.
func TestSnakeCaseIsAcceptedEverywhere(t *testing.T) {
	for name, row := range testTable(t, nil).byName {
		for i, p := range row.params {
			if got, ok := row.decoder.names[snake(p.name)]; !ok || got != i {
				t.Errorf("%s does not take %s", name, snake(p.name))
			}
		}
	}
}

// TestJavaCallsAreAccepted: what the Java port's batch seed allows is decoded,
// alone and in a batch. Values are drawn from the seed's own schema.
func TestJavaCallsAreAccepted(t *testing.T) {
	tab := testTable(t, nil)
	operations := readSeed(t, "call_read_tools_batch.java.json").InputSchema["properties"].(map[string]any)["operations"]
	for _, v := range operations.(map[string]any)["items"].(map[string]any)["oneOf"].([]any) {
		props := v.(map[string]any)["properties"].(map[string]any)
		tool := props["tool"].(map[string]any)["const"].(string)
		arguments := props["arguments"].(map[string]any)
		t.Run(tool, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				args := drawJava(t, arguments)
				raw, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tab.byName[tool].decode(raw); err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				op, _ := json.Marshal(map[string]any{"tool": tool, "arguments": args})
				list, _ := json.Marshal(map[string]any{"operations": []json.RawMessage{op}, "on_error": "continue"})
				if _, err := tab.byName[batchName].decode(list); err != nil {
					t.Fatalf("%s: %v", list, err)
				}
			})
		})
	}
}

// javaValues are values in the sense of the Java seed's prose, which its
// schema does not spell out.
var javaValues = map[string][]any{
	"pane_id": {"%1"}, "pane": {"%1"}, "window_id": {"@1"}, "session_id": {"$1", "main"}, "session_name": {"main", "$1"},
	"position": {"top-left", "bottom-right"}, "scope": {"global", "server", "session", "window", "pane"},
	"names": {"pid", []string{"pid", "pane_id"}}, "max_lines": {1, 200}, "max_matches_per_pane": {5},
	"cursor": {"ltxc1." + strings.Repeat("00", 16) + ".0"}, "name": {"status"}, "pattern": {"x"}, "target": {"$1"},
}

func drawJava(t *rapid.T, arguments map[string]any) map[string]any {
	required := arguments["required"].([]any)
	props := arguments["properties"].(map[string]any)
	args := map[string]any{}
	for _, name := range sortedKeys(props) {
		if name == "session_name" && args["session_id"] != nil {
			continue // "in place of session_id"
		}
		if !slices.Contains(required, any(name)) && !rapid.Bool().Draw(t, "give "+name) {
			continue
		}
		values := javaValues[name]
		if props[name].(map[string]any)["type"] == "boolean" {
			values = []any{true, false}
		}
		args[name] = rapid.SampledFrom(values).Draw(t, name)
	}
	return args
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func FuzzDecode(f *testing.F) {
	f.Add("capture_pane", []byte(`{"paneId":"%1","maxLines":3.0}`))
	f.Add("capture_pane", []byte(`{"paneId":"%1"`))
	f.Add("call_read_tools_batch", []byte(`{"operations":[{"tool":"list_panes","arguments":{"window":"@1"}}],"onError":"stop"}`))
	f.Add("get_tmux_variables", []byte(`{"names":["\ud800"]}`))
	tab := testTable(f, nil)
	f.Fuzz(func(t *testing.T, name string, args []byte) {
		row := tab.byName[name]
		if row == nil {
			return
		}
		v, err := row.decode(args)
		if err != nil {
			checkText(t, name, errorResult(err.Error()).Text)
		} else if v == nil {
			t.Fatal("neither arguments nor an error")
		}
	})
}
