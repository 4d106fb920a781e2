package state

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTapFindsMarksInAnyPieces: wherever chunks end, the same marks are found at
// the same offsets, and what lies between is kept whole.
func TestTapFindsMarksInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const id = "0123456789abcdef"
		noise := rapid.SampledFrom([]string{
			"", "text\r\n", "\x1b", "\x1b]133;", "\x1b]133;C;aid=other\a", "\x1b]133;D;0\a", "\x1b]133;D;0;aid=fedcba9876543210\a",
			"\x1b]133;D;;aid=" + id + "\a", "\x1b]133;D;1x;aid=" + id + "\a", "\x1b]133;D;1;aid=" + id, "\x00", "\x1b[31mred\x1b[m", strings.Repeat("x", 200),
		})
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(noise, 0, 5).Draw(t, name), "")
		}
		before, inside, after := draw("before"), draw("inside"), draw("after")
		status := rapid.IntRange(0, 255).Draw(t, "status")
		start := before + "\x1b]133;C;aid=" + id + "\a"
		all := start + inside + fmt.Sprintf("\x1b]133;D;%d;aid=%s\a", status, id) + after

		o := newOutput(1, 1<<20)
		o.begin(ServerID{1, 1}, 1, GapAttached)
		o.append([]byte(rapid.SampledFrom([]string{"", "older", "\x1b]133;C;aid=" + id + "\a"}).Draw(t, "older")))
		base := o.ring.end
		tap := newTap(id, 1<<20)
		o.tap(tap)
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			o.append([]byte(rest[:n]))
			rest = rest[n:]
		}
		h := o.heard(tap)
		if want := base + int64(len(start)); h.from != want {
			t.Fatalf("begins at %d, want %d", h.from, want)
		}
		if len(h.ends) != 1 || h.ends[0].status != status || h.ends[0].at != base+int64(len(start)+len(inside)) {
			t.Fatalf("ends %+v", h.ends)
		}
		if b, from := o.taken(tap, h.ends[0].at); string(b) != inside || from != h.from {
			t.Fatalf("kept %q from %d, want %q", b, from, inside)
		}
	})
}

// TestTapKeepsTheNewest: beyond its budget the oldest bytes go, the offsets stay.
func TestTapKeepsTheNewest(t *testing.T) {
	const id = "0123456789abcdef"
	o := newOutput(1, 1<<12)
	o.begin(ServerID{1, 1}, 1, GapAttached)
	tap := newTap(id, 1<<13)
	o.tap(tap)
	o.append([]byte("\x1b]133;C;aid=" + id + "\a"))
	for range 100 {
		o.append([]byte(strings.Repeat("y", 999) + "\n"))
	}
	h := o.heard(tap)
	b, from := o.taken(tap, h.end)
	if len(b) != 1<<13 || from != h.end-1<<13 || h.from >= from {
		t.Errorf("%d bytes from %d, begun at %d, end %d", len(b), from, h.from, h.end)
	}
	o.finish(ServerID{1, 1}, GapPaused)
	if h = o.heard(tap); !h.gap || h.live {
		t.Errorf("%+v", h)
	}
	o.untap(tap)
	o.begin(ServerID{1, 1}, 1, GapPaused)
	o.append([]byte("more"))
	if got := o.heard(tap); len(o.taps) != 0 || got.from != h.from {
		t.Error("a tap that was removed is fed")
	}
}
