package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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
