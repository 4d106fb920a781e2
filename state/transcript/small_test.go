package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is a rule of tmux's grid in one stream on a screen of 10 by 4. E stands
// for ESC, > for CR LF, _ for a blank that would be cut from a row's end. Rows
// are those of 3.3a; TestSmallAgrees shows them to tmux.
type small struct {
	name   string
	stream string
	rows   string // history and screen, separated by |
	joined string // the same unless given
	cursor string // not looked at unless given
}

var smalls = []small{
	{"erase below from home saves the screen", "a>bE[HE[Jc", "a|b|c", "", ""},
	{"ED 2 leaves the cursor", "a>b>E[2Jc", "a|b|||c", "", ""},
	{"ED 2 twice pushes once", "a>b>E[2JE[2Jc", "a|b|||c", "", ""},
	{"ED 3 drops history only", "a>b>c>d>e>fE[3J", "c|d|e|f", "", ""},
	{"ED 0 elsewhere saves nothing", "a>bE[2HE[J", "a", "", ""},
	{"ED 1", "a>b>cE[2;1HE[1J", "||c", "", ""},
	{"mode 3 homes and clears", "a>bE[?3hc", "a|b|c", "", ""},
	{"clear with E3", "a>bE[HE[JE[3Jc", "c", "", ""},
	{"RIS saves the screen", "a>bEcc", "a|b|c", "", ""},
	{"DL fills no history", "a>b>cE[HE[2M", "c", "", ""},
	{"SU fills history", "a>b>cE[2S", "a|b|c", "", ""},
	{"RI fills none", "a>b>c>dE[HEMx", "x|a|b|c", "", ""},
	{"a region in the middle fills history", "topE[2;3rE[2;1H1>2>3>4>5", "1|2|3|top|4|5", "", ""},
	{"insert mode", " abcE[1GE[4hXY", "XY abc", "", ""},
	{"REP is clipped at the margin", "abE[99bc", "abbbbbbbbb|c", "abbbbbbbbbc", ""},
	{"REP after SGR does nothing", "abE[mE[3b", "ab", "", ""},
	{"wrap", "0123456789ab", "0123456789|ab", "0123456789ab", "2,1"},
	{"the column after the last", "0123456789", "0123456789", "", "10,0"},
	{"margin: EL 0 erases nothing", "0123456789E[KZ", "0123456789|Z", "0123456789Z", ""},
	{"margin: ECH ICH DCH nothing", "0123456789E[XE[@E[PZ", "0123456789|Z", "0123456789Z", ""},
	{"margin: EL 1 erases the row", "0123456789E[1KZ", "|Z", "Z", ""},
	{"margin: CUB counts from it", "0123456789E[DZ", "012345678Z", "", ""},
	{"margin: BS counts from it", "0123456789\bZ", "012345678Z", "", ""},
	{"margin: CUF", "0123456789E[CZ", "012345678Z", "", ""},
	{"margin: CUU falls back", ">0123456789E[AZ", "         Z|0123456789", "", "10,0"},
	{"margin: LF keeps it", "0123456789\nZ", "0123456789||Z", "0123456789|Z", ""},
	{"margin: HT and SGR keep it", "0123456789\tE[1mZ", "0123456789|Z", "0123456789Z", ""},
	{"margin: DECRC clamps", "0123456789E7E[HE8Z", "012345678Z", "", ""},
	{"margin: wrap off drops", "0123456789E[?7lZ\rA", "A123456789", "", ""},
	{"wrap off overwrites the last column", "E[?7l0123456789abc", "012345678c", "", "9,0"},
	{"BS over a wrap", "0123456789aE[D\bZ", "012345678Z|a", "012345678Za", ""},
	{"wrapping below the region", "E[1;2rE[4;1H0123456789abc", "|||abc3456789", "", ""},
	{"CUD stops at the region", "E[1;2rE[9BxE[3;1HE[9By", "|x||y", "", ""},
	{"origin mode", "E[2;3rE[?6hE[1;1HaE[9;1HbE[?6lE[1;1Hc", "c|a|b", "", ""},
	{"DECSTBM homes", ">>xE[2;3ry", "y||x", "", ""},
	{"a region of one row is ignored", "E[2;2ra>b>c>d>e", "a|b|c|d|e", "", ""},
	{"the wrap flag outlives overwriting", "0123456789abE[1;1HshortE[K>new", "short|new", "short     new", ""},
	{"EL 2 clears the flag and the one above", "0123456789abE[2K", "0123456789", "", ""},
	{"EL 2 on a row without cells", "0123456789aE[1;1HE[2;1HE[2KE[2Kx", "0123456789|x", "", ""},
	{"IL clears the flag above", "0123456789abE[L", "0123456789||ab", "0123456789||ab", ""},
	{"entering the alternate screen cuts a line in history", "0123456789abE[4;1H\nE[?1049hE[?1049l", "0123456789|ab", "0123456789|ab", ""},
	{"flag of the newest history row", "0123456789E[4;1H\nE[?47hE[?47l", "0123456789", "", ""},
	{"alternate: cursor stays with 47", "a>bE[?47hE[HALTE[?47lz", "a  z|b", "", ""},
	{"alternate: 1049 restores", "abE[?1049hE[HxE[?1049lz", "abz", "", ""},
	{"alternate: 1049l without being on", "abE[?1049hE[?1049l>c>dE[?1049lz", "abz|c|d", "", ""},
	{"alternate: no history", "E[?1049ha>b>c>d>e>fE[?1049lz", "z", "", ""},
	{"RIS stays on the alternate screen", "aE[?1049hbEcc", "c", "", ""},
	{"ICH moves what fits", "abcdefghij\rE[8@", "  cdefghab", "", ""},
	{"ICH of the whole row", "abcdefghij\rE[10@", "abcdefghij", "", ""},
	{"DCH of the whole row frees it", "0123456789abE[1;1HE[10P", "|ab", "|ab", ""},
	{"half a wide character stays", "a\u6f22\u5b57E[3GE[X", "a\u6f22 \u5b57", "", ""},
	{"overwriting the second half", "x\u6f22\u5b57E[3Gx", "x x\u5b57", "", ""},
	{"overwriting the second half at column 0", "\u6f22\u5b57E[2Gx", "\u6f22x\u5b57", "", ""},
	{"a wide character wraps early", "012345678\u6f22", "012345678|\u6f22", "012345678\u6f22", "2,1"},
	{"combining", "e\u0301x\u0300\u0301", "e\u0301x\u0300\u0301", "", "2,0"},
	{"combining at column 0 is dropped", "\u0301a", "a", "", ""},
	{"a joiner waits", "a\u200db\u6f22", "ab\u200d\u6f22", "", ""},
	{"a joiner before a tab", "a\u200d\tb\u6f22\u200d\tc", "a       b\u200d\u6f22c", "", ""},
	{"unassigned is dropped", "a\u0378b\ufffeC", "abC", "", ""},
	{"line drawing stays letters", "E(0lqkE(Bx", "lqkx", "", ""},
	{"DECALN", "E#8E[2;3Hx", "EEEEEEEEEE|EExEEEEEEE|EEEEEEEEEE|EEEEEEEEEE", "", ""},
	{"NEL and IND", "aEDbEEc", "a| b|c", "", ""},
	{"tabs", "a\tb\rE[3C\x1bHE[3gE[1;2H\tx", "a       bx", "", ""},
	{"HT stops at the last column", "\t\tx", "         x", "", ""},
	{"C0 in a sequence", "abcE[3\r4Cx", "abc      x", "", ""},
	{"ESC k ends at ESC only", "aEkname\x07xE\\b", "ab", "", ""},
	{"OSC ends at ESC, which goes on", "aE]8;;uEcb", "a|b", "", ""},
	{"DCS ends at ST only", "aEPz\x07\x18\x1a[AE\\b", "ab", "", ""},
	{"CAN aborts", "aE[3\x18Cb", "aCb", "", ""},
	{"an absurd number drops the sequence", "aE[99999999999Cb", "ab", "", ""},
	{"a huge number is clamped", "aE[99999Cb", "a        b", "", ""},
	{"a private ED does nothing", "abE[?2JE[!pE[>1uc", "abc", "", ""},
	{"colons make a parameter useless", "abE[1:2Cc", "abc", "", ""},
	{"8-bit is no control", "caf\xe9 ok\x9b2J", "caf ok2J", "", ""},
	{"a broken group is dropped whole", "\xe2\xc3\xa9ab", "ab", "", ""},
	{"CR LF ends a broken group", "a\xe2\x82>b", "a|b", "", ""},
	{"ESC does not end a group", "\xe2E[1m\x82\xac", "\u20ac", "", ""},
	{"SCO saves in the same slot", "abE[s>cE8d", "abd|c", "", ""},
	{"RIS resets the slot", "abE7EcE8x", "ab|x", "", ""},
}

