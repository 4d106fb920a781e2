package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// printed is a log that has had the bytes, in pieces.
func printed(t testing.TB, width, height int, pieces ...string) *Output {
	t.Helper()
	o := newOutput(7, minRing)
	o.begin(testServer, 1, GapAttached)
	startedSize(t, o, 0, width, height)
	for _, p := range pieces {
		o.print(p)
	}
	return o
}

// print appends text in which {A}, {C;x} and the like are marks.
func (o *Output) print(text string) { o.append([]byte(marks.Replace(text))) }

var marks = strings.NewReplacer("{", "\x1b]133;", "}", "\a", "\n", "\r\n")

// records are the commands of a log, one a line.
func (o *Output) records() string {
	var b strings.Builder
	list := o.commandList()
	for _, c := range list.Commands {
		status := "-"
		if c.ExitStatus != nil {
			status = fmt.Sprint(*c.ExitStatus)
		}
		_, kept, err := o.commandOutput(c.ID, nil)
		if err != nil {
			return err.Error()
		}
		text := kept.read(c.Cursor, c.StartedAt, RunTextOptions{})
		fmt.Fprintf(&b, "%s|%s|%s|%q", c.Line, c.State, status, text.Text)
		if c.Ended() && !c.OutputComplete {
			b.WriteString("|incomplete")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestCommandMarks: what becomes of the marks that shells and programs print.
func TestCommandMarks(t *testing.T) {
	const one = "{D;0}{A}$ {B}one\n{C}1\n{D;3}{A}$ {B}"
	for _, row := range []struct{ name, printed, want string }{
		{"a command", one, `one|completed|3|"1\n"`},
		{"it runs", "{A}$ {B}one\n{C}1\n", `one|running|-|"1\n"`},
		{"it has printed nothing", "{A}$ {B}one\n{C}", `one|running|-|""`},
		{"an empty line", one + "\n{D;0}{A}$ {B}", `one|completed|3|"1\n"`},
		{"C-c at the prompt", one + "tw^C\n{D;130}{A}$ {B}", `one|completed|3|"1\n"`},
		{"no status", "{A}$ {B}one\n{C}1\n{D}{A}", `one|completed|-|"1\n"`},
		{"a status that is none", "{A}$ {B}one\n{C}1\n{D;x9}{A}", `one|completed|-|"1\n"`},
		{"a status with options", "{A}$ {B}one\n{C}1\n{D;9;aid=77}{A}", `one|completed|9|"1\n"`},
		{"a status beyond all", "{A}$ {B}one\n{C}1\n{D;99999999999999999999}{A}", `one|completed|-|"1\n"`},
		{"ST ends the marks", "{A}$ {B}one\n\x1b]133;C\x1b\\1\n\x1b]133;D;3\x1b\\", `one|completed|3|"1\n"`},
		{"VS Code", "\x1b]633;A\a$ \x1b]633;B\ax\n\x1b]633;E;one\\x3b two\\\\;nonce\a\x1b]633;C\a1\n\x1b]633;D;3\a", `one; two\|completed|3|"1\n"`},
		{"fish", "{A}$ x\n{C;cmdline_url=one%20%3B%E2%82%AC}1\n{D;3}", `one ;€|completed|3|"1\n"`},
		{"kitty", "{A}$ x\n{C;cmdline=one\\ \\;\\ \\'two\\'}1\n{D;3}", `one ; 'two'|completed|3|"1\n"`},
		{"kitty, quoted otherwise", "{A}$ x\n{C;cmdline=$'one\\ttwo\\'\\n\\303\\244'}1\n{D;3}", "one\ttwo'\nä" + `|completed|3|"1\n"`},
		{"a line that wraps", "{A}$ {B}0123456789abcdefghijkl\n{C}1\n{D;3}", `0123456789abcdefghijkl|completed|3|"1\n"`},
		{"a wide character at the edge", "{A}$ {B}0123456789abcdefg漢l\n{C}1\n{D;3}", `0123456789abcdefg漢l|completed|3|"1\n"`},
		{"several lines", "{A}$ {B}for x\n{A;k=s}> {B}do\n{C}1\n{D;3}", "for x\n> do" + `|completed|3|"1\n"`},
		{"a prompt at the right", "{A}$ {B}one\x1b[1;15Hright\x1b[1;6H\n{C}1\n{D;3}", `one|completed|3|"1\n"`},
		{"the prompt is drawn again", "{A}$ {B}on\r\x1b[K{A}$ {B}one\n{C}1\n{D;3}", `one|completed|3|"1\n"`},
		{"C-l at the prompt", "{A}$ {B}on\x1b[H\x1b[J{A}$ {B}one\n{C}1\n{D;3}", `one|completed|3|"1\n"`},
		{"the line was wiped", "{A}$ {B}one\x1b[2K\rlost\n{C}1\n{D;3}", `|completed|3|"1\n"`},
		{"clear", "{A}$ {B}clear\n{C}\x1b[H\x1b[2J\x1b[3J{D;0}{A}$ {B}one\n{C}1\n{D;3}", `clear|completed|0|""` + "\n" + `one|completed|3|"1\n"`},
		{"a full-screen program", "{A}$ {B}vi\n{C}\x1b[?1049h\x1b[Htext\n{C}\x1b[?1049l{D;0}{A}", `vi|completed|0|""`},
		{"two integrations", "{D;0}{A}{A}$ {B}{B}one\n{C}{C;cmdline_url=two}1\n{D;3}{D;0}{A}{A}$ {B}", `one|completed|3|"1\n"`},
		{"two, the second knows the line", "{A}$ x\n{C}{C;cmdline_url=two}1\n{D;3}{D;0}{A}", `two|completed|3|"1\n"`},
		{"a shell in the shell", "{A}$ {B}sh\n{C}{A}# {B}one\n{C}1\n{D;3}{A}# {B}exit\n{C}{D;4}{A}$ {B}", `sh|unknown|-|""` + "\n" +
			`one|completed|3|"1\n"` + "\nexit|completed|4|\"\""},
		{"no ends", "{A}$ {B}one\n{C}1\n{A}$ {B}two\n{C}2\n{A}$ {B}", `one|unknown|-|"1\n"` + "\n" + `two|unknown|-|"2\n"`},
		{"only ends", "{D;1}{D;2}{D}", ""},
		{"nonsense", "{}{;}{Z}{E;no}{C", ""},
		{"a program prints marks", "{A}$ {B}one\n{C}{C;cmdline_url=no}{B}no{C}1\n{D;3}", `one|unknown|-|""` + "\n" + `no|completed|3|"1\n"`},
		{"the prompt came before the log", "$ one\n{C}1\n{D;3}{A}$ {B}", `one|completed|3|"1\n"`},
		{"and is another now", "/a$ one\n{C}1\n{D;3}{A}/b$ {B}", `|completed|3|"1\n"`},
		{"zsh marks the end of a line", "{A}$ {B}one\n{C}1\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m" + strings.Repeat(" ", 19) + "\r \r{D;3}{A}", `one|completed|3|"1"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, step := range []int{1 << 20, 1, 7} {
				o := printed(t, 20, 5)
				for b := range slices.Chunk([]byte(marks.Replace(row.printed)), step) {
					o.append(b)
				}
				if got := strings.TrimSuffix(o.records(), "\n"); got != row.want {
					t.Errorf("in pieces of %d:\n%s\nwant\n%s", step, got, row.want)
				}
			}
		})
	}
}

// TestCommandGap: where bytes are missing, no status is given to a command that
// it may not be of.
func TestCommandGap(t *testing.T) {
	o := printed(t, 20, 5, "{A}$ {B}one\n{C}1\n")
	o.finish(testServer, GapPaused)
	o.begin(testServer, 1, GapPaused)
	startedSize(t, o, o.held, 20, 5)
	o.print("2\n{D;3}{A}$ {B}two\n{C}3\n{D;4}")
	if got, want := o.records(), "one|completed|-|\"1\\n2\\n\"|incomplete\ntwo|completed|4|\"3\\n\"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	list := o.commandList()
	if list.Gap == nil || list.Gap.Reason != GapPaused || !list.Commands[0].EndAtMost || list.Commands[1].EndAtMost {
		t.Errorf("%+v", list)
	}
	o.print("{A}$ {B}three\n{C}4\n")
	o.bury(testServer, 1, GapPaneDied)
	if got := o.records(); !strings.HasSuffix(got, "three|pane_died|-|\"4\\n\"|incomplete\n") {
		t.Errorf("%s", got)
	}
	if list := o.commandList(); list.Marked || list.Starts {
		t.Errorf("%+v", list)
	}
}

// TestCommandBounds: a program that prints marks for ever costs no more than the
// bounds, and tells the journal only so much.
func TestCommandBounds(t *testing.T) {
	o := printed(t, 80, 24)
	tell := make(chan struct{}, 1)
	o.commands.tell = tell
	long, began := strings.Repeat("x", 3000), time.Now()
	for n := range 500 {
		o.print(fmt.Sprintf("{A}$ {B}%d\n{C;cmdline_url=%d%s}{D;0}", n, n, long))
	}
	l := &o.commands
	told := 2 * (commandBurst + 1 + int(commandRate*time.Since(began).Seconds()))
	if len(l.all) > maxCommands || l.lines > maxCommandLines || len(l.news) > told || len(l.own) != 0 {
		t.Errorf("%d commands, %d bytes, %d for the journal", len(l.all), l.lines, len(l.news))
	}
	sum := 0
	for _, c := range l.all {
		sum += len(c.line)
	}
	if sum != l.lines {
		t.Errorf("%d bytes are counted, %d are there", l.lines, sum)
	}
	list := o.commandList()
	if first := list.Commands[0]; first.Line[:4] == "0xxx" || list.Since.After(first.StartedAt) {
		t.Errorf("since %v: %+v", list.Since, first)
	}
	if _, _, err := o.commandOutput(list.Commands[0].ID, &Cursor{}); err == nil {
		t.Error("a cursor of no log is taken")
	}
	old := list.Commands[0].ID
	for range maxCommands {
		o.print("{A}$ {B}1\n{C}{D;0}")
	}
	if _, _, err := o.commandOutput(old, nil); err == nil {
		t.Error("a forgotten command is found")
	}
}

// TestCommandsOfAnyMarks: whatever marks come in whatever order, in whatever
// pieces, the records are in order, do not overlap and end; nothing panics.
func TestCommandsOfAnyMarks(t *testing.T) {
	parts := []string{
		"{A}", "{B}", "{C}", "{D}", "{D;0}", "{D;77;aid=x}", "{C;aid=00}", "{A;k=s}", "{P;k=i}", "{N}", "{C;cmdline=$'\\", "{C;cmdline_url=%4}", "}",
		"\x1b]633;E;\\x\a", "\x1b]633;C\a", "text", "\n", "\r", "\x1b[H\x1b[2J", "\x1b[?1049h", "\x1b[?1049l", "\x1b[2;3r", "\x1b[L", "\x1bc", "漢",
		"0123456789012345678901234567890123456789", "\x1b[5A", "\x1b[3J",
	}
	rapid.Check(t, func(rt *rapid.T) {
		o := printed(t, rapid.IntRange(1, 40).Draw(rt, "width"), rapid.IntRange(1, 8).Draw(rt, "height"))
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, len(parts)), 0, 60).Draw(rt, "parts") {
			if n == len(parts) {
				o.finish(testServer, GapPaused)
				o.begin(testServer, 1, GapPaused)
				startedSize(t, o, o.held, rand.IntN(40)+1, 5)
				continue
			}
			o.print(parts[n])
		}
		o.records()
		end := int64(0)
		for i, c := range o.commands.all {
			if c.start < end || c.state != CommandRunning && c.end < c.start || c.n != i+1 || len(c.line) > MaxCommandLine ||
				(c.state == CommandRunning) != (c == o.commands.open) {
				rt.Fatalf("%+v after %d", c, end)
			}
			end = max(c.end, c.start)
		}
	})
}
