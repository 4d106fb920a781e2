package state

import (
	"fmt"
	"strings"
	"testing"
)

// O07: what was printed before a full-screen program, and before the pane was
// resized under it, is told once, as it was; its screen is told as that; and the
// transcript is tmux's again when it has ended.
func TestO07ResizeOnTheAlternateScreen(t *testing.T) {
	for name, width := range map[string]int{"Narrower": 40, "Wider": 120, "Same": 80} {
		t.Run(name, func(t *testing.T) {
			x := newTmux(t).quiet("80", "24")
			p := x.printer(x.mirror(), 0)
			before := p.watch()
			want := ""
			for i := range 60 {
				want += fmt.Sprintf("%d%s\n", i, strings.Repeat("x", i*3))
			}
			enter := "\x1b[?1049h\x1b[H\x1b[2Jfull screen"
			p.print(crlf(want) + enter)
			inside := p.delivered(before, len(crlf(want))+len(enter))
			if s, err := p.m.Since(within(t), 0, inside, SinceOptions{}); err != nil || s.news() {
				t.Fatalf("news at the end: %+v %v", s, err)
			}
			p.resize(t, width)
			redraw := "\x1b[H\x1b[2Jredrawn"
			p.print(redraw)
			at := p.delivered(inside, len(redraw))
			s, err := p.m.Since(within(t), 0, inside, SinceOptions{})
			if err != nil || !s.AlternateScreen || s.Text != "redrawn\n" || s.Gap != nil {
				t.Errorf("the full screen: %+v %v", s, err)
			}
			leave := "\x1b[?1049lafter\r\n"
			p.print(leave)
			p.delivered(at, len(leave))
			got, s := p.readAll(t, before, SinceOptions{})
			if got != want+"after\n" || s.Gap != nil || s.Missed != 0 {
				t.Errorf("got %q, gap %+v\nwant %q", got, s.Gap, want+"after\n")
			}
			if got, s := p.readAll(t, inside, SinceOptions{}); got != "after\n" || s.Gap != nil {
				t.Errorf("to who has read the main screen: %q, gap %+v", got, s.Gap)
			}
			checkRows(t, x, p.m, 0)
		})
	}
}
