package state

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// The respawn fault of tmux up to 3.7c (control-mode.md 12.1): a server dies
// when a pane is respawned while a client has output of the old process to get.
// A program that prints and exits leaves such output behind, so a daemon that
// did not pause the pane at its death would cost the user all sessions at the
// next respawn. Nothing of ours reads the pane in between: the daemon has to
// notice by itself.
func TestRespawnFault(t *testing.T) {
	t.Run("Watched", func(t *testing.T) {
		t.Parallel() // it waits more than it works
		x := respawnTmux(t)
		m := x.mirror()
		_, at, err := m.StartWatch(within(t), 1, CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		x.respawns("%1", func(i int) string {
			if i%2 == 0 {
				return "" // mostly over before anybody has noticed
			}
			return "read x; seq 1 3000"
		}, func() {
			out := m.watches.panes[1].out
			pid, err := strconv.Atoi(x.run("display-message", "-p", "-t", "%1", "#{pane_pid}"))
			if err != nil {
				t.Fatal(err)
			}
			for ctx := within(t); !out.live(pid); {
				select {
				case <-out.changed():
				case <-ctx.Done():
					t.Fatal("the new process is not watched")
				}
			}
			x.run("send-keys", "-t", "%1", "Enter")
		})
		s, err := m.Since(within(t), 1, at, SinceOptions{})
		if err != nil || s.Gap == nil || s.Text == "" {
			t.Fatalf("after the respawns: %+v %v", s, err)
		}
	})
	t.Run("NotWatched", func(t *testing.T) {
		t.Parallel() // it waits more than it works
		x := respawnTmux(t)
		full(t, x.mirror())
		x.respawns("%1", nil, nil)
	})
	t.Run("OthersWatched", func(t *testing.T) {
		t.Parallel() // it waits more than it works
		x := respawnTmux(t)
		m := x.mirror()
		if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
			t.Fatal(err)
		}
		x.respawns("%1", nil, nil) // was there when our client came
		x.run("new-window", "-d", "-t", "main:", "seq 1 3000")
		x.died("%2")
		x.respawns("%2", nil, nil) // came later: heard until it is paused
	})
}

// respawnTmux is a server that keeps dead panes, with a quiet pane %0, and a
// pane %1 whose program has printed and exited.
func respawnTmux(t *testing.T) *testTmux {
	x := newTmux(t).start()
	x.run("set-option", "-g", "remain-on-exit", "on")
	x.run("new-window", "-d", "-t", "main:", "seq 1 3000")
	x.died("%1")
	return x
}

// died waits until tmux reports a pane's death. It asks again and again, each
// time with a tmux process: the hook pane-died did not always run on 3.3a.
func (x *testTmux) died(pane string) {
	x.t.Helper()
	ctx := within(x.t)
	for x.run("display-message", "-p", "-t", pane, "#{pane_dead}") != "1" {
		if ctx.Err() != nil {
			x.t.Fatalf("pane %s does not die", pane)
		}
	}
}

// paused waits until the daemon has paused a pane on the client that heard it. On
// a machine that does nothing else that was so long before; one that is busy
// with others may not have let the daemon run at all within 200 ms.
func (x *testTmux) paused(pane string) {
	x.t.Helper()
	id, err := controlmode.ParsePaneID(pane)
	if err != nil {
		x.t.Fatal(err)
	}
	for ctx := within(x.t); ; {
		x.m.watches.mu.Lock()
		var s *stream
		if p := x.m.watches.panes[id]; p != nil {
			s = p.stream
		}
		x.m.watches.mu.Unlock()
		if s == nil { // nobody listens to it by itself; unwatched panes are paused at once
			_, err = x.m.Do(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}})
		} else {
			_, err = s.ask(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
			s.mu.Lock()
			muted := s.muted[id]
			s.mu.Unlock()
			if err == nil && !muted {
				continue
			}
			if err == nil { // the pause was sent before this, and is done when it is answered
				_, err = s.ask(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
			}
		}
		if err != nil {
			x.t.Fatalf("pane %s: %v", pane, err)
		}
		return
	}
}

