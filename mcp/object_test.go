package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// hostileText draws text as programs, titles and paths can hold it.
func hostileText() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{
			"\x00", "\x1b[31m", "\x1b]0;t\x07", "\r\n", "\t", "\x7f", "\u009b", "\u0085", "\u2028",
			"\xff", "\xe4\xb8", "\ufffd", `"`, `\`, `</script>`, "漢", "🎉", "\u202e", "#{pane_id}", "\u200b",
		}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
	return rapid.Map(rapid.SliceOfN(piece, 0, 8), func(p []string) string { return strings.Join(p, "") })
}

func TestAppendQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hostileText().Draw(t, "s")
		b := appendQuoted(nil, s)
		if !utf8.Valid(b) || strings.ContainsAny(string(b), "\u2028\u2029") {
			t.Fatalf("%q: %q", s, b)
		}
		for _, c := range b {
			if c < 0x20 {
				t.Fatalf("%q: raw control in %q", s, b)
			}
		}
		var got, want string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		ref, _ := json.Marshal(s)
		_ = json.Unmarshal(ref, &want)
		if got != want {
			t.Fatalf("%q, encoding/json %q", got, want)
		}
	})
}

func TestClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hostileText().Draw(t, "s")
		for _, r := range clean(s) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q keeps %U", s, r)
			}
		}
		line := inline(s)
		if !utf8.ValidString(clean(s)) || !utf8.ValidString(line) {
			t.Fatalf("%q: not UTF-8", s)
		}
		if strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) >= 0 {
			t.Fatalf("%q: %q is not one line", s, line)
		}
		if again := clean(clean(s)); again != clean(s) {
			t.Fatalf("%q: cleaned twice %q", s, again)
		}
	})
	for s, want := range map[string]string{
		"plain é 漢\t\n": "plain é 漢\t\n", "a\x1b[1mb": `a\x1b[1mb`, "\x7f\u0085": `\x7f\u0085`, "a\xffb": "a\ufffdb",
	} {
		if got := clean(s); got != want {
			t.Errorf("clean(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(0, 12).Draw(t, "n")
		h, e := head(s, n), tail(s, n)
		if !strings.HasPrefix(s, h) || !strings.HasSuffix(s, e) || len(h) > n || len(e) > n {
			t.Fatalf("%q %d: %q %q", s, n, h, e)
		}
		if !utf8.ValidString(h) || !utf8.ValidString(e) {
			t.Fatalf("%q %d: cut inside a character: %q %q", s, n, h, e)
		}
		if len(s) > n && (n-len(h) >= utf8.UTFMax || n-len(e) >= utf8.UTFMax) {
			t.Fatalf("%q %d: cut too much: %q %q", s, n, h, e)
		}
	})
}

// TestNewest: the line and the byte limit keep the end and count the rest.
func TestNewest(t *testing.T) {
	for _, c := range []struct {
		text    string
		limit   int
		want    string
		dropped int
		lines   int
	}{
		{"", 3, "", 0, 0},
		{"a", 1, "a", 0, 1},
		{"a\nb\nc\n", 2, "b\nc\n", 1, 3},
		{"a\nb\nc", 2, "b\nc", 1, 3},
		{"\n\n\n", 1, "\n", 2, 3},
		{"a\nb\n", 2, "a\nb\n", 0, 2},
	} {
		s := newest(c.text, c.limit)
		if s.text != c.want || s.dropped != c.dropped || s.lines != c.lines || s.omitted != 0 {
			t.Errorf("newest(%q, %d) = %+v", c.text, c.limit, s)
		}
	}
	rows := newestRows([]string{"a", "", ""}, 2)
	if rows.text != "\n" || rows.dropped != 1 || rows.lines != 3 {
		t.Errorf("%+v", rows)
	}
	long := "x" + strings.Repeat("é", resultCeiling/2)
	if s := newest(long+"\n", 1); s.omitted != 3 || len(s.text) != resultCeiling-1 || s.dropped != 0 {
		t.Errorf("omitted %d, kept %d bytes", s.omitted, len(s.text))
	}
}
