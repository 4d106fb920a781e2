package transcript

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSeedAgrees seeds from tmux in the middle of random streams and compares
// some more output. tmux does not tell the pen, the character sets and the saved
// cursor (reset here in the middle), which blank rows have cells, and the wrap
// flag of the last row (not asked for by what follows).
func TestSeedAgrees(t *testing.T) {
	r := newRig(t)
	compared := 0
	for i := range 45 {
		k := kind(i % int(kindMalformed))
		size := agreeSizes[i%6]
		first := append(generate(uint64(i), k, size[0], size[1], r.profile), "\x1b[m\x1b(B\x1b)B\x0f\x1b]8;;\x07"...)
		second := fmt.Appendf(nil, "\x1b7\x1b[2;3Hseeded\x1b[K\r\nand \u6f22 then %s\r\n\x1b8more\r\n\x1b[1;1Htop\x1b[%d;1H\nbottom", strings.Repeat("long ", size[0]/3), size[1])
		t.Run(fmt.Sprintf("%d %v %dx%d", i, k, size[0], size[1]), func(t *testing.T) {
			p := r.open(t, size[0], size[1])
			defer p.conn.Close()
			p.send(t, append(first, fence...))
			tr, err := Seed(r.state(t, p), 1000, r.profile)
			if err != nil {
				t.Fatalf("%v after %q", err, first)
			}
			want := parseScreenshot(t, r.capture(t, p), size[0], size[1])
			if d := cmp.Diff(want, shot(tr)); d != "" {
				t.Fatalf("seeded after %q (-tmux +transcript):\n%s", first, d)
			}
			if d := tr.Since(1000, SinceOptions{}); d.Text != "" || tr.Offset() != 1000 {
				t.Errorf("what is seeded is told: %+v", d)
			}
			full := New(size[0], size[1], 2000, r.profile)
			full.Write(append(first, fence...), time.Time{})
			if hidden(tr, full) {
				t.Log("tmux knows more than it tells; what follows may differ")
				return
			}
			compared++
			tr.Write(append(second, fence...), time.Time{})
			p.send(t, append(second, fence...))
			want = parseScreenshot(t, r.capture(t, p), size[0], size[1])
			if d := cmp.Diff(want, shot(tr)); d != "" {
				t.Fatalf("after %q and %q (-tmux +transcript):\n%s", first, second, d)
			}
			r.run(t, "kill-pane", "-t", p.id)
		})
	}
	if compared < 20 {
		t.Errorf("only %d streams could be compared to their ends", compared)
	}
}

// hidden tells whether a seed lacks something that captures do not tell: which
// blank rows have cells, and, where blank rows let the joined capture be read in
// two ways, which of them is wrapped.
func hidden(seeded, full *Transcript) bool {
	for y, r := range seeded.rows {
		f := full.rows[y]
		if (len(r.cells) == 0) != (len(f.cells) == 0) || r.wrapped != f.wrapped || r.used != f.used {
			return true
		}
	}
	return false
}

// TestSeedPending seeds in the middle of a sequence and of a string.
func TestSeedPending(t *testing.T) {
	r := newRig(t)
	p := r.open(t, 20, 5)
	defer p.conn.Close()
	p.send(t, []byte("abc\x1b[>q"))
	tests := []struct{ half, rest, want string }{
		{"\x1b[>q\x1b[1", "0Cx", "abc          x"},
		{"\x1b[>q\x1b]0;ti", "tle\x07y", "abc          xy"},
	}
	for _, tt := range tests {
		p.send(t, []byte(tt.half))
		// The half is parsed when tmux has written the pane's pending bytes.
		s := r.state(t, p)
		for len(bytes.TrimSpace(s.Pending)) == 0 {
			s = r.state(t, p)
		}
		tr, err := Seed(s, 5, r.profile)
		if err != nil {
			t.Fatal(err)
		}
		write(tr, tt.rest)
		if got := tr.Screen()[0]; got != tt.want || tr.Offset() != 5+int64(len(tt.rest)) {
			t.Errorf("pending %q: %q at %d, want %q", s.Pending, got, tr.Offset(), tt.want)
		}
		p.send(t, []byte(tt.rest+fence))
	}
}