// respawns has the user respawn a dead pane again and again, each time 200 ms
// after tmux has reported its death: that is the time the daemon has. A timer is
// waited for because that time itself is what the promise is about; no other
// event says that nothing more is going to happen. program may name another one
// for a round, which prints only after running has been called.
func (x *testTmux) respawns(pane string, program func(round int) string, running func()) {
	x.t.Helper()
	rounds := 20
	if n, err := strconv.Atoi(os.Getenv("TMUX_MCPD_RESPAWNS")); err == nil {
		rounds = n
	}
	server := x.run("display-message", "-p", "#{pid}")
	limit := time.NewTimer(time.Duration(rounds) * 5 * time.Second)
	defer limit.Stop()
	for i := range rounds {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-limit.C:
			x.t.Fatalf("%d respawns took too long", i)
		}
		x.paused(pane)
		run, waits := "seq 1 3000", false
		if program != nil && program(i) != "" {
			run, waits = program(i), true
		}
		if out, err := x.command("respawn-pane", "-t", pane, run).CombinedOutput(); err != nil {
			x.t.Fatalf("respawn %d: %v: %s", i+1, err, out)
		}
		if waits {
			running()
		}
		x.died(pane)
		if out, err := x.command("display-message", "-p", "#{pid}").CombinedOutput(); strings.TrimSpace(string(out)) != server {
			x.t.Fatalf("respawn %d: server %s became %s: %v", i+1, server, out, err)
		}
	}
	if n, _ := strconv.Atoi(x.run("display-message", "-p", "-t", pane, "#{history_size}")); n < 100 {
		x.t.Fatalf("pane %s did not print: %d rows of history", pane, n)
	}
}

// A pane that is dead already can be read from: what it shows, and a cursor.
// Dead panes have no pid on tmux 3.8.
func TestWatchDeadPane(t *testing.T) {
	x := respawnTmux(t)
	m := x.mirror()
	for range 2 {
		c, at, err := m.StartWatch(within(t), 1, CaptureRange{})
		if err != nil || len(c.Lines) == 0 || at.Stream.Pane() != 1 {
			t.Fatalf("cursor %v, %d lines, %v", at, len(c.Lines), err)
		}
		if s, err := m.Since(within(t), 1, at, SinceOptions{Wait: 10 * time.Second}); err != nil || s.news() || s.Cursor != at {
			t.Fatalf("a dead pane has news: %+v %v", s, err)
		}
	}
}

// O14: what a program printed last is told even if tmux never delivered it, once
// it is on the screen; a gap says that there may have been more, and tmux's own
// words about the death are not taken for output.
func TestO14LastOutputOfDeadPane(t *testing.T) {
	x := newTmux(t).start()
	x.run("set-option", "-g", "remain-on-exit", "on")
	m := x.mirror()
	for i := range 5 {
		id, err := controlmode.ParsePaneID(x.run("new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}", "read x; seq 1 4000; printf '%s' 'the end'"))
		if err != nil {
			t.Fatal(err)
		}
		_, at, err := m.StartWatch(within(t), id, CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		x.run("send-keys", "-t", id.String(), "Enter")
		j := &joiner{at: at}
		for ctx := within(t); j.last == nil || j.last.Gap == nil; {
			s, err := m.Since(ctx, id, j.at, SinceOptions{Wait: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			j.add(t, s)
		}
		if j.last.Gap.Reason != GapPaneDied || strings.Contains(j.text, "Pane is dead") {
			t.Errorf("round %d: gap %+v after %.100q", i, j.last.Gap, j.text)
		}
		rows := strings.Split(x.run("capture-pane", "-p", "-t", id.String()), "\n")
		if strings.HasPrefix(rows[len(rows)-1], deathNotice) {
			rows = rows[:len(rows)-1]
		}
		shown := strings.TrimRight(strings.Join(rows, "\n"), "\n")
		// More may be told than is shown: tmux's words can stand where the last
		// line was.
		if !strings.Contains(j.text, shown) {
			t.Errorf("round %d: told %q at last, shown is %q", i, j.text[max(len(j.text)-300, 0):], shown)
		}
		if s, err := m.Since(within(t), id, j.at, SinceOptions{}); err != nil || s.news() {
			t.Errorf("round %d: told again: %q, gap %+v, %v", i, s.Text, s.Gap, err)
		}
	}
}
