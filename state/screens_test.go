package state

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// Screens captured together are what each is alone: of blank and full panes,
// of panes that have changed their size since the model was made, and beside
// panes that do not exist.
func TestSharedScreens(t *testing.T) {
	x := newTmux(t)
	x.run("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "seq 40; exec cat")
	x.run("new-window", "-d", "cat")
	x.run("new-window", "-d", "printf 'a\\n\\n\\nb'; exec cat")
	m := x.mirror()
	awaitText(t, m, 0, "40")
	awaitText(t, m, 2, "b")
	full(t, m)
	known := CaptureRange{RowsOnly: true, MaxRows: 200, RowBytes: 1e6}
	short := CaptureRange{RowsOnly: true, MaxRows: 10, RowBytes: 1e6}
	check := func(when string, r CaptureRange, lines ...int) {
		t.Helper()
		a := m.Arrive(0)
		a.Share([]controlmode.PaneID{2, 0, 1, 0})
		for id, want := range lines {
			c, err := a.Capture(within(t), controlmode.PaneID(id), r)
			if err != nil {
				t.Fatalf("%s: pane %d: %v", when, id, err)
			}
			plain := r
			plain.RowsOnly = false
			alone, err := m.Capture(within(t), controlmode.PaneID(id), plain)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.Lines, alone.Lines) || len(c.Lines) != want || !sameRange(*c, *alone) {
				t.Errorf("%s: pane %d: %+v, alone %+v", when, id, c, alone)
			}
		}
	}
	check("as known", known, 24, 24, 24)
	check("too high", short, 10, 10, 10)
	x.run("resize-window", "-t", "main:1", "-x", "60", "-y", "190")
	check("higher", known, 24, 190, 24)
	x.run("resize-window", "-t", "main:1", "-x", "60", "-y", "300")
	check("higher than allowed", known, 24, 200, 24)

	a := m.Arrive(0)
	a.Share([]controlmode.PaneID{0, 77, 2})
	if c, err := a.Capture(within(t), 2, known); err != nil || !strings.HasPrefix(strings.Join(c.Lines, "|"), "a|||b|") {
		t.Errorf("beside a pane that does not exist: %+v, %v", c, err)
	}
	if _, err := a.Capture(within(t), 77, known); !errors.Is(err, ErrNotFound) {
		t.Errorf("the pane that does not exist: %v", err)
	}
}
