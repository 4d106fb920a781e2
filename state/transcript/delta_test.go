package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func write(t *Transcript, chunks ...string) {
	for _, c := range chunks {
		t.Write([]byte(c), time.Time{})
	}
}

// join puts deltas together as the contract says.
type join1 struct{ text string }

func (j *join1) add(d Delta) {
	if d.Text == "" {
		return
	}
	if j.text != "" && !strings.HasSuffix(j.text, "\n") && !d.ContinuesLine {
		j.text += "\n"
	}
	j.text += d.Text
}

// TestSince is the deltas a person would expect, one step at a time.
func TestSince(t *testing.T) {
	type step struct {
		write string
		want  string
		cont  bool
	}
	tests := []struct {
		name  string
		width int
		steps []step
	}{
		{"lines", 40, []step{{"a\r\nb\r\n", "a\nb\n", false}, {"c\r\n", "c\n", false}}},
		{"nothing new", 40, []step{{"a\r\n", "a\n", false}, {"\x1b[31m\x1b[m", "", false}}},
		{"prompt then command", 40, []step{{"$ ", "$ ", false}, {"ls\r\nfile\r\n$ ", "ls\nfile\n$ ", true}}},
		{"typed in pieces", 40, []step{{"$ ", "$ ", false}, {"l", "l", true}, {"s", "s", true}, {"\r\n", "\n", true}, {"x\r\n", "x\n", false}}},
		{"blank before text", 40, []step{{"a", "a", false}, {"\r\n\r\nb", "\nb", false}}},
		{"only a line feed", 40, []step{{"a", "a", false}, {"\r\n", "\n", true}, {"\r\n", "\n", false}, {"b", "b", false}}},
		{"progress bar", 40, []step{{"10%\r20%\r30%", "30%", false}, {"\r99%", "99%", false}, {"\r100%\r\ndone\r\n", "100%\ndone\n", false}}},
		{"bar erased", 40, []step{{"load 50%", "load 50%", false}, {"\r\x1b[K$ ", "$ ", false}, {"x", "x", true}}},
		{"erased is no news", 40, []step{{"abc\r\n", "abc\n", false}, {"\x1b[A\x1b[2K\x1b[B", "", false}}},
		{"repaint is no news", 40, []step{{"abc", "abc", false}, {"\r\x1b[31mabc", "", false}}},
		{"trailing blanks of a finished line", 40, []step{{"abc   \r\nx", "abc\nx", false}}},
		{"blanks later", 40, []step{{"$", "$", false}, {" ", "", false}, {"ls", " ls", true}}},
		{"wrapped line is one", 10, []step{{"0123456789abcdef\r\n", "0123456789abcdef\n", false}}},
		{"wrap in the middle", 10, []step{{"01234567", "01234567", false}, {"89abc", "89abc", true}, {"def\r\n", "def\n", true}}},
		{"wrap at the margin", 10, []step{{"0123456789", "0123456789", false}, {"abc", "abc", true}}},
		{"blanks before a wrap", 10, []step{{"abc", "abc", false}, {"       ", "", false}, {"def", "       def", true}}},
		{"two lines rewritten", 40, []step{{"a 1\r\nb 1\r\n", "a 1\nb 1\n", false}, {"\x1b[2Aa 2\r\nb 2\r\n", "a 2\nb 2\n", false}}},
		{"a line above the prompt", 40, []step{{"up\r\n$ ", "up\n$ ", false}, {"\x1b7\x1b[HUP\x1b8", "UP\n", false}, {"ls", "$ ls", false}}},
		{"line drawing", 40, []step{{"\x1b(0lqk\x1b(B ok\r\n", "\u250c\u2500\u2510 ok\n", false}}},
		{"clear keeps what was not read", 40, []step{{"a\r\nb\r\n\x1b[H\x1b[Jc", "a\nb\nc", false}}},
		{"backspace", 40, []step{{"ab", "ab", false}, {"\b \b", "a", false}, {"c", "c", true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := New(tt.width, 6, 100, Profile33)
			at := int64(0)
			for i, s := range tt.steps {
				write(tr, s.write)
				d := tr.Since(at, SinceOptions{})
				if d.Text != s.want || d.ContinuesLine != s.cont || d.Offset != tr.Offset() || d.More {
					t.Errorf("step %d, after %q: %+v, want %q continuing %v", i, s.write, d, s.want, s.cont)
				}
				at = d.Offset
			}
		})
	}
}

// TestSinceScrolled: the beginning of a line that scrolled away meanwhile is
// still known.
func TestSinceScrolled(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "$ ")
	at := tr.Offset()
	var want strings.Builder
	want.WriteString("seq\n")
	write(tr, "seq\r\n")
	for i := range 50 {
		write(tr, fmt.Sprintf("line %d\r\n", i))
		fmt.Fprintf(&want, "line %d\n", i)
	}
	d := tr.Since(at, SinceOptions{})
	if d.Text != want.String() || !d.ContinuesLine {
		t.Errorf("%+v, want %q", d, want.String())
	}
	d = tr.Since(at, SinceOptions{MaxLines: 2})
	if d.Text != "line 48\nline 49\n" || d.DroppedLines != 49 || d.ContinuesLine || d.Offset != tr.Offset() {
		t.Errorf("newest two: %+v", d)
	}
	d = tr.Since(at, SinceOptions{MaxBytes: 9})
	if d.Text != " line 49\n"[1:] && d.Text != "\nline 49\n" || d.OmittedBytes == 0 {
		t.Errorf("newest bytes: %+v", d)
	}
}

