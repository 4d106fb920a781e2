package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tmux-mcpd/controlmode"
)

// benchSizes are the sizes of a tool's answer: a list of a few rows, of thirty,
// a screen, a long screen.
var benchSizes = []int{200, 2_000, 20_000, 160_000}

// noop is a registry with one tool that answers what it was given at the start.
type noop struct{ res *toolResult }

func (n *noop) tools(*Caller) []*sdk.Tool { return nil }
func (n *noop) instructions() string      { return "" }
func (n *noop) call(context.Context, *Caller, string, json.RawMessage, func(string)) (*toolResult, error) {
	return n.res, nil
}

// screenResult is an answer of about size bytes, half of it text with the line
// ends and escapes of a screen, half structured.
func screenResult(size int) *toolResult {
	const row = "drwxr-xr-x  2 user \"group\" 4096 Jan  1 00:00 dir\\name\n"
	text := strings.Repeat(row, size/2/len(row)+1)[:size/2]
	structured, _ := json.Marshal(map[string]string{"text": text[:max(0, len(text)-40)]})
	return &toolResult{Text: text, Structured: structured}
}

// BenchmarkCall is one tools/call from end to end on one connection: through
// us, with our and with the SDK's encoding, and through the least that could
// answer it.
//
//	go test -run xxx -bench Call ./mcp
func BenchmarkCall(b *testing.B) {
	for _, size := range benchSizes {
		res := screenResult(size)
		for _, mode := range []string{"ours", "ordinary"} {
			b.Run(fmt.Sprintf("%s/%d", mode, size), func(b *testing.B) {
				s := newServer(Config{}, &noop{res})
				s.ordinary = mode == "ordinary"
				benchCalls(b, benchServe(b, s))
			})
		}
		b.Run(fmt.Sprintf("floor/%d", size), func(b *testing.B) {
			line, err := encodeResult(json.RawMessage("0"), res, false, nil)
			if err != nil {
				b.Fatal(err)
			}
			benchCalls(b, benchFloor(b, line[len(`{"jsonrpc":"2.0","id":0`):]))
		})
	}
}

// BenchmarkParallel is many calls in flight on one connection.
func BenchmarkParallel(b *testing.B) {
	path := benchServe(b, newServer(Config{}, &noop{screenResult(2_000)}))
	w := benchDial(b, path)
	const window = 32
	call := []byte(callLine("%3d", "noop", `{"paneId":"%1"}`))
	sent := 0
	b.ReportAllocs()
	for b.Loop() {
		if sent%window == 0 {
			var batch []byte
			for i := range window {
				batch = append(append(batch, strings.Replace(string(call), "%3d", fmt.Sprint(i), 1)...), '\n')
			}
			if _, err := w.Write(batch); err != nil {
				b.Fatal(err)
			}
		}
		sent++
		if _, err := w.r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func benchServe(b *testing.B, s *Server) string {
	b.Helper()
	checkResults = false
	b.Cleanup(func() { checkResults = true })
	l, err := Listen(filepath.Join(shortDir(b), "s"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		l.Close()
	})
	return l.Path()
}

// benchFloor reads a line, decodes its envelope and writes what it has.
func benchFloor(b *testing.B, rest []byte) string {
	b.Helper()
	ln, err := net.Listen("unix", filepath.Join(shortDir(b), "s"))
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			var e struct{ ID json.RawMessage }
			if json.Unmarshal(line, &e) != nil {
				return
			}
			out := append([]byte(`{"jsonrpc":"2.0","id":`), e.ID...)
			if _, err := c.Write(append(out, rest...)); err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() {
		ln.Close()
		<-done
	})
	return ln.Addr().String()
}

func benchDial(b *testing.B, path string) *wire {
	b.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	w := &wire{t: b, UnixConn: c.(*net.UnixConn), r: bufio.NewReaderSize(c, 512<<10)}
	w.handshake()
	return w
}

func benchCalls(b *testing.B, path string) {
	w := benchDial(b, path)
	if strings.HasPrefix(b.Name(), "BenchmarkCall/floor") {
		w.line() // it answers the notification too
	}
	call := []byte(callLine("1", "noop", `{"paneId":"%1"}`) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(call); err != nil {
			b.Fatal(err)
		}
		if _, err := w.r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode is the encoding alone.
func BenchmarkEncode(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			checkResults = false
			defer func() { checkResults = true }()
			res := screenResult(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encodeResult(json.RawMessage("1"), res, false, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAgainstFloor calls a tool that does nothing through us and through
// the least that could answer, in turn, so that both meet the same machine. It
// reports the medians and their ratio. We want ours within 1.3 times the floor
// plus 0.1 ms; over is what it is beyond that, 0 for nothing.
//
//	go test -run xxx -bench AgainstFloor -benchtime 2000x ./mcp
func BenchmarkAgainstFloor(b *testing.B) {
	for _, size := range []int{2_000, 20_000, 160_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			res := screenResult(size)
			line, err := encodeResult(json.RawMessage("0"), res, false, nil)
			if err != nil {
				b.Fatal(err)
			}
			ours := benchDial(b, benchServe(b, newServer(Config{}, &noop{res})))
			floor := benchDial(b, benchFloor(b, line[len(`{"jsonrpc":"2.0","id":0`):]))
			floor.line() // it answers the notification too
			call := []byte(callLine("1", "noop", `{"paneId":"%1"}`) + "\n")
			var took [2][]time.Duration
			for b.Loop() {
				for i, w := range []*wire{ours, floor} {
					begin := time.Now()
					if _, err := w.Write(call); err != nil {
						b.Fatal(err)
					}
					if _, err := w.r.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(begin))
				}
			}
			slices.Sort(took[0])
			slices.Sort(took[1])
			a, f := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(a.Microseconds()), "ours-µs")
			b.ReportMetric(float64(f.Microseconds()), "floor-µs")
			b.ReportMetric(float64(a)/float64(f), "ratio")
			bound := time.Duration(1.3*float64(f)) + 100*time.Microsecond
			b.ReportMetric(float64(max(0, a-bound).Microseconds()), "over-µs")
		})
	}
}

// BenchmarkToolsList lists the tools, from their prebuilt encodings and through
// the SDK's own encoding.
func BenchmarkToolsList(b *testing.B) {
	for _, mode := range []string{"ours", "ordinary"} {
		b.Run(mode, func(b *testing.B) {
			s := newServer(Config{}, testTable(b, nil))
			s.ordinary = mode == "ordinary"
			w := benchDial(b, benchServe(b, s))
			list := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(list); err != nil {
					b.Fatal(err)
				}
				line, err := w.r.ReadSlice('\n')
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(line)))
			}
		})
	}
}

