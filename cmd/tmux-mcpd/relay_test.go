package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	testInit = `{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}},"jsonrpc":"2.0","id":0}`
	testDone = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// client is the client's side of a bridge, line by line.
type bridged struct {
	*process
	ln  *net.UnixListener
	out *bufio.Reader
}

// bridge starts a bridge on a fake daemon.
func bridge(t *testing.T) *bridged {
	t.Helper()
	p := newPlace(t)
	b := &bridged{ln: p.fakeDaemon()}
	b.process = start(t, p.command("tmux-mcpd", "stdio", "--no-start"))
	b.out = bufio.NewReader(b.stdout)
	return b
}

func (b *bridged) say(lines ...string) {
	b.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(b.stdin, l+"\n"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// hears reads one message and demands that it is want.
func (b *bridged) hears(want string) {
	b.t.Helper()
	if err := b.stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	got, err := b.out.ReadString('\n')
	if err != nil || strings.TrimSuffix(got, "\n") != want {
		b.t.Fatalf("the client got %q (%v), want %q", got, err, want)
	}
}

// daemon accepts the next connection and its hello.
func (b *bridged) daemon() *accepted {
	b.t.Helper()
	a := accept(b.t, b.ln)
	if hello := a.line(); !strings.Contains(hello, "notifications/tmux-mcpd/hello") {
		b.t.Fatalf("the first line is %q", hello)
	}
	return a
}

// gets reads one message on the daemon's side and demands that it is want.
func (a *accepted) gets(want string) {
	a.t.Helper()
	if got := a.line(); got != want+"\n" {
		a.t.Fatalf("the daemon got %q, want %q", got, want)
	}
}

// answer frames a result as the daemon does.
func answer(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + "}\n"
}

func initialized(version string) string {
	return `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"tmux-mcpd","version":"` + version + `"}}`
}

// greet shakes hands for the first time.
func (b *bridged) greet() *accepted {
	b.t.Helper()
	a := b.daemon()
	b.say(testInit, testDone)
	a.gets(testInit)
	a.gets(testDone)
	a.say(answer("0", initialized(versionText())))
	b.hears(strings.TrimSuffix(answer("0", initialized(versionText())), "\n"))
	return a
}

// greeted is a daemon that takes the place of another one: it hears the same.
func (b *bridged) greeted(version string) *accepted {
	b.t.Helper()
	a := b.daemon()
	id, params := a.request("initialize")
	var want struct{ Params any }
	if err := json.Unmarshal([]byte(testInit), &want); err != nil {
		b.t.Fatal(err)
	}
	if fmt.Sprint(params) != fmt.Sprint(want.Params) {
		b.t.Fatalf("initialize with %v, want %v", params, want.Params)
	}
	a.say(answer(id, initialized(version)))
	a.gets(testDone)
	return a
}

// request reads a request of the bridge's own.
func (a *accepted) request(method string) (id string, params any) {
	a.t.Helper()
	var m struct {
		ID     json.RawMessage
		Method string
		Params any
	}
	line := a.line()
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Method != method {
		a.t.Fatalf("the daemon got %q, want a request for %s", line, method)
	}
	return string(m.ID), m.Params
}

// D07: the daemon restarts between two calls, before initialize, and while it
// answers initialize. The client notices nothing.
func TestBridgeD07Restart(t *testing.T) {
	b := bridge(t)
	b.daemon().Close()
	a := b.daemon()
	b.say(testInit, testDone)
	a.gets(testInit)
	a.gets(testDone)
	a.Close()
	a = b.greet2()
	for i := range 3 {
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/list"}`, i)
		b.say(call)
		a.gets(call)
		a.say(answer(fmt.Sprintf(`"c%d"`, i), "{}"))
		b.hears(strings.TrimSuffix(answer(fmt.Sprintf(`"c%d"`, i), "{}"), "\n"))
		a.Close()
		a = b.greeted(versionText())
	}
	b.end(a)
}

// greet2 is a handshake that an earlier daemon did not live to answer.
func (b *bridged) greet2() *accepted {
	b.t.Helper()
	a := b.daemon()
	a.gets(testInit)
	a.gets(testDone)
	a.say(answer("0", initialized(versionText())))
	b.hears(strings.TrimSuffix(answer("0", initialized(versionText())), "\n"))
	return a
}

// D07: what changes nothing is asked again, once; what waits meanwhile keeps its
// order; a request that ends daemons is not asked for ever.
func TestBridgeD07ReadsAreAskedAgain(t *testing.T) {
	b := bridge(t)
	a := b.greet()
	read := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capture_pane","arguments":{"paneId":"%1"}}}`
	next := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	b.say(read, next)
	a.gets(read)
	a.gets(next)
	a.say(answer("2", "{}"))
	b.hears(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	a.Close()
	a = b.greeted(versionText())
	a.gets(read)
	a.Close()
	b.hears(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"tmux-mcpd: the daemon went away before it answered; ask again"}}`)
	a = b.greeted(versionText())
	b.end(a)
}

// D08: a call that can change something is never sent twice. Its answer says that
// nobody knows, and from where to look on.
func TestBridgeD08NoWriteIsRepeated(t *testing.T) {
	b := bridge(t)
	a := b.greet()
	write := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send_keys","arguments":{"paneId":"%3","keys":"x"}}}`
	gone := `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"kill_session","arguments":{"session":"a"}}}`
	b.say(write, gone)
	a.gets(write)
	a.gets(gone)
	a.Close()
	a = b.greeted(versionText())
	heard := map[string]string{}
	hear := func() {
		line, err := b.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		heard[string(m.ID)] = string(m.Result)
	}
	hear() // without a pane there is nothing to wait for
	if got := heard["8"]; !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "unknown") || !strings.Contains(got, "kill_session") {
		t.Errorf("the call without a pane got %s", got)
	}
	id, params := a.request("tools/call")
	if fmt.Sprint(params) != "map[arguments:map[maxLines:1 paneId:%3] name:capture_since]" {
		t.Errorf("asked for a cursor with %v", params)
	}
	a.say(answer(id, `{"structuredContent":{"cursor":"ltxc1.x.1"}}`))
	hear()
	if got := heard["7"]; !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "unknown") ||
		!strings.Contains(got, "%3") || !strings.Contains(got, `"tmux-mcpd/cursor":"ltxc1.x.1"`) {
		t.Errorf("the call got %s", got)
	}
	b.end(a) // fails if it got anything more
}

