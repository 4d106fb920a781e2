package mcp

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFilterStream(t *testing.T) {
	for _, c := range []struct{ in, want, left string }{
		{"plain\r\n", "plain\n", ""},
		{"a\r\r\nb", "a\nb", ""},
		{"10%\r20%\r", "10%\n20%", "\r"},
		{"a\tb\x00\x07\x08\x0e\x0f\x7fc", "a\tbc", ""},
		{"\x1b[31mred\x1b[0m", "red", ""},
		{"\x1b[?2004h\x1b[1;2H\x1b[38:5:1mx", "x", ""},
		{"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb", ""},
		{"\x1bPq#0;2;0\x07;0~\x1b\\a\x1b_Gpayload\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d\x1bkname\x1b\\e", "abcde", ""},
		{"\x1bPtmux;\x1b\x1b]52;c;x\x07\x1b\\a", "a", ""},
		{"\x1b]0;cut\x18a\x1bPx\x1ab", "ab", ""},
		{"\x1b]0;no end\x1b[1mb", "b", ""},
		{"\x1b(0lqqk\x1b(B", "lqqk", ""},
		{"\x1b7\x1b8\x1bM\x1b=a", "a", ""},
		{"\x1b\x1b[1ma", "a", ""},
		{"\x1b\na", "\na", ""},
		{"\x1b[3\xffa", "\ufffda", ""},
		{"caf\xe9 ok\xff(\xc3(", "caf\ufffd ok\ufffd(\ufffd(", ""},
		{"\u0085a\u009bb", "ab", ""},
		{"é漢🎉", "é漢🎉", ""},
		{"a\xf0\x9f\x8e", "a", "\xf0\x9f\x8e"},
		{"a\x1b", "a", "\x1b"},
		{"a\x1b[3", "a", "\x1b[3"},
		{"a\x1b]0;x\x1b", "a", "\x1b]0;x\x1b"},
		{"a\x1b(", "a", "\x1b("},
	} {
		text, used := filterStream(nil, []byte(c.in))
		if string(text) != c.want || c.in[used:] != c.left {
			t.Errorf("%q: %q and %q left, want %q and %q", c.in, text, c.in[used:], c.want, c.left)
		}
	}
}

// streamPiece draws what a program may print, whole and broken.
func streamPiece() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"a", "bc\r\n", "\r", "\n", "\r\r\n", "\t", "é", "漢", "🎉", "\xff", "\xc3", "\xe6\xbc", "\u0085",
			"\x1b[1m", "\x1b[", "\x1b[?25l", "\x1b]0;t\x07", "\x1b]0;t\x1b\\", "\x1b]x", "\x1bP", "\x1bPq\x1b\x1b\\", "\x1b_a\x1b\\",
			"\x1bk", "\x1b\\", "\x07", "\x18", "\x1a", "\x1b", "\x1b(0", "\x1b(", "\x00", "\x1b7", ";", "0",
		}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }))
}

// TestFilterIsSplitInvariant: reading on from where the filter stopped gives
// the same text, however the output was cut.
func TestFilterIsSplitInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := strings.Join(rapid.SliceOfN(streamPiece(), 0, 20).Draw(t, "pieces"), "")
		whole, end := filterStream(nil, []byte(stream))
		var joined []byte
		at, seen := 0, 0
		for seen < len(stream) {
			seen = min(len(stream), seen+rapid.IntRange(1, 6).Draw(t, "chunk"))
			text, used := filterStream(nil, []byte(stream[at:seen]))
			joined, at = append(joined, text...), at+used
		}
		if string(joined) != string(whole) || at != end {
			t.Fatalf("%q: joined %q to %d, whole %q to %d", stream, joined, at, whole, end)
		}
		if !utf8.Valid(whole) {
			t.Fatalf("%q: not UTF-8", whole)
		}
		for _, r := range string(whole) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q keeps %U", stream, r)
			}
		}
	})
}

func FuzzFilterStream(f *testing.F) {
	f.Add([]byte("a\x1b]0;x\x07b\r\n\xe6\xbc"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		if cut < 0 || cut > len(stream) {
			return
		}
		whole, end := filterStream(nil, stream)
		text, used := filterStream(nil, stream[:cut])
		text, more := filterStream(text, stream[used:])
		if string(text) != string(whole) || used+more != end {
			t.Fatalf("%q cut at %d: %q, whole %q", stream, cut, text, whole)
		}
	})
}
