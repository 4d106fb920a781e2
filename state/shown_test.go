package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tmux-mcpd/controlmode"
)

// captured is what Shown must answer for a pane.
func captured(t *testing.T, m *Mirror, id controlmode.PaneID, history int) []string {
	t.Helper()
	r := CaptureRange{Join: true}
	if history > 0 {
		start := -history
		r.Start = &start
	}
	c, err := m.Capture(within(t), id, r)
	if err != nil {
		t.Fatal(err)
	}
	return c.Lines
}

func texts(lines []ShownLine) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = l.Text
	}
	return all
}

// shown waits until the pane can be read from its transcript: a slow answer of
// tmux, or a resize, makes Shown leave it out.
func (p *printer) shown(t *testing.T, history int) (lines []ShownLine) {
	t.Helper()
	until(t, "answered from the transcript", func() (ok bool) {
		lines, ok = p.m.Shown(within(t), []controlmode.PaneID{p.pane}).Lines(p.pane, history)
		return ok
	})
	return lines
}

// What the transcript shows is what a capture of the same range shows, whatever
// has been printed.
func TestShownIsWhatACaptureShows(t *testing.T) {
	x := newTmux(t).quiet("40", "10")
	m := x.mirror()
	for _, c := range []struct{ name, print string }{
		{"Nothing", ""},
		{"Lines", "one\r\ntwo\r\n\r\nfour"},
		{"History", strings.Repeat("a line\r\n", 300)},
		{"Wrapped", strings.Repeat("0123456789", 9) + "\r\nshort\r\n" + strings.Repeat("x", 40) + "\r\n"},
		{"WrappedIntoHistory", strings.Repeat(strings.Repeat("abcdefg", 12)+"\r\n", 30)},
		{"WiderThanTheScreen", strings.Repeat("long ", 200)},
		{"Wide", strings.Repeat("\u6f22\u5b57 ", 30) + "\r\ne\u0301 \U0001f600\r\n"},
		{"Tabs", "a\tb\tc\r\n\t\tend\r\n"},
		{"LineDrawing", "\x1b(0lqqk\r\nx  x\x1b(B\r\n"},
		{"Colours", "\x1b[31mred\x1b[0m \x1b[44m   \x1b[0m\r\n"},
		{"NotUTF8", "caf\xe9 ok\r\n(\xff)\r\n"},
		{"Rewritten", "10%\r20%\r30%\r\n" + "abcdef\x1b[3D\x1b[K\r\n"},
		{"Alternate", "before\r\n\x1b[?1049h\x1b[H\x1b[2Jfull screen\x1b[5;3Hmiddle"},
		{"AlternateLeft", "before\r\n\x1b[?1049h\x1b[H\x1b[2Jfull screen\x1b[?1049lafter\r\n"},
		{"Region", "\x1b[2;5r\x1b[5;1H1\r\n2\r\n3\r\n4\r\n\x1b[r"},
		{"Cleared", strings.Repeat("gone\r\n", 20) + "\x1b[H\x1b[2J\x1b[3Jleft"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := controlmode.ParsePaneID(x.run("new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}", "cat >/dev/null"))
			if err != nil {
				t.Fatal(err)
			}
			defer x.run("kill-pane", "-t", id.String())
			p := x.printer(m, id)
			before := p.watch()
			p.print(c.print)
			p.delivered(before, len(c.print))
			for _, history := range []int{-1, 0, 1, 2, 7, 150, 5000} {
				lines, want := p.shown(t, history), captured(t, m, id, history)
				if got := texts(lines); !slices.Equal(got, want) {
					t.Errorf("%d rows of history: %q\nwant %q", history, got, want)
				}
				p.placed(t, lines, before)
			}
		})
	}
}

// placed: the places of lines are cursors that can be read from.
func (p *printer) placed(t *testing.T, lines []ShownLine, before Cursor) {
	t.Helper()
	for _, l := range lines {
		if l.At.Stream != before.Stream {
			t.Fatalf("%q is placed at %v", l.Text, l.At)
		}
		if _, err := p.m.Since(within(t), p.pane, l.At, SinceOptions{}); err != nil {
			t.Fatalf("%q: %v", l.Text, err)
		}
	}
}

