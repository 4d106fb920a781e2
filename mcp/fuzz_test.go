package mcp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzEnvelope: whatever the line, no panic; what is taken apart is what
// encoding/json reads; what the SDK would choke on does not get there.
func FuzzEnvelope(f *testing.F) {
	files, _ := filepath.Glob("testdata/conversations/*.txt")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, l := range strings.Split(string(b), "\n") {
			if _, l, ok := strings.Cut(l, " "); ok {
				f.Add([]byte(l))
			}
		}
	}
	f.Add([]byte(`{"a":{"b":[1,{"c":"\\\""}]},"id":"x\"y\\","method":"m","params":{"}":"{"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","x":-1.5e3}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if line = bytes.Trim(line, " \t\r\n"); len(line) == 0 {
			return
		}
		readableID(line)
		e, r := parseEnvelope(line)
		if r != nil {
			if b := r.frame(); !json.Valid(b) || bytes.Count(b, []byte("\n")) != 1 {
				t.Fatalf("refusal %q", b)
			}
			return
		}
		if !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("accepted: %q", line)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("accepted: %q: %v", line, err)
		}
		if string(m["params"]) == "null" {
			delete(m, "params")
		}
		for name, got := range map[string]json.RawMessage{"id": e.id, "result": e.result, "error": e.err, "params": e.params} {
			if name == "params" && e.id == nil || !e.call && name == "params" {
				continue // a notification's odd params are left out
			}
			if !bytes.Equal(got, m[name]) {
				t.Errorf("%s: %q, want %q", name, got, m[name])
			}
		}
		if !e.call || e.id == nil {
			return
		}
		// The SDK's decoder agrees about method and id.
		msg, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			t.Fatalf("the SDK refuses %q: %v", line, err)
		}
		req, ok := msg.(*jsonrpc.Request)
		if !ok || req.Method != e.method || req.ID != e.key {
			t.Errorf("the SDK reads %+v, we %+v", msg, e)
		}
	})
}

// FuzzQuoted: our strings are what encoding/json makes of the same text.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\b\f\n\r\t\x00\x1f\x7f", "<&>", "\u00e9\u2028\u2029\ufffd\U0001f600", "\xff\xc3", "a\xed\xa0\x80b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := appendQuoted(nil, s)
		if !utf8.Valid(b) || bytes.ContainsAny(b, "\n\r") {
			t.Fatalf("%q gives %q", s, b)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q gives %q: %v", s, b, err)
		}
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q gives %q", s, got)
		}
	})
}

// FuzzResult: any answer is one line of JSON that says what the tool said.
func FuzzResult(f *testing.F) {
	f.Add("text", `{"a":1}`, false, false)
	f.Add("", "{\n\"a\":\r[1,\n2]}", true, true)
	f.Add("\xff\n", `"x"`, false, true)
	f.Fuzz(func(t *testing.T, text, structured string, isError, complete bool) {
		if !json.Valid([]byte(structured)) {
			structured = ""
		}
		r := &toolResult{Text: text, Structured: json.RawMessage(structured), IsError: isError}
		b, err := encodeResult(json.RawMessage("1"), r, complete, json.RawMessage(`{"name":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(b, '\n') != len(b)-1 {
			t.Fatalf("not one line: %q", b)
		}
		var m struct {
			Result struct {
				Content           []struct{ Text string }
				StructuredContent json.RawMessage
				IsError           bool
				ResultType        string
			}
		}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatalf("%v: %q", err, b)
		}
		var got, want any
		json.Unmarshal([]byte(structured), &want)
		json.Unmarshal(m.Result.StructuredContent, &got)
		if m.Result.Content[0].Text != string([]rune(text)) || m.Result.IsError != isError ||
			(m.Result.ResultType == "complete") != complete || !reflect.DeepEqual(got, want) {
			t.Errorf("%q", b)
		}
	})
}
