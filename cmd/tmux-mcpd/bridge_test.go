package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dialled starts a bridge on a fake daemon and reads its hello.
func dialled(t *testing.T, args ...string) (*process, *accepted) {
	t.Helper()
	p := newPlace(t)
	ln := p.fakeDaemon()
	pr := start(t, p.command("tmux-mcpd", append([]string{"stdio", "--no-start"}, args...)...))
	a := accept(t, ln)
	a.line()
	return pr, a
}

func TestBridgeHello(t *testing.T) {
	p := newPlace(t)
	ln := p.fakeDaemon()
	p.env = append(p.env, "TMUX=/tmp/a,b/sock,123,7", "TMUX_PANE=%17",
		"LIBTMUX_TOOLSETS=", "LIBTMUX_EXCLUDE_TOOLS=capture_pane", "SECRET=x")
	pr := start(t, p.command("tmux-mcpd", "stdio"))
	a := accept(t, ln)
	var got struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  map[string]any  `json:"params"`
	}
	if err := json.Unmarshal([]byte(a.line()), &got); err != nil {
		t.Fatal(err)
	}
	if got.JSONRPC != "2.0" || got.ID != nil || got.Method != "notifications/tmux-mcpd/hello" {
		t.Errorf("not the notification: %+v", got)
	}
	want := map[string]any{
		"version": versionText(), "tmux": "/tmp/a,b/sock,123,7", "tmuxPane": "%17",
		"env":        map[string]any{"LIBTMUX_TOOLSETS": "", "LIBTMUX_EXCLUDE_TOOLS": "capture_pane"},
		"tmuxSocket": got.Params["tmuxSocket"],
	}
	if d := cmp.Diff(want, got.Params); d != "" {
		t.Errorf("params (-want +got):\n%s", d)
	}
	pr.end(a)
}

// X02: no limit on a line in either direction.
func TestBridgeX02LongLines(t *testing.T) {
	pr, a := dialled(t)
	for _, n := range []int{0, 1, 64 << 10, 1 << 20, 5 << 20} {
		up := `{"up":"` + strings.Repeat("u", n) + "\"}\n"
		down := `{"down":"` + strings.Repeat("d", n) + "\"}\n"
		go io.WriteString(pr.stdin, up)
		if got := a.line(); got != up {
			t.Fatalf("%d bytes up: got %d bytes", len(up), len(got))
		}
		go io.WriteString(a, down)
		got := make([]byte, len(down))
		if _, err := io.ReadFull(pr.stdout, got); err != nil || string(got) != down {
			t.Fatalf("%d bytes down: %v", len(down), err)
		}
	}
	pr.end(a)
}

// X11: the bridge ends with its client, in each way a client can end. What is
// still due is delivered first if somebody is left to read it.
func TestBridgeX11EndOfInput(t *testing.T) {
	pr, a := dialled(t)
	io.WriteString(pr.stdin, "one\ntwo") // the last line lacks its newline
	pr.stdin.Close()
	if got, err := io.ReadAll(a.r); err != nil || string(got) != "one\ntwo\n" {
		t.Fatalf("the daemon got %q, %v", got, err)
	}
	a.say("late reply\n") // the sending half is still open
	a.Close()
	if got := pr.rest(); got != "late reply\n" {
		t.Errorf("standard output %q", got)
	}
	pr.wait(exitOK)
}

func TestBridgeX11DevNull(t *testing.T) {
	p := newPlace(t)
	ln := p.fakeDaemon()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := p.command("tmux-mcpd", "stdio", "--no-start")
	cmd.Stdin = null
	pr := start(t, cmd)
	a := accept(t, ln)
	if _, err := io.ReadAll(a.r); err != nil {
		t.Fatal(err)
	}
	a.Close()
	pr.wait(exitOK)
}

func TestBridgeX11OutputClosed(t *testing.T) {
	pr, a := dialled(t)
	pr.stdout.Close() // standard input stays open, nothing is written
	pr.wait(exitOK)
	if _, err := io.ReadAll(a.r); err != nil {
		t.Errorf("the daemon's side: %v", err)
	}
}

func TestBridgeX11OutputClosedWhileWriting(t *testing.T) {
	pr, a := dialled(t)
	flood := bytes.Repeat([]byte("reply\n"), 1<<16)
	wrote := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			_, err = a.Write(flood)
		}
		wrote <- err
	}()
	if _, err := io.ReadFull(pr.stdout, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	pr.stdout.Close()
	pr.wait(exitOK)
	if err := <-wrote; !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the daemon's side: %v", err)
	}
}

