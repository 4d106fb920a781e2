package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience is how long a test waits for what must come. It only ends tests
// that fail.
const patience = 20 * time.Second

// fakeTools is a registry for tests. Every tool shows one way a call can go.
type fakeTools struct {
	// entered gets a value whenever a "wait" begins.
	entered chan struct{}
	running atomic.Int64
	last    atomic.Pointer[Caller] // of the last call
	refuse  error                  // selection's answer
	// listPanics makes tools panic.
	listPanics atomic.Bool
	// release, if not nil, ends "stubborn".
	release chan struct{}
}

func newFakeTools() *fakeTools {
	return &fakeTools{entered: make(chan struct{}, 4096), release: make(chan struct{})}
}

func (f *fakeTools) instructions() string { return "how to use the tools" }

func (f *fakeTools) selection(*Caller) error { return f.refuse }

func (f *fakeTools) tools(c *Caller) []*sdk.Tool {
	if f.listPanics.Load() {
		panic("secret")
	}
	schema := json.RawMessage(`{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}}}`)
	list := []*sdk.Tool{
		{Name: "zz_first", Description: "listed first", InputSchema: schema},
		{Name: "echo", Description: "says it again", InputSchema: schema},
	}
	if v, ok := c.Hello.Env["LIBTMUX_TOOLS"]; ok {
		list = append(list, &sdk.Tool{Name: v, InputSchema: schema})
	}
	return list
}

