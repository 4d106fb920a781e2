package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// X02: no small limit on a line in either direction.
func TestX02LargeMessages(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	big := strings.Repeat("a", 1<<20)
	w.call(1, "echo", `{"text":"`+big+`"}`)
	if got := w.line(); !bytes.Contains(got, []byte(`"text":"`+big+`"}`)) || !bytes.Contains(got, []byte(`"bytes":1048576`)) {
		t.Errorf("1 MiB came back as %d bytes", len(got))
	}
	w.call(2, "big", `{"n":5242880}`)
	if got := w.line(); string(got) != bigLine("2", 5<<20) {
		t.Errorf("5 MiB answer has %d bytes", len(got))
	}
	w.alive()
}

func TestTooLongLine(t *testing.T) {
	const limit = 1 << 20
	w := startDaemon(t, Config{MaxLine: limit}).open(t)
	pad := func(line string, n int) string { return line + strings.Repeat(" ", n-len(line)) }

	w.send(pad(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, limit))
	if m := w.next(); m["result"] == nil {
		t.Errorf("a line of exactly the limit: %v", m)
	}
	for _, tt := range []struct{ line, id string }{
		{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `2`},
		{`{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"text":"`, `"two"`},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"text":"`, `null`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"text":"`, `null`},
		{`{"id":` + strings.Repeat("1", 9000), `null`}, // cut inside the id
		{``, `null`},
	} {
		w.send(pad(tt.line, 3*limit+1))
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"message longer than %d bytes"}}`, tt.id, limit)
		if got := string(w.line()); got != want {
			t.Errorf("%.60s...\n got %s\nwant %s", tt.line, got, want)
		}
	}
	w.alive()

	// The rest of the line is the end of the input.
	w.raw(`{"jsonrpc":"2.0","id":3,"method":"` + strings.Repeat("x", 2*limit))
	w.CloseWrite()
	if m := w.next(); m["error"] == nil || m["id"] != json.Number("3") {
		t.Errorf("unfinished long line: %v", m)
	}
	w.end()
}

func TestLongID(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	fits := `"` + strings.Repeat("i", 512<<10-2) + `"`
	w.send(`{"jsonrpc":"2.0","id":` + fits + `,"method":"ping"}`)
	if got, want := string(w.line()), `{"jsonrpc":"2.0","id":`+fits+`,"result":{}}`; got != want {
		t.Errorf("an id of 512 KiB: got %d bytes, %.80s", len(got), got)
	}
	w.send(`{"jsonrpc":"2.0","id":` + fits[:len(fits)-1] + `i","method":"ping"}`)
	if got, want := string(w.line()), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"request id longer than 524288 bytes"}}`; got != want {
		t.Errorf("got %.200s, want %s", got, want)
	}
	w.alive()
}

func TestDepthBombs(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	line := func(open, mid, close string, n int) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"args","arguments":{"a":` +
			strings.Repeat(open, n) + mid + strings.Repeat(close, n) + `}}}`
	}
	// Three levels are around the bomb.
	w.send(line("[", "", "]", maxDepth-3))
	if m := w.next(); m["result"] == nil {
		t.Errorf("depth %d: %v", maxDepth, m)
	}
	for name, bomb := range map[string]string{
		"one too deep": line("[", "", "]", maxDepth-2),
		"objects":      line(`{"a":`, "1", "}", 20_000),
		"arrays":       line("[", "", "]", 1_000_000),
	} {
		w.send(bomb)
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"message is nested deeper than %d levels"}}`, maxDepth)
		if got := string(w.line()); got != want {
			t.Errorf("%s: got %.200s", name, got)
		}
	}
	w.send(strings.Repeat(`{"a":`, 100_000)) // never closed
	if m := w.next(); m["error"] == nil || m["id"] != nil {
		t.Errorf("unclosed: %v", m)
	}
	w.alive()
}

func TestDuplicateID(t *testing.T) {
	d := startDaemon(t, Config{})
	w := d.open(t)
	w.call("a", "wait", "{}")
	await(t, d.tools.entered, "the wait")
	w.call("a", "echo", `{"text":"again"}`)
	if got, want := string(w.line()), `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"this id is still in use by a request in flight"}}`; got != want {
		t.Errorf("got %s", got)
	}
	w.alive()
}

// An id may be used again as soon as its answer has been read.
func TestIDReuse(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	for i := range 2000 {
		w.call(1, "echo", `{"text":"x"}`)
		if m := w.next(); m["result"] == nil {
			t.Fatalf("round %d: %v", i, m)
		}
	}
}

func TestInFlightLimit(t *testing.T) {
	d := startDaemon(t, Config{MaxInFlight: 4})
	w := d.open(t)
	for i := range 4 {
		w.call(i, "wait", "{}")
	}
	for range 4 {
		await(t, d.tools.entered, "a wait")
	}
	w.call(4, "echo", "{}")
	if m := w.next(); m["id"] != json.Number("4") || code(m) != "-32000" {
		t.Errorf("the fifth call: %v", m)
	}
	// Others are not concerned.
	d.open(t).alive()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	waitFor(t, "the cancelled wait to end", func() bool { return d.tools.running.Load() == 3 })
	waitFor(t, "its place", func() bool { return d.Status().InFlight == 3 })
	w.call(4, "echo", "{}")
	if m := w.next(); m["result"] == nil {
		t.Errorf("after one has ended: %v", m)
	}
}

func code(m map[string]any) string {
	e, _ := m["error"].(map[string]any)
	return fmt.Sprint(e["code"])
}

// waitFor yields until ok. What it waits for has no event to wait for; it
// only ends early.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		tick := time.NewTimer(time.Millisecond)
		<-tick.C
	}
}

// Cancelled in the very write that made the call: the call ends, and neither
// it nor its progress says another word.
func TestCancelPipelined(t *testing.T) {
	d := startDaemon(t, Config{MaxInFlight: 200}) // all may still be unwinding
	w := d.open(t)
	for i := range 200 {
		w.send(`{"jsonrpc":"2.0","id":`+strconv.Itoa(i)+`,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":1}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+strconv.Itoa(i)+`,"reason":"changed my mind"}}`)
	}
	waitFor(t, "all to end", func() bool { return d.Status().InFlight == 0 })
	w.alive()
}

