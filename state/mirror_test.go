package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

func TestListings(t *testing.T) {
	x := newTmux(t).start()
	x.run("split-window", "-d", "-t", "main:0", "-h", "cat")
	x.run("new-window", "-d", "-t", "main:5", "-n", "a|b,c é", "cat")
	x.run("new-session", "-d", "-s", "other", "cat")
	x.run("link-window", "-d", "-s", "main:5", "-t", "other:7")
	m := x.mirror()
	mod := full(t, m)
	if mod.Server.ID.PID == 0 || mod.Server.ID.StartTime == 0 || mod.Server.Version == "" || mod.Server.SocketPath != x.sock {
		t.Errorf("server %+v", mod.Server)
	}
	if len(mod.Sessions) != 2 || len(mod.Windows) != 3 || len(mod.Panes) != 4 {
		t.Fatalf("%d sessions, %d windows, %d panes", len(mod.Sessions), len(mod.Windows), len(mod.Panes))
	}
	s, ok := mod.SessionNamed("other")
	if !ok || s.Windows != 2 {
		t.Fatalf("session other: %+v", s)
	}
	w, ok := mod.Window(1)
	if !ok || w.Name != "a|b,c é" || len(w.Links) != 2 || w.Links[0].Index != 5 || w.Links[1].Session != s.ID || w.Links[1].Index != 7 {
		t.Fatalf("linked window %+v", w)
	}
	p, ok := mod.Pane(1)
	if !ok || p.Index != 1 || !p.AtRight || p.AtLeft || !p.AtTop || p.Command != "cat" {
		t.Errorf("pane %+v", p)
	}
	if mod.People(0) != 0 || mod.Attended(p) {
		t.Errorf("people where there are none: %+v", mod.Clients)
	}
	for _, c := range mod.Clients {
		if !c.Own || !c.Control {
			t.Errorf("client %+v", c)
		}
	}
	one, err := m.Arrive(0).Pane(within(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	if q := one.Panes[0]; len(one.Panes) != 1 || len(q.Links) != 2 || q.WindowName != w.Name {
		t.Errorf("one pane: %+v", q)
	}
	if _, err := m.Arrive(0).Pane(within(t), 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("pane %%99: %v", err)
	}
}

// P1: whatever the tmux binary changed before the call, the read shows.
func TestP1ReadsAreCurrent(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		x.run("rename-window", "-t", "main:0", name)
		mod, err := m.Arrive(Windows).Model(within(t), Windows)
		if err != nil {
			t.Fatal(err)
		}
		if got := mod.Windows[0].Name; got != name {
			t.Fatalf("round %d: the window is called %s", i, got)
		}
		x.run("select-pane", "-t", "main:0.0", "-T", name)
		one, err := m.Arrive(0).Pane(within(t), 0)
		if err != nil || one.Panes[0].Title != name {
			t.Fatalf("round %d: %v, title %v", i, err, one)
		}
	}
}

func TestNoServerIsAnAnswer(t *testing.T) {
	x := newTmux(t)
	m := x.mirror()
	if mod := full(t, m); mod.Server.ID != (ServerID{}) || len(mod.Panes) != 0 {
		t.Fatalf("a server where there is none: %+v", mod)
	}
	if _, err := m.Arrive(0).Pane(within(t), 0); !errors.Is(err, ErrNoServer) {
		t.Fatalf("pane without a server: %v", err)
	}
	x.start() // the next read must see it
	if mod := full(t, m); len(mod.Panes) != 1 {
		t.Fatalf("the server that came is not seen: %+v", mod)
	}
	first := full(t, m).Server.ID
	x.stop()
	if mod := full(t, m); mod.Server.ID != (ServerID{}) {
		t.Fatalf("a server that has gone is seen: %+v", mod.Server)
	}
	x.start()
	if mod := full(t, m); len(mod.Panes) != 1 || mod.Server.ID == first {
		t.Fatalf("the second server: %+v", mod.Server)
	}
}

// A server that starts while the daemon still has watches of the one before
// must come up: attaching to a server without sessions ends it (tmux 3.3a).
func TestRestartingServerIsNotAttachedTooEarly(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	for range 10 {
		if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
			t.Fatal(err)
		}
		x.stop()
		// A client of ours that is just being started may still reach the next
		// server too early, if it comes within the time a process takes to start.
		m.awaitStatus(t, func(s Status) bool { return !s.Attached })
		m.awaitNoClients(t)
		x.start()
	}
}

// awaitNoClients waits until every client that was being started has ended.
func (m *Mirror) awaitNoClients(t *testing.T) {
	t.Helper()
	ctx := within(t)
	for left := true; left; {
		leave, err := m.door.pass(ctx) // who is in the door may be about to start one
		if err != nil {
			t.Fatal(err)
		}
		leave()
		left = false
		m.mu.Lock()
		for _, o := range m.own {
			left = left || o.proc != nil
		}
		m.mu.Unlock()
	}
}

func TestServerWithoutSessions(t *testing.T) {
	x := newTmux(t).start()
	x.run("set-option", "-s", "exit-empty", "off")
	m := x.mirror()
	full(t, m)
	x.run("kill-session", "-t", "=main")
	if mod := full(t, m); len(mod.Sessions) != 0 {
		t.Fatalf("sessions: %+v", mod.Sessions)
	}
	x.start()
	if mod := full(t, m); len(mod.Sessions) != 1 {
		t.Fatalf("the new session is not seen")
	}
}

// C11: the session we are attached to is killed while others live.
func TestC11AttachedSessionKilled(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "other", "cat")
	m := x.mirror()
	before := full(t, m)
	x.run("kill-session", "-t", "=main")
	mod := full(t, m)
	if len(mod.Sessions) != 1 || mod.Sessions[0].Name != "other" || mod.Server.ID != before.Server.ID {
		t.Fatalf("after the kill: %+v of %+v", mod.Sessions, mod.Server)
	}
}

func TestCapture(t *testing.T) {
	x := newTmux(t)
	x.run("new-session", "-d", "-s", "main", "-x", "20", "-y", "5",
		"printf '\\033[?25l'; seq 1 30; printf '0123456789012345678901234\\n'; exec cat")
	m := x.mirror()
	awaitText(t, m, 0, "01234")
	n := func(i int) *int { return &i }
	for _, c := range []struct {
		name string
		r    CaptureRange
		want string
	}{
		{"screen", CaptureRange{}, "29|30|01234567890123456789|01234|"},
		{"joined", CaptureRange{Join: true}, "29|30|0123456789012345678901234|"},
		{"history and screen", CaptureRange{Start: n(-2), End: n(0)}, "27|28|29"},
		{"newest rows only", CaptureRange{MaxRows: 2}, "01234|"},
		{"O16 wholly before the history", CaptureRange{Start: n(-1000), End: n(-900)}, ""},
		{"wholly below the screen", CaptureRange{Start: n(100)}, ""},
	} {
		got, err := m.Capture(within(t), 0, c.r)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if text := strings.Join(got.Lines, "|"); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
	if _, err := m.Capture(within(t), 99, CaptureRange{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("pane %%99: %v", err)
	}
}

// awaitText waits until the pane shows text.
func awaitText(t *testing.T, m *Mirror, id controlmode.PaneID, text string) {
	t.Helper()
	ctx := within(t)
	for ctx.Err() == nil {
		c, err := m.Capture(ctx, id, CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(c.Lines, "\n"), text) {
			return
		}
	}
	t.Fatalf("pane %s never showed %q", id, text)
}