func (s small) bytes() []byte {
	var b []byte
	for i := 0; i < len(s.stream); i++ {
		switch c := s.stream[i]; {
		case c == '>' && !strings.Contains(s.stream, "[>"):
			b = append(b, "\r\n"...)
		case c == 'E' && !(i > 0 && (s.stream[i-1] == 'E' && strings.HasPrefix(s.name, "NEL"))):
			b = append(b, 0x1b)
		default:
			b = append(b, c)
		}
	}
	return b
}

func (s small) want(have screenshot) screenshot {
	have.Rows = tidy(strings.Split(s.rows, "|"))
	if s.joined != "" {
		have.Joined = tidy(strings.Split(s.joined, "|"))
	} else {
		have.Joined = have.Rows
	}
	if s.cursor != "" {
		have.Cursor = s.cursor
	}
	return have
}

// TestSmall needs no tmux.
func TestSmall(t *testing.T) {
	for _, s := range smalls {
		t.Run(s.name, func(t *testing.T) {
			tr := New(10, 4, 2000, Profile33)
			tr.Write(s.bytes(), time.Time{})
			got := shot(tr)
			if d := cmp.Diff(s.want(got), got); d != "" {
				t.Errorf("%q (-want +got):\n%s", s.bytes(), d)
			}
		})
	}
}