// TestSinceAlternate: first what the main screen had, then the screen, then
// only what comes after.
func TestSinceAlternate(t *testing.T) {
	tr := New(20, 4, 100, Profile33)
	write(tr, "$ vim\r\n\x1b[?1049h\x1b[Hfile\r\n~\r\n~")
	d := tr.Since(0, SinceOptions{})
	if d.Text != "$ vim\n" || d.AlternateScreen || !d.More {
		t.Fatalf("before the alternate screen: %+v", d)
	}
	d = tr.Since(d.Offset, SinceOptions{})
	if d.Text != "file\n~\n~\n" || !d.AlternateScreen || d.Offset != tr.Offset() {
		t.Fatalf("alternate screen: %+v", d)
	}
	if d := tr.Since(d.Offset, SinceOptions{}); d.Text != "" {
		t.Fatalf("nothing new: %+v", d)
	}
	write(tr, "\x1b[?1049l$ ")
	d = tr.Since(d.Offset, SinceOptions{})
	if d.Text != "$ " || d.AlternateScreen {
		t.Fatalf("after leaving: %+v", d)
	}
}

// TestSinceLost: lines that left history unread are counted.
func TestSinceLost(t *testing.T) {
	tr := New(20, 4, 50, Profile33)
	for i := range 1000 {
		write(tr, fmt.Sprintf("line %d\r\n", i))
	}
	d := tr.Since(0, SinceOptions{})
	lines := strings.Count(d.Text, "\n")
	if d.LostLines+lines != 1000 || !strings.HasSuffix(d.Text, "line 999\n") {
		t.Errorf("%d lost and %d told of 1000", d.LostLines, lines)
	}
	if d := tr.Since(tr.Offset(), SinceOptions{}); d.LostLines != 0 {
		t.Errorf("a reader who is up to date lost %d lines", d.LostLines)
	}
}

