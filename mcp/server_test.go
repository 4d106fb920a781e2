package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

var nopLog = zap.NewNop()

// socketpair is two connected Unix sockets.
func socketpair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "socketpair")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.UnixConn)
	}
	return end(fds[0]), end(fds[1])
}

// X14, idle: nothing to wait for.
func TestX14ShutdownIdle(t *testing.T) {
	d := startDaemon(t, Config{Grace: time.Hour})
	w, quiet := d.open(t), d.dial(t)
	w.send(listen) // an open stream is nothing to wait for either
	w.next()
	d.stop()
	if m := w.next(); m["id"] != "ls" || m["result"] == nil {
		t.Errorf("the end of the stream: %v", m)
	}
	w.end()
	quiet.end()
	if err := await(t, d.ended, "Serve"); err != nil {
		t.Error(err)
	}
	close(d.ended)
	if _, err := os.Lstat(d.path); err == nil {
		t.Error("the socket is still there")
	}
}

// X14, during waits: they are cancelled after the grace, and told so; what
// comes meanwhile is refused.
func TestX14ShutdownDuringWait(t *testing.T) {
	d := startDaemon(t, Config{Grace: 100 * time.Millisecond})
	w := d.open(t)
	for i := range 10 {
		w.call(i, "wait", "{}")
		await(t, d.tools.entered, "a wait")
	}
	d.stop()
	waitFor(t, "new calls to be refused", func() bool { return d.leavingAll() })
	w.call("late", "echo", "{}")
	if m := w.next(); m["id"] != "late" || code(m) != "-32000" {
		t.Errorf("a call after the shutdown began: %v", m)
	}
	for range 10 {
		if got := text(t, w.next()); !strings.Contains(got, "shutting down") {
			t.Errorf("the wait's answer: %q", got)
		}
	}
	w.end()
}

// leavingAll reports whether every connection refuses new calls.
func (d *daemon) leavingAll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.mu.Lock()
		leaving := c.leaving
		c.mu.Unlock()
		if !leaving {
			return false
		}
	}
	return true
}

// X14, during a 5 MiB reply: the last line is whole.
func TestX14ShutdownDuringReply(t *testing.T) {
	d := startDaemon(t, Config{Grace: patience})
	w := d.open(t)
	w.call(1, "big", `{"n":5242880}`)
	if _, err := w.r.Peek(1); err != nil { // the reply has begun
		t.Fatal(err)
	}
	d.stop()
	if got := w.line(); string(got) != bigLine("1", 5<<20) {
		t.Errorf("got %d bytes", len(got))
	}
	w.end()
}

// A call that ignores its cancellation does not hold up the end for ever.
func TestShutdownStubborn(t *testing.T) {
	d := startDaemon(t, Config{Grace: 10 * time.Millisecond, Settle: 50 * time.Millisecond})
	w := d.open(t)
	w.call(1, "stubborn", "{}")
	await(t, d.tools.entered, "the call")
	d.stop()
	err := await(t, d.ended, "Serve")
	if err == nil || !strings.Contains(err.Error(), "1 calls still run") {
		t.Errorf("Serve: %v", err)
	}
	close(d.tools.release)
	close(d.ended)
	waitFor(t, "the session to end", func() bool { return len(d.Status().Connections) == 0 })
}

// A panic costs its caller an error. The log has the stack and not the words.
func TestPanic(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	d := startDaemon(t, Config{Log: zap.New(core)})
	w, other := d.open(t), d.open(t)
	w.call(1, "panic", "{}")
	if m := w.next(); code(m) != "-32603" {
		t.Errorf("got %v", m)
	}
	w.call(2, "panic_encoding", "{}")
	if m := w.next(); code(m) != "-32603" {
		t.Errorf("got %v", m)
	}
	w.alive()
	other.alive()
	if n := d.Status().Panics; n != 2 {
		t.Errorf("%d panics counted", n)
	}
	entries := logs.FilterMessage("panic").All()
	if len(entries) != 2 {
		t.Fatalf("%d panics logged", len(entries))
	}
	if s := fmt.Sprint(entries[0].ContextMap()["stack"]); !strings.Contains(s, "fakeTools") {
		t.Errorf("no stack: %s", s)
	}
	for _, e := range logs.All() {
		if s := fmt.Sprint(e.ContextMap()); strings.Contains(s, "secret") {
			t.Errorf("content in the log: %s", s)
		}
	}
}

