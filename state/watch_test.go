package state

import (
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestWatchDeliversWhatFollowsTheScreen(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	x.run("send-keys", "-t", "%0", "before", "Enter")
	awaitText(t, m, 0, "before\nbefore") // the echo, and cat
	c, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(c.Lines, "\n"), "before") {
		t.Fatalf("the seed misses the screen: %q", c.Lines)
	}
	if s, err := m.Since(within(t), 0, at, SinceOptions{}); err != nil || s.Text != "" || s.Gap != nil {
		t.Fatalf("nothing new: %+v %v", s, err)
	}
	x.run("send-keys", "-t", "%0", "-l", "after")
	s, err := m.Since(within(t), 0, at, SinceOptions{Wait: 5 * time.Second})
	if err != nil || s.Gap != nil || !strings.HasPrefix("after", s.Text) || s.Text == "" {
		t.Fatalf("%+v %v", s, err)
	}
	again, err := m.Since(within(t), 0, at, SinceOptions{}) // reads do not consume
	if err != nil || !strings.HasPrefix(again.Text, s.Text) {
		t.Fatalf("%+v %v", again, err)
	}
	snap, err := m.Snapshot(within(t), 0)
	if err != nil || snap.Cursor == nil {
		t.Fatalf("snapshot of a watched pane without a cursor: %v", err)
	}
	if other, _ := m.Snapshot(within(t), 0); other.Cursor.Stream != at.Stream {
		t.Errorf("another stream without a reason")
	}
	if _, err := m.Since(within(t), 1, at, SinceOptions{}); !errors.Is(err, ErrOtherPane) {
		t.Errorf("another pane's cursor: %v", err)
	}
	start := time.Now()
	if s, err := m.Since(within(t), 0, snap.Cursor.orFail(t), SinceOptions{Wait: 50 * time.Millisecond}); err != nil || s.Text != "" || s.Cursor != *snap.Cursor {
		t.Errorf("timeout: %+v %v", s, err)
	} else if time.Since(start) < 50*time.Millisecond {
		t.Errorf("did not wait")
	}
}

func (c *Cursor) orFail(t *testing.T) Cursor {
	t.Helper()
	if c == nil {
		t.Fatal("no cursor")
	}
	return *c
}

var number = regexp.MustCompile(`^[0-9]+$`)

