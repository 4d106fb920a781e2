package transcript

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReadAtEverySplit: a reader who looks where the output happens to end, be it in
// the middle of a character, is given the rest of the line and nothing twice.
func TestReadAtEverySplit(t *testing.T) {
	for _, line := range []string{
		strings.Repeat("\u6f22\u5b57", 38) + "e\u0301" + "abc",
		strings.Repeat("\u6f22\u5b57", 20) + "e\u0301" + "abc",
		strings.Repeat("\u6f22\u5b57", 51) + "e\u0301",
		"x" + strings.Repeat("\u6f22\u5b57", 60),
		strings.Repeat("e\u0301", 100),
		strings.Repeat("x", 200),
		"word " + strings.Repeat("\u6f22\u5b57 ", 40) + "end",
		strings.Repeat("e\u0301\u0323 \u6f22\u0301", 30) + "end",
	} {
		text := "before\r\n" + line + "\r\nafter\r\n" + strings.Repeat("more\r\n", 50)
		want := strings.ReplaceAll(text, "\r\n", "\n")
		for split := range text {
			for _, p := range []Profile{Profile33, Profile35, Profile36, Profile38} {
				tr := New(80, 24, 2000, p)
				var j join1
				write(tr, text[:split])
				d := tr.Since(0, SinceOptions{})
				j.add(d)
				tr.Pin()
				write(tr, text[split:])
				j.add(tr.Since(d.Offset, SinceOptions{}))
				if j.text != want {
					t.Fatalf("profile %d, split at %d of %q: %q", p, split, text[max(0, split-9):], j.text)
				}
			}
		}
	}
}

// TestReadersOfRandomChunks: several readers look now and then while lines arrive in
// pieces; each is given every byte of the text once, and nothing twice.
func TestReadersOfRandomChunks(t *testing.T) {
	pieces := []string{"a", "word", " ", "\u6f22", "\u5b57", "e\u0301", "\u0301", "\r\n", "-", strings.Repeat("x", 30), strings.Repeat("\u6f22", 20)}
	rapid.Check(t, func(t *rapid.T) {
		text := "begin "
		for range rapid.IntRange(0, 120).Draw(t, "pieces") {
			text += rapid.SampledFrom(pieces).Draw(t, "piece")
		}
		text += "end\r\n"
		want := trimmed(strings.ReplaceAll(text, "\r\n", "\n"))
		tr := New(rapid.IntRange(20, 90).Draw(t, "width"), 24, 5000, rapid.SampledFrom([]Profile{Profile33, Profile35}).Draw(t, "profile"))
		readers := make([]join1, rapid.IntRange(1, 4).Draw(t, "readers"))
		at, looked := make([]int64, len(readers)), make([]int, len(readers))
		look := func(i int) {
			d := tr.Since(at[i], SinceOptions{})
			readers[i].add(d)
			at[i] = d.Offset
			tr.Pin()
		}
		for chunks := 0; len(text) > 0; chunks++ {
			n := rapid.IntRange(1, min(len(text), 40)).Draw(t, "chunk")
			write(tr, text[:n])
			text = text[n:]
			for i := range readers {
				if rapid.Bool().Draw(t, "reads") || chunks-looked[i] == 50 { // before its place is forgotten
					look(i)
					looked[i] = chunks
				}
			}
		}
		for i := range readers {
			look(i)
			if trimmed(readers[i].text) != want {
				t.Fatalf("reader %d of width %d:\n%q\nwant\n%q", i, tr.width, readers[i].text, want)
			}
		}
	})
}

// trimmed is a text without blanks at the ends of its lines, which a reader may or
// may not have seen, and without what has nothing to join.
func trimmed(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		if rest, ok := strings.CutSuffix(l, "\n"); ok {
			lines[i] = strings.TrimRight(strings.TrimLeft(rest, "\u0301"), " ") + "\n"
		}
	}
	return strings.Join(lines, "")
}
