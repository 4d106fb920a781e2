package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Which calls the SDK need not see the params of, and that it never sees arguments.
func TestPlainCall(t *testing.T) {
	for _, tt := range []struct {
		params, name, rest string // rest "" for a plain call
	}{
		{params: `{"name":"echo"}`, name: "echo"},
		{params: `{"name":"","arguments":null}`},
		{params: `{"arguments":{"text":"a"},"name":"echo"}`, name: "echo"},
		{params: `{"name":"one","name":"two","arguments":{}}`, name: "two"},
		{params: `{"n\u0061me":"\u0065cho"}`, name: "echo"},
		{params: `{"name":"echo","_meta":{"progressToken":1,"other":{"io.modelcontextprotocol/protocolVersion":1}}}`, name: "echo"},
		{params: `{}`, rest: `{}`},
		{params: `{"arguments":{"secret":1}}`, rest: `{}`},
		{params: `{"name":1,"arguments":{"secret":1}}`, rest: `{"name":1}`},
		{params: `{"Name":"echo"}`, rest: `{"Name":"echo"}`},
		{params: `{"name":"echo","_meta":null}`, rest: `{"name":"echo","_meta":null}`},
		{params: `{"name":"echo","_meta":[1]}`, rest: `{"name":"echo","_meta":[1]}`},
		{params: `{"name":"echo","task":{},"arguments":{"secret":1}}`, rest: `{"name":"echo","task":{}}`},
		{
			params: `{"name":"echo","_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}`,
			rest:   `{"name":"echo","_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}`,
		},
	} {
		var cl pending
		cl.takeCall(json.RawMessage(tt.params), true)
		if cl.plain != (tt.rest == "") || cl.name != tt.name || string(cl.params) != tt.rest {
			t.Errorf("%s: plain %t, name %q, the rest %s", tt.params, cl.plain, cl.name, cl.params)
		}
		early := pending{}
		early.takeCall(json.RawMessage(tt.params), false)
		if early.plain || early.params == nil || strings.Contains(string(early.params), "secret") {
			t.Errorf("%s, before the handshake: plain %t, the rest %s", tt.params, early.plain, early.params)
		}
	}
}

// A plain call is answered as one that the SDK has decoded.
func TestPlainCallsAnswerAlike(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	call := func(tool, args, more string) []map[string]any {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, tool, args, more))
		var all []map[string]any
		for {
			m := w.next()
			if all = append(all, m); m["id"] != nil {
				return all
			}
		}
	}
	for _, c := range []struct{ tool, args, more string }{
		{"echo", `{"text":"hi"}`, ``},
		{"args", `null`, ``},
		{"args", `"no object"`, ``},
		{"progress", `{}`, ``},
		{"progress", `{}`, `,"_meta":{"progressToken":9007199254740993}`},
		{"progress", `{}`, `,"_meta":{"progressToken":"tok"}`},
		{"progress", `{}`, `,"_meta":{"progressToken":[]}`},
		{"refused", `{}`, ``},
		{"protocol", `{}`, ``},
		{"no_such", `{}`, ``},
		{"nothing", `{}`, ``},
		{"panic", `{}`, ``},
		{"panic_encoding", `{}`, ``},
	} {
		plain, decoded := call(c.tool, c.args, c.more), call(c.tool, c.args, c.more+`,"unknown":1`)
		if !reflect.DeepEqual(plain, decoded) {
			t.Errorf("%s %s %s\n  plain %v\ndecoded %v", c.tool, c.args, c.more, plain, decoded)
		}
	}
}

// The method that the SDK knows plain calls by is none for a client.
func TestPlainMethodIsUnknown(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	ask := func(method string) string {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"echo","arguments":{"text":"x"}}}`, method))
		return string(w.line())
	}
	want := strings.Replace(ask("tmux-mcpd/none"), "tmux-mcpd/none", plainMethod, 1)
	if got := ask(plainMethod); got != want || !strings.Contains(got, "-32601") {
		t.Errorf("got %s, want %s", got, want)
	}
	w.alive()
}

// Before the handshake a call is refused under its own name.
func TestCallBeforeHandshake(t *testing.T) {
	w := startDaemon(t, Config{}).dial(t)
	w.call(1, "echo", `{"text":"x"}`)
	if got := string(w.line()); !strings.Contains(got, `"error"`) || !strings.Contains(got, callMethod) {
		t.Errorf("got %s", got)
	}
}

// A call makes little garbage: what many clients cost is then not collecting it.
func TestCallAllocates(t *testing.T) {
	const calls, most = 500, 24 << 10 // the SDK's decoding alone is 64 KiB
	w := startDaemon(t, Config{}).open(t)
	call := func() {
		w.call(1, "echo", `{"text":"x"}`)
		w.line()
	}
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / calls; each > most {
		t.Errorf("a call allocates %d bytes, want at most %d", each, most)
	}
}

// writeCounter counts the writes on a connection: each has a deadline of its own.
// (The standard library writes several buffers at once to its own types alone.)
type writeCounter struct {
	net.Conn
	n atomic.Int64
}

func (w *writeCounter) SetWriteDeadline(t time.Time) error {
	w.n.Add(1)
	return w.Conn.SetWriteDeadline(t)
}

// Answers that are ready together leave together, each complete.
func TestAnswersLeaveTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody is idle and takes an answer over
	s := newServer(Config{}, newFakeTools())
	served, client := socketpair(t)
	counted := &writeCounter{Conn: served}
	c := newConn(counted, s.limits, nopLog, t.Context(), Caller{})
	ss, err := s.sdk.Connect(context.WithValue(t.Context(), connKey{}, c), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, UnixConn: client, r: bufio.NewReader(client)}
	defer func() {
		w.Close()
		ss.Wait()
	}()
	w.handshake()
	const rounds, batch = 50, 10
	before := counted.n.Load()
	for range rounds {
		var lines []string
		for i := range batch {
			lines = append(lines, callLine(fmt.Sprint(i), "echo", `{"text":"x"}`))
		}
		w.send(lines...)
		for range batch {
			if m := w.next(); m["result"] == nil {
				t.Fatal(m)
			}
		}
	}
	if n := counted.n.Load() - before; n > rounds*batch/2 {
		t.Errorf("%d answers left in %d writes", rounds*batch, n)
	}
}
