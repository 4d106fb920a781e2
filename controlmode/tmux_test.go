package controlmode_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// server is a real tmux server on a socket of its own.
type server struct {
	controlmode.Binary
}

func startServer(t testing.TB, args ...string) server {
	t.Helper()
	bin, err := exec.LookPath(cmp.Or(os.Getenv("TMUX_MCPD_TEST_TMUX"), "tmux"))
	if err != nil {
		t.Skip("no tmux binary in PATH, and none named in TMUX_MCPD_TEST_TMUX")
	}
	// Not t.TempDir: a socket's path is limited to about 100 bytes.
	dir, err := os.MkdirTemp("", "cm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := server{controlmode.Binary{Path: bin, Socket: controlmode.Socket{Path: filepath.Join(dir, "s")}}}
	base := []string{"-u", "-S", s.Socket.Path, "-f", "/dev/null"}
	if len(args) == 0 {
		args = []string{"new-session", "-d", "-s", "main", "-x", "100", "-y", "30", "cat"}
	}
	cmd := exec.Command(bin, append(base, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("starting tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { s.Output(context.Background(), controlmode.Cmd("kill-server")) })
	return s
}

// ask runs one command through the tmux binary.
func (s server) ask(t testing.TB, words ...string) string {
	t.Helper()
	out, err := s.Output(t.Context(), controlmode.Cmd(words[0], words[1:]...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// control is an attached control client.
type control struct {
	*controlmode.Process
	events *eventLog
	ended  chan error
}

func (s server) start(t testing.TB, cfg controlmode.AttachConfig) *control {
	t.Helper()
	cfg.Bin, cfg.Socket = s.Path, s.Socket
	c := &control{events: &eventLog{}, ended: make(chan error, 1)}
	if cfg.Options.Event == nil {
		cfg.Options.Event = c.events.add
	}
	p, err := controlmode.Attach(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Process = p
	go func() { c.ended <- p.Run(context.Background()) }()
	t.Cleanup(func() {
		p.Close()
		<-p.Done()
	})
	return c
}

func (s server) attach(t testing.TB, cfg controlmode.AttachConfig) *control {
	t.Helper()
	c := s.start(t, cfg)
	select {
	case <-c.Ready():
	case err := <-c.ended:
		t.Fatalf("attach: %v", err)
	}
	return c
}

// run sends one command and wants it to succeed.
func (c *control) run(t *testing.T, words ...string) string {
	t.Helper()
	req := one(words...)
	reply, err := c.Do(t.Context(), req)
	if err == nil {
		err = reply.Err(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(reply.Blocks[0].Body), "\n")
}

// gone tells whether a process has been reaped.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

var transports = []controlmode.Transport{controlmode.PTY, controlmode.Pipe}

func forTransports(t *testing.T, f func(t *testing.T, transport controlmode.Transport)) {
	for _, tr := range transports {
		t.Run(string(tr), func(t *testing.T) { f(t, tr) })
	}
}

func TestTmuxAttachAndDetach(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		// Without -E tmux would take this from our environment, that is remove it.
		s.ask(t, "set-environment", "-t", "main", "SSH_AUTH_SOCK", "/agent")
		before := s.ask(t, "show-environment", "-t", "main")
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Flags: []string{"ignore-size", "no-output"}})
		if got := c.run(t, "display-message", "-p", "#{client_pid} #{client_flags} #{client_utf8}"); !strings.HasPrefix(got, strconv.Itoa(c.PID())+" ") ||
			!strings.Contains(got, "ignore-size") || !strings.Contains(got, "no-output") || !strings.HasSuffix(got, " 1") {
			t.Errorf("client %q, pid %d", got, c.PID())
		}
		if got := c.run(t, "display-message", "-p", "\u00e4\u4e2d"); got != "\u00e4\u4e2d" {
			t.Errorf("text came back as %q", got)
		}
		c.Close()
		if err := <-c.ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if !gone(c.PID()) {
			t.Error("the client process is still there")
		}
		if got := s.ask(t, "list-clients"); got != "" {
			t.Errorf("clients left: %s", got)
		}
		if after := s.ask(t, "show-environment", "-t", "main"); after != before {
			t.Errorf("session environment changed from %q to %q", before, after)
		}
	})
}

// C16: attaching, reading and detaching leave window sizes as they were.
func TestC16WindowSizeUntouched(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		size := func() string {
			return s.ask(t, "display-message", "-p", "-t", "main:", "#{window_width}x#{window_height}")
		}
		if got := size(); got != "100x30" {
			t.Fatalf("size %s", got)
		}
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Flags: []string{"ignore-size"}})
		c.run(t, "capture-pane", "-p", "-t", "%0")
		if got := size(); got != "100x30" {
			t.Errorf("size %s while attached", got)
		}
		c.Close()
		<-c.ended
		if got := size(); got != "100x30" {
			t.Errorf("size %s after detaching", got)
		}
	})
}

func TestTmuxAttachErrors(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		c := s.start(t, controlmode.AttachConfig{Transport: tr, Session: 99})
		var cerr *controlmode.CommandError
		if err := <-c.ended; !errors.As(err, &cerr) || cerr.Text != "can't find session: $99" {
			t.Errorf("Run = %v", err)
		}
		s.ask(t, "set-option", "-s", "exit-empty", "off")
		s.ask(t, "kill-session", "-t", "=main")
		c = s.start(t, controlmode.AttachConfig{Transport: tr})
		if err := <-c.ended; !errors.Is(err, controlmode.ErrNoSessions) {
			t.Errorf("Run on an empty server = %v", err)
		}
		s.ask(t, "kill-server")
		// The server may take a moment to go.
		for _, err := s.Output(t.Context(), controlmode.Cmd("list-sessions")); !errors.Is(err, controlmode.ErrNoServer); {
			_, err = s.Output(t.Context(), controlmode.Cmd("list-sessions"))
		}
		c = s.start(t, controlmode.AttachConfig{Transport: tr})
		if err := <-c.ended; !errors.Is(err, controlmode.ErrNoServer) {
			t.Errorf("Run without a server = %v", err)
		}
		if _, err := s.Output(t.Context(), controlmode.Cmd("list-sessions")); !errors.Is(err, controlmode.ErrNoServer) {
			t.Errorf("Output without a server = %v", err)
		}
		if _, err := controlmode.Attach(controlmode.AttachConfig{Transport: tr, Bin: "/nonexistent/tmux"}); !errors.Is(err, controlmode.ErrNoBinary) {
			t.Errorf("Attach without a binary = %v", err)
		}
	})
}