// resize resizes the pane's window.
func (r *rig) resize(t *testing.T, p pane, width, height int) {
	t.Helper()
	r.run(t, "resize-window", "-t", p.id, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// TestReseedO13: print 10 rows, resize twice, read from the cursor before them:
// those 10 rows, once.
func TestReseedO13(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("0123456789", 13)
	for _, tt := range []struct {
		name  string
		line  func(i int) string
		after string
	}{
		{"short", func(i int) string { return fmt.Sprintf("row %d", i) }, "$ "},
		{"wrapped", func(i int) string { return fmt.Sprintf("row %d %s end", i, long) }, "$ "},
		{"blank between", func(i int) string { return strings.Repeat("x", i%2*90) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := r.open(t, 80, 24)
			defer p.conn.Close()
			tr := New(80, 24, 2000, r.profile)
			before := "$ make\r\n"
			write(tr, before)
			at := tr.Offset()
			var out, want strings.Builder
			for i := range 10 {
				out.WriteString(tt.line(i) + "\r\n")
				want.WriteString(tt.line(i) + "\n")
			}
			out.WriteString(tt.after)
			want.WriteString(tt.after)
			write(tr, out.String())
			p.send(t, []byte(before+out.String()+fence))
			for _, size := range [][2]int{{40, 10}, {100, 30}} {
				r.resize(t, p, size[0], size[1])
				if err := tr.Reseed(r.state(t, p), Rewrapped); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(parseScreenshot(t, r.capture(t, p), size[0], size[1]), shot(tr)); d != "" {
					t.Fatalf("at %v (-tmux +transcript):\n%s", size, d)
				}
			}
			d := tr.Since(at, SinceOptions{})
			if d.Text != want.String() || d.LostLines != 0 || d.Offset != tr.Offset() {
				t.Errorf("got %q, want %q: %+v", d.Text, want.String(), d)
			}
			if d := tr.Since(d.Offset, SinceOptions{}); d.Text != "" {
				t.Errorf("told twice: %+v", d)
			}
			var pages join1
			for o := at; o < tr.Offset(); {
				d := tr.Since(o, SinceOptions{Oldest: true, MaxLines: 3})
				pages.add(d)
				o = d.Offset
			}
			if strings.TrimRight(pages.text, " ") != strings.TrimRight(want.String(), " ") {
				t.Errorf("in pages %q", pages.text)
			}
			if tt.after != "" {
				write(tr, "ls")
				if d := tr.Since(d.Offset, SinceOptions{}); d.Text != "ls" || !d.ContinuesLine {
					t.Errorf("the prompt went on: %+v", d)
				}
			}
			r.run(t, "kill-pane", "-t", p.id)
		})
	}
}

// TestReseedGone: what a resize or a cleared history took is told from the old
// rows, once, in its place.
func TestReseedGone(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "one\r\ntwo\r\n")
	at := tr.Offset()
	write(tr, "three\r\nfour\r\nfive\r\nsix\r\n$ ")
	s := SeedState{
		Width: 10, Height: 4, Lower: 3, Wrap: true, HistoryLimit: 100, CursorX: 2, CursorY: 2, AlternateX: -1, AlternateY: -1,
		Styled: []byte("five\nsix\n$ \n\n"), Joined: []byte("five\nsix\n$ \n\n"),
	}
	if err := tr.Reseed(s, Rewrapped); err != nil {
		t.Fatal(err)
	}
	d := tr.Since(at, SinceOptions{})
	if want := "three\nfour\nfive\nsix\n$ "; d.Text != want {
		t.Errorf("got %q, want %q", d.Text, want)
	}
	d = tr.Since(at, SinceOptions{Oldest: true, MaxLines: 1})
	if d.Text != "three\n" || !d.More {
		t.Errorf("first page: %+v", d)
	}
	d = tr.Since(d.Offset, SinceOptions{Oldest: true, MaxLines: 2})
	if d.Text != "four\nfive\n" || !d.More {
		t.Errorf("second page: %+v", d)
	}
	if err := tr.Reseed(s, Rewrapped); err != nil {
		t.Fatal(err)
	}
	d = tr.Since(d.Offset, SinceOptions{Oldest: true, MaxLines: 5})
	if d.Text != "six\n$ " || d.More {
		t.Errorf("last page, after a second resize: %+v", d)
	}
}

// TestReseedCorrected: after an audit's miss, only the rows that were wrong are news.
func TestReseedCorrected(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "one\r\ntwo\r\nthree")
	s := SeedState{
		Width: 20, Height: 4, Lower: 3, Wrap: true, HistoryLimit: 100, CursorX: 5, CursorY: 2, AlternateX: -1, AlternateY: -1,
		Styled: []byte("one\nTWO\nthree\n\n"), Joined: []byte("one\nTWO\nthree\n\n"),
	}
	before := tr.Offset() - 1
	if err := tr.Reseed(s, Corrected); err != nil {
		t.Fatal(err)
	}
	if d := tr.Since(before, SinceOptions{}); d.Text != "TWO\nthree" {
		t.Errorf("%+v", d)
	}
	if d := tr.Since(before+1, SinceOptions{}); d.Text != "" {
		t.Errorf("%+v", d)
	}
	if err := tr.Reseed(SeedState{Width: 20, Height: 4, Styled: []byte("a\nb"), Joined: []byte("c")}, Corrected); err == nil {
		t.Error("captures that do not fit were taken")
	}
	if tr.Screen()[1] != "TWO" {
		t.Error("a failed reseed changed something")
	}
}