// A request that an ending daemon took in no more is for the next one, whatever
// it does; one that was cancelled is for nobody.
func TestBridgeD07RefusedAtEnd(t *testing.T) {
	b := bridge(t)
	a := b.greet()
	write := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send_keys","arguments":{"paneId":"%3","keys":"x"}}}`
	other := `{"jsonrpc":"2.0","id":8,"method":"ping"}`
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`
	b.say(write, other)
	a.gets(write)
	a.gets(other)
	b.say(cancel) // before that it could have kept the request from being sent at all
	a.gets(cancel)
	a.say(`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"tmux-mcpd is shutting down"}}` + "\n")
	a.Close()
	a = b.greeted(versionText())
	a.gets(write)
	a.say(answer("7", "{}"))
	b.hears(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	b.end(a)
}

// A daemon of another version is named, and its list of tools can be another.
func TestBridgeNamesAnotherVersion(t *testing.T) {
	b := bridge(t)
	b.greet().Close()
	a := b.greeted("9.9.9")
	b.hears(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	b.end(a)
	if said := b.stderr.String(); !strings.Contains(said, "9.9.9") || !strings.Contains(said, versionText()) {
		t.Errorf("stderr: %s", said)
	}
}

// D07: no daemon can be reached at the handshake. The bridge answers initialize
// by itself, other requests with the reason, and goes on when there is one.
func TestBridgeD07NoDaemonAtTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, client := io.Pipe()
		var got bytes.Buffer
		out := &lockedWriter{w: &got}
		r := newRelay(out, io.Discard, []byte("hello\n"), func(context.Context) (*net.UnixConn, error) {
			return nil, coded(exitUnreachable, "no daemon")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.run(ctx, stdin) }()
		begin := time.Now()
		io.WriteString(client, testInit+"\n")
		for out.len() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); took < initWait || took > initWait+time.Second {
			t.Errorf("initialize took %v", took)
		}
		io.WriteString(client, testDone+"\n"+`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n")
		time.Sleep(heldWait + time.Second)
		lines := strings.Split(strings.TrimSpace(out.string()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `"id":0,"result":{`) || !strings.Contains(lines[0], `"protocolVersion":"2025-06-18"`) ||
			!strings.Contains(lines[1], `"id":1,"error"`) || !strings.Contains(lines[1], "no daemon") {
			t.Errorf("the client got %q", lines)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		client.Close()
	})
}

// lockedWriter is a writer to look at while others write.
type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (l *lockedWriter) string() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.String()
}

func (l *lockedWriter) len() int { return len(l.string()) }

// X13: the bridge passes an id on as it was spelled, in both directions, whatever
// it is: what is no id is the daemon's to refuse.
func TestBridgeX13IDs(t *testing.T) {
	b := bridge(t)
	a := b.daemon()
	for _, id := range []string{"0", "-1", "42", "9007199254740993", `"a"`, `""`, "null", "1.5", `"\u00e9"`} {
		ask := `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`
		b.say(ask)
		a.gets(ask)
		a.say(answer(id, "{}"))
		b.hears(strings.TrimSuffix(answer(id, "{}"), "\n"))
	}
	b.end(a)
}