func TestTmuxServerDies(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		c := s.attach(t, controlmode.AttachConfig{Transport: tr})
		pid, _ := strconv.Atoi(c.run(t, "display-message", "-p", "#{pid}"))
		syscall.Kill(pid, syscall.SIGKILL)
		if err := <-c.ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if !gone(c.PID()) {
			t.Error("the client process is still there")
		}
		if _, err := c.Do(t.Context(), one("list-panes")); !errors.Is(err, controlmode.ErrClosed) {
			t.Errorf("Do = %v", err)
		}
	})
}

func TestAttachConfigRefused(t *testing.T) {
	if _, err := controlmode.Attach(controlmode.AttachConfig{Bin: "/bin/true", Transport: "telegraph"}); err == nil {
		t.Error("an unknown transport was accepted")
	}
	if got := (controlmode.Socket{Name: "n"}).Args(); !slices.Equal(got, []string{"-L", "n"}) {
		t.Error(got)
	}
}

// D11: a stopped server costs every caller its deadline and no more, leaves
// nothing behind, and is served again when it goes on.
func TestD11StoppedServer(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Grace: 100 * time.Millisecond})
		pid, _ := strconv.Atoi(c.run(t, "display-message", "-p", "#{pid}"))
		syscall.Kill(pid, syscall.SIGSTOP)
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) }) // before kill-server
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				// Enough to fill every buffer on the way, so that the writer blocks.
				req := one("display-message", "-p", strings.Repeat("a", 10000))
				req.Timeout = time.Duration(500+i) * time.Millisecond
				if _, err := c.Do(t.Context(), req); !errors.Is(err, controlmode.ErrTimeout) {
					t.Errorf("Do = %v", err)
				}
			})
		}
		wg.Wait()
		if err := <-c.ended; !errors.Is(err, controlmode.ErrTimeout) {
			t.Errorf("Run = %v", err)
		}
		if !gone(c.PID()) {
			t.Error("the client process is still there")
		}
		syscall.Kill(pid, syscall.SIGCONT)
		c = s.attach(t, controlmode.AttachConfig{Transport: tr})
		if got := c.run(t, "display-message", "-p", "ok"); got != "ok" {
			t.Errorf("answer %q", got)
		}
	})
}