// BenchmarkSendKeys is send_keys, with its checks and its cursor, beside the bare
// send-keys of the same text on the same connection: it is to stay below 3 times
// of that. They take turns, so that both have the same machine; "x-bare" compares
// their medians. "changed" is an input after something changed that the checks are
// about, the dearest: what the input before has found is tried first.
func BenchmarkSendKeys(b *testing.B) {
	r := newRigOn(b, "", nil)
	r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "--", "stty raw -echo; exec cat >/dev/null")
	ctx := context.Background()
	a := encodeOnce(args{"paneId": "%0", "keys": "echo hello"})
	send := func() {
		if res, err := r.table.call(ctx, r.caller, "send_keys", a, nil); err != nil || res.IsError {
			b.Fatal(err, res)
		}
	}
	bare := func() {
		if _, err := r.table.mirror.Do(ctx, controlmode.Request{Commands: []controlmode.Command{
			controlmode.Cmd("send-keys", "-t", "%0", "-l", "--", "echo hello"), pressKey(0, "Enter"),
		}}); err != nil {
			b.Fatal(err)
		}
	}
	timed := func(f func()) float64 {
		begin := time.Now()
		f()
		return float64(time.Since(begin))
	}
	compare := func(b *testing.B, before func()) {
		var bares, tools []float64
		for b.Loop() {
			bares = append(bares, timed(bare))
			before()
			tools = append(tools, timed(send))
		}
		slices.Sort(bares)
		slices.Sort(tools)
		n := len(bares) / 2
		b.ReportMetric(bares[n]/1e3, "us-bare")
		b.ReportMetric(tools[n]/1e3, "us-tool")
		b.ReportMetric(tools[n]/bares[n], "x-bare")
	}
	r.ok("send_keys", args{"paneId": "%0", "keys": "x"})
	b.Run("next", func(b *testing.B) { compare(b, func() {}) })
	toggle := controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("set-option", "-w", "-t", "@0", "synchronize-panes")}}
	b.Run("changed", func(b *testing.B) {
		compare(b, func() {
			if _, err := r.table.mirror.Do(ctx, toggle); err != nil {
				b.Fatal(err)
			}
		})
	})
}
