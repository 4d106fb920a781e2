package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// rows are the rows of a batch's answer.
func (r *rig) batch(a args) (v map[string]any, rows []map[string]any, cursors map[string]any) {
	r.Helper()
	res := r.call(sendBatchName, a)
	if res.IsError {
		r.Fatalf("%v: %s", a, res.Text)
	}
	v = checkAnswer(r, r.table, sendBatchName, res)
	for _, row := range v["results"].([]any) {
		rows = append(rows, row.(map[string]any))
	}
	return v, rows, res.Meta[metaCursor].(map[string]any)
}

// TestSendBatch: rows in order with time and pane, each operation as send_keys
// does it, and a cursor from before the first input to each pane.
func TestSendBatch(t *testing.T) {
	r := newRig(t, nil).start()
	y, z := r.raw("y"), r.raw("z")
	v, rows, cursors := r.batch(args{"operations": []args{
		{"pane_id": y.id, "keys": "one"},
		{"pane_id": z.id, "keys": "C-c"},
		{"paneId": y.id, "keys": "two;", "enter": false, "literal": true},
		{"pane_id": y.id, "keys": "three", "suppress_history": true, "window_id": nil},
		{"pane_id": z.id, "keys": "Enter", "literal": true},
	}})
	if v["succeeded"] != 5.0 || v["failed"] != 0.0 || v["stopped_at"] != nil || len(rows) != 5 {
		t.Errorf("%v", v)
	}
	for i, row := range rows {
		want := []string{y.id, z.id, y.id, y.id, z.id}[i]
		if row["index"] != float64(i) || row["pane_id"] != want || row["success"] != true || row["error"] != nil || row["elapsed_seconds"].(float64) < 0 ||
			fmt.Sprint(row["resolved_pane_ids"]) != "["+want+"]" {
			t.Errorf("row %d: %v", i, row)
		}
	}
	y.gets("one\rtwo; three\r")
	z.gets("\x03Enter\r")
	if got := slices.Sorted(maps.Keys(cursors)); !slices.Equal(got, []string{y.id, z.id}) || cursors[y.id] == nil {
		t.Errorf("cursors %v", cursors)
	}
}

// TestSendBatchCursors: a cursor of the map lies before the pane's first input.
func TestSendBatchCursors(t *testing.T) {
	r := newRig(t, nil).start()
	r.say("%0", "before")
	_, _, cursors := r.batch(args{"operations": []args{{"pane_id": "%0", "keys": "one"}, {"pane_id": "%0", "keys": "two"}}})
	r.until(func() bool {
		text := r.ok("capture_since", args{"paneId": "%0", "cursor": cursors["%0"]})["text"].(string)
		return strings.Count(text, "one\n") == 2 && strings.Count(text, "two\n") == 2 && !strings.Contains(text, "before")
	})
}

// M10, M13: a pane is found by id, or by window or session for the active pane
// there; names are exact, whatever they hold; what disagrees, and what names
// nothing, sends nothing. (Input half.)
func TestM13BatchResolution(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-session", "-d", "-s", `a b;c 'd' "e" $HOME {f}`, "-x", "80", "-y", "24", "cat") // $1, @1, %1
	name := r.tmux("display-message", "-p", "-t", "$1", "#{session_name}")                      // 3.3a stores it otherwise
	r.tmux("split-window", "-t", "%1", "cat")                                                   // %2 is active
	r.tmux("new-window", "-d", "-t", "$1:", "cat")                                              // @2, %3
	r.tmux("new-session", "-d", "-s", "$1", "-x", "80", "-y", "24", "cat")                      // $2, %4
	r.tmux("new-session", "-d", "-s", "mai", "-x", "80", "-y", "24", "-t", "main")              // $3, shares @0
	leave := []func(){r.attach("$2"), r.attach("$2")}                                           // people elsewhere decide nothing
	defer func() { leave[0](); leave[1]() }()
	for _, c := range []struct {
		op   args
		want string // the pane, or a part of the error
	}{
		{args{"pane_id": "%1"}, "%1"},
		{args{"window_id": "@1"}, "%2"},
		{args{"window_id": "@2"}, "%3"},
		{args{"session_id": "$1"}, "%2"},
		{args{"session_name": name}, "%2"},
		{args{"session_name": "$1"}, "is attended"}, // the session $2, where people are
		{args{"session_name": "main"}, "%0"},
		{args{"session_name": "mai"}, "%0"},
		{args{"session_id": "$3", "pane_id": "%0", "window_id": "@0"}, "%0"},
		{args{"pane_id": "%1", "session_id": nil}, "%1"},
		{args{"session_id": "$1", "session_name": name}, "%2"},
		{args{"pane_id": "%1", "window_id": "@2"}, "pane %1 is not in window @2"},
		{args{"pane_id": "%0", "session_id": "$1"}, "pane %0 is not in session $1"},
		{args{"window_id": "@0", "session_name": name}, "window @0 is not in session $1"},
		{args{"session_id": "$0", "session_name": name}, "session $0 is not in session name"},
		{args{}, "names no pane"},
		{args{"pane_id": nil}, "names no pane"},
		{args{"pane_id": "%99"}, "pane %99 does not exist"},
		{args{"pane_id": "main"}, "pane main does not exist"},
		{args{"window_id": "@99"}, "window @99 does not exist"},
		{args{"window_id": ":0"}, "window :0 does not exist"},
		{args{"session_id": "$99"}, `session "$99" does not exist`},
		{args{"session_id": "main"}, `session "main" does not exist`},
		{args{"session_name": "ma"}, `session "ma" does not exist`},
		{args{"session_name": "a b"}, `session "a b" does not exist`},
		{args{"session_name": ""}, `session "" does not exist`},
	} {
		c.op["keys"] = "x"
		_, rows, _ := r.batch(args{"operations": []args{c.op}})
		row := rows[0]
		if strings.HasPrefix(c.want, "%") {
			if row["pane_id"] != c.want || row["success"] != true {
				t.Errorf("%v: %v", c.op, row)
			}
			continue
		}
		if said, _ := row["error"].(string); row["success"] != false || !strings.Contains(said, c.want) {
			t.Errorf("%v: %v, want %q", c.op, row, c.want)
		}
	}
}

