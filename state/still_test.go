package state

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// requests is how much has been asked on the client that receives the pane.
func (p *printer) requests() uint64 {
	s, _ := p.m.watches.liveStream(p.pane)
	if s == nil {
		return 0
	}
	return s.proc.Stats().Requests
}

// unasked reads what follows a cursor until it is answered without asking tmux.
func (p *printer) unasked(at Cursor) {
	p.x.t.Helper()
	until(p.x.t.(*testing.T), "answered without asking tmux", func() bool {
		before := p.requests()
		if s, err := p.m.Since(within(p.x.t), p.pane, at, SinceOptions{}); err != nil || s.Gap != nil {
			p.x.t.Fatalf("%+v %v", s, err)
		}
		return before != 0 && p.requests() == before
	})
}

// While tmux sleeps a reader is answered without waking it.
func TestSinceLetsTmuxSleep(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells whether a process sleeps")
	}
	x := newTmux(t).quiet("80", "24")
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 0)
	at := p.watch()
	p.unasked(at)
	p.print("text\r\n")
	at = p.delivered(at, 6)
	p.unasked(at)
	// Whatever may take the pane from the client, or change its size or process.
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	for _, change := range [][]string{
		{"resize-window", "-t", "%0", "-x", "60", "-y", "20"},
		{"split-window", "-d", "-t", "%0", "cat >/dev/null"},
		{"resize-pane", "-t", "%0", "-y", "5"},
		{"resize-pane", "-Z", "-t", "%0"},
		{"swap-pane", "-d", "-s", "%0", "-t", "other:0.0"},
		{"swap-pane", "-d", "-s", "%0", "-t", "main:0.0"},
		{"join-pane", "-d", "-s", "%0", "-t", "other:"},
		{"join-pane", "-d", "-s", "%0", "-t", "main:0"},
		{"break-pane", "-d", "-s", "%0", "-t", "other:"},
		{"move-window", "-d", "-s", "%0", "-t", "main:7"},
		{"link-window", "-d", "-s", "main:7", "-t", "other:8"},
		{"unlink-window", "-t", "main:7"},
		{"move-window", "-d", "-s", "other:8", "-t", "main:7"},
		{"respawn-pane", "-k", "-t", "%0", "cat >/dev/null"},
	} {
		x.run(change...)
		s, _ := m.watches.liveStream(0)
		before := p.requests()
		read, err := m.Since(within(t), 0, at, SinceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if now, _ := m.watches.liveStream(0); now == s && p.requests() == before {
			t.Errorf("tmux was not asked after %q", change)
		}
		at = read.Cursor
		p.unasked(at)
	}
}

// A pipe does not tell which process reads it: tmux is always asked.
func TestSinceAsksThroughAPipe(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror(func(c *Config) { c.Transport = controlmode.Pipe })
	p := x.printer(m, 0)
	at := p.watch()
	for range 10 {
		before := p.requests()
		if _, err := m.Since(within(t), 0, at, SinceOptions{}); err != nil {
			t.Fatal(err)
		}
		if p.requests() == before {
			t.Fatal("tmux was not asked")
		}
	}
}

// A process of that number that is not the server proves nothing.
func TestAnotherProcessIsNotTheServer(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror()
	p := x.printer(m, 0)
	p.watch()
	s, _ := m.watches.liveStream(0)
	pid := int(atoi(t, x.run("display-message", "-p", "-t", "%0", "#{pane_pid}")))
	for range 100 {
		if w := watchSleep(pid, s.proc.Terminal()); w.asleep() {
			t.Fatal("the pane's program was taken for the server")
		}
	}
	if w := watchSleep(1<<22+1, s.proc.Terminal()); w.asleep() {
		t.Fatal("a process that there is not sleeps")
	}
}

// P1: what tmux had of a pane when Since was called is in the answer, whatever is
// done to the pane in between, and whether or not tmux was asked.
func TestP1SinceIsCurrent(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("set-option", "-g", "remain-on-exit", "on")
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 0)
	at := p.watch()
	r := rand.New(rand.NewPCG(3, 4))
	asked, unasked := 0, 0
	for i := range 120 {
		mark := fmt.Sprintf("mark %d.", i)
		if i%4 != 3 {
			p.print(strings.Repeat("z", r.IntN(60)) + mark + "\r\n")
			until(t, mark, func() bool {
				return strings.Contains(x.run("capture-pane", "-p", "-J", "-t", "%0"), mark)
			})
		}
		gone := false
		switch i % 12 {
		case 1:
			x.run("resize-window", "-t", "%0", "-x", fmt.Sprint(70+r.IntN(60)), "-y", fmt.Sprint(15+r.IntN(30)))
		case 5:
			to := []string{"other", "main"}[i/12%2]
			x.run("move-window", "-s", "%0", "-t", to+":")
		case 9:
			x.run("respawn-pane", "-k", "-t", "%0", "cat >/dev/null")
			gone = true
		}
		before := p.requests()
		s, err := m.Since(within(t), 0, at, SinceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p.requests() == before {
			unasked++
		} else {
			asked++
		}
		at = s.Cursor
		if gone {
			if s.Gap == nil {
				t.Fatalf("round %d: another process, and no gap: %+v", i, s)
			}
			p = x.printer(m, 0)
			continue
		}
		if i%4 != 3 && s.Gap == nil && strings.Count(s.Text, mark) != 1 {
			t.Fatalf("round %d: %+v", i, s)
		}
	}
	t.Logf("asked %d times, not %d times", asked, unasked)
}

func TestProcessRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !processRuns(cmd.Process.Pid) {
		t.Error("a process that runs")
	}
	in.Close()
	until(t, "ended, and not reaped", func() bool { return !processRuns(cmd.Process.Pid) })
	cmd.Wait()
	if processRuns(cmd.Process.Pid) {
		t.Error("a process that has been reaped")
	}
}
