package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for anything that must happen. It is long
// because the machine may be busy; nothing that works comes near it.
const patience = 30 * time.Second

// TestMain fails the run if a goroutine or a child process is left at its end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left := children(); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "child processes left: %v\n", left)
			code = max(code, 1)
		}
		if err := removeBuilds(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// tmuxBin is the tmux under test.
func tmuxBin(t testing.TB) string {
	t.Helper()
	name := os.Getenv("TMUX_MCPD_TEST_TMUX")
	if name == "" {
		name = "tmux"
	}
	bin, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no tmux to test with: %v", err)
	}
	if bin, err = filepath.Abs(bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// tmux is a private place for a tmux server: a socket that nobody else knows.
// There is a server only from start on.
type tmux struct {
	t    testing.TB
	bin  string
	dir  string
	sock string
	env  []string
	gone chan struct{} // closed when the process of the newest server has ended
	last int           // the process id of the newest server
}

// newTmux makes the place, and its end at the end of the test. The folder's
// name is short because the path of a Unix socket may have 107 bytes only
// (t.TempDir can exceed that by itself).
func newTmux(t testing.TB) *tmux {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmx")
	if err != nil {
		t.Fatal(err)
	}
	x := &tmux{t: t, bin: tmuxBin(t), dir: dir, sock: filepath.Join(dir, "s")}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "TMUX", "TMUX_PANE", "TMUX_TMPDIR", "TERM", "SHELL", "ENV", "HOME", "PS1", "LC_ALL":
		default:
			x.env = append(x.env, v)
		}
	}
	x.env = append(x.env, "SHELL=/bin/sh", "HOME="+dir, "PS1=$ ", "LC_ALL=C.UTF-8")
	t.Cleanup(func() {
		x.kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("socket folder: %v", err)
		}
	})
	return x
}

// startTmux makes a server with one session called main, 80x24, whose pane runs
// cat: it prints nothing by itself and echoes what it is sent.
func startTmux(t testing.TB) *tmux {
	t.Helper()
	x := newTmux(t)
	x.start("-s", "main", "-x", "80", "-y", "24", "exec cat")
	return x
}

// start starts the server with new-session -d and the given arguments.
func (x *tmux) start(args ...string) {
	x.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		x.t.Fatal(err)
	}
	cmd, cancel := x.command(append([]string{"new-session", "-d"}, args...)...)
	defer cancel()
	// The server inherits the pipe and keeps it to its end, whatever that is;
	// panes do not get it (tmux closes all but the standard descriptors in
	// them). So end of file tells that the server's process has ended.
	cmd.ExtraFiles = []*os.File{w}
	out, err := cmd.CombinedOutput()
	w.Close()
	if err != nil {
		r.Close()
		x.t.Fatalf("start tmux: %v: %s", err, out)
	}
	gone := make(chan struct{})
	x.gone = gone
	go func() {
		io.Copy(io.Discard, r)
		r.Close()
		close(gone)
	}()
	x.last = x.pid()
}

// command prepares a run of the tmux binary on the private socket.
func (x *tmux) command(args ...string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, x.bin, append([]string{"-u", "-S", x.sock, "-f", "/dev/null"}, args...)...)
	cmd.Env = x.env
	cmd.Dir = x.dir
	cmd.WaitDelay = time.Second // for a child that keeps the output open
	return cmd, cancel
}