// TestSendBatchStops: where a batch stops, what was tried and what was not.
func TestSendBatchStops(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("y")
	ops := []args{
		{"pane_id": y.id, "keys": "a", "enter": false},
		{"pane_id": "%99", "keys": "b"},
		{"pane_id": y.id, "keys": "C-Entr"},
		{"pane_id": y.id, "keys": "c", "enter": false},
	}
	v, rows, _ := r.batch(args{"operations": ops})
	if v["stopped_at"] != 1.0 || v["succeeded"] != 1.0 || v["failed"] != 1.0 || len(rows) != 2 {
		t.Errorf("%v", v)
	}
	y.gets("a")
	v, rows, _ = r.batch(args{"operations": ops, "on_error": "continue"})
	if v["stopped_at"] != nil || v["succeeded"] != 2.0 || v["failed"] != 2.0 || len(rows) != 4 || rows[2]["pane_id"] != y.id || rows[1]["pane_id"] != nil {
		t.Errorf("%v", v)
	}
	y.gets("ac")
	v, rows, _ = r.batch(args{"operations": []args{}})
	if v["succeeded"] != 0.0 || v["failed"] != 0.0 || len(rows) != 0 {
		t.Errorf("%v", v)
	}
	// The time is for the whole batch.
	v, rows, _ = r.batch(args{"operations": ops[:1], "timeout": 1e-9, "on_error": "continue"})
	if v["stopped_at"] != 0.0 || len(rows) != 1 || !strings.Contains(rows[0]["error"].(string), "timeout has passed") {
		t.Errorf("%v", v)
	}
	v, _, _ = r.batch(args{"operations": ops[:1], "timeout": 1e300})
	if v["succeeded"] != 1.0 {
		t.Errorf("%v", v)
	}
	y.gets("a")

	// What is wrong with the batch itself sends nothing of it.
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"operations": []args{ops[0], {"pane_id": y.id}}}, "operations[1]: invalid arguments: keys is missing"},
		{args{"operations": []args{ops[0], {"pane_id": y.id, "keys": "x", "force": true}}}, "there is no property \"force\""},
		{args{"operations": slices.Repeat(ops[:1], maxSends+1)}, "the limit is 64"},
		{args{"operations": ops[:1], "timeout": 0}, "timeout must be"},
		{args{"operations": ops[:1], "timeout": -1}, "timeout must be"},
		{args{"operations": ops[:1], "socket_name": "another"}, "is not the tmux server that this daemon serves, which is " + r.sock},
	} {
		r.refused(sendBatchName, c.a, c.want)
	}
	y.gets("")
	v, _, _ = r.batch(args{"operations": ops[:1], "socket_name": nil, "timeout": nil})
	if v["succeeded"] != 1.0 {
		t.Errorf("%v", v)
	}
	y.gets("a")
}

// TestSendBatchSocketName: the name of the socket that is served, and no other.
func TestSendBatchSocketName(t *testing.T) {
	t.Setenv("TMUX_TMPDIR", t.TempDir())
	served := controlmode.Socket{Name: "served"}
	tab, err := newTable(state.New(state.Config{Socket: served}), ToolConfig{Socket: served})
	if err != nil {
		t.Fatal(err)
	}
	for socket, ok := range map[string]bool{"served": true, "default": false, "": false, "../served": false} {
		if err := tab.servedSocket(&socket); (err == nil) != ok {
			t.Errorf("%q: %v", socket, err)
		}
	}
}

// TestSendBatchAcceptsItsSchema: what the seed's schema accepts is read, and
// nothing else, but for the other spelling of names.
func TestSendBatchAcceptsItsSchema(t *testing.T) {
	row := testTable(t, nil).byName[sendBatchName]
	schema := validator(t, row.input)
	b := newSendBatch()
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draw := func(params []param) map[string]any {
			drawn := map[string]any{}
			for i := range params {
				if p := &params[i]; p.kind != kindObjects && rapid.IntRange(0, 2).Draw(t, "give "+p.name) > 0 {
					drawn[p.name] = drawLikely(t, p)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
				drawn["force"] = true
			}
			return drawn
		}
		whole := draw(row.params)
		switch rapid.IntRange(0, 9).Draw(t, "operations") {
		case 0:
			whole["operations"] = rapid.SampledFrom([]any{"x", nil, 1, map[string]any{}, []any{"x"}, []any{nil}, []any{1}}).Draw(t, "no operations")
		case 1:
		default:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "many") {
				list = append(list, draw(b.operation.params))
			}
			whole["operations"] = list
		}
		raw := encodeOnce(whole)
		decoded, err := row.decode(raw)
		if err == nil {
			_, err = b.operations(decoded.(sendBatchArgs).Operations)
		}
		if want := schema.Validate(plainValue(t, whole)); (want == nil) != (err == nil) {
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
