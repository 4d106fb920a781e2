package transcript

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// streams are all inputs that need no tmux.
func streams(t testing.TB) []recording {
	var out []recording
	for _, c := range sharedCases(t) {
		out = append(out, recording{c.Name, c.Cols, c.Rows, c.Bytes})
	}
	out = append(out, recordings(t)...)
	for k := range kinds {
		for i := range 100 {
			size := agreeSizes[i%len(agreeSizes)]
			out = append(out, recording{k.String(), size[0], size[1], generate(uint64(i), k, size[0], size[1], Profile33)})
		}
	}
	return out
}

// TestCases checks what the shared cases say, without tmux.
func TestCases(t *testing.T) {
	for _, c := range sharedCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			tr := New(c.Cols, c.Rows, 2000, Profile33)
			tr.Write(c.Bytes, time.Time{})
			screen := tr.Screen()
			if c.Name == "22-acs-line-drawing" { // Screen has tmux's letters, the case has boxes
				screen = strings.Split(tr.Since(0, SinceOptions{}).Text, "\n")
			}
			if d := cmp.Diff(tidy(strings.Split(c.Screen, "\n")), tidy(screen)); d != "" {
				t.Errorf("screen (-want +got):\n%s", d)
			}
			if c.Joined != nil {
				if d := cmp.Diff(tidy(strings.Split(*c.Joined, "\n")), tidy(tr.Joined())); d != "" {
					t.Errorf("joined (-want +got):\n%s", d)
				}
			}
			if tr.Offset() != int64(len(c.Bytes)) {
				t.Errorf("offset %d of %d", tr.Offset(), len(c.Bytes))
			}
			checkText(t, tr.Since(0, SinceOptions{}).Text)
			// Where the grid is right and the stream text is another reading: it
			// holds no broken UTF-8 (02), stale rows (12), no U+FFFE (36), and in
			// 3.3a no joiner before a blank (37).
			other := []string{"02-invalid-utf8", "12-progress-wider-than-pane", "36-json-hostile", "37-bidi-zero-width"}
			if c.Stream != "" && !slices.Contains(other, c.Name) {
				want := strings.Split(c.Stream, "\n")
				if d := cmp.Diff(tidy(want), tidy(strings.Split(tr.Since(0, SinceOptions{}).Text, "\n"))); d != "" {
					t.Errorf("since 0 (-want +got):\n%s", d)
				}
			}
			joinsInPages(t, c)
		})
	}
}

// joinsInPages reads a case after every byte and in small pages.
func joinsInPages(t *testing.T, c shared) {
	t.Helper()
	whole := New(c.Cols, c.Rows, 2000, Profile33)
	whole.Write(c.Bytes, time.Time{})
	if whole.Alternate() || strings.Contains(c.Name, "redraw") || strings.Contains(c.Name, "alt-screen") {
		return // their deltas are screens
	}
	want := whole.Since(0, SinceOptions{}).Text
	for _, n := range []int{1, 7, 700} {
		var j join1
		for at := int64(0); at < whole.Offset(); {
			d := whole.Since(at, SinceOptions{Oldest: true, MaxBytes: n})
			if d.Offset <= at {
				t.Fatalf("no progress at %d", at)
			}
			j.add(d)
			at = d.Offset
		}
		if d := cmp.Diff(tidy(strings.Split(want, "\n")), tidy(strings.Split(j.text, "\n"))); d != "" {
			t.Errorf("in pages of %d bytes (-want +got):\n%s", n, d)
		}
	}
}

func checkText(t testing.TB, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %q", s)
	}
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			t.Errorf("control %U in %q", r, s)
		}
	}
}

// TestByteByByte: chunks do not matter. 3.3a forgets a joiner at a chunk's end,
// so streams with one are left out.
func TestByteByByte(t *testing.T) {
	for _, s := range streams(t) {
		if strings.Contains(string(s.stream), "\u200d") || len(s.stream) > 20000 {
			continue
		}
		for _, p := range []Profile{Profile33, Profile38} {
			want := New(s.width, s.height, 2000, p)
			want.Write(s.stream, time.Time{})
			got := New(s.width, s.height, 2000, p)
			for i := range s.stream {
				got.Write(s.stream[i:i+1], time.Time{})
			}
			if d := cmp.Diff(shot(want), shot(got)); d != "" {
				t.Errorf("%s, profile %d (-whole +bytes):\n%s\n%.300q", s.name, p, d, s.stream)
			}
		}
	}
}