func TestTmuxFencedCapture(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t, "new-session", "-d", "-s", "main", "-x", "80", "-y", "24",
			"printf '%%end 1 2 1\\n%%output %%0 hi\\n%%exit\\n'; exec cat")
		c := s.attach(t, controlmode.AttachConfig{Transport: tr})
		want := "%end 1 2 1\n%output %0 hi\n%exit"
		for got := ""; got != want; {
			req := controlmode.Request{Fence: true, Commands: []controlmode.Command{
				controlmode.Cmd("display-message", "-p", "-t", "%0", "#{cursor_y}"), controlmode.Cmd("capture-pane", "-p", "-t", "%0"),
			}}
			reply, err := c.Do(t.Context(), req)
			if err != nil || len(reply.Blocks) != 2 {
				t.Fatalf("Do = %+v, %v", reply, err)
			}
			got = strings.TrimRight(string(reply.Blocks[1].Body), "\n")
			if strings.TrimSpace(string(reply.Blocks[0].Body)) == "3" && got != want {
				t.Fatalf("capture %q", got)
			}
		}
	})
}

// The strictness of fenced requests is right: under a flood of output, with
// structure changing all the time and a hook on the commands, tmux puts nothing
// into the gaps that are watched, and every answer is the right one.
func TestTmuxFencesUnderStorm(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t, "new-session", "-d", "-s", "main", "-x", "80", "-y", "24",
			`i=0; while :; do i=$((i+1)); echo "$i \\ %end 1 2 1"; done`)
		s.ask(t, "set-hook", "-g", "after-list-clients", "rename-window -t @0 hooked")
		var bytes atomic.Int64
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Options: controlmode.Options{Event: func(ev controlmode.Event) {
			if o, ok := ev.(*controlmode.Output); ok {
				bytes.Add(int64(len(o.Data)))
			}
		}}})
		other := s.attach(t, controlmode.AttachConfig{Transport: controlmode.Pipe, Flags: []string{"no-output"}})
		ctx, stop := context.WithCancel(t.Context())
		var changer, readers sync.WaitGroup
		changer.Go(func() {
			for ctx.Err() == nil {
				for _, words := range [][]string{{"new-window", "-d", "-n", "x", "cat"}, {"rename-window", "-t", "@0", "r"}, {"split-window", "-d", "-t", ":x", "cat"}, {"kill-window", "-t", ":x"}} {
					if _, err := other.Do(context.Background(), one(words...)); err != nil {
						t.Errorf("changing tmux: %v", err)
						return
					}
				}
			}
		})
		for range 2 {
			readers.Go(func() { readInStorm(t, c) })
		}
		readers.Wait()
		stop()
		changer.Wait()
		if bytes.Load() == 0 {
			t.Error("no output came")
		}
	})
}

func readInStorm(t *testing.T, c *control) {
	for i := range 40 {
		mark := strconv.Itoa(i)
		req := controlmode.Request{Fence: true, Commands: []controlmode.Command{
			controlmode.Cmd("display-message", "-p", "-t", "%0", mark+" #{cursor_y}"),
			controlmode.Cmd("capture-pane", "-p", "-t", "%0"),
			controlmode.Cmd("list-panes", "-a", "-F", "#{pane_id}"),
			controlmode.Cmd("list-clients", "-F", "#{client_pid}"),
		}}
		reply, err := c.Do(t.Context(), req)
		if err != nil || len(reply.Blocks) != 4 || !strings.HasPrefix(string(reply.Blocks[0].Body), mark+" ") ||
			!strings.HasPrefix(string(reply.Blocks[2].Body), "%0\n") || strings.Count(string(reply.Blocks[3].Body), "\n") != 2 {
			t.Errorf("Do = %+v, %v", reply, err)
			return
		}
	}
}

// What Event has seen when Begin runs is exactly what the capture shows.
func TestTmuxBeginIsTheInstantOfTheScreen(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t, "new-session", "-d", "-s", "main", "-x", "80", "-y", "24", `i=0; while :; do i=$((i+1)); echo "$i"; done`)
		var stream, seen []byte // of the reader goroutine, read after Do
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Options: controlmode.Options{Event: func(ev controlmode.Event) {
			if o, ok := ev.(*controlmode.Output); ok {
				stream = append(stream, o.Data...)
				stream = stream[max(0, len(stream)-100):]
			}
		}}})
		for moved := 0; moved < 40; {
			req := controlmode.Request{
				Fence:    true,
				Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "x"), controlmode.Cmd("capture-pane", "-p", "-t", "%0")},
				Begin: func(i int) {
					if i == 1 {
						seen = append(seen[:0], stream...)
					}
				},
			}
			reply, err := c.Do(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			rows, numbers := strings.Fields(string(reply.Blocks[1].Body)), strings.Fields(string(seen))
			if len(rows) < 23 || len(numbers) < 3 {
				continue // too early
			}
			moved++
			if got, want := rows[len(rows)-2:], numbers[len(numbers)-2:]; !slices.Equal(got, want) {
				t.Fatalf("the screen ends in %q, the output in %q", got, want)
			}
		}
	})
}