// A panic outside a tool is contained as well.
func TestPanicInList(t *testing.T) {
	d := startDaemon(t, Config{})
	w := d.open(t)
	d.tools.listPanics.Store(true)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if m := w.next(); code(m) != "-32603" {
		t.Errorf("got %v", m)
	}
	w.alive()
}

// A client that asks initialize for a version without initialize is a client
// of the older kind, who hears of changes unasked.
func TestClampedClientHears(t *testing.T) {
	d := startDaemon(t, Config{})
	w := d.dial(t)
	w.send(strings.Replace(initialize, "2025-11-25", "2026-07-28", 1))
	if m := w.next(); m["result"] == nil {
		t.Fatalf("initialize: %v", m)
	}
	d.ToolsChanged()
	if m := w.next(); m["method"] != "notifications/tools/list_changed" {
		t.Errorf("got %v", m)
	}
}

// A connection that was accepted as the shutdown began is not entered.
func TestEnterWhileLeaving(t *testing.T) {
	s := newServer(Config{}, newFakeTools())
	v := &serving{Server: s, conns: map[*conn]struct{}{}}
	a, _ := socketpair(t)
	c := newConn(a, s.limits, nopLog, t.Context(), Caller{})
	if !v.enter(c) || len(s.Status().Connections) != 1 {
		t.Error("not entered")
	}
	v.exit(c)
	if err := v.shutdown(func() {}); err != nil {
		t.Error(err)
	}
	if v.enter(c) || len(s.Status().Connections) != 0 {
		t.Error("entered while leaving")
	}
}

// The log says who called what, where, how long and how it ended; not what was
// said, not even in the name of a tool that does not exist.
func TestCallLog(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	d := startDaemon(t, Config{Log: zap.New(core)})
	w := d.open(t)
	for i, c := range []struct{ tool, args string }{
		{"echo", `{"text":"secret","paneId":"%12"}`},
		{"echo", `{"text":"secret","pane_id":"%7"}`},
		{"echo", `{"text":"x","paneId":"secret"}`},
		{"refused", `{"paneId":"%9"}`},
		{"protocol", `{}`},
		{"fault", `{}`},
		{"panic", `{}`},
		{"secret words", `{}`},
	} {
		w.call(i, c.tool, c.args)
		w.next()
	}
	w.call("c", "wait", "{}")
	await(t, d.tools.entered, "the wait")
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
	waitFor(t, "the log", func() bool { return logs.FilterMessage("call").Len() == 9 })
	want := []string{
		"echo %12 ok", "echo %7 ok", "echo <nil> ok", "refused %9 tool error", "protocol <nil> protocol error",
		"fault <nil> internal error", "panic <nil> panic", "(unknown) <nil> protocol error", "wait <nil> cancelled",
	}
	for i, e := range logs.FilterMessage("call").All() {
		m := e.ContextMap()
		if got := fmt.Sprint(m["tool"], " ", m["pane"], " ", m["outcome"]); got != want[i] {
			t.Errorf("entry %d: %s, want %s", i, got, want[i])
		}
		if m["conn"] != uint64(1) || m["pid"] != int64(os.Getpid()) || m["took"] == nil {
			t.Errorf("entry %d: %v", i, m)
		}
	}
	for _, e := range logs.All() {
		if s := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(s, "secret") {
			t.Errorf("content in the log: %s", s)
		}
	}
}

// The two ways to encode an answer give the same JSON, in both eras.
func TestOrdinaryResult(t *testing.T) {
	ours := startDaemon(t, Config{})
	theirs := startDaemon(t, Config{}, func(s *Server) { s.ordinary = true })
	meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	odd := "\"\\\b\f\n\r\t\x01\x7f<&>\u00e9\u2028\u2029\ufffd\U0001f600"
	quoted, _ := json.Marshal(odd)
	for _, era := range []string{"", meta} {
		a, b := ours.dial(t), theirs.dial(t)
		if era == "" {
			a.handshake()
			b.handshake()
		}
		for i, c := range []struct{ tool, args string }{
			{"echo", `{"text":"plain"}`},
			{"echo", `{"text":""}`},
			{"echo", `{"text":` + string(quoted) + `}`},
			{"refused", `{}`},
			{"meta", `{}`},
			{"own", `{}`},
			{"args", `null`},
			{"fault", `{}`},
			{"protocol", `{}`},
			{"big", `{"n":70000}`},
			{"no_such", `{}`},
			{"nothing", `{}`},
			{"panic", `{}`},
		} {
			line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, i, c.tool, c.args, era)
			a.send(line)
			b.send(line)
			got, want := a.next(), b.next()
			if c.tool == "own" && era != "" {
				// A tool that counts the bytes of its line gets none added
				// but the type.
				delete(want["result"].(map[string]any), "_meta")
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %.100s:\nours   %.400v\ntheirs %.400v", c.tool, c.args, got, want)
			}
		}
	}
}

