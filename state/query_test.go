package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// render writes a row as tmux does; vis writes texts as tmux 3.5a does.
func render(words, texts []string, vis bool) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w + ",")
	}
	for _, t := range texts {
		for _, c := range []byte(t) {
			switch {
			case strings.IndexByte("|&;<>()$`\\\"'*?[# =%", c) >= 0:
				b.WriteByte('\\')
				b.WriteByte(c)
			case vis && c == '\r':
				b.WriteString(`\r`)
			case vis && (c < 0x20 && c != '\t' && c != '\n' || c >= 0x7f):
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteByte(c)
			}
		}
		b.WriteByte('|')
	}
	return b.String()
}

// M05: whatever names and titles hold, a row is cut where it ends, in the form
// of every tmux version.
func TestM05ListingRowsAreCutByQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newListing([]string{"a", "b"}, []string{"x", "y", "z"})
		text := rapid.OneOf(rapid.StringN(0, 8, 30), rapid.StringMatching(`[|,\n\\0-9\x01\x1f\t\r]{0,12}`))
		vis := rapid.Bool().Draw(t, "vis")
		var want [][]string
		var lines []string
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			words := []string{fmt.Sprint(rapid.Uint16().Draw(t, "n")), ""}
			texts := []string{text.Draw(t, "x"), text.Draw(t, "y"), text.Draw(t, "z")}
			want = append(want, append(words, texts...))
			lines = append(lines, render(words, texts, vis))
		}
		var got [][]string
		err := l.each([]byte(strings.Join(lines, "\n")), func(r *row) {
			got = append(got, []string{
				string(r.words[0]), string(r.words[1]), r.text(0), r.text(1), r.text(2),
			})
		})
		if err != nil {
			t.Fatalf("%v in %q", err, lines)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// M05: an unreadable listing is an error, never a shorter list.
func TestM05UnreadableListingIsNoEmptyList(t *testing.T) {
	l := newListing([]string{"a"}, []string{"x", "y"})
	good := render([]string{"1"}, []string{"ab", "cd"}, false)
	for i := 1; i < len(good); i++ {
		if err := l.each([]byte(good[:i]), func(*row) {}); err == nil {
			t.Errorf("%q was taken for a row", good[:i])
		}
	}
	for _, bad := range []string{"1\tab\tcd", `1\037ab\037cd`, "1|ab|cd|", "1,ab|cd|e", `1,ab|cd\|`, "1,2", "%end 1 2 1"} {
		if err := l.each([]byte(bad), func(*row) {}); err == nil {
			t.Errorf("%q was taken for a row", bad)
		}
	}
	n := 0
	if err := l.each(nil, func(*row) { n++ }); err != nil || n != 0 {
		t.Errorf("an empty list: %d rows, %v", n, err)
	}
}

func FuzzListing(f *testing.F) {
	f.Add("1,ab|cd|")
	f.Add("1,a\\001|\\|cd|\n2,||")
	f.Fuzz(func(t *testing.T, s string) {
		newListing([]string{"a"}, []string{"x", "y"}).each([]byte(s), func(r *row) { r.num(0) })
	})
}

func TestCaptureRangeEffective(t *testing.T) {
	n := func(i int) *int { return &i }
	str := func(p *int) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	for _, c := range []struct {
		name        string
		r           CaptureRange
		w, h        int
		start, end  string
		clamp, byte bool
		none        bool
	}{
		{"no limits", CaptureRange{}, 80, 24, "-", "-", false, false, false},
		{"screen fits", CaptureRange{MaxRows: 24}, 80, 24, "-", "-", false, false, false},
		{"screen is cut, its end kept", CaptureRange{MaxRows: 10}, 80, 24, "14", "-", true, false, false},
		{"history is cut", CaptureRange{Start: n(-100), MaxRows: 50}, 80, 24, "-26", "-", true, false, false},
		{"history above the screen", CaptureRange{Start: n(-100), End: n(-1), MaxRows: 50}, 80, 24, "-50", "-1", true, false, false},
		{"reversed is left to tmux", CaptureRange{Start: n(5), End: n(2), MaxRows: 1}, 80, 24, "5", "2", false, false, false},
		{"bytes cut it", CaptureRange{Start: n(-1000), MaxRows: 10000, RowBytes: 1000000}, 80, 24, "-366", "-", true, true, false},
		{"bytes would allow more", CaptureRange{Start: n(-1000), MaxRows: 100, RowBytes: 1000000}, 80, 24, "-76", "-", true, false, false},
		{"bytes do not matter", CaptureRange{MaxRows: 10000, RowBytes: 1000000}, 80, 24, "-", "-", false, false, false},
		{"not even one row", CaptureRange{MaxRows: 10, RowBytes: 1000}, 80, 24, "-", "-", true, true, true},
	} {
		got, none := c.r.effective(c.w, c.h)
		if str(got.Start) != c.start || str(got.End) != c.end || got.RangeClamped != c.clamp || got.ByteClamped != c.byte || none != c.none {
			t.Errorf("%s: %s..%s clamped %v by bytes %v none %v", c.name, str(got.Start), str(got.End), got.RangeClamped, got.ByteClamped, none)
		}
	}
}

func TestCleanLine(t *testing.T) {
	for in, want := range map[string]string{
		"abc   ":             "abc",
		"a\tb ":              "a\tb",
		"caf\xe9 ok":         "caf\ufffd ok",
		"\x0elqqk\x0f q":     "\u250c\u2500\u2500\u2510 q",
		"\x1b[31mred\x1b[0m": "red",
		"a\u0085b\x7fc":      "abc",
		"\u00e9\u6f22 \xff":  "\u00e9\u6f22 \ufffd",
	} {
		if got := cleanLines([]byte(in)); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
