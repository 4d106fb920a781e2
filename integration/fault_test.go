package integration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// signal sends a signal to the server's process.
func (x *tmux) signal(pid int, sig syscall.Signal) {
	x.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		x.t.Fatalf("%v to tmux: %v", sig, err)
	}
}

// D11, P9: tmux stops answering. Each call ends by its deadline and says so,
// nothing piles up, and when tmux goes on, so do we.
func TestD11StoppedTmux(t *testing.T) {
	x := startTmux(t)
	x.run("split-window", "-d", "-t", "main:0", "exec cat")
	x.run("select-pane", "-t", "%0", "-T", "first")
	x.run("select-pane", "-t", "%1", "-T", "second")
	m := x.mirror(func(c *state.Config) { c.Timeout = 500 * time.Millisecond })
	read(t, m)
	_, cursor, err := m.StartWatch(within(t), 0, state.CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	calls := []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := m.Arrive(state.Full).Model(ctx, state.Full); return err },
		func(ctx context.Context) error {
			_, err := m.Arrive(state.Sessions).Model(ctx, state.Sessions)
			return err
		},
		func(ctx context.Context) error { _, err := m.Arrive(0).Pane(ctx, 0); return err },
		func(ctx context.Context) error { _, err := m.Capture(ctx, 1, state.CaptureRange{}); return err },
		func(ctx context.Context) error { _, err := m.Snapshot(ctx, 0); return err },
		func(ctx context.Context) error { _, _, err := m.StartWatch(ctx, 1, state.CaptureRange{}); return err },
		func(ctx context.Context) error { _, err := m.Since(ctx, 0, cursor, state.SinceOptions{}); return err },
		func(ctx context.Context) error {
			_, err := m.Do(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("list-sessions")}})
			return err
		},
	}
	pid := x.pid()
	goroutines := runtime.NumGoroutine()
	x.signal(pid, syscall.SIGSTOP)
	goOn := sync.OnceFunc(func() { x.signal(pid, syscall.SIGCONT) })
	t.Cleanup(goOn) // a stopped server could not be ended

	for burst := range 2 { // the second finds the daemon about to attach again
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				err := calls[i%len(calls)](ctx)
				switch {
				case err == nil:
					t.Errorf("burst %d, call %d: an answer from a tmux that is stopped", burst, i%len(calls))
				case ctx.Err() != nil:
					t.Errorf("burst %d, call %d: has no deadline of its own", burst, i%len(calls))
				case !errors.Is(err, controlmode.ErrTimeout) && !errors.Is(err, state.ErrDetached):
					t.Errorf("burst %d, call %d: %v", burst, i%len(calls), err)
				}
			})
		}
		wg.Wait()
		if n := runtime.NumGoroutine(); n > goroutines+25 {
			t.Errorf("burst %d: %d goroutines, %d before tmux stopped", burst, n, goroutines)
		}
		if left := children(); len(left) > 6 {
			t.Errorf("burst %d: processes pile up: %q", burst, left)
		}
	}

	goOn()
	until(t, "being attached again", func() bool {
		m.Arrive(state.Full).Model(within(t), state.Full)
		return m.Status().Attached
	})
	x.agree(m, nobody)
	for id, title := range []string{"first", "second"} {
		one, err := m.Arrive(0).Pane(within(t), controlmode.PaneID(id))
		if err != nil || one.Panes[0].Title != title {
			t.Errorf("pane %d afterwards: %v, %+v", id, err, one)
		}
	}
	// The stream is another one now, and says so.
	x.run("send-keys", "-t", "%0", "-l", "again")
	var s *state.Since
	until(t, "the pane's output", func() bool {
		if s, err = m.Since(within(t), 0, cursor, raw); err != nil {
			t.Fatal(err)
		}
		return s.Gap != nil || strings.Contains(string(s.Raw), "again")
	})
}

// raw asks for the bytes themselves, without waiting.
var raw = state.SinceOptions{Raw: true}

func nobody(int) bool { return false }

// The server is killed while readers read, absent for a while, and back on the
// same socket. Readers get sound answers throughout, none of them for ever.
func TestKilledServer(t *testing.T) {
	x := newTmux(t)
	m := x.mirror()
	if model := read(t, m); model.Server.ID != (state.ServerID{}) {
		t.Fatalf("a server where there is none: %+v", model.Server)
	}
	r := read3(t, m, 1)
	defer r.stop()
	lives := map[state.ServerID]bool{}
	for i := range 6 {
		x.start("-s", fmt.Sprintf("life%d", i), "-x", "80", "-y", "24", "exec cat")
		model := x.agree(m, nobody)
		if _, ok := model.SessionNamed(fmt.Sprintf("life%d", i)); !ok {
			t.Fatalf("life %d: sessions %+v", i, model.Sessions)
		}
		if lives[model.Server.ID] {
			t.Fatalf("life %d has the identity of an earlier one: %+v", i, model.Server.ID)
		}
		lives[model.Server.ID] = true
		x.signal(x.pid(), syscall.SIGKILL)
		x.waitGone()
		if model := read(t, m); model.Server.ID != (state.ServerID{}) {
			t.Fatalf("life %d is over, and read: %+v", i, model.Server)
		}
		if _, err := m.Arrive(0).Pane(within(t), 0); !errors.Is(err, state.ErrNoServer) {
			t.Fatalf("life %d is over, and its pane: %v", i, err)
		}
	}
}