// The SDK's own client, in both eras.
func TestSDKClient(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			d := startDaemon(t, Config{})
			changed := make(chan struct{}, 8)
			reports := make(chan string, 8)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "0"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					reports <- r.Params.Message
				},
			})
			nc := d.dial(t).UnixConn
			cs, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: nc, Writer: nc}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			if got := cs.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("talks %s", got)
			}
			list, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "zz_first" {
				t.Fatalf("tools: %v, %v", list, err)
			}
			p := &sdk.CallToolParams{Name: "progress"}
			p.SetProgressToken("tok")
			res, err := cs.CallTool(t.Context(), p)
			if err != nil || res.Content[0].(*sdk.TextContent).Text != "asked" {
				t.Fatalf("progress: %v, %v", res, err)
			}
			if a, b := await(t, reports, "progress"), await(t, reports, "progress"); a+b != "onetwo" {
				t.Errorf("progress: %q, %q", a, b)
			}
			res, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}})
			if err != nil || !reflect.DeepEqual(res.StructuredContent, map[string]any{"text": "hi", "bytes": 2.0}) {
				t.Errorf("echo: %v, %v", res, err)
			}
			if _, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such"}); err == nil {
				t.Error("an unknown tool worked")
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-d.tools.entered
				cancel()
			}()
			if _, err = cs.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled wait: %v", err)
			}
			waitFor(t, "the wait to end", func() bool { return d.tools.running.Load() == 0 })
			d.ToolsChanged()
			await(t, changed, "list changed")
		})
	}
}

// What is wrong with a selection is said to the first request, whichever.
func TestSelectionRefused(t *testing.T) {
	d := startDaemon(t, Config{})
	d.tools.refuse = errors.New("LIBTMUX_TOOLS: unknown tool \"x\"")
	w := d.dial(t)
	w.send(initialize)
	if m := w.next(); code(m) != "-32602" || !strings.Contains(fmt.Sprint(m["error"]), "LIBTMUX_TOOLS") {
		t.Errorf("initialize: %v", m)
	}
	w.alive()
}

// The same with the real table, whose error names the variable; and its list
// as it stands on the wire.
func TestSelectionOnTheWire(t *testing.T) {
	d := startDaemon(t, Config{}, func(s *Server) { s.reg = testTable(t, nil) })
	w := d.dial(t)
	w.send(`{"jsonrpc":"2.0","method":"notifications/tmux-mcpd/hello","params":{"env":{"LIBTMUX_TOOLS":"no_such_tool"}}}`, initialize)
	if m := w.next(); code(m) != "-32602" || !strings.Contains(fmt.Sprint(m["error"]), "LIBTMUX_TOOLS") {
		t.Errorf("a faulty selection: %v", m)
	}
	w = d.dial(t)
	w.send(`{"jsonrpc":"2.0","method":"notifications/tmux-mcpd/hello","params":{"env":{"LIBTMUX_TOOLSETS":"","LIBTMUX_TOOLS":"list_panes"}}}`)
	w.handshake()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	list := w.line()
	for _, tool := range testTable(t, nil).tools(&Caller{}) {
		schema, ok := tool.InputSchema.(json.RawMessage)
		if !ok {
			t.Fatalf("%s: schema is a %T, whose order the SDK decides", tool.Name, tool.InputSchema)
		}
		if tool.Name == "list_panes" && !bytes.Contains(list, schema) {
			t.Errorf("the schema is not on the wire as it was written: %s", list)
		}
	}
	if tools, _ := decode(t, list)["result"].(map[string]any)["tools"].([]any); len(tools) != 1 {
		t.Errorf("%d tools listed", len(tools))
	}
}

