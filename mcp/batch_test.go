package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fakeOps makes operations that answer what their letter says: o ok, f failed,
// w ok after waiting, F failed after waiting, i with invalid arguments.
func fakeOps(letters string) []operation {
	ops := make([]operation, len(letters))
	for i, l := range letters {
		row := &tool{name: fmt.Sprintf("%c%d", l, i)}
		row.waits = func(any) bool { return l == 'w' || l == 'F' }
		ops[i] = operation{tool: row, args: l}
		if l == 'i' {
			ops[i].err = errors.New("invalid")
		}
	}
	return ops
}

// runFake runs fake operations and tells the segments they ran in.
func runFake(letters string, stop bool) (ran, segments string) {
	var looks []string
	results := runOperations(fakeOps(letters), stop, func(segment []operation) func(*operation) *toolResult {
		look := ""
		for i := range segment {
			look += fmt.Sprint(segment[i].tool.name[:1])
		}
		looks = append(looks, look)
		return func(o *operation) *toolResult {
			return &toolResult{Text: o.tool.name, IsError: o.err != nil || o.args == 'f' || o.args == 'F'}
		}
	})
	for i, res := range results {
		if !strings.HasSuffix(res.Text, fmt.Sprint(i)) {
			ran += "!"
		}
		ran += res.Text[:1]
	}
	return ran, strings.Join(looks, "|")
}