func (f *fakeTools) call(ctx context.Context, c *Caller, name string, args json.RawMessage, progress func(string)) (*toolResult, error) {
	f.last.Store(c)
	var a struct {
		Text string
		N    int
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return &toolResult{IsError: true, Text: "arguments: " + err.Error()}, nil
	}
	switch name {
	case "echo":
		structured, err := json.Marshal(map[string]any{"text": a.Text, "bytes": len(a.Text)})
		return &toolResult{Text: a.Text, Structured: structured}, err
	case "args":
		return &toolResult{Text: string(args)}, nil
	case "caller":
		b, err := json.Marshal(c)
		return &toolResult{Text: "you", Structured: b}, err
	case "big":
		return &toolResult{Text: strings.Repeat("x", a.N)}, nil
	case "meta":
		return &toolResult{Text: "with meta", Meta: map[string]any{"tmux-mcpd/cursor": "c1"}, Structured: json.RawMessage("{\n\t\"pretty\": [1,\r\n 2]\n}")}, nil
	case "own":
		return &toolResult{encode: func(id json.RawMessage) []byte {
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":"own"}],"structuredContent":{"id":%s}}`, id)
		}}, nil
	case "refused":
		return &toolResult{IsError: true, Text: "no pane %9\n\nhint: list_panes"}, nil
	case "fault":
		return nil, errors.New("tmux went away")
	case "protocol":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "bad", Data: json.RawMessage(`{"at":1}`)}
	case "nothing":
		return nil, nil
	case "panic":
		return []*toolResult{}[a.N], nil
	case "panic_encoding":
		return &toolResult{encode: func(json.RawMessage) []byte { panic("secret") }}, nil
	case "broken":
		return &toolResult{Text: "x", Structured: json.RawMessage(`{"a":`)}, nil
	case "wait":
		return f.wait(ctx, progress)
	case "stubborn":
		f.entered <- struct{}{}
		<-f.release
		return &toolResult{Text: "at last"}, nil
	case "progress":
		if progress == nil {
			return &toolResult{Text: "unasked"}, nil
		}
		progress("one")
		progress("two")
		return &toolResult{Text: "asked"}, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

func (f *fakeTools) wait(ctx context.Context, progress func(string)) (*toolResult, error) {
	f.running.Add(1)
	defer f.running.Add(-1)
	f.entered <- struct{}{}
	<-ctx.Done()
	if progress != nil {
		progress("too late")
	}
	return nil, ctx.Err()
}

// daemon is a Server on a socket of its own.
type daemon struct {
	*Server
	path  string
	tools *fakeTools
	stop  context.CancelFunc
	ended chan error
}

// shortDir is a directory whose path leaves room for a socket name, which
// t.TempDir() does not promise.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startDaemon serves until the test ends. edit may change the server first.
func startDaemon(t testing.TB, cfg Config, edit ...func(*Server)) *daemon {
	t.Helper()
	tools := newFakeTools()
	d := startServer(t, cfg, tools, edit...)
	d.tools = tools
	return d
}

// startServer is startDaemon with other tools than the fake ones.
func startServer(t testing.TB, cfg Config, reg registry, edit ...func(*Server)) *daemon {
	t.Helper()
	l, err := Listen(filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Version = "1.2.3"
	d := &daemon{Server: newServer(cfg, reg), path: l.Path(), ended: make(chan error, 1)}
	for _, e := range edit {
		e(d.Server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	go func() { d.ended <- d.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err, ok := <-d.ended:
			if ok && err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
		l.Close()
	})
	return d
}

// wire is a client by hand.
type wire struct {
	t testing.TB
	*net.UnixConn
	r        *bufio.Reader
	bytewise bool // send every byte by itself
}

func (d *daemon) dial(t testing.TB) *wire {
	t.Helper()
	c, err := net.Dial("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return &wire{t: t, UnixConn: c.(*net.UnixConn), r: bufio.NewReaderSize(c, 64<<10)}
}

// open dials and does the handshake.
func (d *daemon) open(t testing.TB) *wire {
	t.Helper()
	w := d.dial(t)
	w.handshake()
	return w
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"0"}}}`

func (w *wire) handshake() {
	w.t.Helper()
	w.send(initialize)
	if m := w.next(); m["result"] == nil {
		w.t.Fatalf("initialize: %v", m)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// send writes lines, in one write.
func (w *wire) send(lines ...string) {
	w.t.Helper()
	w.raw(strings.Join(lines, "\n") + "\n")
}

func (w *wire) raw(s string) {
	w.t.Helper()
	n := len(s)
	if w.bytewise {
		n = 1
	}
	for b := []byte(s); len(b) > 0; b = b[min(n, len(b)):] {
		if _, err := w.Write(b[:min(n, len(b))]); err != nil {
			w.t.Fatalf("writing: %v", err)
		}
	}
}

func (w *wire) call(id any, tool, args string) {
	w.t.Helper()
	b, err := json.Marshal(id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(callLine(string(b), tool, args))
}

func callLine(id, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// line reads the next line without its newline.
func (w *wire) line() []byte {
	w.t.Helper()
	b, err := w.r.ReadBytes('\n')
	if err != nil {
		w.t.Fatalf("reading: %v (got %.200q)", err, b)
	}
	return bytes.TrimSuffix(b, []byte("\n"))
}

// next reads the next message. Numbers stay as spelled.
func (w *wire) next() map[string]any {
	w.t.Helper()
	return decode(w.t, w.line())
}

func decode(t testing.TB, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("not a JSON object: %v: %.200q", err, b)
	}
	return m
}

// end expects the end of the connection.
func (w *wire) end() {
	w.t.Helper()
	b, err := w.r.ReadBytes('\n')
	if err == nil || len(b) > 0 {
		w.t.Fatalf("got %.200q, want the end", b)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		w.t.Fatal("connection was not closed")
	}
}

// alive expects a ping to be answered next.
func (w *wire) alive() {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`)
	if got, want := string(w.line()), `{"jsonrpc":"2.0","id":"alive","result":{}}`; got != want {
		w.t.Fatalf("after all: got %.300s, want %s", got, want)
	}
}

// await waits for a value.
func await[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// text is the readable half of a tool result.
func text(t testing.TB, m map[string]any) string {
	t.Helper()
	b, _ := json.Marshal(m["result"])
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(b, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("not a tool result: %v", m)
	}
	return r.Content[0].Text
}

// bigLine is the answer of the tool "big", as it stands on the wire.
func bigLine(id string, n int) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}}`
}