// TestSmallAgrees shows the same to tmux.
func TestSmallAgrees(t *testing.T) {
	r := newRig(t)
	for _, s := range smalls {
		t.Run(s.name, func(t *testing.T) {
			compare(t, r, 10, 4, s.bytes())
		})
	}
}

// late is a rule that came after 3.3a: what a stream leaves on a screen of 30 by 4.
type late struct {
	name, stream string
	row, cursor  map[Profile]string
}

// full is an x with as many marks as leave room for one or two bytes in its cell.
var full = "x" + strings.Repeat("\u0301", 15)

var lates = []late{
	{"the blanks of a tab join", "a\u200d\tb", both("a\u200d       b"), both("2,0")},
	{"not after another character", "a\u200d \tb", both("a\u200d \tb"), both("9,0")},
	{"to a wide one", "\u6f22\u200d\tb", both("\u6f22\u200d      b"), both("3,0")},
	{"32 bytes in a cell read as none", "\x1b[3ga\u200d\t\u200db", both("b"), both("2,0")},
	{"while they fit", full[:27] + "\u200d\tb", both(full[:27] + "\u200d\tb"), both("9,0")},
	{
		"a mark that does not fit", "01234\x1b[1;3H" + full + "\ufe0fb",
		map[Profile]string{Profile36: "01" + full + "b4", Profile38: "01" + full + "b4"},
		both("4,0"),
	},
	{
		"and is not written over", "01234\x1b[1;3H" + full + "\ufe0f",
		map[Profile]string{Profile36: "01" + full + "\ufe0f4", Profile38: "01" + full + "34"},
		both("3,0"),
	},
	{
		"at the margin without wrapping", "\x1b[?7l\x1b[1;29H" + full[:27] + "\ufe0f\ufe0f",
		map[Profile]string{Profile36: strings.Repeat(" ", 28) + full[:27] + "\ufe0f", Profile38: strings.Repeat(" ", 28) + full[:27] + "\ufe0f"},
		map[Profile]string{Profile36: "29,0", Profile38: "30,0"},
	},
}

