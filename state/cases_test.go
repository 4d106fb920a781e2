package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// outputCase is a case of pane output that once went wrong somewhere.
type outputCase struct {
	Name      string
	Report    string // its id in the list of reports
	Cols      int
	Rows      int
	PaneBytes int `json:"pane_bytes"`
	Chunks    *string
	Screen    string
	Stream    *string
	input     string
}

func outputCases(t *testing.T) (cases []*outputCase) {
	t.Helper()
	dir := filepath.Join("transcript", "testdata", "cases")
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		b, err := os.ReadFile(filepath.Join(dir, c.Name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		c.input = crlf(string(b))
		if len(c.input) != c.PaneBytes {
			t.Fatalf("%s: %d bytes, want %d", c.Name, len(c.input), c.PaneBytes)
		}
	}
	return cases
}

// gridIsRight are the cases whose stream text differs from what tmux keeps, with
// the logical lines of its grid: bytes that are not UTF-8, line separators and a
// joiner between letters never reach it, and a bar wider than the pane leaves
// rows behind. Raw has the bytes.
var gridIsRight = map[string]string{
	"02-invalid-utf8":             "caf ok\n(\nend\nz\n",
	"12-progress-wider-than-pane": "step 1 of 3 [#..] wo\nstep 2 of 3 [##.] wo\nstep 3 of 3 [###] working\nend\n",
	"36-json-hostile":             "{\"a\":\"\\u0000\",\"b\":\"</script>\"}\nline sep \ufeffBOM  nonchar\n\"quote\" 'single' `tick` $VAR %d\n",
	"37-bidi-zero-width":          "safe \u202egnp.exe\u202c txt\nzero\u200bwidth join\n",
}

// want is the text to be read from before the case, "" for not fixed.
func (c *outputCase) want() string {
	if s, ok := gridIsRight[c.Name]; ok {
		return s
	}
	if c.Stream == nil {
		return ""
	}
	return trimLines(*c.Stream)
}

// otherGrid tells whether a version of tmux keeps something else of the case than
// 3.3a, from which its screen was taken.
func (c *outputCase) otherGrid(version string) bool {
	_, dropped := gridIsRight[c.Name]
	return !strings.HasPrefix(version, "3.3") && (dropped || c.Name == "17-dcs-sixel-apc")
}

// trimLines cuts blanks off the ends of finished lines (O05).
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines[:len(lines)-1] {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// written are the pieces that the program writes.
func (c *outputCase) written() []string {
	switch {
	case c.Chunks == nil:
		return []string{c.input}
	case strings.HasPrefix(*c.Chunks, "one byte"):
		return strings.Split(string(latin(c.input)), "\x00")
	}
	first, rest, _ := strings.Cut(c.input, "\n")
	return []string{first + "\n", rest}
}

// latin separates bytes with NUL.
func latin(s string) (b []byte) {
	for i := range len(s) {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, s[i])
	}
	return b
}

// Cases of the reports of group O that cost the most have tests of their names.
func TestO01ProgressAndRedraws(t *testing.T) { printCases(t, "O01") }
func TestO02NotUTF8(t *testing.T)            { printCases(t, "O02") }
func TestO04WrappedLines(t *testing.T)       { printCases(t, "O04") }
func TestO07FullScreen(t *testing.T)         { printCases(t, "O07") }
func TestO08Strings(t *testing.T)            { printCases(t, "O08") }
func TestO11Modes(t *testing.T)              { printCases(t, "O11") }

// The others: C01, C08, M04, O05, O10, O13, W01, X04.
func TestOutputCases(t *testing.T) { printCases(t, "") }

var named = []string{"O01", "O02", "O04", "O07", "O08", "O11"}

// printCases prints each case of a report, or of all that have no test of their
// name, into a real pane: what is read from the cursor before it is the case's
// text, in one go, in pages of any size, and after every write; the cursor moves
// by exactly the bytes; the screen is the case's; another pane's cursor stays.
func printCases(t *testing.T, report string) {
	t.Helper()
	x := newTmux(t).quiet("80", "24")
	x.run("new-session", "-d", "-s", "narrow", "-x", "20", "-y", "24", "cat >/dev/null")
	x.run("set-option", "-g", "history-limit", "2000")
	m := x.mirror()
	version := full(t, m).Server.Version
	other := x.printer(m, 0).watch()
	found := 0
	for _, c := range outputCases(t) {
		if report != "" && c.Report != report || report == "" && slices.Contains(named, c.Report) {
			continue
		}
		found++
		t.Run(c.Report+"/"+c.Name, func(t *testing.T) {
			session := "main:"
			if c.Cols != 80 {
				session = "narrow:"
			}
			id, err := controlmode.ParsePaneID(x.run("new-window", "-d", "-t", session, "-P", "-F", "#{pane_id}", "cat >/dev/null"))
			if err != nil {
				t.Fatal(err)
			}
			defer x.run("kill-pane", "-t", id.String())
			p := x.printer(m, id)
			before := p.watch()
			beside := &joiner{at: before}
			at := before
			for _, w := range c.written() {
				p.print(w)
				at = p.delivered(at, len(w))
				beside.all(t, p, SinceOptions{})
			}
			if n := at.Offset - before.Offset; at.Stream != before.Stream || n != int64(c.PaneBytes) {
				t.Errorf("the cursor moved by %d from %v to %v, want %d", n, before, at, c.PaneBytes)
			}
			raw, err := m.Since(within(t), id, before, SinceOptions{Raw: true})
			if err != nil || string(raw.Raw) != c.input {
				t.Errorf("raw %q, want %q (%v)", raw.Raw, c.input, err)
			}
			text, s := p.readAll(t, before, SinceOptions{})
			want, screen := c.want(), c.Screen
			if c.otherGrid(version) {
				want = strings.TrimRight(x.run("capture-pane", "-p", "-J", "-t", id.String()), " \n") + "\n"
				screen = ""
			}
			if want != "" && text != want {
				t.Errorf("text %q\nwant %q", text, want)
			}
			if s.Cursor != at {
				t.Errorf("the text's cursor is %v, want %v", s.Cursor, at)
			}
			c.checkReads(t, p, before, text, s.AlternateScreen, beside.text)
			shot, err := m.Capture(within(t), id, CaptureRange{})
			if err != nil {
				t.Fatal(err)
			}
			checkText(t, strings.Join(shot.Lines, "\n"))
			if got := strings.TrimRight(strings.Join(shot.Lines, "\n"), "\n"); screen != "" && got != screen {
				t.Errorf("screen %q\nwant %q", got, screen)
			}
			if shot.Alternate != strings.HasPrefix(c.Name, "19-") {
				t.Errorf("alternate screen %v", shot.Alternate)
			}
			if s, err := m.Since(within(t), 0, other, SinceOptions{}); err != nil || s.Cursor != other || s.news() {
				t.Errorf("the pane beside: %+v %v", s, err)
			}
		})
	}
	if found == 0 {
		t.Error("there is no such case")
	}
}

// checkReads: other ways to read a case give the same text.
func (c *outputCase) checkReads(t *testing.T, p *printer, before Cursor, text string, alternate bool, beside string) {
	t.Helper()
	if alternate {
		return // a page of a screen is the screen
	}
	for _, n := range []int{1, 7, 700} {
		for what, opt := range map[string]SinceOptions{
			"bytes": {Oldest: true, MaxBytes: n}, "lines": {Oldest: true, MaxLines: n},
		} {
			if got, _ := p.readAll(t, before, opt); got != text {
				t.Errorf("in pages of %d %s: %q\nwant %q", n, what, got, text)
			}
		}
		var raw []byte
		at := before
		for more := true; more; {
			s, err := p.m.Since(within(t), p.pane, at, SinceOptions{Raw: true, Oldest: true, MaxBytes: n})
			if err != nil {
				t.Fatal(err)
			}
			raw, at, more = append(raw, s.Raw...), s.Cursor, s.More
		}
		if string(raw) != c.input {
			t.Errorf("raw in pages of %d: %q", n, raw)
		}
	}
	if c.Stream != nil && beside != text {
		t.Errorf("read after every write: %q\nwant %q", beside, text)
	}
}

// Case 39: the logical line stays one while the pane is resized, and nothing is
// news.
func TestO13Case39(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	p := x.printer(x.mirror(), 0)
	before := p.watch()
	for _, c := range outputCases(t) {
		if c.Name != "39-resize-reflow" {
			continue
		}
		p.print(c.input)
		after := p.delivered(before, c.PaneBytes)
		top := -100 // a narrower pane has its first row in history
		for i, width := range []int{80, 40, 100} {
			rows := []int{3, 4, 3}[i]
			p.resize(t, width)
			shot, err := p.m.Capture(within(t), 0, CaptureRange{Start: &top})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(strings.Split(strings.TrimRight(strings.Join(shot.Lines, "\n"), "\n"), "\n")); n != rows {
				t.Errorf("%d columns: %d rows, want %d", width, n, rows)
			}
			text, s := p.readAll(t, before, SinceOptions{})
			if text != *c.Stream || s.Cursor != after || s.Gap != nil {
				t.Errorf("%d columns: %q, cursor %v, gap %+v; want %q at %v", width, text, s.Cursor, s.Gap, *c.Stream, after)
			}
			if text, _ := p.readAll(t, after, SinceOptions{}); text != "" {
				t.Errorf("%d columns: the resize is news: %q", width, text)
			}
		}
		return
	}
	t.Fatal("there is no such case")
}
