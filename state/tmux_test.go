package state

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"tmux-mcpd/controlmode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTmux is a private tmux server, ended through its own socket.
type testTmux struct {
	t    testing.TB
	bin  string
	sock string
	m    *Mirror // the newest one
}

// newTmux prepares a private socket; no server runs yet.
func newTmux(t testing.TB) *testTmux {
	t.Helper()
	bin := os.Getenv("TMUX_MCPD_TEST_TMUX")
	if bin == "" {
		bin = "tmux"
	}
	dir, err := os.MkdirTemp("", "st") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	x := &testTmux{t: t, bin: bin, sock: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		x.command("kill-server").Run()
		os.RemoveAll(dir)
	})
	return x
}

func (x *testTmux) command(args ...string) *exec.Cmd {
	cmd := exec.Command(x.bin, append([]string{"-u", "-S", x.sock, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "TERM=xterm", "HISTFILE=/dev/null", "fish_history=")
	return cmd
}

func (x *testTmux) socket() controlmode.Socket { return controlmode.Socket{Path: x.sock} }

// run runs the tmux binary and answers what it printed.
func (x *testTmux) run(args ...string) string {
	x.t.Helper()
	out, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// stop kills the server and waits until its process has ended: a client that
// connects to a dying server fails.
func (x *testTmux) stop() {
	x.t.Helper()
	pid, err := strconv.Atoi(x.run("display-message", "-p", "#{pid}"))
	if err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan bool, 1)
	go func() { ended <- awaitExit(within(x.t), pid) }()
	x.run("kill-server")
	if !<-ended {
		x.t.Fatal("the tmux server did not end")
	}
}

// start starts a server with one session whose pane runs cat.
func (x *testTmux) start() *testTmux {
	x.t.Helper()
	x.run("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat")
	return x
}

// mirror runs a Mirror on the server until the test ends.
func (x *testTmux) mirror(change ...func(*Config)) *Mirror {
	x.t.Helper()
	cfg := Config{Bin: x.bin, Socket: x.socket(), Log: zaptest.NewLogger(x.t)}
	for _, f := range change {
		f(&cfg)
	}
	m := New(cfg)
	x.m = m
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	x.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return m
}

// within bounds a test's wait for something that must happen.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// awaitModel waits until the published model satisfies ok.
func (m *Mirror) awaitModel(t *testing.T, what string, ok func(*Model) bool) *Model {
	t.Helper()
	ctx := within(t)
	for {
		mod := m.Model()
		if ok(mod) {
			return mod
		}
		select {
		case <-mod.Superseded():
		case <-ctx.Done():
			t.Fatalf("%s: never happened", what)
		}
	}
}

// awaitStatus waits until the status satisfies ok; it is looked at whenever an
// attachment begins or ends.
func (m *Mirror) awaitStatus(t *testing.T, ok func(Status) bool) {
	t.Helper()
	ctx := within(t)
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		if ok(m.Status()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("status stays %+v", m.Status())
		}
	}
}

func full(t testing.TB, m *Mirror) *Model {
	t.Helper()
	mod, err := m.Arrive(Full).Model(within(t), Full)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

func socketPath(path string) controlmode.Socket { return controlmode.Socket{Path: path} }

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