func TestForeignUser(t *testing.T) {
	foreign := peer{uid: os.Geteuid() + 1, pid: 4}
	as := func(p peer, err error) func(*Server) {
		return func(s *Server) { s.peerOf = func(*net.UnixConn) (peer, error) { return p, err } }
	}
	d := startDaemon(t, Config{}, as(foreign, nil))
	w := d.dial(t)
	if m := w.next(); code(m) != "-32000" || !strings.Contains(fmt.Sprint(m["error"]), "uid") {
		t.Errorf("got %v", m)
	}
	w.end()
	waitFor(t, "the place", func() bool { return !d.Status().IdleSince.IsZero() })

	startDaemon(t, Config{}, as(peer{}, errors.New("no such thing"))).dial(t).end()
	startDaemon(t, Config{AllowUIDs: []int{foreign.uid}}, as(foreign, nil)).open(t).alive()
}

func TestConnectionLimit(t *testing.T) {
	d := startDaemon(t, Config{MaxConnections: 2})
	a, b := d.open(t), d.open(t)
	c := d.dial(t)
	if m := c.next(); code(m) != "-32000" {
		t.Errorf("the third: %v", m)
	}
	c.end()
	a.Close()
	waitFor(t, "a place", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.taken == 1 })
	d.open(t).alive()
	b.alive()
}

func TestStatus(t *testing.T) {
	d := startDaemon(t, Config{})
	if st := d.Status(); st.IdleSince.IsZero() || len(st.Connections) != 0 {
		t.Errorf("before: %+v", st)
	}
	w := d.dial(t)
	w.send(`{"jsonrpc":"2.0","method":"notifications/tmux-mcpd/hello","params":{"version":"7"}}`)
	w.handshake()
	w.call(1, "echo", "{}")
	w.next()
	w.call(2, "wait", "{}")
	await(t, d.tools.entered, "the wait")
	st := d.Status()
	if len(st.Connections) != 1 || st.InFlight != 1 || st.Calls != 1 || !st.IdleSince.IsZero() {
		t.Fatalf("during: %+v", st)
	}
	if c := st.Connections[0]; c.Bridge != "7" || c.PID != os.Getpid() || c.UID != os.Getuid() || c.Conn != 1 || c.InFlight != 1 {
		t.Errorf("connection: %+v", c)
	}
	if c := d.tools.last.Load(); c.Conn != 1 || len(c.Ancestors) == 0 || c.Ancestors[0] != os.Getpid() {
		t.Errorf("caller: %+v", c)
	}
	w.Close()
	waitFor(t, "idleness", func() bool { return !d.Status().IdleSince.IsZero() })
}

// Out of descriptors: accepting goes on when there are some again.
func TestOutOfDescriptors(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	d := startDaemon(t, Config{Log: zap.New(core)})
	w := d.open(t) // served, so that nothing but us opens files now
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	// The next socket of ours is the last descriptor; the accepted end fails.
	probe, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(probe)
	low := unix.Rlimit{Cur: uint64(probe + 1), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", d.path)
	if err == nil {
		waitFor(t, "accept to fail", func() bool { return logs.FilterMessage("accept failed, waiting").Len() > 0 })
	}
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.alive()
	d.open(t).alive()
}

// An idle session costs two goroutines: one reads, one waits for the end.
func TestIdleSession(t *testing.T) {
	d := startDaemon(t, Config{})
	before := runtime.NumGoroutine()
	for range 100 {
		w := d.open(t)
		w.call(1, "echo", "{}")
		w.next()
	}
	waitFor(t, "the calls' goroutines to end", func() bool { return runtime.NumGoroutine() <= before+200 })
}

// Many connections, many calls, nothing left.
func TestChurn(t *testing.T) {
	d := startDaemon(t, Config{})
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				c, err := net.Dial("unix", d.path)
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(c, "%s\n%s\n%s\n", initialize, callLine("1", "echo", `{"text":"x"}`), callLine("2", "wait", "{}"))
				b := make([]byte, 10)
				c.SetDeadline(time.Now().Add(patience))
				if _, err := c.Read(b); err != nil {
					t.Error(err)
				}
				c.Close()
			}
		}()
	}
	for range 8 {
		await(t, done, "a client")
	}
	waitFor(t, "the sessions to end", func() bool { return len(d.Status().Connections) == 0 })
	if n := d.tools.running.Load(); n != 0 {
		t.Errorf("%d waits left", n)
	}
}
