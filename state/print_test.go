package state

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"tmux-mcpd/controlmode"
)

// printer is the far side of a pane's terminal: what is written to it is what
// the program in the pane prints. Writing blocks while tmux does not read, as it
// does for programs.
type printer struct {
	*os.File
	x    *testTmux
	m    *Mirror
	pane controlmode.PaneID
}

// printer opens a pane whose program only swallows its input, and makes the
// terminal raw: bytes arrive as they are written, and nothing is echoed.
func (x *testTmux) printer(m *Mirror, pane controlmode.PaneID) *printer {
	x.t.Helper()
	server, pid, tty := "", "", ""
	if _, err := fmt.Sscan(x.run("display-message", "-p", "-t", pane.String(), "#{pid} #{pane_pid} #{pane_tty}"), &server, &pid, &tty); err != nil {
		x.t.Fatal(err)
	}
	// tmux's child sets the terminal's modes before it becomes the program.
	tmux, _ := os.Readlink("/proc/" + server + "/exe") // "" where there is no /proc
	for ctx := within(x.t); tmux != ""; {
		if is, err := os.Readlink("/proc/" + pid + "/exe"); err != nil || is != tmux {
			break
		}
		if ctx.Err() != nil {
			x.t.Fatalf("%s never ran its program", pane)
		}
	}
	f, err := os.OpenFile(tty, os.O_RDWR, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { f.Close() })
	if _, err := term.MakeRaw(int(f.Fd())); err != nil {
		x.t.Fatal(err)
	}
	return &printer{f, x, m, pane}
}

// quiet starts a server whose pane %0 swallows its input.
func (x *testTmux) quiet(width, height string) *testTmux {
	x.t.Helper()
	x.run("new-session", "-d", "-s", "main", "-x", width, "-y", height, "cat >/dev/null")
	x.run("set-option", "-g", "status", "off")
	return x
}

func (p *printer) print(s string) {
	p.x.t.Helper()
	if _, err := p.WriteString(s); err != nil {
		p.x.t.Fatal(err)
	}
}

// delivered waits until n bytes after a cursor have come.
func (p *printer) delivered(from Cursor, n int) Cursor {
	p.x.t.Helper()
	at := from
	for ctx := within(p.x.t); at.Offset < from.Offset+int64(n); {
		s, err := p.m.Since(ctx, p.pane, at, SinceOptions{Raw: true, Wait: 10 * time.Second})
		if err != nil {
			p.x.t.Fatalf("%d of %d bytes: %v", at.Offset-from.Offset, n, err)
		}
		at = s.Cursor
	}
	return at
}

// watch watches the pane and gives the cursor to read from.
func (p *printer) watch() Cursor {
	p.x.t.Helper()
	_, at, err := p.m.StartWatch(within(p.x.t), p.pane, CaptureRange{})
	if err != nil {
		p.x.t.Fatal(err)
	}
	return at
}

// joiner joins deltas as the tool contract says (section 11).
type joiner struct {
	at    Cursor
	text  string
	reads int
	last  *Since
}

func (j *joiner) add(t *testing.T, s *Since) {
	t.Helper()
	checkText(t, s.Text)
	if s.Text != "" && !s.AlternateScreen {
		if j.text != "" && !strings.HasSuffix(j.text, "\n") && !s.ContinuesLine {
			j.text += "\n"
		}
		j.text += s.Text
	}
	if s.Cursor.Offset < j.at.Offset {
		t.Fatalf("the cursor went back from %d to %d", j.at.Offset, s.Cursor.Offset)
	}
	j.at, j.last = s.Cursor, s
	j.reads++
}

// all reads until there is nothing more.
func (j *joiner) all(t *testing.T, p *printer, opt SinceOptions) string {
	t.Helper()
	for more := true; more; more = j.last.More {
		s, err := p.m.Since(within(t), p.pane, j.at, opt)
		if err != nil {
			t.Fatal(err)
		}
		j.add(t, s)
		if j.reads > 100_000 {
			t.Fatal("reading does not end")
		}
	}
	return j.text
}

// readAll is the text after a cursor, read with opt.
func (p *printer) readAll(t *testing.T, from Cursor, opt SinceOptions) (string, *Since) {
	t.Helper()
	j := &joiner{at: from}
	return j.all(t, p, opt), j.last
}

// checkText: text is valid UTF-8 without control characters but LF and TAB.
func checkText(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("not UTF-8: %q", s)
	}
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			t.Fatalf("control character %q in %q", r, s)
		}
	}
}

// crlf is what a terminal in its default mode makes of a program's text.
func crlf(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte("\n"), []byte("\r\n"))) }
