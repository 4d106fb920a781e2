package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// builds are the programs that this process has built, in a folder of its own.
var builds = struct {
	sync.Mutex
	dir string
	of  map[bool]string // by race detector
}{of: map[bool]string{}}

// program is the path of tmux-mcpd, built from the source beside these tests,
// once per process.
func program(t testing.TB, race bool) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if path := builds.of[race]; path != "" {
		return path
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "mcpd")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir = dir
	}
	path := filepath.Join(builds.dir, "tmux-mcpd-"+strconv.FormatBool(race))
	cmd := exec.Command("go", "build", "-race="+strconv.FormatBool(race), "-o", path, module+"/cmd/tmux-mcpd")
	if !race { // as the Makefile builds it; the race detector needs C
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", cmd.Args, err, out)
	}
	builds.of[race] = path
	return path
}

// removeBuilds is for the end of the process.
func removeBuilds() error {
	builds.Lock()
	defer builds.Unlock()
	if builds.dir == "" {
		return nil
	}
	return os.RemoveAll(builds.dir)
}

// daemon is `tmux-mcpd serve` on a private tmux.
type daemon struct {
	t      testing.TB
	cmd    *exec.Cmd
	env    []string
	socket string
	log    *lockedText   // what it printed on stderr
	done   chan struct{} // closed when its stderr has been read to the end
	once   sync.Once
}

// lockedText collects text that is read while it grows.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// daemon starts a daemon for the private tmux and returns when it says that it
// is ready. When the test ends it is ended in order, and must leave no client
// on tmux and no socket, nor have seen a data race.
func (x *tmux) daemon(env ...string) *daemon {
	x.t.Helper()
	return x.daemonOf(program(x.t, raced), env...)
}

// daemonOf is daemon with a program of the test's own choice.
func (x *tmux) daemonOf(bin string, env ...string) *daemon {
	x.t.Helper()
	d := &daemon{t: x.t, socket: filepath.Join(x.dir, "m"), log: &lockedText{}, done: make(chan struct{})}
	// The race detector would sleep for a second at a clean exit.
	d.env = append(slices.Clone(x.env), "GORACE=atexit_sleep_ms=0", "TMUX_MCPD_LISTEN="+d.socket, "TMUX_MCPD_TMUX_SOCKET_PATH="+x.sock,
		"TMUX_MCPD_TMUX_BIN="+x.bin)
	d.cmd = exec.Command(bin, "serve")
	d.cmd.Env = append(slices.Clone(d.env), env...)
	d.cmd.Dir = x.dir
	r, w, err := os.Pipe()
	if err != nil {
		x.t.Fatal(err)
	}
	d.cmd.Stderr = w
	if err := d.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	w.Close()
	ready := make(chan struct{})
	go func() {
		defer close(d.done)
		defer r.Close()
		lines := bufio.NewReader(r)
		for first := true; ; {
			line, err := lines.ReadString('\n')
			d.log.Write([]byte(line))
			if first && strings.HasPrefix(line, "tmux-mcpd: ready on ") {
				close(ready)
				first = false
			}
			if err != nil {
				return
			}
		}
	}()
	x.t.Cleanup(func() {
		d.stop()
		if x.t.Failed() {
			x.t.Logf("the daemon's log:\n%s", tailOf(d.log.String(), 20))
		}
	})
	select {
	case <-ready:
	case <-d.done:
		x.t.Fatalf("the daemon did not start:\n%s", d.log)
	case <-time.After(patience):
		x.t.Fatal("the daemon is not ready")
	}
	return d
}

// tailOf is the last n lines of a text.
func tailOf(s string, n int) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// stop ends the daemon in order and waits for its end. It may be called again.
func (d *daemon) stop() {
	d.t.Helper()
	d.once.Do(func() {
		if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			d.t.Errorf("the daemon had ended: %v", err)
		}
		late := time.AfterFunc(patience, func() { d.cmd.Process.Kill() })
		err := d.cmd.Wait()
		if !late.Stop() {
			d.t.Error("the daemon had to be killed")
		}
		<-d.done
		if err != nil { // the race detector's exit code is 66
			d.t.Errorf("the daemon: %v:\n%s", err, tailOf(d.log.String(), 60))
		}
		if _, err := os.Lstat(d.socket); !errors.Is(err, os.ErrNotExist) {
			d.t.Errorf("the daemon's socket is left: %v", err)
		}
	})
}

