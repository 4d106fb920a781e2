package state

import (
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// nextGap reads on until there is a gap and tells which.
func (j *joiner) nextGap(t *testing.T, p *printer) GapReason {
	t.Helper()
	for ctx := within(t); ; {
		s, err := p.m.Since(ctx, p.pane, j.at, SinceOptions{Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if j.add(t, s); s.Gap != nil {
			return s.Gap.Reason
		}
	}
}

// goesOn: what is printed from now on is told, once.
func (j *joiner) goesOn(t *testing.T, p *printer, line string) {
	t.Helper()
	p.print(line + "\r\n")
	for ctx := within(t); !strings.Contains(j.text, line); {
		s, err := p.m.Since(ctx, p.pane, j.at, SinceOptions{Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if j.add(t, s); s.Gap != nil {
			t.Fatalf("a gap before %q: %+v", line, s.Gap)
		}
	}
	if n := strings.Count(j.text, line); n != 1 {
		t.Fatalf("%q was told %d times", line, n)
	}
}

// streamOf is the client that receives a pane's output.
func (m *Mirror) streamOf(t *testing.T, id controlmode.PaneID) *stream {
	t.Helper()
	s, _ := m.watches.liveStream(id)
	if s == nil {
		t.Fatalf("nobody receives pane %s", id)
	}
	return s
}

// C05: a daemon that does not read must not stop the programs. tmux pauses the
// pane instead; the reader is told, and everything goes on.
func TestC05PausedByTmux(t *testing.T) {
	t.Parallel() // it waits more than it works
	x := newTmux(t).quiet("80", "24")
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 0)
	j := &joiner{at: p.watch()}
	j.goesOn(t, p, "before the pause")

	// The reader goroutine of the client stops where it delivers: in the log.
	out := m.watches.panes[0].out
	out.mu.Lock()
	printed := make(chan int, 1)
	go func() { printed <- p.flood(6 << 20) }()
	select {
	case <-printed: // the program was not held up, though nobody read
	case <-time.After(60 * time.Second):
		out.mu.Unlock()
		t.Fatal("the program is held up")
	}
	// pause-after is three seconds: the oldest output must get older than that
	// before tmux looks at it again. Only time makes it so.
	for end := time.After(3500 * time.Millisecond); end != nil; {
		select {
		case <-end:
			end = nil
		default:
			x.run("display-message", "-p", "")
		}
	}
	p.print("late\r\n")
	out.mu.Unlock()
	if r := j.nextGap(t, p); r != GapPaused {
		t.Fatalf("gap %q", r)
	}
	j.goesOn(t, p, "after the pause")
	other := x.printer(m, 1)
	(&joiner{at: other.watch()}).goesOn(t, other, "beside")
}

// A stream client that is killed is replaced; readers are told.
func TestStreamClientKilled(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror()
	p := x.printer(m, 0)
	j := &joiner{at: p.watch()}
	for range 3 {
		j.goesOn(t, p, "line "+time.Now().String())
		m.streamOf(t, 0).proc.Close()
		if r := j.nextGap(t, p); r != GapAttached {
			t.Fatalf("gap %q", r)
		}
	}
	j.goesOn(t, p, "the end")
}

// A pane that is linked into other sessions, moved, or left alone by its owner's
// session keeps its log and its readers, C10 and C13; each change of the owner is
// a gap.
func TestOwnerChanges(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("new-session", "-d", "-s", "second", "cat >/dev/null")
	x.run("new-session", "-d", "-s", "third", "cat >/dev/null")
	x.run("new-window", "-d", "-t", "third:5", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 3)
	j := &joiner{at: p.watch()}
	stream := j.at.Stream
	j.goesOn(t, p, "in third")

	x.run("link-window", "-d", "-s", "third:5", "-t", "second:7") // a session with a lower id owns it now
	if r := j.nextGap(t, p); r != GapOwnerChanged {
		t.Fatalf("linked: gap %q", r)
	}
	j.goesOn(t, p, "in second and third")
	x.run("unlink-window", "-t", "third:5")
	j.goesOn(t, p, "in second")
	x.run("move-window", "-d", "-s", "second:7", "-t", "main:9")
	if r := j.nextGap(t, p); r != GapOwnerChanged {
		t.Fatalf("moved: gap %q", r)
	}
	j.goesOn(t, p, "in main")
	if j.at.Stream == stream {
		t.Error("the stream has not changed")
	}
	for _, line := range []string{"in third", "in second and third", "in second", "in main"} {
		if strings.Count(j.text, line+"\n") == 0 {
			t.Errorf("%q was not told: %q", line, j.text)
		}
	}
}

// Sessions of one group show the same windows: one client receives their output,
// also when the session it was attached to ends.
func TestSessionGroup(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("new-session", "-d", "-s", "twin", "-t", "main")
	m := x.mirror()
	p := x.printer(m, 0)
	j := &joiner{at: p.watch()}
	j.goesOn(t, p, "in both")
	if s := m.Status(); s.StreamsOpen != 1 {
		t.Errorf("%d stream clients", s.StreamsOpen)
	}
	x.run("kill-session", "-t", "=main")
	if r := j.nextGap(t, p); r != GapAttached && r != GapOwnerChanged {
		t.Fatalf("gap %q", r)
	}
	j.goesOn(t, p, "in the twin")
}

// With detach-on-destroy off tmux moves our clients to another session instead of
// ending them. A client that is somewhere else receives nothing of its pane.
func TestDetachOnDestroyOff(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("set-option", "-g", "detach-on-destroy", "off")
	x.run("new-session", "-d", "-s", "other", "cat >/dev/null")
	x.run("new-window", "-d", "-t", "other:", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 2)
	j := &joiner{at: p.watch()}
	j.goesOn(t, p, "in other")
	x.run("link-window", "-d", "-s", "other:1", "-t", "main:4")
	j.nextGap(t, p) // main owns it
	x.run("new-session", "-d", "-s", "later", "cat >/dev/null")
	x.run("move-window", "-d", "-s", "main:4", "-t", "later:4")
	j.nextGap(t, p) // other does again
	x.run("kill-session", "-t", "=other")
	if r := j.nextGap(t, p); r != GapAttached && r != GapOwnerChanged {
		t.Fatalf("gap %q", r)
	}
	j.goesOn(t, p, "in later")
}

// C10: a pane of a session that nothing else of ours is attached to is received,
// too, from the first byte on.
func TestC10EverySessionIsHeard(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror()
	full(t, m)
	x.run("new-session", "-d", "-s", "later", "cat >/dev/null")
	for _, id := range []controlmode.PaneID{0, 1} {
		p := x.printer(m, id)
		j := &joiner{at: p.watch()}
		j.goesOn(t, p, "hello")
		if j.text != "hello\n" {
			t.Errorf("pane %s: %q", id, j.text)
		}
	}
	if s := m.Status(); s.StreamsOpen != 2 {
		t.Errorf("%d stream clients for two sessions", s.StreamsOpen)
	}
}
