package integration

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// C07: clients come and go, fast, while sessions are created and killed by
// somebody else. The server lives, no client stays, nor a goroutine.
//
// TMUX_MCPD_ATTACHES is how many times (40). The sessions that come and go are
// never the one attached to: below 3.7 tmux can die of that by itself. Nor does
// it, there, survive a session that comes or goes in the moment between a
// control client's first word and its last of who it is (seen on 3.3a and 3.5a,
// with nothing but tmux attach-session; tmux/tmux#4980): so on those releases
// that one moment is kept free. While clients are attached and while they
// leave, sessions come and go on every release.
func TestC07AttachAndDetach(t *testing.T) {
	attaches := int(number(t, "TMUX_MCPD_ATTACHES", 40))
	x := startTmux(t)
	pid := x.pid()
	goroutines := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	churned := 0
	var moment sync.Mutex // held while a client says who it is
	fragile := x.before("3.7")
	if !fragile {
		t.Log("sessions also come and go in the middle of attaching")
	}
	churn := func(words ...string) bool {
		if fragile {
			moment.Lock()
			defer moment.Unlock()
		}
		if _, err := x.try(append([]string{"-N"}, words...)...); err != nil {
			t.Errorf("%d sessions in: %v", churned, err)
			return false
		}
		return true
	}
	wg.Go(func() {
		for ; ctx.Err() == nil; churned++ {
			name := "s" + strconv.Itoa(churned)
			if !churn("new-session", "-d", "-s", name, "-x", "80", "-y", "24", "exec cat") || !churn("kill-session", "-t", "="+name) {
				return
			}
		}
	})
	for i := range attaches {
		if fragile {
			moment.Lock()
		}
		if err := attachOnce(x, i, sync.OnceFunc(func() {
			if fragile {
				moment.Unlock()
			}
		})); err != nil {
			t.Errorf("attachment %d: %v", i, err)
			break
		}
	}
	cancel()
	wg.Wait()
	if now := x.pid(); now != pid {
		t.Errorf("the server's pid was %d and is %d", pid, now)
	}
	until(t, "no client left", func() bool { return x.run("list-clients") == "" })
	until(t, "the goroutines of before", func() bool {
		x.run("list-sessions")
		return runtime.NumGoroutine() <= goroutines
	})
	if left := children(); len(left) > 0 {
		t.Errorf("child processes left: %q", left)
	}
	t.Logf("%d attachments, %d sessions came and went", attaches, churned)
}

// attachOnce attaches to the session that stays and detaches: a bare client of
// either transport or, every tenth time, a whole Mirror with a watched pane.
// attached is called once tmux knows who is there, or has failed to.
func attachOnce(x *tmux, i int, attached func()) error {
	defer attached()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if i%10 == 9 {
		m, stop := x.mirrorUntil()
		_, _, err := m.StartWatch(ctx, 0, state.CaptureRange{})
		attached()
		stop()
		return err
	}
	p, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: x.bin, Socket: controlmode.Socket{Path: x.sock}, Session: 0, Flags: []string{"ignore-size"},
		Transport: []controlmode.Transport{controlmode.PTY, controlmode.Pipe}[i%2],
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	select {
	case <-p.Ready():
	case err := <-ended:
		return fmt.Errorf("not attached: %w", err)
	}
	attached()
	if i%3 == 0 { // the others leave while tmux is still telling them things
		if _, err := p.Do(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("list-panes")}}); err != nil {
			return err
		}
	}
	p.Close()
	return <-ended
}

// C10: a control client hears of its own session's panes only. The output of
// every pane is delivered all the same, also in sessions that came later, and a
// pane nobody listened to says so.
func TestC10EverySessionIsHeard(t *testing.T) {
	x := startTmux(t)
	m := x.mirror()
	read(t, m)
	cursors := map[controlmode.PaneID]state.Cursor{}
	for i := range 4 {
		if i > 0 {
			x.run("new-session", "-d", "-s", fmt.Sprintf("s%d", i), "-x", "80", "-y", "24", "exec cat")
		}
		id := controlmode.PaneID(i)
		_, at, err := m.StartWatch(within(t), id, state.CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		cursors[id] = at
	}
	for id, at := range cursors {
		text := fmt.Sprintf("in%d.", id)
		s := x.say(m, id, at, text)
		if s.Gap != nil || string(s.Raw) != text {
			t.Errorf("pane %v: output %q, gap %+v", id, s.Raw, s.Gap)
		}
		cursors[id] = s.Cursor
	}
	// Another daemon has listened to none of them: a cursor it cannot follow is a
	// gap, never "nothing new".
	other := x.mirror()
	for id, at := range cursors {
		s, err := other.Since(within(t), id, at, raw)
		if err != nil || s.Gap == nil {
			t.Errorf("pane %v that nobody listened to: %+v, %v", id, s, err)
		}
	}
}

// C16 and C17: from attaching to leaving, a client of ours keeps the flags it
// came with, and under a flood it leaves.
func TestC17FloodedClientsLeave(t *testing.T) {
	for _, transport := range []controlmode.Transport{controlmode.PTY, controlmode.Pipe} {
		t.Run(string(transport), func(t *testing.T) {
			x := startTmux(t)
			x.run("respawn-pane", "-k", "-t", "%0", "while :; do echo flood; done")
			x.run("split-window", "-d", "-t", "%0", "exec cat")
			m, stop := x.mirrorUntil(func(c *state.Config) { c.Transport = transport })
			flags := func() string {
				// Without pids: one client may take the place of another, see below.
				all := strings.Split(x.run("list-clients", "-F", "#{s/focused,//:client_flags}"), "\n")
				slices.Sort(all)
				return strings.Join(all, "\n")
			}
			watch := func(id controlmode.PaneID) {
				if _, _, err := m.StartWatch(within(t), id, state.CaptureRange{}); err != nil {
					t.Fatal(err)
				}
			}
			watch(1)
			before := flags()
			for line := range strings.Lines(before) {
				if !strings.Contains(line, "ignore-size") || !strings.Contains(line, "no-output") && !strings.Contains(line, "pause-after") {
					t.Errorf("a client of ours: %s", line)
				}
			}
			watch(0)
			for range 5 {
				read(t, m)
				if _, err := m.Snapshot(within(t), 0); err != nil {
					t.Fatal(err)
				}
			}
			// Behind a flood too fast for us (the race detector) a client can be
			// about to be replaced, and so be missing here.
			for line := range strings.Lines(flags() + "\n") {
				if !strings.Contains(before+"\n", line) {
					t.Errorf("flags were\n%s\nand are\n%s", before, line)
				}
			}
			stop()
			until(t, "no client left", func() bool { return flags() == "" })
			if left := children(); len(left) > 0 {
				t.Errorf("child processes left: %q", left)
			}
		})
	}
}

// before tells whether the tmux under test is older than a release.
func (x *tmux) before(release string) bool {
	x.t.Helper()
	v, err := controlmode.ParseVersion(x.run("display-message", "-p", "#{version}"))
	if err != nil {
		x.t.Fatal(err)
	}
	return !v.AtLeast(release)
}