func both(s string) map[Profile]string { return map[Profile]string{Profile36: s, Profile38: s} }

// TestLate needs no tmux.
func TestLate(t *testing.T) {
	for _, l := range lates {
		for p := range l.row {
			tr := New(30, 4, 100, p)
			write(tr, l.stream)
			if got := shot(tr); got.Cursor != l.cursor[p] || got.Rows[0] != l.row[p] {
				t.Errorf("%s, profile %d: cursor %s, row %+q, want %s, %+q", l.name, p, got.Cursor, got.Rows[0], l.cursor[p], l.row[p])
			}
		}
	}
}

// TestLateAgrees shows the same to tmux, of whatever release.
func TestLateAgrees(t *testing.T) {
	r := newRig(t)
	for _, l := range lates {
		t.Run(l.name, func(t *testing.T) { compare(t, r, 30, 4, []byte(l.stream)) })
	}
}

// TestHistoryLimit: at the limit the oldest tenth goes at once.
func TestHistoryLimit(t *testing.T) {
	tr := New(10, 4, 100, Profile33)
	for i := range 103 {
		write(tr, fmt.Sprintf("%d\r\n", i))
	}
	if got := tr.HistorySize(); got != 100 {
		t.Fatalf("history of %d rows, want 100", got)
	}
	write(tr, "x\r\n")
	if got := tr.HistorySize(); got != 91 || tr.Rows()[0] != "10" {
		t.Errorf("history of %d rows beginning with %q, want 91 beginning with 10", got, tr.Rows()[0])
	}
}

// TestStringTimeout: a string that stays open is abandoned after five seconds,
// counted from its start.
func TestStringTimeout(t *testing.T) {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	tr := New(10, 4, 100, Profile33)
	tr.Write([]byte("A\x1b]0;abc"), at)
	tr.Write([]byte("def"), at.Add(4*time.Second))
	if got := tr.Screen()[0]; got != "A" {
		t.Fatalf("after four seconds: %q", got)
	}
	tr.Write([]byte("B"), at.Add(6*time.Second))
	if got := tr.Screen()[0]; got != "AB" {
		t.Errorf("after six seconds: %q, want AB", got)
	}
}

// TestOptions: window options that tmux consults.
func TestOptions(t *testing.T) {
	tr := New(10, 4, 100, Profile33)
	tr.SetOptions(Options{})
	write(tr, "a\x1b[?1049hb\x1b[H\x1b[2Jc")
	if tr.Alternate() || tr.HistorySize() != 0 || tr.Screen()[0] != "c" {
		t.Errorf("alternate %v, history %d, %q", tr.Alternate(), tr.HistorySize(), tr.Screen())
	}
}

func TestProfileFor(t *testing.T) {
	for version, want := range map[string]Profile{
		"3.2a": Profile33, "3.3a": Profile33, "tmux 3.3a": Profile33, "3.4": Profile34, "3.5a": Profile35,
		"3.6b": Profile36, "3.7c": Profile36, "3.8": Profile38, "next-3.8": Profile38, "3.10": Profile38,
		"4.0": Profile38, "": ProfileNewest, "openbsd-7.5": ProfileNewest, "master": ProfileNewest,
	} {
		if got := ProfileFor(version); got != want {
			t.Errorf("ProfileFor(%q) = %d, want %d", version, got, want)
		}
	}
}