// program draws a random program's output: bursts, lines, progress bars, wide
// text, wrapped lines, colours, prompts, the alternate screen.
func program(width int) *rapid.Generator[string] {
	word := rapid.StringMatching(`[a-z0-9]{1,9}`)
	return rapid.Custom(func(r *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			w := word.Draw(r, "word")
			switch rapid.IntRange(0, 16).Draw(r, "step") {
			case 0, 1, 2:
				b.WriteString(w + "\r\n")
			case 3:
				b.WriteString(w)
			case 4:
				b.WriteString(" " + w + " ")
			case 5:
				b.WriteString("\r" + w)
			case 6:
				b.WriteString("\r\x1b[K" + w)
			case 7:
				b.WriteString(strings.Repeat(w, 1+2*width/len(w)) + "\r\n")
			case 8:
				b.WriteString("\r\n\r\n")
			case 9:
				b.WriteString("\x1b[1;31m" + w + "\x1b[m")
			case 10:
				b.WriteString("\u6f22\u5b57" + w + "\u00e9\r\n")
			case 11:
				fmt.Fprintf(&b, "\x1b[%dA\r%s\x1b[K\x1b[%dB", 1+len(w)%3, w, 1+len(w)%3)
			case 12:
				for i := range len(w) {
					fmt.Fprintf(&b, "%s %d\r\n", w, i)
				}
			case 13:
				b.WriteString("\x1b[?1049h\x1b[H" + w + "\r\n" + w)
			case 14:
				b.WriteString("\x1b[?1049l")
			case 15:
				b.WriteString("\x1b[H\x1b[J")
			case 16:
				b.WriteString("\b\b" + w[:1] + "\t")
			}
		}
		return b.String()
	})
}

// reader keeps what it was told per line.
type reader struct {
	at    int64
	lines map[uint64]string
	lost  bool
}

func (rd *reader) read(r *rapid.T, t *Transcript, opt SinceOptions) Delta {
	d, tell := t.since(rd.at, opt)
	if d.Offset < rd.at || d.Offset > t.Offset() {
		r.Fatalf("offset %d after %d of %d", d.Offset, rd.at, t.Offset())
	}
	if !opt.Oldest && d.DroppedLines+d.OmittedBytes > 0 {
		r.Fatalf("dropped without limits: %+v", d)
	}
	for _, l := range tell {
		r.Logf("at %d of %d, %+v: line %d %q continues %v, then at %d", rd.at, t.Offset(), opt, l.line.id, l.text, l.continues, d.Offset)
		text := l.text
		if l.continues {
			text = rd.lines[l.line.id] + text
		}
		rd.lines[l.line.id] = text
	}
	rd.lost = rd.lost || d.LostLines > 0
	rd.at = d.Offset
	return d
}

// TestSinceConverges: whatever a program prints and however it is read, in the
// end every line has been told as it is now.
func TestSinceConverges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		width := rapid.IntRange(4, 30).Draw(r, "width")
		height := rapid.IntRange(2, 8).Draw(r, "height")
		tr := New(width, height, rapid.SampledFrom([]int{20, 200}).Draw(r, "limit"), Profile33)
		readers := []*reader{{lines: map[uint64]string{}}, {lines: map[uint64]string{}}, {lines: map[uint64]string{}}}
		opts := func(i int) SinceOptions {
			if i == 0 {
				return SinceOptions{}
			}
			return SinceOptions{Oldest: true, MaxLines: rapid.IntRange(0, 5).Draw(r, "lines"), MaxBytes: rapid.SampledFrom([]int{0, 1, 7, 40, 700}).Draw(r, "bytes")}
		}
		for range rapid.IntRange(1, 8).Draw(r, "bursts") {
			text := program(width).Draw(r, "program")
			for len(text) > 0 {
				n := rapid.IntRange(1, len(text)).Draw(r, "chunk")
				write(tr, text[:n])
				text = text[n:]
				i := rapid.IntRange(0, 2).Draw(r, "reader")
				if i < 2 { // the third reads only at the end
					readers[i].read(r, tr, opts(i))
				}
			}
		}
		for i, rd := range readers {
			for n := 0; ; n++ {
				d := rd.read(r, tr, opts(i))
				if rd.at == tr.Offset() && !d.More {
					break
				}
				if n > 10000 {
					r.Fatalf("reader %d does not get to the end", i)
				}
			}
			if d := tr.Since(rd.at, SinceOptions{}); d.Text != "" {
				r.Fatalf("reader %d is at the end and is told %q", i, d.Text)
			}
			// A line that tmux has cut in history is told as it was.
			cut := map[uint64]bool{}
			for i := range tr.history.len() {
				if tr.history.at(i).cut {
					cut[tr.lineAt(i).id] = true
					cut[tr.view(i+1).id] = true
				}
			}
			first := true
			for l := range tr.Lines {
				if l.Text != "" && !(first && tr.HistorySize() > 0) && !cut[l.ID] {
					if got := strings.TrimRight(rd.lines[l.ID], " "); got != l.Text {
						r.Fatalf("reader %d has line %d as %q, it is %q", i, l.ID, got, l.Text)
					}
				}
				first = false
			}
		}
	})
}