// TestNothingMissed: every row that did not change after an offset was there,
// with the same text, at that offset.
func TestNothingMissed(t *testing.T) {
	checked := 0
	for _, s := range streams(t) {
		tr := New(s.width, s.height, 2000, Profile33)
		cuts := []int{len(s.stream) / 3, len(s.stream) * 2 / 3}
		texts := map[int64]map[uint64]string{}
		at := 0
		for _, c := range cuts {
			tr.Write(s.stream[at:c], time.Time{})
			at = c
			rows := map[uint64]string{}
			for i := range tr.rowCount() {
				rows[tr.view(i).id] = trimBlanks(tr.rawText(i))
			}
			texts[tr.Offset()] = rows
		}
		tr.Write(s.stream[at:], time.Time{})
		for off, rows := range texts {
			for i := range tr.rowCount() {
				v := tr.view(i)
				text := trimBlanks(tr.rawText(i))
				if v.changed > off || text == "" {
					continue
				}
				checked++
				if before, ok := rows[v.id]; !ok || before != text {
					t.Errorf("%s: row %d says it last changed at %d, but at %d it was %q, not %q", s.name, i, v.changed, off, before, text)
				}
			}
		}
	}
	if checked < 5000 {
		t.Errorf("only %d rows checked", checked)
	}
}

// TestBounded: memory does not grow with the output.
func TestBounded(t *testing.T) {
	tr := New(80, 24, 200, Profile33)
	r := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for range 2000 {
		b = b[:0]
		for range 50 {
			b = utf8.AppendRune(b, rune('a'+r.IntN(26)))
			for range r.IntN(6) {
				b = utf8.AppendRune(b, rune(0x300+r.IntN(0x60)))
			}
		}
		b = append(b, "\r\n\x1b]0;"...)
		b = append(b, strings.Repeat("t", 3000)...)
		tr.Write(b, time.Time{})
		tr.Write([]byte("\x07\x1b[?1049h\x1b[?1049l\x1b[99999S\x1b[99999b\x1b[99999L"), time.Time{})
	}
	if n := len(tr.clusters.texts); n > maxClusters {
		t.Errorf("%d clusters", n)
	}
	if tr.history.len() > 200 || len(tr.history.ring) > 200 {
		t.Errorf("history of %d in %d", tr.history.len(), len(tr.history.ring))
	}
	if len(tr.pool) > 2*24+1 || cap(tr.str) > 2*maxString || cap(tr.scratchText) > 1<<16 || len(tr.titles) > maxTitles {
		t.Errorf("pool %d, string %d, scratch %d", len(tr.pool), cap(tr.str), cap(tr.scratchText))
	}
}

// FuzzWrite: any bytes in any chunks, at any size, in any profile: no panic, the
// promises about text, and the same rows as in one chunk.
func FuzzWrite(f *testing.F) {
	for _, s := range smalls {
		f.Add(s.bytes(), uint8(10), uint8(4), uint8(0), uint16(3))
	}
	for k := range kinds {
		for i := range 20 {
			f.Add(generate(uint64(i), k, 13, 5, Profile33), uint8(13), uint8(5), uint8(i), uint16(7*i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, width, height, profile uint8, cut uint16) {
		profiles := []Profile{Profile33, Profile34, Profile35, Profile36, Profile38}
		p := profiles[int(profile)%len(profiles)]
		w, h := int(width)%140+1, int(height)%50+1
		tr := New(w, h, 30, p)
		n := min(int(cut), len(b))
		tr.Write(b[:n], time.Time{})
		at := tr.Offset()
		checkText(t, tr.Since(0, SinceOptions{MaxBytes: 100}).Text)
		tr.Write(b[n:], time.Time{})
		if tr.Offset() != int64(len(b)) {
			t.Fatalf("offset %d of %d", tr.Offset(), len(b))
		}
		checkText(t, tr.Since(at, SinceOptions{}).Text)
		for i := 0; at < tr.Offset(); i++ {
			d := tr.Since(at, SinceOptions{Oldest: true, MaxLines: 2, MaxBytes: 50})
			checkText(t, d.Text)
			if d.Offset < at || d.Offset == at && d.More || i > len(b)+h+100 {
				t.Fatalf("paging stands at %d of %d: %+v", at, tr.Offset(), d)
			}
			at = d.Offset
		}
		if x, y := tr.Cursor(); x < 0 || x > w || y < 0 || y >= h || tr.HistorySize() > 30 {
			t.Fatalf("cursor %d,%d history %d", x, y, tr.HistorySize())
		}
		if slices.Contains(tr.rows, nil) || len(tr.rows) != h {
			t.Fatal("rows are missing")
		}
		if len(tr.Rows()) != tr.HistorySize()+h {
			t.Fatal("rows and history do not add up")
		}
	})
}

// FuzzSeed: captures of any content make a transcript or an error.
func FuzzSeed(f *testing.F) {
	f.Add([]byte("a\nb\n\n"), []byte("ab\n\n"), []byte("\\033[3"), uint8(10), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, styled, joined, pending []byte, width, height, history uint8) {
		tr, err := Seed(SeedState{
			Width: int(width), Height: int(height), HistorySize: int(history), HistoryLimit: 100, Lower: int(height) - 1,
			Styled: styled, Joined: joined, Pending: pending, Alternate: height%2 == 1, SavedStyled: styled, SavedJoined: joined,
		}, 5, Profile38)
		if err != nil {
			return
		}
		tr.Write([]byte("x\r\n\x1b[?1049lx"), time.Time{})
		checkText(t, tr.Since(0, SinceOptions{}).Text)
	})
}