// caller is an MCP client: it writes and reads JSON lines, one call at a time.
// It is for one goroutine.
type caller struct {
	t    testing.TB
	name string
	conn io.ReadWriteCloser
	by   func(time.Time) error // sets the deadline of conn
	in   *bufio.Reader
	n    int
}

// dial connects to the daemon and does the handshake.
func (d *daemon) dial() *caller {
	d.t.Helper()
	conn, err := net.Dial("unix", d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	return newCaller(d.t, "socket", conn, conn.SetDeadline)
}

func newCaller(t testing.TB, name string, conn io.ReadWriteCloser, by func(time.Time) error) *caller {
	t.Helper()
	c := &caller{t: t, name: name, conn: conn, by: by, in: bufio.NewReaderSize(conn, 64<<10)}
	_, err := c.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	if err == nil {
		_, err = io.WriteString(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		t.Fatalf("handshake: %v", err)
	}
	return c
}

// bridge is a running `tmux-mcpd stdio`.
type bridge struct {
	*caller
	cmd   *exec.Cmd
	once  sync.Once
	leave func() // ends it, by the end of its input
}

// bridge connects through a bridge of its own, which ends with the test.
func (d *daemon) bridge() *bridge {
	d.t.Helper()
	return startBridge(d.t, d.env, d.cmd.Path, "stdio", "--no-start")
}

func startBridge(t testing.TB, env []string, words ...string) *bridge {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = env
	stderr := &lockedText{}
	cmd.Stderr = stderr
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	cmd.Stdin, cmd.Stdout = inR, outW
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	b := &bridge{cmd: cmd}
	end := func() {
		inW.Close()
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil || !late.Stop() {
			t.Errorf("the bridge: %v: %s", err, stderr)
		}
	}
	t.Cleanup(func() { b.once.Do(end) })
	ends := struct {
		io.Reader
		io.WriteCloser
	}{outR, inW}
	b.caller = newCaller(t, "bridge", ends, outR.SetReadDeadline)
	b.leave = func() { b.once.Do(end) }
	return b
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// answer is the result of a tool call.
type answer struct {
	text       string
	isError    bool
	structured json.RawMessage
	meta       map[string]any
}

// request sends a request and waits for its answer.
func (c *caller) request(method string, params any) (json.RawMessage, error) {
	c.n++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.n, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if err := c.by(time.Now().Add(2 * patience)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID     *int
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s answered %.200q: %w", method, line, err)
		}
		switch {
		case m.Method != "": // a notification
		case m.ID == nil || *m.ID != c.n:
			return nil, fmt.Errorf("%s: an answer to another request: %.200q", method, line)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		default:
			return m.Result, nil
		}
	}
}

// args are the arguments of a tool.
type args = map[string]any

// try calls a tool. The error is one of the protocol or the connection; a
// tool's own error is an answer.
func (c *caller) try(tool string, a args) (answer, error) {
	raw, err := c.request("tools/call", args{"name": tool, "arguments": a})
	if err != nil {
		return answer{}, fmt.Errorf("%s by %s: %w", tool, c.name, err)
	}
	return readAnswer(raw)
}

func readAnswer(raw []byte) (answer, error) {
	var r struct {
		Content []struct{ Text string }
		IsError bool
		// Both are absent where they do not apply.
		StructuredContent json.RawMessage
		Meta              map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) != 1 {
		return answer{}, fmt.Errorf("not a tool result: %.200q: %w", raw, err)
	}
	return answer{r.Content[0].Text, r.IsError, r.StructuredContent, r.Meta}, nil
}

// call calls a tool that answers, with an error or not.
func (c *caller) call(tool string, a args) answer {
	c.t.Helper()
	got, err := c.try(tool, a)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// ok calls a tool that must succeed and decodes its structured half.
func (c *caller) ok(into any, tool string, a args) answer {
	c.t.Helper()
	got := c.call(tool, a)
	if got.isError {
		c.t.Fatalf("%s %v: %s", tool, a, got.text)
	}
	if into != nil {
		if err := json.Unmarshal(got.structured, into); err != nil {
			c.t.Fatalf("%s answered %.200q: %v", tool, got.structured, err)
		}
	}
	return got
}

// since is the structured half of capture_since.
type since struct {
	Text, Cursor                            string
	ContinuesLine, Seeded                   bool
	DroppedLines, OmittedBytes, MissedBytes int
	Gap                                     *struct{ Reason string }
}