// TestSinceJoins: for programs that only append, joined deltas are the text,
// in pages of any size, once.
func TestSinceJoins(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		width := rapid.IntRange(4, 30).Draw(r, "width")
		tr := New(width, rapid.IntRange(2, 8).Draw(r, "height"), 10000, Profile33)
		var text strings.Builder
		words := rapid.StringMatching(`[a-z\x{6f22}]{1,12}`)
		for range rapid.IntRange(1, 60).Draw(r, "words") {
			w := words.Draw(r, "word")
			text.WriteString(w)
			switch rapid.IntRange(0, 5).Draw(r, "then") {
			case 0:
				text.WriteString("\n")
			case 1:
				text.WriteString("\n\n")
			case 2:
				text.WriteString(" ")
			case 3:
				text.WriteString(strings.Repeat(w, width/2))
			}
		}
		want := text.String()
		raw := strings.ReplaceAll(want, "\n", "\r\n")
		var whole, pages join1
		at, pageAt := int64(0), int64(0)
		opt := SinceOptions{Oldest: true, MaxBytes: rapid.SampledFrom([]int{1, 7, 700}).Draw(r, "bytes"), MaxLines: rapid.IntRange(0, 4).Draw(r, "lines")}
		for len(raw) > 0 {
			n := rapid.IntRange(1, len(raw)).Draw(r, "chunk")
			write(tr, raw[:n])
			raw = raw[n:]
			if rapid.Bool().Draw(r, "read") {
				d := tr.Since(at, SinceOptions{})
				whole.add(d)
				at = d.Offset
				d = tr.Since(pageAt, opt)
				pages.add(d)
				pageAt = d.Offset
			}
		}
		whole.add(tr.Since(at, SinceOptions{}))
		for pageAt < tr.Offset() {
			d := tr.Since(pageAt, opt)
			pages.add(d)
			pageAt = d.Offset
		}
		trim := func(s string) []string {
			var lines []string
			for _, l := range strings.Split(s, "\n") {
				lines = append(lines, strings.TrimRight(l, " "))
			}
			return tidy(lines)
		}
		if d := cmp.Diff(trim(want), trim(whole.text)); d != "" {
			r.Fatalf("read whole (-want +got):\n%s", d)
		}
		if d := cmp.Diff(trim(want), trim(pages.text)); d != "" {
			r.Fatalf("read in pages of %+v (-want +got):\n%s", opt, d)
		}
	})
}

// A reader who stands in the middle of a line is given its rest, however much
// has followed.
func TestPin(t *testing.T) {
	for _, pin := range []bool{true, false} {
		tr := New(80, 24, 1000, Profile33)
		tr.Write([]byte("1234"), time.Time{})
		at := tr.Offset()
		if pin {
			tr.Pin()
		}
		tr.Write([]byte("56\r\n"), time.Time{})
		for range 200 {
			tr.Write([]byte("x"), time.Time{})
			tr.Write([]byte("y\r\n"), time.Time{})
		}
		d := tr.Since(at, SinceOptions{})
		if first, _, _ := strings.Cut(d.Text, "\n"); pin && (first != "56" || !d.ContinuesLine) || !pin && first != "123456" {
			t.Errorf("pinned %v: %q continues %v", pin, first, d.ContinuesLine)
		}
	}
}