// O13: a line's place is an offset in the output. It stays when the line scrolls
// and is wrapped anew, and reading from it gives what came after the line.
func TestO13PlacesOfLinesStay(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	p := x.printer(x.mirror(), 0)
	before := p.watch()
	p.print("first\r\nthe needle " + strings.Repeat("x", 60) + "\r\nlast\r\n")
	at := p.delivered(before, 11+67+8)
	place := func() Cursor {
		for _, l := range p.shown(t, 100) {
			if strings.HasPrefix(l.Text, "the needle") {
				return l.At
			}
		}
		t.Fatal("no such line")
		return Cursor{}
	}
	was := place()
	if n := was.Offset - before.Offset; n != int64(len("first\r\nthe needle ")+60) {
		t.Errorf("placed at byte %d", n)
	}
	p.resize(t, 40)
	p.print(strings.Repeat("more\r\n", 30))
	p.delivered(at, 180)
	if now := place(); now != was {
		t.Errorf("moved from %v to %v", was, now)
	}
	if got, _ := p.readAll(t, was, SinceOptions{}); got != "last\n"+strings.Repeat("more\n", 30) {
		t.Errorf("after the line: %q", got)
	}
}

// until repeats a question to tmux until it is answered with yes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); {
		if ctx.Err() != nil {
			t.Fatalf("%s: never", what)
		}
	}
}

// P1: what tmux had of a pane when Shown was called is in the answer, or the pane
// is left out; and whatever is done to panes, what is answered is what tmux shows.
func TestP1ShownIsCurrent(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat >/dev/null")
	m := x.mirror()
	p := x.printer(m, 0)
	p.watch()
	r := rand.New(rand.NewPCG(7, 7))
	answered := 0
	for i := range 60 {
		mark := fmt.Sprintf("mark %d.", i)
		p.print(strings.Repeat("z", r.IntN(200)) + mark)
		until(t, mark, func() bool {
			return strings.Contains(x.run("capture-pane", "-p", "-J", "-t", "%0"), mark)
		})
		switch i % 6 {
		case 1:
			x.run("resize-window", "-t", "%0", "-x", fmt.Sprint(30+r.IntN(60)), "-y", fmt.Sprint(5+r.IntN(30)))
		case 2:
			x.run("clear-history", "-t", "%0")
		case 3:
			to := []string{"other", "main"}[i/6%2]
			x.run("move-window", "-s", "%0", "-t", to+":")
		}
		shown := m.Shown(within(t), []controlmode.PaneID{0})
		got, ok := shown.Lines(0, 100)
		if !ok {
			if _, err := m.Since(within(t), 0, p.watch(), SinceOptions{}); err != nil { // follow again
				t.Fatal(err)
			}
			continue
		}
		answered++
		if want := captured(t, m, 0, 100); !slices.Equal(texts(got), want) {
			t.Fatalf("round %d: %q\nwant %q", i, texts(got), want)
		}
	}
	t.Logf("%d answered from the transcript", answered)
	if answered == 0 {
		t.Error("never answered from the transcript")
	}
}

// Panes that are not watched, dead or gone are left out.
func TestShownLeavesOut(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	x.run("set-option", "-g", "remain-on-exit", "on")
	for range 3 {
		x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	}
	m := x.mirror()
	for _, id := range []controlmode.PaneID{0, 1, 2} {
		x.printer(m, id).watch()
	}
	x.run("kill-pane", "-t", "%1")
	if err := syscall.Kill(int(atoi(t, x.run("display-message", "-p", "-t", "%2", "#{pane_pid}"))), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "%2 is dead", func() bool { return x.run("display-message", "-p", "-t", "%2", "#{pane_dead}") == "1" })
	var shown *Shown
	until(t, "%0 is answered from its transcript", func() bool {
		shown = m.Shown(within(t), []controlmode.PaneID{0, 1, 2, 3, 99})
		return shown.Has(0)
	})
	for id, want := range map[controlmode.PaneID]bool{0: true, 1: false, 2: false, 3: false, 99: false} {
		if _, ok := shown.Lines(id, 0); ok != want || shown.Has(id) != want {
			t.Errorf("%v: %v", id, ok)
		}
	}
}
