package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serving is a daemon in the foreground.
type serving struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *bufio.Reader
	ready  string // its line
}

// serve starts a daemon and waits for the line that says it is ready.
func (p *place) serve(args ...string) *serving {
	p.t.Helper()
	r, w := pipe(p.t)
	cmd := p.command("tmux-mcpd", append([]string{"serve"}, args...)...)
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	p.t.Cleanup(func() {
		// In order: of a killed one, a child that has not yet become tmux can
		// hold the socket open for a moment. It has ended in most tests.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	})
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	s := &serving{t: p.t, cmd: cmd, stderr: bufio.NewReader(r)}
	s.ready = s.line("tmux-mcpd: ready on ")
	return s
}

// line reads standard error up to a line with that start.
func (s *serving) line(prefix string) string {
	s.t.Helper()
	var before strings.Builder
	for {
		line, err := s.stderr.ReadString('\n')
		if strings.HasPrefix(line, prefix) {
			return line
		}
		before.WriteString(line)
		if err != nil {
			s.t.Fatalf("no line %q: %v after:\n%s", prefix, err, before.String())
		}
	}
}

// ended waits for the end and returns the exit code.
func (s *serving) ended() int {
	s.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if !timer.Stop() {
		s.t.Fatal("the daemon did not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// tmux runs the tmux binary on a socket of this place.
func (p *place) tmux(label string, args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-u", "-L", label, "-f", os.DevNull}, args...)...)
	cmd.Env = append(p.env, "TERM=xterm")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestServeEndsInOrder(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := newPlace(t)
		if out, err := p.tmux("default", "new-session", "-d", "cat"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before, err := p.tmux("default", "display-message", "-p", "#{pid}")
		if err != nil {
			t.Fatal(before)
		}
		s := p.serve()
		if want := fmt.Sprintf("tmux-mcpd: ready on %s for the tmux server %s\n", p.socket(),
			filepath.Join(p.dir, "tmux", "tmux-"+strconv.Itoa(os.Getuid()), "default")); s.ready != want {
			t.Errorf("ready line %q, want %q", s.ready, want)
		}
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := s.ended(); code != exitOK {
			t.Errorf("%v: exit code %d", sig, code)
		}
		if _, err := os.Lstat(p.socket()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: the socket is still there: %v", sig, err)
		}
		// The user's server lives, and none of our clients is left on it.
		after, err := p.tmux("default", "display-message", "-p", "#{pid}")
		if err != nil || after != before {
			t.Errorf("%v: tmux was pid %s, is %s (%v)", sig, before, after, err)
		}
		if out, err := p.tmux("default", "list-clients"); err != nil || out != "" {
			t.Errorf("%v: clients left: %q, %v", sig, out, err)
		}
	}
}

// A second signal does not wait for what the first one waits for.
func TestServeSecondSignal(t *testing.T) {
	p := newPlace(t)
	if out, err := p.tmux("default", "new-session", "-d", "cat"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := p.serve("--log-level", "debug")
	first := p.command("tmux-mcpd", "call", "--json", "capture_since", "paneId=%0")
	out, err := first.Output()
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Cursor string }
	if err := json.Unmarshal(out, &seen); err != nil || seen.Cursor == "" {
		t.Fatalf("%s: %v", out, err)
	}
	waiting := start(t, p.command("tmux-mcpd", "call", "capture_since", "paneId=%0", "cursor="+seen.Cursor, "waitMs=25000"))
	for busy := false; !busy; {
		r, err := askStatus(p.socket())
		if err != nil {
			t.Fatal(err)
		}
		busy = r.Clients.InFlight > 1 // the question itself is one
	}
	// Two different ones: of two equal ones the kernel may make one.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.ended(); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	waiting.wait(exitUnreachable)
}

// D01: the socket of a daemon that was killed does not stop the next one.
func TestServeD01AfterKill(t *testing.T) {
	p := newPlace(t)
	s := p.serve()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	if _, err := os.Lstat(p.socket()); err != nil {
		t.Fatalf("a killed daemon leaves its socket: %v", err)
	}
	// A child that has not yet become tmux can hold lock and socket a moment
	// longer.
	if err := awaitUnlocked(p.socket() + ".lock"); err != nil {
		t.Fatal(err)
	}
	s = p.serve()
	if r, err := askStatus(p.socket()); err != nil || r.PID != s.cmd.Process.Pid {
		t.Errorf("status: %+v, %v", r, err)
	}
}

func TestServeLogFile(t *testing.T) {
	p := newPlace(t)
	log := filepath.Join(p.dir, "log.json")
	s := p.serve("--log-file", log)
	// An answer comes after everything a start logs.
	if _, err := askStatus(p.socket()); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	// The new file is made during the signal's handling; a second signal is
	// handled after it.
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	rotated, err := filepath.Glob(filepath.Join(p.dir, "log-*.json"))
	if err != nil || len(rotated) != 1 {
		t.Fatalf("rotated files %q, %v", rotated, err)
	}
	old, err := os.ReadFile(rotated[0])
	if err != nil || !strings.Contains(string(old), `"msg":"ready"`) {
		t.Errorf("first log %q, %v", old, err)
	}
	now, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(now), `"msg":"ended"`) {
		t.Errorf("second log %q, %v", now, err)
	}
	fi, err := os.Stat(log)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

// A dedicated tmux server outlives the daemon that made it, and the next one
// knows it for its own.
func TestServeDedicated(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--start", "dedicated")
	pid, err := p.tmux(dedicatedName, "display-message", "-p", "#{pid} #{session_name} #{history_limit}")
	if err != nil || !strings.HasSuffix(pid, " main 20000") {
		t.Fatalf("the dedicated server: %q, %v", pid, err)
	}
	// Its first session begins at home, wherever the daemon was started.
	if dir, err := p.tmux(dedicatedName, "display-message", "-p", "#{session_path}"); err != nil || dir != p.dir {
		t.Errorf("the first session begins in %q (%v), want %q", dir, err, p.dir)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	p.serve("--start", "dedicated")
	again, err := p.tmux(dedicatedName, "display-message", "-p", "#{pid} #{session_name} #{history_limit}")
	if err != nil || again != pid {
		t.Errorf("the dedicated server was %q, is %q (%v)", pid, again, err)
	}
	// The user's default server was not started.
	if out, err := p.tmux("default", "-N", "list-sessions"); err == nil {
		t.Errorf("a default server runs: %q", out)
	}
}

// startDedicated tells its own server from one that somebody else started.
func TestDedicatedOwnership(t *testing.T) {
	p := newPlace(t)
	sock := filepath.Join(p.dir, "tmux", "tmux-0", "own")
	c := &config{tmuxSocket: sock}
	if ours, err := startDedicated(t.Context(), c); err != nil || !ours {
		t.Errorf("a new server: ours %v, %v", ours, err)
	}
	if ours, err := startDedicated(t.Context(), c); err != nil || !ours {
		t.Errorf("our server, found: ours %v, %v", ours, err)
	}
	if out, err := p.tmux("foreign", "new-session", "-d", "cat"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path, err := p.tmux("foreign", "display-message", "-p", "#{socket_path}")
	if err != nil {
		t.Fatal(path)
	}
	if ours, err := startDedicated(t.Context(), &config{tmuxSocket: path}); err != nil || ours {
		t.Errorf("somebody's server: ours %v, %v", ours, err)
	}
	if _, err := startDedicated(t.Context(), &config{tmuxSocket: "/proc/nowhere/s"}); exitCode(err) != exitStartTmux {
		t.Errorf("no place for a socket: %v, code %d", err, exitCode(err))
	}
}

// What a background daemon inherits: no descriptor, no session, no directory,
// no variable of the client that caused its start.
func TestDetachedProcess(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "TMUX=/x,1,2", "API_TOKEN=secret")
	leaked, _ := pipe(t)
	cmd := p.command("tmux-mcpd", "stdio")
	cmd.ExtraFiles = []*os.File{leaked, leaked}
	pr := start(t, cmd)
	pr.stdin.Close()
	pr.rest()
	pr.wait(exitOK)
	r, err := askStatus(p.socket())
	if err != nil {
		t.Fatal(err)
	}
	proc := fmt.Sprintf("/proc/%d/", r.PID)
	if _, err := os.Stat(proc); err != nil {
		t.Skipf("no /proc to look into: %v", err)
	}
	if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != "/" {
		t.Errorf("working directory %q, %v", cwd, err)
	}
	environ, err := os.ReadFile(proc + "environ")
	if err != nil || strings.Contains(string(environ), "TMUX=") || strings.Contains(string(environ), "secret") ||
		!strings.Contains(string(environ), "XDG_RUNTIME_DIR=") {
		t.Errorf("environment %q, %v", environ, err)
	}
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		t.Fatal(err)
	}
	// pid (comm) state ppid pgrp session tty_nr
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if fields[3] != strconv.Itoa(r.PID) || fields[4] != "0" {
		t.Errorf("session %s and terminal %s of pid %d", fields[3], fields[4], r.PID)
	}
	if fields[1] == strconv.Itoa(pr.cmd.Process.Pid) {
		t.Error("the daemon is the bridge's child")
	}
	pipeName, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", leaked.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		name, err := os.Readlink(proc + "fd/" + fd.Name())
		if err == nil && name == pipeName {
			t.Errorf("descriptor %s was inherited: %s", fd.Name(), name)
		}
	}
}

// make run, from the first line to the last trace of it.
func TestDemonstration(t *testing.T) {
	p := newPlace(t)
	prog, err := exec.LookPath("tmux-mcpd")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	// What must not reach it: a tmux of the user, a choice of the user.
	p.env = append(p.env, "TMUX=/nonexistent/s,1,2", "TMUX_MCPD_WATCH=nonsense", "LIBTMUX_SOCKET=nonsense")
	pr := start(t, p.command("bash", script, prog))
	if err := pr.stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var dir string
	for lines := bufio.NewReader(pr.stdout); dir == ""; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after:\n%s\n%s", err, out.String(), pr.stderr)
		}
		out.WriteString(line)
		if log, ok := strings.CutPrefix(line, "Serving until Ctrl-C; the log is "); ok {
			dir = filepath.Dir(log)
		}
	}
	for _, want := range []string{
		"tmux-mcpd call list_panes\n%0 demo:0.0 80x", "compiling demo\n", " done\n[cursor ltxc1.",
		`"args": ["stdio", "--no-start", "--listen", "` + dir + `/mcpd.sock"]`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if err := pr.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	pr.wait(130)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left in the user's directories: %q, %v", left, err)
	}
}