func TestBridgeX11ParentKilled(t *testing.T) {
	p := newPlace(t)
	ln := p.fakeDaemon()
	pr := start(t, p.command("launcher", "stdio", "--no-start"))
	a := accept(t, ln)
	a.line()
	if err := pr.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The test still holds both pipes. The daemon's side ends with the bridge,
	// and so does standard output.
	if _, err := io.ReadAll(a.r); err != nil {
		t.Fatal(err)
	}
	if got := pr.rest(); got != "" {
		t.Errorf("standard output %q", got)
	}
}

func TestBridgeX11Signals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		pr, a := dialled(t)
		if err := pr.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		pr.wait(exitOK)
		if _, err := io.ReadAll(a.r); err != nil {
			t.Errorf("%v: the daemon's side: %v", s, err)
		}
	}
}

// A daemon that dies within a message leaves no half of it on standard output;
// the bridge outlives it and dials again.
func TestBridgeWholeLines(t *testing.T) {
	p := newPlace(t)
	ln := p.fakeDaemon()
	pr := start(t, p.command("tmux-mcpd", "stdio", "--no-start"))
	a := accept(t, ln)
	hello := a.line()
	a.say("{\"whole\":1}\n{\"half\":")
	a.Close()
	a = accept(t, ln)
	if again := a.line(); again != hello {
		t.Errorf("the second hello is %q", again)
	}
	pr.end(a)
	if got := pr.rest(); got != "{\"whole\":1}\n" {
		t.Errorf("standard output %q", got)
	}
}

// X10: standard output carries protocol only, whatever is wrong, and requests
// are answered with what is.
func TestBridgeX10Purity(t *testing.T) {
	long := strings.Repeat("x", 200)
	tests := []struct {
		name, word string // of the answer
		args, env  []string
		code       int
		answered   bool
	}{
		{name: "no daemon", args: []string{"--no-start"}, code: exitUnreachable, word: "tmux-mcpd serve", answered: true},
		{name: "no tmux", args: []string{"--tmux-bin", "/nonexistent/tmux"}, code: exitNoTmux, word: "no tmux binary", answered: true},
		{name: "long path", args: []string{"--listen", "/tmp/" + long}, code: exitPathTooLong, word: "too long", answered: true},
		{name: "open directory", args: []string{"--listen", "/tmp/s"}, code: exitDirectory, word: "/tmp", answered: true},
		{name: "bad flag", args: []string{"--wat"}, code: exitUsage},
		{name: "bad value", env: []string{"TMUX_MCPD_WATCH=some"}, code: exitUsage},
	}
	input := `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" + "\n{bad\n" +
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize","params":{}}` + "\n" +
		`{"jsonrpc":"2.0","id":"a","method":"tools/list"}` + "\n" +
		`{"jsonrpc":"2.0","id":null,"method":"tools/list"}` + "\n" +
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			cmd := p.command("tmux-mcpd", append([]string{"stdio"}, tt.args...)...)
			cmd.Env = append(cmd.Env, tt.env...)
			pr := start(t, cmd)
			io.WriteString(pr.stdin, input)
			pr.stdin.Close()
			var ids []string
			for line := range strings.Lines(pr.rest()) {
				var m message
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("not protocol: %q", line)
				}
				if m.Error == nil || m.Error.Code != -32000 || !strings.Contains(m.Error.Message, tt.word) {
					t.Errorf("answer %s", line)
				}
				ids = append(ids, string(m.ID))
			}
			want := []string{"9007199254740993", `"a"`}
			if !tt.answered {
				want = nil
			}
			if d := cmp.Diff(want, ids); d != "" {
				t.Errorf("ids answered (-want +got):\n%s", d)
			}
			pr.wait(tt.code)
			if pr.stderr.Len() == 0 {
				t.Error("nothing on stderr")
			}
		})
	}
}