func TestRunOperations(t *testing.T) {
	for _, c := range []struct {
		ops           string
		stop          bool
		ran, segments string
	}{
		{"ooo", true, "ooo", "ooo"},
		{"ofo", true, "of", "ofo"},
		{"ofo", false, "ofo", "ofo"},
		{"oowoo", true, "oowoo", "oo|w|oo"},
		{"ww", true, "ww", "w|w"},
		{"fwo", true, "f", "f"},
		{"oFo", true, "oF", "o|F"},
		{"oFo", false, "oFo", "o|F|o"},
		{"oio", true, "oi", "oio"},
		{"oiwo", false, "oiwo", "oi|w|o"},
	} {
		if ran, segments := runFake(c.ops, c.stop); ran != c.ran || segments != c.segments {
			t.Errorf("%s stop %v: ran %s in %s, want %s in %s", c.ops, c.stop, ran, segments, c.ran, c.segments)
		}
	}
	// The results are those of running one after the other.
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ofwFi]{1,16}`).Draw(t, "ops")
		stop := rapid.Bool().Draw(t, "stop")
		want := letters
		if i := strings.IndexAny(letters, "fFi"); stop && i >= 0 {
			want = letters[:i+1]
		}
		if ran, _ := runFake(letters, stop); ran != want {
			t.Fatalf("%s stop %v: ran %s", letters, stop, ran)
		}
	})
}

// TestSegmentRunsAtOnce: operations that do not wait for anything are under way
// together; each waits here for all.
func TestSegmentRunsAtOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(maxOperations)
	ops := fakeOps(strings.Repeat("o", maxOperations))
	results := runOperations(ops, true, func([]operation) func(*operation) *toolResult {
		return func(*operation) *toolResult {
			all.Done()
			all.Wait()
			return &toolResult{}
		}
	})
	if len(results) != maxOperations {
		t.Errorf("%d results", len(results))
	}
}

func TestNestedPanicFailsItsRowOnly(t *testing.T) {
	c := testCall(t, nil)
	row := &tool{name: "list_panes", run: func(context.Context, *call, any) (*toolResult, error) { panic("secret") }}
	res := c.nested(t.Context(), &operation{tool: row})
	if !res.IsError || !strings.Contains(res.Text, "internal error in list_panes") || strings.Contains(res.Text, "secret") {
		t.Errorf("%+v", res)
	}
}

func TestBatchOperationForm(t *testing.T) {
	tab := testTable(t, nil)
	// Rows, because gofmt and gofumpt do not agree on how to align a map here.
	for _, c := range []struct{ args, want string }{
		{`{"operations":[]}`, "operations must be an array of 1 to 16 objects, not 0 of them"},
		{`{"operations":{}}`, "operations must be an array of 1 to 16 objects, not an object"},
		{`{}`, "operations is missing"},
		{`{"operations":["x"]}`, "operations[0]: arguments must be an object"},
		{`{"operations":[{"tool":"list_panes"},{"tool":"kill_pane"}]}`, "operations[1]"},
		{`{"operations":[{"tool":"wait_for_text"}]}`, "tool must be one of list_sessions"},
		{`{"operations":[{"tool":"call_read_tools_batch"}]}`, "tool must be one of list_sessions"},
		{`{"operations":[{"tool":"list_panes","argument":{}}]}`, "did you mean arguments?"},
		{`{"operations":[{"tool":"list_panes","arguments":[]}]}`, "arguments must be an object, not an array"},
		{`{"operations":[{}]}`, "tool is missing"},
		{`{"operations":[{"tool":"list_panes"}],"onError":"halt"}`, "onError must be one of stop, continue"},
		{`{"operations":[{"tool":"list_panes"}],"onError":"stop","on_error":"stop"}`, "onError is given twice"},
		{`{"operations":[` + strings.TrimSuffix(strings.Repeat(`{"tool":"list_panes"},`, 17), ",") + `]}`, "not 17 of them"},
	} {
		res, err := tab.call(t.Context(), &Caller{}, batchName, json.RawMessage(c.args), nil)
		if err != nil || !res.IsError || !strings.Contains(res.Text, c.want) {
			t.Errorf("%s: %+v, %v", c.args, res, err)
		}
	}
}

// answerOf is a batch's answer as a client reads it.
type answerOf struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError           bool `json:"isError"`
	StructuredContent *struct {
		Failed         int    `json:"failed"`
		Succeeded      int    `json:"succeeded"`
		StoppedAt      *int   `json:"stoppedAt"`
		OnError        string `json:"onError"`
		Truncated      bool   `json:"truncated"`
		TruncatedBytes int    `json:"truncatedBytes"`
		Results        []struct {
			Index           int             `json:"index"`
			Tool            string          `json:"tool"`
			Success         bool            `json:"success"`
			Error           *string         `json:"error"`
			Result          json.RawMessage `json:"result"`
			ResultTruncated bool            `json:"resultTruncated"`
		} `json:"results"`
	} `json:"structuredContent"`
}

func readAnswer(t testing.TB, raw []byte) answerOf {
	t.Helper()
	var a answerOf
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return a
}

// lineOf is the complete response line.
func lineOf(id string, result []byte) string {
	return `{"id":` + id + `,"jsonrpc":"2.0","result":` + string(result) + "}\n"
}

func sized(n int) *toolResult { return &toolResult{Text: strings.Repeat("x", n)} }

func TestBatchAnswer(t *testing.T) {
	ops := fakeOps("oof")
	results := []*toolResult{
		{Text: "a\nb", Structured: json.RawMessage(`{"panes":[]}`), Meta: map[string]any{metaCursor: nil}},
		{Text: ""},
		{Text: "no such pane\n\nhint", IsError: true},
	}
	raw := newBatchResult(ops, results, onErrorStop).encode(json.RawMessage("7"))
	want := `{"content":[{"type":"text","text":"3 operations ran: 2 succeeded, 1 failed. Stopped at operation 2.\n` +
		`0 o0: ok\n1 o1: ok\n2 f2: failed: no such pane"}],"structuredContent":{"failed":1,"onError":"stop","results":[` +
		`{"error":null,"index":0,"result":{"_meta":{"tmux-mcpd/cursor":null},"content":[{"type":"text","text":"a\nb"}],` +
		`"isError":false,"structuredContent":{"panes":[]}},"resultTruncated":false,"success":true,"tool":"o0"},` +
		`{"error":null,"index":1,"result":{"content":[{"type":"text","text":""}],"isError":false},"resultTruncated":false,` +
		`"success":true,"tool":"o1"},{"error":"no such pane\n\nhint","index":2,"result":{"content":[{"type":"text",` +
		`"text":"no such pane\n\nhint"}],"isError":true},"resultTruncated":false,"success":false,"tool":"f2"}],` +
		`"stoppedAt":2,"succeeded":2,"truncated":false,"truncatedBytes":0}}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Error(d)
	}
	for _, out := range []string{"ts", "java"} {
		s := readSeed(t, "call_read_tools_batch."+out+".json").OutputSchema
		b, _ := json.Marshal(s)
		var whole struct{ StructuredContent any }
		if err := json.Unmarshal(raw, &whole); err != nil {
			t.Fatal(err)
		}
		if err := validator(t, b).Validate(whole.StructuredContent); err != nil {
			t.Errorf("%s seed: %v", out, err)
		}
	}
	silent := readAnswer(t, newBatchResult(fakeOps("f"), []*toolResult{{IsError: true}}, onErrorContinue).encode(nil))
	if s := silent.StructuredContent; *s.Results[0].Error != noErrorText || s.StoppedAt != nil {
		t.Errorf("%+v", s)
	}
}

// TestBatchCap: the largest results are left out first, one by one, until the
// whole line fits, and what was left out is counted exactly.
func TestBatchCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, maxOperations).Draw(t, "rows")
		results := make([]*toolResult, n)
		for i := range results {
			results[i] = sized(rapid.OneOf(rapid.IntRange(0, 300_000), rapid.IntRange(0, 100)).Draw(t, "size"))
		}
		id := rapid.SampledFrom([]string{"1", `"an id"`, `"` + strings.Repeat("i", 500_000) + `"`}).Draw(t, "id")
		b := newBatchResult(fakeOps(strings.Repeat("o", n)), results, onErrorStop)
		raw := b.encode(json.RawMessage(id))
		line := lineOf(id, raw)
		if len(line) > resultCeiling {
			t.Fatalf("%d bytes", len(line))
		}
		var a answerOf
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		s := a.StructuredContent
		smallestOut, largestKept, bytes, out := -1, 0, 0, 0
		for i, row := range s.Results {
			size := len(encodeNested(results[i]))
			if row.ResultTruncated != (string(row.Result) == "null") || !row.Success || row.Index != i {
				t.Fatalf("row %d: %+v", i, row)
			}
			if row.ResultTruncated {
				out++
				bytes += size - 4
				if smallestOut < 0 || size < smallestOut {
					smallestOut = size
				}
			} else {
				largestKept = max(largestKept, size)
			}
		}
		if len(s.Results) != n || s.Succeeded != n || s.Truncated != (out > 0) || s.TruncatedBytes != bytes {
			t.Fatalf("%d rows, truncated %v %d bytes, counted %d", len(s.Results), s.Truncated, s.TruncatedBytes, bytes)
		}
		if out > 0 && (smallestOut < largestKept || len(line)+smallestOut-4 <= resultCeiling-200) {
			t.Fatalf("left out %d bytes although %d were kept in a line of %d", smallestOut, largestKept, len(line))
		}
		if again := b.encode(json.RawMessage(id)); !slices.Equal(again, raw) {
			t.Fatal("encoded differently the second time")
		}
	})
}

// TestBatchCapToTheByte: a line of exactly the cap keeps everything.
func TestBatchCapToTheByte(t *testing.T) {
	ops := fakeOps("oo")
	empty := len(lineOf("1", newBatchResult(ops, []*toolResult{sized(0), sized(0)}, onErrorStop).encode(json.RawMessage("1"))))
	for over := range 2 {
		room := resultCeiling - empty + over
		results := []*toolResult{sized(room / 3), sized(room - room/3)}
		a := readAnswer(t, newBatchResult(ops, results, onErrorStop).encode(json.RawMessage("1")))
		rows := a.StructuredContent.Results
		if rows[0].ResultTruncated || rows[1].ResultTruncated != (over > 0) {
			t.Errorf("%d over: %v %v", over, rows[0].ResultTruncated, rows[1].ResultTruncated)
		}
	}
}

func TestBatchRowsAloneTooLarge(t *testing.T) {
	results := make([]*toolResult, maxOperations)
	for i := range results {
		results[i] = &toolResult{Text: strings.Repeat("e", 100_000), IsError: true}
	}
	b := newBatchResult(fakeOps(strings.Repeat("f", maxOperations)), results, onErrorContinue)
	a := readAnswer(t, b.encode(json.RawMessage("1")))
	if !a.IsError || a.StructuredContent != nil || !strings.Contains(a.Content[0].Text, "1,000,000") {
		t.Errorf("%+v", a)
	}
}
