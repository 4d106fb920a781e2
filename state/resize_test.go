package state

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// resize gives a pane's window another width and waits until the mirror knows.
func (p *printer) resize(t *testing.T, width int) {
	t.Helper()
	p.x.run("resize-window", "-t", p.pane.String(), "-x", strconv.Itoa(width), "-y", "24")
	p.m.awaitModel(t, "resize", func(m *Model) bool {
		pane, ok := m.Pane(p.pane)
		return ok && pane.Width == width
	})
}

// O13: what was printed before a pane was resized is told once, as it was, and
// the resize is no news (case 39).
func TestO13ResizeKeepsWhatWasPrinted(t *testing.T) {
	for name, line := range map[string]func(i int) string{
		"Short":   func(i int) string { return fmt.Sprintf("row %d", i) },
		"Wrapped": func(i int) string { return strconv.Itoa(i) + strings.Repeat("x", 60+17*i) },
		"Blanks":  func(i int) string { return fmt.Sprintf("%d%*s end", i, 30+11*i, "") },
		"Wide":    func(i int) string { return strconv.Itoa(i) + strings.Repeat("\u6f22", 20+9*i) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newTmux(t).quiet("80", "24")
			p := x.printer(x.mirror(), 0)
			before := p.watch()
			want := ""
			for i := range 10 {
				want += line(i) + "\n"
			}
			p.print(crlf(want))
			after := p.delivered(before, len(crlf(want)))
			p.resize(t, 40)
			p.resize(t, 100)
			got, s := p.readAll(t, before, SinceOptions{})
			if got != want || s.Gap != nil || s.Missed != 0 {
				t.Errorf("got %q, gap %+v\nwant %q", got, s.Gap, want)
			}
			if s.Cursor != after {
				t.Errorf("the resizes moved the cursor from %v to %v", after, s.Cursor)
			}
			if got, s := p.readAll(t, s.Cursor, SinceOptions{}); got != "" || s.Gap != nil {
				t.Errorf("the resizes were news: %q %+v", got, s.Gap)
			}
			if got, _ := p.readAll(t, before, SinceOptions{Oldest: true, MaxLines: 1}); got != want {
				t.Errorf("in pages: %q\nwant %q", got, want)
			}
		})
	}
}

// O13: the same while the program goes on printing, with a reader before and one
// that reads all the time.
func TestO13ResizeWhilePrinting(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	p := x.printer(x.mirror(), 0)
	before := p.watch()
	var want strings.Builder
	lines := make([]string, 600)
	for i := range lines {
		lines[i] = fmt.Sprintf("%d:%s", i, strings.Repeat(string(rune('a'+i%26)), i*7%190))
		want.WriteString(lines[i] + "\n")
	}
	burst := make(chan struct{}) // each value lets 50 lines be printed, beside a resize
	printed := make(chan error, 1)
	go func() {
		for i, l := range lines {
			if i%50 == 0 {
				<-burst
			}
			if _, err := p.WriteString(l + "\r\n"); err != nil {
				printed <- err
				return
			}
		}
		printed <- nil
	}()
	live := &joiner{at: before}
	for i := range len(lines) / 50 {
		burst <- struct{}{}
		p.resize(t, 31+(i*37)%90)
		live.all(t, p, SinceOptions{})
	}
	if err := <-printed; err != nil {
		t.Fatal(err)
	}
	p.delivered(before, len(crlf(want.String())))
	live.all(t, p, SinceOptions{})
	sameLines(t, "reader beside", live.text, want.String())
	got, s := p.readAll(t, before, SinceOptions{})
	sameLines(t, "reader from before", got, want.String())
	if s.Gap != nil || s.Missed > 0 {
		t.Errorf("gap %+v, missed %d", s.Gap, s.Missed)
	}
}

// sameLines names the first difference of two long texts.
func sameLines(t *testing.T, what, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			at := func(l []string) []string { return l[min(max(i-1, 0), len(l)):min(i+3, len(l))] }
			t.Errorf("%s: %d lines, want %d; line %d differs: %.300q, want %.300q", what, len(g), len(w), i, at(g), at(w))
			return
		}
	}
}