// D02: any number of bridges at once start one daemon, and all reach it.
func TestBridgeD02OneDaemon(t *testing.T) {
	const bridges = 20
	p := newPlace(t)
	input := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` +
		"\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"` + statusMethod + `"}` + "\n"
	var wg sync.WaitGroup
	pids := make([]int, bridges)
	for i := range bridges {
		pr := start(t, p.command("tmux-mcpd", "stdio", "--idle-exit", "1m"))
		wg.Go(func() {
			io.WriteString(pr.stdin, input)
			pr.stdin.Close()
			for line := range strings.Lines(pr.rest()) {
				var m message
				var r statusReport
				if json.Unmarshal([]byte(line), &m) == nil && string(m.ID) == "2" && json.Unmarshal(m.Result, &r) == nil {
					pids[i] = r.PID
				}
			}
		})
		defer pr.wait(exitOK)
	}
	wg.Wait()
	for i, pid := range pids {
		if pid == 0 || pid != pids[0] {
			t.Errorf("bridge %d reached pid %d, the first one %d", i, pid, pids[0])
		}
	}
	// Those that lost the race have left nothing: one socket, and one lock that
	// is free when the daemon has ended.
	start(t, p.command("tmux-mcpd", "stop")).wait(exitOK)
	if err := awaitUnlocked(p.socket() + ".lock"); err != nil {
		t.Errorf("the lock is held: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(p.socket())); err != nil || len(left) != 1 || left[0].Name() != filepath.Base(p.socket())+".lock" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// pumped runs pump and returns what came out and what was held back.
func pumped(src io.Reader) (out, held []byte, err error) {
	var dst bytes.Buffer
	held, err = pump(&dst, src, nil)
	return dst.Bytes(), held, err
}

func TestPumpKeepsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []byte
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			n := rapid.SampledFrom([]int{0, 1, 100, chunk - 1, chunk, chunk + 1, 5 * chunk}).Draw(t, "length")
			in = append(in, bytes.Repeat([]byte{'a'}, n)...)
			in = append(in, '\n')
		}
		in = append(in, bytes.Repeat([]byte{'z'}, rapid.IntRange(0, 2*chunk).Draw(t, "tail"))...)
		out, held, err := pumped(&choppy{in, rapid.SliceOfN(rapid.IntRange(1, 2*chunk), 1, 8).Draw(t, "cuts")})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(bytes.Clone(out), held...), in) {
			t.Fatal("bytes lost, added or moved")
		}
		if want := bytes.LastIndexByte(in, '\n') + 1; len(out) != want {
			t.Fatalf("%d bytes passed on, want the whole lines, %d", len(out), want)
		}
	})
}

// choppy is a source that gives its bytes in pieces of given sizes, in turn.
type choppy struct {
	rest []byte
	cuts []int
}

func (c *choppy) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.cuts[0], len(c.rest))])
	c.rest, c.cuts = c.rest[n:], append(c.cuts[1:], c.cuts[0])
	return n, nil
}

// An unfinished line longer than what is held back passes, but its end still
// counts as one within a line.
func TestPumpLongUnfinished(t *testing.T) {
	in := bytes.Repeat([]byte{'x'}, 3*maxHeld+7)
	out, held, err := pumped(bytes.NewReader(in))
	if err != nil || len(held) == 0 || len(out)+len(held) != len(in) {
		t.Errorf("out %d, held %d, %v", len(out), len(held), err)
	}
}

func TestPumpErrors(t *testing.T) {
	broken := errors.New("broken")
	out, held, err := pumped(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || string(out) != "a\n" || string(held) != "b" {
		t.Errorf("out %q, held %q, %v", out, held, err)
	}
	r, w := io.Pipe()
	r.CloseWithError(broken)
	if _, err := pump(w, strings.NewReader("a\n"), nil); !errors.Is(err, broken) {
		t.Errorf("write error: %v", err)
	}
}

// Whatever a client that cannot be served says, what it gets is one line of JSON
// with its own id, or nothing.
func FuzzRefusal(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"id":"x","method":"a"}`, `{"id":null,"method":"a"}`,
		`{"id":1.5,"method":"a"}`, `{"id":1e9,"method":"a"}`, `{"id":{},"method":"a"}`, `[]`, `{`, `{"id":-0,"method":"\u0000"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var got bytes.Buffer
		r := newRelay(&got, io.Discard, nil, nil)
		r.refusing = errors.New("why \xff\n\"not\"")
		r.fromClient(line)
		if got.Len() == 0 || !json.Valid(line) {
			return
		}
		reply := got.Bytes()
		var in, out message
		if err := json.Unmarshal(reply, &out); err != nil || bytes.IndexByte(reply, '\n') != len(reply)-1 {
			t.Fatalf("%q is not one line of JSON: %v", reply, err)
		}
		if err := json.Unmarshal(line, &in); err != nil {
			return // no message: what was answered is checked above
		}
		// Encoding may write a character of a string in another way.
		var a, b any
		if json.Unmarshal(in.ID, &a) != nil || json.Unmarshal(out.ID, &b) != nil || a != b {
			t.Fatalf("id %s came back as %s", in.ID, out.ID)
		}
	})
}