// P2: a pane prints a counter without end; each snapshot joined to the delta from
// its cursor is the counter without a missing or repeated number. The counter is
// held back a little: the race detector makes the transcript slower than tmux.
// TestP2CounterThroughDaemon does without.
func TestP2SnapshotAndDeltaJoin(t *testing.T) {
	x := newTmux(t)
	x.run("new-session", "-d", "-s", "main", "-x", "80", "-y", "24",
		"i=0; while :; do n=0; while [ $n -lt 50 ]; do n=$((n+1)); i=$((i+1)); echo $i; done; sleep 0.005; done")
	m := x.mirror()
	for full := false; !full; { // before that the screen has blank rows
		c, err := m.Capture(within(t), 0, CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		full = c.HistorySize > 0
	}
	if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		snap, err := m.Snapshot(within(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Since(within(t), 0, snap.Cursor.orFail(t), SinceOptions{Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap != nil {
			t.Fatalf("round %d: gap %+v", i, s.Gap)
		}
		text := strings.Join(snap.Lines, "\n")
		if !s.ContinuesLine && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += s.Text
		checkCounter(t, i, text)
	}
	out := m.watches.panes[0].out
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.misses > 0 {
		t.Errorf("%d of %d audits found the transcript different from tmux", out.misses, out.audits)
	}
}

func checkCounter(t *testing.T, round int, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	last := 0
	for i, l := range lines[:len(lines)-1] { // the last may be cut
		if !number.MatchString(l) {
			t.Fatalf("round %d: line %d is %q", round, i, l)
		}
		n, _ := strconv.Atoi(l)
		if last != 0 && n != last+1 {
			t.Fatalf("round %d: %d follows %d", round, n, last)
		}
		last = n
	}
}

func TestUnwatchedPanesArePausedAndDoNotGrow(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-window", "-d", "-t", "main:1", "exec seq 1 100000000")
	m := x.mirror()
	if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
		t.Fatal(err)
	}
	if s := m.Status(); s.StreamsOpen != 1 || s.WatchedPanes != 1 {
		t.Fatalf("%+v", s)
	}
	w := &m.watches
	w.mu.Lock()
	st := w.panes[0].stream
	w.mu.Unlock()
	st.mu.Lock()
	muted := st.muted[1]
	st.mu.Unlock()
	if !muted {
		t.Fatal("the noisy pane was not paused when the client attached")
	}
	// watched later, its output flows from then on
	_, at, err := m.StartWatch(within(t), 1, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := m.Since(within(t), 1, at, SinceOptions{Wait: 5 * time.Second}); err != nil || s.Text == "" {
		t.Fatalf("no output after continue: %+v %v", s, err)
	}
}

// A pane that comes later is paused as soon as it is seen, even if it is silent.
func TestNewPanesArePaused(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
		t.Fatal(err)
	}
	x.run("new-window", "-d", "-t", "main:", "cat")
	s := m.streamOf(t, 0)
	for ctx := within(t); ; {
		s.mu.Lock()
		muted := s.muted[1]
		s.mu.Unlock()
		if muted {
			return
		}
		if _, err := m.Arrive(Full).Model(ctx, Full); err != nil {
			t.Fatalf("the new pane is not paused: %v", err)
		}
	}
}

func TestWatchedPaneMovesToAnotherSession(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "other", "cat")
	x.run("new-window", "-d", "-t", "main:3", "cat") // %2
	m := x.mirror()
	_, at, err := m.StartWatch(within(t), 2, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.run("move-window", "-d", "-s", "main:3", "-t", "other:3")
	ctx := within(t)
	for ctx.Err() == nil {
		m.awaitModel(t, "the pane in the other session", func(mod *Model) bool {
			p, ok := mod.Pane(2)
			return ok && p.Links[0].SessionName == "other"
		})
		s, err := m.Since(ctx, 2, at, SinceOptions{Wait: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap != nil && s.Gap.Reason == GapOwnerChanged {
			break
		}
	}
	_, at, err = m.StartWatch(ctx, 2, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.run("send-keys", "-t", "%2", "-l", "hello")
	if s, err := m.Since(ctx, 2, at, SinceOptions{Wait: 5 * time.Second}); err != nil || s.Text == "" {
		t.Fatalf("after the move: %+v %v", s, err)
	}
}

func TestRespawnEndsTheEpoch(t *testing.T) {
	x := newTmux(t)
	x.run("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat")
	x.run("set-option", "-g", "remain-on-exit", "on")
	m := x.mirror()
	_, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.run("send-keys", "-t", "%0", "C-d")
	ctx := within(t)
	for {
		s, err := m.Since(ctx, 0, at, SinceOptions{Wait: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap != nil {
			if s.Gap.Reason != GapPaneDied || s.Gap.Bytes != nil {
				t.Fatalf("gap %+v", s.Gap)
			}
			at = s.Cursor
			break
		}
	}
	x.run("respawn-pane", "-t", "%0", "echo born; exec cat")
	awaitText(t, m, 0, "born")
	s, err := m.Since(ctx, 0, at, SinceOptions{Wait: 5 * time.Second})
	if err != nil || s.Gap == nil || s.Gap.Reason != GapRespawned {
		t.Fatalf("after the respawn: %+v %v", s, err)
	}
	x.run("send-keys", "-t", "%0", "-l", "more")
	if s, err = m.Since(ctx, 0, s.Cursor, SinceOptions{Wait: 5 * time.Second}); err != nil || s.Text == "" {
		t.Fatalf("the new process is silent: %+v %v", s, err)
	}
}

// M01: a cursor of a server that has gone is refused, not read as another's.
func TestM01CursorOfAnotherServer(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	_, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.stop()
	if _, err := m.Since(within(t), 0, at, SinceOptions{}); !errors.Is(err, ErrNoServer) {
		t.Fatalf("without a server: %v", err)
	}
	x.start()
	if _, err := m.Since(within(t), 0, at, SinceOptions{}); !errors.Is(err, ErrOtherServer) {
		t.Fatalf("on the next server: %v", err)
	}
	if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
		t.Fatal(err)
	}
}

func TestStreamClientKicked(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	_, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range full(t, m).Clients {
		x.run("detach-client", "-t", c.Name)
	}
	s, err := m.Since(within(t), 0, at, SinceOptions{Wait: 5 * time.Second})
	for ctx := within(t); err == nil && s.Gap == nil && ctx.Err() == nil; {
		s, err = m.Since(ctx, 0, at, SinceOptions{Wait: time.Second})
	}
	if err != nil || s.Gap == nil {
		t.Fatalf("%+v %v", s, err)
	}
	x.run("send-keys", "-t", "%0", "-l", "more")
	if s, err = m.Since(within(t), 0, s.Cursor, SinceOptions{Wait: 5 * time.Second}); err != nil || !strings.HasPrefix("more", s.Text) || s.Text == "" {
		t.Fatalf("after the new attachment: %+v %v", s, err)
	}
}

func TestWatchAll(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "other", "cat")
	m := x.mirror(func(c *Config) { c.Watch = WatchAll })
	x.run("new-window", "-d", "-t", "main:3", "cat")
	ctx := within(t)
	for {
		mod := m.Model()
		if s := m.Status(); s.WatchedPanes == 3 && s.StreamsOpen == 2 {
			break
		}
		full(t, m) // the watches follow the published models
		select {
		case <-mod.Superseded():
		case <-ctx.Done():
			t.Fatalf("%+v", m.Status())
		}
	}
}

func TestWatchLinger(t *testing.T) {
	for _, c := range []struct {
		mode    WatchMode
		version string
		want    time.Duration
	}{
		{WatchAuto, "3.3a", 15 * time.Minute},
		{WatchAuto, "3.7c", 15 * time.Minute},
		{WatchAuto, "next-3.8", 15 * time.Minute},
		{WatchAuto, "3.8", 2 * time.Hour},
		{WatchAuto, "4.0", 2 * time.Hour},
		{WatchAuto, "what", 15 * time.Minute},
		{WatchDemand, "3.8", time.Minute},
	} {
		if got := c.mode.linger(c.version); got != c.want {
			t.Errorf("%s on %s: %v, want %v", c.mode, c.version, got, c.want)
		}
	}
}

// unwatch lets the time pass after which a pane nobody reads is not watched any
// more.
func (x *testTmux) unwatch(t *testing.T, m *Mirror) {
	t.Helper()
	m.watches.mu.Lock()
	for _, p := range m.watches.panes {
		p.out.touch(time.Now().Add(-24 * time.Hour))
	}
	m.watches.mu.Unlock()
	for ctx := within(t); m.Status().WatchedPanes > 0; {
		if ctx.Err() != nil {
			t.Fatal("the pane stays watched")
		}
		full(t, m) // the watches follow the published models
	}
}

// A cursor kept for longer than its pane stayed watched says just that; also one
// of an earlier daemon, if this one has gone on with its stream.
func TestGapNotWatched(t *testing.T) {
	x := newTmux(t).start()
	file := filepath.Join(filepath.Dir(x.sock), "cursors")
	m := New(Config{Bin: x.bin, Socket: socketPath(x.sock), CursorFile: file})
	stop := x.runUntil(m)
	_, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.unwatch(t, m)
	x.run("send-keys", "-t", "%0", "-l", "unseen")
	s, err := m.Since(within(t), 0, at, SinceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Gap == nil || s.Gap.Reason != GapNotWatched || s.Cursor.Stream == at.Stream {
		t.Fatalf("%+v, gap %+v", s, s.Gap)
	}
	if again, err := m.Since(within(t), 0, s.Cursor, SinceOptions{}); err != nil || again.Gap != nil {
		t.Fatalf("the gap is told again: %+v %v", again, err)
	}
	x.awaitNextSecond(t)
	stop()

	second := New(Config{Bin: x.bin, Socket: socketPath(x.sock), CursorFile: file})
	defer x.runUntil(second)()
	if s, err = second.Since(within(t), 0, s.Cursor, SinceOptions{}); err != nil || s.Gap != nil {
		t.Fatalf("the stream is gone on with: %+v, %v", s, err)
	}
	x.unwatch(t, second)
	for reason, c := range map[GapReason]Cursor{GapNotWatched: s.Cursor, GapRestarted: at} {
		s, err := second.Since(within(t), 0, c, SinceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap == nil || s.Gap.Reason != reason {
			t.Errorf("gap %+v, want %s", s.Gap, reason)
		}
	}
}

// A pane that is watched again as soon as it is not watched any more: our client
// leaves while another comes, which must not bring down a fragile server.
func TestUnwatchAndWatchAgain(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	pid := x.run("display-message", "-p", "#{pid}")
	for range 40 {
		if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
			t.Fatal(err)
		}
		x.unwatch(t, m)
	}
	if now := x.run("display-message", "-p", "#{pid}"); now != pid {
		t.Errorf("server %s instead of %s", now, pid)
	}
}