// Cancelling what is not in flight, what cannot be cancelled, or by an odd id
// cancels nothing. (The SDK would take 1.5 for 1.)
func TestCancelOddly(t *testing.T) {
	d := startDaemon(t, Config{})
	w := d.open(t)
	w.call(1, "wait", "{}")
	await(t, d.tools.entered, "the wait")
	for _, id := range []string{"1.5", "1.0", `"1"`, "2", "null", "[1]", "true"} {
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`)
	w.alive()
	if n := d.tools.running.Load(); n != 1 {
		t.Errorf("%d waits run, want 1", n)
	}
	w = d.dial(t)
	w.send(initialize, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}`)
	if m := w.next(); m["result"] == nil {
		t.Errorf("initialize, cancelled: %v", m)
	}
}

// W07: 100 waits; 50 are cancelled, the rest lose their client.
func TestW07WaitsEnd(t *testing.T) {
	d := startDaemon(t, Config{MaxInFlight: 100})
	before := goleak.IgnoreCurrent()
	w := d.open(t)
	for i := range 100 {
		w.call(i, "wait", "{}")
	}
	for range 100 {
		await(t, d.tools.entered, "a wait")
	}
	for i := range 50 {
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.Itoa(i) + `}}`)
	}
	waitFor(t, "50 waits to end", func() bool { return d.tools.running.Load() == 50 })
	w.alive() // and nothing was said about the 50
	w.Close()
	waitFor(t, "the others to end", func() bool { return d.tools.running.Load() == 0 })
	waitFor(t, "the session to end", func() bool { return len(d.Status().Connections) == 0 })
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	w = d.open(t)
	w.call(1, "wait", "{}")
	await(t, d.tools.entered, "a later wait")
}

// printf '...' | nc -U: the answers of a client that has no more to say.
func TestHalfClose(t *testing.T) {
	w := startDaemon(t, Config{}).dial(t)
	w.send(initialize)
	for i := range 50 {
		w.call(i, "big", `{"n":100000}`)
	}
	w.raw(`{"jsonrpc":"2.0","id":"last","method":"ping"}`) // no newline
	if err := w.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 52 {
		l := string(w.line())
		id, _, _ := strings.Cut(strings.TrimPrefix(l, `{"jsonrpc":"2.0","id":`), ",")
		if n, err := strconv.Atoi(id); err == nil && l != bigLine(strconv.Itoa(n), 100_000) {
			t.Errorf("answer %d: %.100s, %d bytes", n, l, len(l))
		}
		seen[id] = true
	}
	if len(seen) != 52 || !seen[`"last"`] || !seen[`"init"`] || !seen["49"] {
		t.Errorf("answers: %v", seen)
	}
	w.end()
}

// A bad last line is answered too.
func TestHalfCloseAfterBadLine(t *testing.T) {
	w := startDaemon(t, Config{}).dial(t)
	w.raw(`{bad`)
	w.CloseWrite()
	if m := w.next(); code(m) != "-32700" {
		t.Errorf("got %v", m)
	}
	w.end()
}