// M01: ids start again with another server. A cursor of the old one is refused,
// though its pane's number exists again. And the new server lives: a client that
// attaches to a server too early can kill it (seen on 3.3a and 3.5a when the
// session it asks for is not there yet).
func TestM01ServerRestarted(t *testing.T) {
	x := newTmux(t)
	m := x.mirror()
	var old []state.Cursor
	for i := range 8 {
		x.start("-s", "main", "-x", "80", "-y", "24", "exec cat") // fails if the server dies at once
		_, cursor, err := m.StartWatch(within(t), 0, state.CaptureRange{})
		if err != nil {
			t.Fatalf("life %d: %v", i, err)
		}
		for _, c := range old {
			if s, err := m.Since(within(t), 0, c, raw); !errors.Is(err, state.ErrOtherServer) {
				t.Fatalf("life %d: an old cursor gave %+v, %v", i, s, err)
			}
		}
		if s, err := m.Since(within(t), 0, cursor, raw); err != nil || s.Gap != nil || len(s.Raw) > 0 {
			t.Fatalf("life %d: the new cursor gave %+v, %v", i, s, err)
		}
		old = append(old, cursor)
		x.signal(x.pid(), syscall.SIGKILL)
		x.waitGone()
	}
}

// C11: the session we are attached to is killed, again and again, while others
// live. That is no end of the server, and what is watched in a living session
// is not interrupted.
func TestC11AttachedSessionKilled(t *testing.T) {
	const sessions = 12
	x := startTmux(t)
	for i := range sessions {
		x.run("new-session", "-d", "-s", fmt.Sprintf("s%d", i), "-x", "80", "-y", "24", "exec cat")
	}
	m := x.mirror()
	r := read3(t, m, 2)
	defer r.stop()
	before := read(t, m)
	_, cursor, err := m.StartWatch(within(t), sessions, state.CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range before.Sessions[:sessions] { // the oldest first: where we are
		x.run("kill-session", "-t", s.ID.String())
		if model := x.agree(m, nobody); model.Server.ID != before.Server.ID || len(model.Sessions) != sessions-i {
			t.Fatalf("after %d kills: %d sessions of %+v", i+1, len(model.Sessions), model.Server.ID)
		}
		text := fmt.Sprintf("line%d.", i)
		since := x.say(m, sessions, cursor, text)
		if since.Gap != nil || string(since.Raw) != text {
			t.Errorf("after %d kills: gap %+v, output %q, want %q", i+1, since.Gap, since.Raw, text)
		}
		cursor = since.Cursor
	}
}

// C13: a pane moves between windows and sessions. It keeps its id, its log and
// its cursor; if that cost output, the answer says so.
func TestC13PaneMoves(t *testing.T) {
	x := startTmux(t)
	x.run("split-window", "-d", "-t", "main:0", "exec cat") // %1, which moves
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "exec cat")
	x.run("new-session", "-d", "-s", "third", "-x", "80", "-y", "24", "exec cat")
	m := x.mirror()
	_, cursor, err := m.StartWatch(within(t), 1, state.CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	for i, move := range [][]string{
		{"break-pane", "-d", "-s", "%1", "-t", "main:5"},
		{"join-pane", "-d", "-s", "%1", "-t", "other:0"},
		{"swap-pane", "-d", "-s", "%1", "-t", "third:0"},
		{"break-pane", "-d", "-s", "%1", "-t", "third:3"},
		{"move-window", "-d", "-s", "third:3", "-t", "main:7"},
		{"link-window", "-d", "-s", "main:7", "-t", "other:7"},
		{"unlink-window", "-t", "main:7"},
	} {
		x.run(move...)
		x.agree(m, nobody)
		// What is on the screen when a read arrives was printed before it: the
		// read tells it, or that it was lost (P1, P3).
		s := x.say(m, 1, cursor, fmt.Sprintf("moved%d.", i))
		if s.Gap == nil && string(s.Raw) != fmt.Sprintf("moved%d.", i) {
			t.Errorf("%v: output %q, and no gap", move, s.Raw)
		}
		// That read has settled who delivers the pane: no loss any more.
		s = x.say(m, 1, s.Cursor, fmt.Sprintf("again%d.", i))
		if s.Gap != nil || string(s.Raw) != fmt.Sprintf("again%d.", i) {
			t.Errorf("%v: later output %q, gap %+v", move, s.Raw, s.Gap)
		}
		cursor = s.Cursor
	}
}

// say makes a pane that runs cat print text, and reads from the cursor when the
// text is on the screen.
func (x *tmux) say(m *state.Mirror, pane controlmode.PaneID, from state.Cursor, text string) *state.Since {
	x.t.Helper()
	x.run("send-keys", "-t", pane.String(), "-l", text)
	until(x.t, text+" on the screen", func() bool {
		return strings.Contains(x.run("capture-pane", "-p", "-J", "-t", pane.String()), text)
	})
	s, err := m.Since(within(x.t), pane, from, raw)
	if err != nil {
		x.t.Fatalf("since: %v", err)
	}
	return s
}
