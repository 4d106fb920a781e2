package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// patience is how long a test waits for something that must happen before it
// says that it did not. Nothing is measured by it.
const patience = 30 * time.Second

// TestMain makes this test binary usable as the program itself, so that what is
// tested as a process is what was compiled with the race detector.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"tmux-mcpd": main,
		"launcher":  launcherMain,
	})
}

// leakChecked looks for goroutines that are left when the tests are done.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// launcherMain is a parent to be killed: it starts the program with its own
// arguments and streams, and waits for it.
func launcherMain() {
	cmd := exec.Command("tmux-mcpd", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = cmd.Wait()
}

// place is a private runtime directory, state directory and tmux directory, and
// the environment that makes the program use them.
type place struct {
	t   testing.TB
	dir string
	env []string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpd") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir}
	for _, sub := range []string{"run", "state", "tmux"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8",
		// The race detector sleeps for a second at a clean exit otherwise.
		"GORACE=atexit_sleep_ms=0",
		"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"),
		"TMUX_TMPDIR=" + filepath.Join(dir, "tmux"),
	}
	t.Cleanup(func() {
		clearPlace(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

// clearPlace ends the daemons and tmux servers that were started below dir, each
// through its own socket.
func clearPlace(t interface{ Errorf(string, ...any) }, dir string) {
	sockets, _ := filepath.Glob(filepath.Join(dir, "run", "tmux-mcpd", "*.sock"))
	for _, path := range sockets {
		if err := endDaemon(path); err != nil {
			t.Errorf("ending the daemon on %s: %v", path, err)
		}
	}
	servers, _ := filepath.Glob(filepath.Join(dir, "tmux", "tmux-*", "*"))
	for _, path := range servers {
		_ = exec.Command("tmux", "-N", "-S", path, "kill-server").Run() // it may have ended
	}
}

// endDaemon ends the daemon on a socket in order and waits until it has left.
func endDaemon(path string) error {
	r, err := askStatus(path)
	if err != nil {
		if absent(err) {
			return nil
		}
		return err
	}
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil {
		return err
	}
	return awaitUnlocked(path + ".lock")
}

// awaitUnlocked waits until no daemon holds a lock file: it is the last thing a
// daemon lets go of.
func awaitUnlocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	free := make(chan error, 1)
	go func() { free <- syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-free:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%s is still locked", path)
	}
}

func askStatus(path string) (*statusReport, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	cl, err := newClient(ctx, conn, &config{})
	if err != nil {
		return nil, err
	}
	defer cl.close()
	raw, err := cl.request(ctx, statusMethod, map[string]any{})
	if err != nil {
		return nil, err
	}
	r := new(statusReport)
	return r, json.Unmarshal(raw, r)
}

func (p *place) socket() string { return filepath.Join(p.dir, "run", "tmux-mcpd", "default.sock") }

// command is the program with arguments, in this place.
func (p *place) command(name string, args ...string) *exec.Cmd {
	path, err := exec.LookPath(name)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = p.env
	cmd.Dir = p.dir
	return cmd
}

// fakeDaemon listens where the daemon would and hands out connections.
func (p *place) fakeDaemon() *net.UnixListener {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.socket()), 0o700); err != nil {
		p.t.Fatal(err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket(), Net: "unix"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { ln.Close() })
	return ln
}

// process is a running program with its streams in our hands.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  *os.File // write end, nil if it was given
	stdout *os.File // read end
	stderr *strings.Builder
}

// start runs cmd with pipes that belong to the test, not to package exec, so
// that each end can be closed on its own. A Stdin that is set stays.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	pr := &process{t: t, cmd: cmd, stderr: new(strings.Builder)}
	var mine []*os.File
	if cmd.Stdin == nil {
		r, w := pipe(t)
		cmd.Stdin, pr.stdin, mine = r, w, append(mine, r)
	}
	r, w := pipe(t)
	cmd.Stdout, pr.stdout, mine = w, r, append(mine, w)
	cmd.Stderr = pr.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range mine {
		f.Close()
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended in a test that passed
		_ = cmd.Wait()
	})
	return pr
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

// wait waits for the end of the process and checks its exit code.
func (pr *process) wait(code int) {
	pr.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = pr.cmd.Process.Kill() })
	err := pr.cmd.Wait()
	if !timer.Stop() {
		pr.t.Fatalf("%q did not end", pr.cmd.Args)
	}
	if got := pr.cmd.ProcessState.ExitCode(); got != code {
		pr.t.Fatalf("%q: exit code %d (%v), want %d; stderr: %s", pr.cmd.Args, got, err, code, pr.stderr)
	}
}

// end ends a bridge as a client and a daemon do: input first, then the socket.
func (pr *process) end(a *accepted) {
	pr.t.Helper()
	pr.stdin.Close()
	if rest, err := io.ReadAll(a.r); err != nil || len(rest) > 0 {
		pr.t.Errorf("the daemon's side: %q, %v", rest, err)
	}
	a.Close()
	pr.wait(exitOK)
}

// rest reads standard output to its end, which is the end of every process that
// could write to it.
func (pr *process) rest() string {
	pr.t.Helper()
	if err := pr.stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		pr.t.Fatal(err)
	}
	b, err := io.ReadAll(pr.stdout)
	if err != nil {
		pr.t.Fatalf("reading standard output: %v", err)
	}
	return string(b)
}

// accepted is a fake daemon's end of a connection.
type accepted struct {
	t testing.TB
	*net.UnixConn
	r *bufio.Reader
}

func accept(t testing.TB, ln *net.UnixListener) *accepted {
	t.Helper()
	if err := ln.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &accepted{t, c, bufio.NewReader(c)}
}

func (a *accepted) line() string {
	a.t.Helper()
	if err := a.SetDeadline(time.Now().Add(patience)); err != nil {
		a.t.Fatal(err)
	}
	s, err := a.r.ReadString('\n')
	if err != nil {
		a.t.Fatalf("the daemon's side: %v after %q", err, s)
	}
	return s
}

func (a *accepted) say(s string) {
	a.t.Helper()
	if _, err := io.WriteString(a, s); err != nil {
		a.t.Fatal(err)
	}
}