// A command alias of the user makes another number of blocks; only the request
// that ran into it fails. (tmux 3.3a to 3.8: an alias of two commands gives two
// blocks.)
func TestTmuxAliasShift(t *testing.T) {
	s := startServer(t)
	s.ask(t, "set-option", "-s", "command-alias[100]", "list-windows=list-sessions ; list-clients")
	c := s.attach(t, controlmode.AttachConfig{})
	req := controlmode.Request{Fence: true, Commands: []controlmode.Command{
		controlmode.Cmd("display-message", "-p", "a"), controlmode.Cmd("list-windows"), controlmode.Cmd("display-message", "-p", "b"),
	}}
	if _, err := c.Do(t.Context(), req); !errors.Is(err, controlmode.ErrBlocks) {
		t.Errorf("Do = %v", err)
	}
	if got := c.run(t, "display-message", "-p", "ok"); got != "ok" {
		t.Errorf("answer %q", got)
	}
}

// Up to 3.7c these lines come inside the block, in 3.8 after it; the events and
// the empty answer are the same.
func TestTmuxPauseAndContinue(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Flags: []string{"pause-after=5"}})
		for _, do := range []string{"pause", "continue"} {
			if got := c.run(t, "refresh-client", "-A", "%0:"+do); got != "" {
				t.Errorf("answer %q", got)
			}
		}
		c.run(t, "display-message", "-p", "")
		got := c.events.String()
		if p, q := strings.Index(got, "Pause{Pane:%0}"), strings.Index(got, "Continue{Pane:%0}"); p < 0 || q < p {
			t.Errorf("events: %s", got)
		}
	})
}

// D11 from the other side: the client process is stopped, so it cannot leave.
func TestTmuxStuckClientIsKilled(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		s := startServer(t)
		c := s.attach(t, controlmode.AttachConfig{Transport: tr, Grace: 50 * time.Millisecond})
		syscall.Kill(c.PID(), syscall.SIGSTOP)
		c.Close()
		if err := <-c.ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if !gone(c.PID()) {
			t.Error("the client process is still there")
		}
	})
}

// A killed client process ends the connection, also while the server is stopped
// and keeps the terminal open.
func TestTmuxClientProcessDies(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		for _, stopped := range []bool{false, true} {
			s := startServer(t)
			c := s.attach(t, controlmode.AttachConfig{Transport: tr, Grace: 50 * time.Millisecond})
			pid, _ := strconv.Atoi(c.run(t, "display-message", "-p", "#{pid}"))
			if stopped {
				syscall.Kill(pid, syscall.SIGSTOP)
				t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
			}
			syscall.Kill(c.PID(), syscall.SIGKILL)
			if err := <-c.ended; err != nil {
				t.Errorf("stopped=%v: Run = %v", stopped, err)
			}
		}
	})
}

// The client process ends with ours, however ours ends, and does not keep a
// server from ending.
func TestTmuxClientEndsWithItsParent(t *testing.T) {
	forTransports(t, func(t *testing.T, tr controlmode.Transport) {
		for _, dying := range []bool{false, true} {
			s := startServer(t, "new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "while :; do echo x; done")
			server, _ := strconv.Atoi(s.ask(t, "display-message", "-p", "#{pid}"))
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helperSocket+"="+s.Socket.Path, "CONTROLMODE_TEST_HELPER_TRANSPORT="+string(tr))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			client := 0
			for client == 0 {
				client, _ = strconv.Atoi(s.ask(t, "list-clients", "-F", "#{client_pid}"))
			}
			if dying {
				// A control client that is behind keeps a server that wants to exit
				// waiting for it (tmux 3.3a: for ever, even when nobody is left to
				// read), so its process must go.
				for s.ask(t, "display-message", "-p", "#{client_written}") == "" {
				}
				s.ask(t, "kill-server")
			}
			cmd.Process.Kill()
			cmd.Wait()
			for !ended(client) {
			}
			for dying && !ended(server) {
			}
		}
	})
}

// ended tells whether a process is gone or waits only for its parent to notice.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	after := strings.LastIndexByte(string(stat), ')')
	return strings.HasPrefix(string(stat[after:]), ") Z")
}
