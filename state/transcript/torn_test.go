package transcript

import (
	"strings"
	"testing"
)

// A line in whose middle the output was interrupted goes on with what tmux shows
// of it: it is told once, and as a continuation to who has its beginning.
func TestReseedTornLine(t *testing.T) {
	for _, c := range []struct {
		name, before, then string
		shown              string // rows of 20 columns
		want               string // to who has read before
		continues          bool
		all                string // to who has read nothing
	}{
		{"in a word", "a\r\n39", "4", "a\n3943\n3944", "43\n3944", true, "a\n3943\n3944"},
		{"read to the tear", "a\r\n394", "", "a\n3943\n3944", "3\n3944", true, "a\n3943\n3944"},
		{"only its line feed is missing", "a\r\n394", "", "a\n394\n3944", "3944", false, "a\n394\n3944"},
		{"rewritten", "a\r\n394", "", "a\n395\n3944", "395\n3944", false, "a\n394\n395\n3944"},
		{"no line known before it", "394", "", "3943\n3944", "3943\n3944", false, "394\n3943\n3944"},
		{"wrapped", "a\r\n" + strings.Repeat("x", 15), "", "a\n" + strings.Repeat("x", 20) + "\\yy\nb", "xxxxxyy\nb", true, "a\n" + strings.Repeat("x", 20) + "yy\nb"},
		{"torn in a later row", "a\r\n" + strings.Repeat("x", 25), "", "a\n" + strings.Repeat("x", 20) + "\\xxxxxyy\nb", "yy\nb", true, "a\n" + strings.Repeat("x", 25) + "yy\nb"},
		{"nothing torn", "a\r\n", "b\r\n", "a\nb\nc", "b\nc", false, "a\nb\nc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := New(20, 6, 100, Profile33)
			write(tr, c.before)
			at := tr.Offset()
			if c.then != "" {
				write(tr, c.then)
			}
			tr.Skip(1)
			styled := strings.ReplaceAll(c.shown, "\\", "\n")
			rows := strings.Count(styled, "\n")
			pad := strings.Repeat("\n", 6-rows)
			s := SeedState{
				Width: 20, Height: 6, Lower: 5, Wrap: true, HistoryLimit: 100, CursorX: 19, CursorY: rows, AlternateX: -1, AlternateY: -1,
				Styled: []byte(styled + pad), Joined: []byte(strings.ReplaceAll(c.shown, "\\", "") + pad),
			}
			if err := tr.Reseed(s, Interrupted); err != nil {
				t.Fatal(err)
			}
			if d := tr.Since(0, SinceOptions{}); d.Text != c.all {
				t.Errorf("to who has read nothing: %q, want %q", d.Text, c.all)
			}
			d := tr.Since(at, SinceOptions{})
			if d.Text != c.want || d.ContinuesLine != c.continues {
				t.Errorf("%q, continues %v; want %q, %v", d.Text, d.ContinuesLine, c.want, c.continues)
			}
			if d := tr.Since(d.Offset, SinceOptions{}); d.Text != "" {
				t.Errorf("told twice: %q", d.Text)
			}
		})
	}
}