func TestWidth(t *testing.T) {
	for r, want := range map[rune]int{'a': 1, 0x1f: -1, 0x7f: -1, 0x301: 0, '\u6f22': 2, '\u00ad': 1, '\U0001f600': 2, 0x378: -1, 0x85: -1, 0x110000: -1, 0x1160: 0} {
		if got := wcwidth(r); got != want {
			t.Errorf("wcwidth(%U) = %d, want %d (%s)", r, got, want, widthSource)
		}
	}
}

// TestMarks: OSC 133 leaves no text but is found again, with its place.
func TestMarks(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "$ run\r\n\x1b]133;C;aid=7\x07out\r\n\x1b]133;D;1;aid=7\x1b\\")
	marks := tr.Marks(0)
	if len(marks) != 2 || marks[0].Kind != 'C' || marks[0].Text != "aid=7" || marks[1].Kind != 'D' || marks[1].Text != "1;aid=7" {
		t.Fatalf("%+v", marks)
	}
	if marks[0].Start != 7 || marks[0].End != 21 || marks[1].Start != 26 || tr.Since(marks[0].End, SinceOptions{}).Text != "out\n" {
		t.Errorf("%+v", marks)
	}
	if len(tr.Marks(marks[0].End)) != 1 {
		t.Error("marks before the offset are given")
	}
	for range 1000 {
		write(tr, "\x1b]133;A;"+strings.Repeat("x", 5000)+"\x07")
	}
	if m := tr.Marks(0); len(m) != maxMarks || len(m[0].Text) > maxMark {
		t.Errorf("%d marks, the first of %d bytes", len(m), len(m[0].Text))
	}
}

// TestTitle: titles are data, and bounded.
func TestTitle(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "\x1b]2;one\x07\x1b[22;0t\x1b]0;two\x1b\\\x1bkname\x1b\\")
	if tr.Title() != "two" || tr.WindowName() != "name" {
		t.Errorf("title %q, name %q", tr.Title(), tr.WindowName())
	}
	write(tr, "\x1b[23;0t")
	if tr.Title() != "one" {
		t.Errorf("popped %q", tr.Title())
	}
	write(tr, "\x1b]2;"+strings.Repeat("\u6f22", 10000)+"\x07")
	if len(tr.Title()) > maxTitle {
		t.Errorf("title of %d bytes", len(tr.Title()))
	}
	write(tr, "\x1b]2;bad\xff\x07")
	if strings.Contains(tr.Title(), "bad") {
		t.Error("a title that is not UTF-8 was taken")
	}
}

// O08: a string far longer than anything that is kept of it is skipped to its
// end, whichever that is, and what follows is text again; memory does not grow
// with it.
func TestO08LongStrings(t *testing.T) {
	body := strings.Repeat("QUJD", 1<<20)
	for name, ends := range map[string][2]string{
		"OSC, BEL": {"\x1b]52;c;", "\x07"}, "OSC, ST": {"\x1b]8;;http://", "\x1b\\"}, "DCS": {"\x1bPq", "\x1b\\"},
		"APC": {"\x1b_G", "\x1b\\"}, "PM": {"\x1b^", "\x1b\\"}, "rename": {"\x1bk", "\x1b\\"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := New(20, 4, 100, ProfileNewest)
			write(tr, "before ", ends[0])
			if n := testing.AllocsPerRun(1, func() { write(tr, body) }); n > 100 {
				t.Errorf("%v allocations", n)
			}
			if len(tr.str) > 64<<10 || cap(tr.str) > 128<<10 {
				t.Errorf("%d bytes kept", cap(tr.str))
			}
			write(tr, ends[1], "after\r\n")
			if d := tr.Since(0, SinceOptions{}); d.Text != "before after\n" {
				t.Errorf("%.60q", d.Text)
			}
		})
	}
}