// try runs tmux and returns what it printed, without the last newline.
func (x *tmux) try(args ...string) (string, error) {
	cmd, cancel := x.command(args...)
	defer cancel()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState != nil && !cmd.ProcessState.Exited() { // by our deadline
		err = fmt.Errorf("tmux %s: no answer in %v from server %d: %w", strings.Join(args, " "), patience, x.last, err)
	} else if err != nil {
		err = fmt.Errorf("tmux %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// run is try for what must succeed.
func (x *tmux) run(args ...string) string {
	x.t.Helper()
	out, err := x.try(args...)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

// pid is the server's process id.
func (x *tmux) pid() int {
	x.t.Helper()
	pid, err := strconv.Atoi(x.run("display-message", "-p", "#{pid}"))
	if err != nil {
		x.t.Fatal(err)
	}
	return pid
}

// kill ends the server through its socket and waits until its process has
// ended. Without a server it does nothing. A server that does not end is a
// failure of the test, and is killed: one of 3.7c has been seen to spin for ever.
func (x *tmux) kill() {
	x.t.Helper()
	if x.gone == nil {
		return
	}
	_, err := x.try("kill-server") // fails if the test ended the server
	select {
	case <-x.gone:
	case <-time.After(patience):
		x.t.Errorf("tmux server %d does not end (%v) and is killed", x.last, err)
		if err := syscall.Kill(x.last, syscall.SIGKILL); err != nil {
			x.t.Errorf("kill tmux: %v", err)
		}
		x.waitGone()
	}
}

// waitGone waits until the server's process has ended.
func (x *tmux) waitGone() {
	x.t.Helper()
	select {
	case <-x.gone:
	case <-time.After(patience):
		x.t.Errorf("tmux server on %s has not ended", x.sock)
	}
}

// until asks again and again until cond holds. Cond must go to tmux or another
// process, so that asking is not spinning.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(end) {
			t.Fatalf("never saw %s", what)
		}
	}
}

// control is a second control client. It is written apart from package
// controlmode, so that a fault there cannot hide itself, and for one purpose:
// to run commands fast. It is for one goroutine.
type control struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	pipe  *os.File
	fence int
}

// control attaches to a session of the server, without output. The session
// must live as long as the client is used.
func (x *tmux) control(session string) *control {
	x.t.Helper()
	cmd := exec.Command(x.bin, "-N", "-u", "-S", x.sock, "-C",
		"attach-session", "-E", "-t", session, "-f", "no-output,ignore-size")
	cmd.Env = x.env
	cmd.Dir = x.dir
	in, err := cmd.StdinPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		x.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	w.Close()
	c := &control{t: x.t, cmd: cmd, in: in, out: bufio.NewReader(r), pipe: r}
	x.t.Cleanup(c.close)
	c.run("display-message -p attached")
	return c
}

// try runs one line of commands, written as in tmux's configuration file, and
// returns the lines they printed. The error is that of the first command that
// failed. Lost contact ends the test.
func (c *control) try(line string) ([]string, error) {
	c.t.Helper()
	c.fence++
	fence := "fence-" + strconv.Itoa(c.fence)
	c.pipe.SetReadDeadline(time.Now().Add(patience))
	// The fence is a line of its own: an error ends its own line only.
	if _, err := fmt.Fprintf(c.in, "%s\ndisplay-message -p %s\n", line, fence); err != nil {
		c.t.Fatalf("control client: %v", err)
	}
	var lines []string
	var failed error
	for {
		begin := c.line()
		guard, ok := strings.CutPrefix(begin, "%begin ")
		if !ok {
			continue // a notification
		}
		var body []string
		var end string
		for {
			end = c.line()
			if end == "%end "+guard || end == "%error "+guard {
				break
			}
			body = append(body, end)
		}
		switch {
		case !strings.HasSuffix(guard, " 1"): // not ours
		case len(body) == 1 && body[0] == fence:
			return lines, failed
		case strings.HasPrefix(end, "%error"):
			if failed == nil {
				failed = fmt.Errorf("%s: %s", line, strings.Join(body, "\n"))
			}
		default:
			lines = append(lines, body...)
		}
	}
}

// run is try for what must succeed.
func (c *control) run(line string) []string {
	c.t.Helper()
	lines, err := c.try(line)
	if err != nil {
		c.t.Fatal(err)
	}
	return lines
}

func (c *control) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("control client: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// close ends the client and waits for its process.
func (c *control) close() {
	c.in.Close() // tmux detaches a control client at the end of its input
	// Read on: tmux does not let go of a client that leaves data unread.
	c.pipe.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, c.out); err != nil && !errors.Is(err, os.ErrClosed) {
		c.t.Errorf("control client does not end: %v", err)
		c.cmd.Process.Kill()
	}
	c.pipe.Close()
	c.cmd.Wait() // the status says how the last command went: no matter
}

// children lists the child processes of this one, as "pid name". It is empty
// where there is no /proc.
func children() []string {
	var list []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state ppid ...; the name may hold blanks and parentheses.
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if open < 0 || end < 0 {
			continue
		}
		if f := strings.Fields(string(stat[end+1:])); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			list = append(list, string(stat[:open])+string(stat[open+1:end]))
		}
	}
	return list
}