// The patience with a half-closed client has a bound.
func TestHalfCloseBound(t *testing.T) {
	d := startDaemon(t, Config{DrainTimeout: 20 * time.Millisecond})
	w := d.open(t)
	w.call(1, "wait", "{}")
	await(t, d.tools.entered, "the wait")
	w.CloseWrite()
	w.end()
	waitFor(t, "the wait to end", func() bool { return d.tools.running.Load() == 0 })
}

// A listening stream never ends by itself and does not hold up the end.
func TestHalfCloseWithStream(t *testing.T) {
	w := startDaemon(t, Config{}).dial(t)
	w.send(listen)
	if m := w.next(); m["method"] != "notifications/subscriptions/acknowledged" {
		t.Fatalf("got %v", m)
	}
	w.CloseWrite()
	w.end()
}

const listen = `{"jsonrpc":"2.0","id":"ls","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// A client that goes away ends its calls: at once, and also when it had
// half-closed before.
func TestHangUp(t *testing.T) {
	for _, half := range []bool{false, true} {
		t.Run(fmt.Sprintf("half=%t", half), func(t *testing.T) {
			d := startDaemon(t, Config{DrainTimeout: time.Hour})
			w := d.open(t)
			w.call(1, "wait", "{}")
			await(t, d.tools.entered, "the wait")
			if half {
				w.CloseWrite()
			}
			w.Close()
			waitFor(t, "the wait to end", func() bool { return d.tools.running.Load() == 0 })
			waitFor(t, "the session to end", func() bool { return len(d.Status().Connections) == 0 })
		})
	}
}

// P9: a client that does not read is closed; meanwhile and afterwards the
// others are served, broadcasts included.
func TestP9StalledClient(t *testing.T) {
	d := startDaemon(t, Config{WriteTimeout: 300 * time.Millisecond, MaxQueue: 1 << 20})
	stalled, other := d.open(t), d.open(t)
	for i := range 60 {
		stalled.call(i, "big", `{"n":1000000}`)
	}
	waitFor(t, "the stall", func() bool { return d.Status().InFlight < 60 })
	for range 20 {
		other.alive()
	}
	d.ToolsChanged()
	if m := other.next(); m["method"] != "notifications/tools/list_changed" {
		t.Errorf("broadcast past a stalled client: %v", m)
	}
	waitFor(t, "the stalled client to be closed", func() bool { return len(d.Status().Connections) == 1 })
	other.alive()
}

// A reader that is slow but steady is no stalled client: the deadline is for
// each piece. One that stops reading is closed when the deadline has passed.
func TestWriteDeadline(t *testing.T) {
	for _, steady := range []bool{true, false} {
		t.Run(fmt.Sprintf("steady=%t", steady), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer b.Close()
				c := newConn(a, connLimits{inflight: 4, line: 1 << 20, queue: 4 << 10, write: 10 * time.Second}, nopLog, t.Context(), Caller{})
				const size = 4 << 20
				begin := time.Now()
				go func() {
					n, buf := 0, make([]byte, 64<<10)
					for n < size && (steady || n == 0) {
						time.Sleep(2 * time.Second) // in the bubble's time
						m, err := b.Read(buf)
						if n += m; err != nil {
							return
						}
					}
				}()
				err := c.enqueue(frame{b: make([]byte, size)}, true)
				took := time.Since(begin)
				if steady && (err != nil || c.isClosed()) {
					t.Errorf("a steady reader was given up after %v: %v", took, err)
				}
				if !steady && (!errors.Is(err, os.ErrDeadlineExceeded) || !c.isClosed() || took != 10*time.Second) {
					t.Errorf("a stopped reader: %v after %v", err, took)
				}
				c.Close()
				synctest.Wait()
			})
		})
	}
}

// A client that sends bad lines and reads nothing is held back by its own
// unread errors and in the end closed, not served from growing memory.
func TestErrorsFillTheQueue(t *testing.T) {
	d := startDaemon(t, Config{WriteTimeout: 200 * time.Millisecond, MaxQueue: 64 << 10})
	w := d.open(t)
	junk := []byte(strings.Repeat("{bad\n", 10_000))
	for {
		if _, err := w.Write(junk); err != nil {
			break // closed by the daemon; the deadline of w ends a failing test
		}
	}
	waitFor(t, "the session to end", func() bool { return len(d.Status().Connections) == 0 })
}

// Notifications that nobody reads close the client instead of waiting.
func TestFallingBehind(t *testing.T) {
	a, b := socketpair(t)
	c := newConn(a, connLimits{inflight: 4, line: 1 << 20, queue: 4 << 10, write: time.Hour}, nopLog, t.Context(), Caller{})
	note := frame{b: []byte(strings.Repeat("n", 64<<10) + "\n")}
	var err error
	for range 1000 {
		if err = c.enqueue(note, false); err != nil {
			break
		}
	}
	if err != errBehind || !c.isClosed() {
		t.Errorf("enqueue: %v, closed: %t", err, c.isClosed())
	}
	if err := c.enqueue(note, true); err == nil {
		t.Error("enqueue on a closed connection succeeded")
	}
	c.settle()
	b.Close()
}

// The SDK queues notifications without a bound, so what reaches it is bounded.
func TestNotificationsBounded(t *testing.T) {
	a, _ := socketpair(t)
	c := newConn(a, connLimits{inflight: 4}, nopLog, t.Context(), Caller{})
	if _, r := c.admit(envelope{id: json.RawMessage("1"), key: mustID(t, 1.0), method: "ping"}); r != nil {
		t.Fatal(r)
	}
	passed := 0
	for range 1000 {
		for _, e := range []envelope{
			{method: initedMethod},
			{method: "notifications/progress"},
			{method: "notifications/roots/list_changed"},
			{method: cancelledMethod, params: json.RawMessage(`{"requestId":1}`)},
			{method: "anything"},
		} {
			if c.notified(e) != nil {
				passed++
			}
		}
	}
	if passed != 5 {
		t.Errorf("%d notifications passed on, want 4 and one cancellation", passed)
	}
}

func mustID(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An error's message is bounded, whoever wrote it.
func TestErrorFrame(t *testing.T) {
	id := json.RawMessage("1")
	long := strings.Repeat("\u00e9", maxErrorBytes)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"plain"}}`},
		{
			fmt.Errorf("around: %w", &jsonrpc.Error{Code: -5, Message: "inner", Data: json.RawMessage("{\n}")}),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"around: inner","data":{}}}`,
		},
		{
			&jsonrpc.Error{Code: -5, Message: "bad data", Data: json.RawMessage("{")},
			`{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"bad data"}}`,
		},
		{errors.New(long), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"` + long[:maxErrorBytes] + ` ..."}}`},
		{errors.New("x" + long), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"x` + long[:maxErrorBytes-2] + ` ..."}}`},
	} {
		if got := string(errorFrame(id, tt.err)); got != tt.want+"\n" {
			t.Errorf("%.60v:\n got %.200s\nwant %.200s", tt.err, got, tt.want)
		}
	}
}

func TestHungUp(t *testing.T) {
	a, b := socketpair(t)
	if hungUp(a) {
		t.Error("an open peer")
	}
	b.CloseWrite()
	if hungUp(a) {
		t.Error("a half-closed peer")
	}
	b.Close()
	if !hungUp(a) {
		t.Error("a closed peer")
	}
	a.Close()
	if !hungUp(a) {
		t.Error("our own closed end")
	}
}

func TestAncestors(t *testing.T) {
	parents := map[int]int{50: 40, 40: 7, 7: 1, 8: 9, 9: 8}
	for pid, want := range map[int]string{50: "[50 40 7]", 7: "[7]", 1: "[]", 0: "[]", 3: "[3]"} {
		if got := fmt.Sprint(ancestorsOf(pid, func(p int) int { return parents[p] })); got != want {
			t.Errorf("ancestors of %d: %s, want %s", pid, got, want)
		}
	}
	if n := len(ancestorsOf(8, func(p int) int { return parents[p] })); n != maxAncestors {
		t.Errorf("a circle gives %d ancestors", n)
	}
	me, parent := unix.Getpid(), unix.Getppid()
	if got := ancestorsOf(me, parentOf); len(got) < 1 || got[0] != me || parent > 1 && (len(got) < 2 || got[1] != parent) {
		t.Errorf("our own ancestors: %v, parent is %d", got, parent)
	}
}

// X13: an id comes back as it was spelled, or is refused by rule (a string, or an
// integer within 2^53 of zero); null is no id, and no notification either.
func TestX13IDsComeBackAsSpelled(t *testing.T) {
	w := startDaemon(t, Config{}).open(t)
	for id, echoed := range map[string]bool{
		"0": true, "-1": true, "42": true, `"a"`: true, `""`: true, `"\u00e9\n"`: true, "9007199254740992": true,
		"9007199254740993": false, "null": false, "1.5": false, "1e3": false, "{}": false, "[1]": false, "true": false,
	} {
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		got := string(w.line())
		want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`
		if echoed && got != want || !echoed && !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
			t.Errorf("id %s: got %s", id, got)
		}
	}
	w.alive()
}
