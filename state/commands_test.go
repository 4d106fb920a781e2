package state

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// typeLine types a line into a pane, as a person does.
func (x *testTmux) typeLine(id controlmode.PaneID, line string) {
	x.t.Helper()
	x.run("send-keys", "-t", id.String(), "-l", line)
	x.run("send-keys", "-t", id.String(), "Enter")
}

// awaitCommands waits until the list of a pane's commands satisfies ok.
func (x *testTmux) awaitCommands(m *Mirror, id controlmode.PaneID, what string, ok func(*CommandList) bool) CommandList {
	x.t.Helper()
	ctx := within(x.t)
	for {
		list, err := m.Commands(ctx, id)
		if err != nil {
			x.t.Fatal(err)
		}
		if ok(&list) {
			return list
		}
		_, out := m.watches.liveStream(id)
		if out == nil {
			continue
		}
		more := out.changed()
		if list = out.commandList(); ok(&list) {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			shown := x.run("capture-pane", "-p", "-t", id.String())
			x.t.Fatalf("%s: never happened: %s\n%s", what, shownCommands(list.Commands), shown)
		}
	}
}

// awaitRead waits until a shell has shown what was typed and sleeps. zsh 5.9 loses
// an interrupt that comes while it looks at keys, until the next key: it reads on
// after the signal (10 of 880 tries, with C-c up to 2 ms behind the keys).
func (x *testTmux) awaitRead(id controlmode.PaneID, typed string) {
	x.t.Helper()
	pid, tty, _ := strings.Cut(x.run("display-message", "-p", "-t", id.String(), "#{pane_pid} #{pane_tty}"), " ")
	shell, err := strconv.Atoi(pid)
	if err != nil {
		x.t.Fatal(err)
	}
	for ctx := within(x.t); ; {
		shown := x.run("capture-pane", "-p", "-t", id.String())
		if s := look(shell, tty); strings.Contains(shown, typed) && len(s.group) == 1 && s.group[0].state == 'S' {
			return
		}
		if ctx.Err() != nil {
			x.t.Fatalf("the shell never read %q:\n%s", typed, shown)
		}
	}
}

func shownCommands(all []Command) string {
	var b strings.Builder
	for _, c := range all {
		status := "-"
		if c.ExitStatus != nil {
			status = fmt.Sprint(*c.ExitStatus)
		}
		fmt.Fprintf(&b, "%q %s %s complete=%v run=%q\n", c.Line, c.State, status, c.OutputComplete, c.Run)
	}
	return b.String()
}

// prompts counts the prompts that the marks tell of; at tells whether one is
// shown.
func (o *Output) prompts() (at bool, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.text.Marks(-1) {
		if at = k.Kind == 'B'; at {
			n++
		}
	}
	return at, n
}

// newestEnded tells whether the newest command has that line and has ended.
func newestEnded(line string) func(*CommandList) bool {
	return func(l *CommandList) bool {
		n := len(l.Commands)
		return n > 0 && l.Commands[n-1].Line == line && l.Commands[n-1].Ended()
	}
}

func (x *testTmux) output(m *Mirror, id controlmode.PaneID, c Command) string {
	x.t.Helper()
	_, text, err := m.CommandText(id, c.ID, RunTextOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return text.Text
}

// TestCommandsOfShells: what a person runs in a shell that was told to mark its
// prompts is listed with its line, status and output, in every such shell.
func TestCommandsOfShells(t *testing.T) {
	for shell, start := range plainShells(t) {
		rc := Integration(shell)
		if rc == "" {
			continue
		}
		t.Run(string(shell), func(t *testing.T) {
			x := newTmux(t)
			x.run("new-session", "-d", "-x", "60", "-y", "10", "env LC_ALL=C.UTF-8 "+start)
			m := x.runMirror()
			file := x.sock + ".rc"
			if err := os.WriteFile(file, []byte(rc), 0o600); err != nil {
				t.Fatal(err)
			}
			first := x.awaitCommands(m, 0, "a list", func(*CommandList) bool { return true })
			if len(first.Commands) != 0 || first.Marked || first.Since.IsZero() {
				t.Errorf("before integration: %+v", first)
			}
			x.typeLine(0, ". "+file)
			const failing = `sh -c "echo one; exit 3"`
			x.typeLine(0, failing)
			x.awaitCommands(m, 0, "the first command", newestEnded(failing))
			if shell != ShellFish { // it runs no hook for a line that comes right after C-c
				_, out := m.watches.liveStream(0)
				for _, keys := range []string{"Enter", "C-c"} { // no commands
					n := 0
					x.awaitCommands(m, 0, "a prompt", func(*CommandList) bool {
						at, k := out.prompts()
						n = k
						return at
					})
					if keys == "C-c" {
						x.run("send-keys", "-t", "%0", "-l", "never run")
						x.awaitRead(0, "never run")
					}
					x.run("send-keys", "-t", "%0", keys)
					x.awaitCommands(m, 0, "another", func(*CommandList) bool {
						at, k := out.prompts()
						return at && k > n
					})
				}
			}
			long := "printf '%s\\n' " + strings.Repeat("abcdefghi ", 12) + "漢字"
			x.typeLine(0, long)
			x.awaitCommands(m, 0, "the long line", newestEnded(long))
			x.typeLine(0, "clear")
			x.awaitCommands(m, 0, "clear", newestEnded("clear"))
			x.typeLine(0, "printf last")
			list := x.awaitCommands(m, 0, "the last", newestEnded("printf last"))
			got := list.Commands
			if len(got) != 4 || !list.Marked || !list.Starts {
				t.Fatalf("%+v\n%s", list, shownCommands(got))
			}
			for i, want := range []int{3, 0, 0, 0} {
				c := got[i]
				if c.State != CommandCompleted || c.ExitStatus == nil || *c.ExitStatus != want || !c.OutputComplete ||
					c.Run != "" || c.Cursor == nil || c.EndedAt.Before(c.StartedAt) || c.StartedAt.Before(list.Since) {
					t.Errorf("%+v", c)
				}
			}
			if s := x.output(m, 0, got[0]); s != "one\n" {
				t.Errorf("output %q", s)
			}
			if s := x.output(m, 0, got[1]); s != strings.Repeat("abcdefghi\n", 12)+"漢字\n" {
				t.Errorf("output %q", s)
			}
			if s := strings.TrimRight(x.output(m, 0, got[3]), "\n"); s != "last" {
				t.Errorf("output %q", s)
			}
		})
	}
}

// TestCommandThatRuns: of a command that ran when the log began, the end is told;
// a shell that is starting up is no command.
func TestCommandThatRuns(t *testing.T) {
	onLinux(t)
	x := newTmux(t)
	x.run("new-session", "-d", "-x", "60", "-y", "10", "bash --norc -i")
	m := x.runMirror()
	if _, err := m.WaitReady(within(t), 0, patience); err != nil {
		t.Fatal(err)
	}
	x.typeLine(0, Integration(ShellBash))
	x.typeLine(0, "sh -c 'read y; exit 6'")
	if _, err := m.AwaitWaiting(within(t), 0, patience, func(w Waiting) bool { return w.For == WaitsLine && w.Program != "bash" }); err != nil {
		t.Fatal(err)
	}
	if list := x.awaitCommands(m, 0, "a list", func(*CommandList) bool { return true }); len(list.Commands) != 0 || list.Marked {
		t.Fatalf("%+v", list)
	}
	x.run("send-keys", "-t", "%0", "-l", "text")
	x.run("send-keys", "-t", "%0", "Enter")
	list := x.awaitCommands(m, 0, "its end", func(l *CommandList) bool { return len(l.Commands) > 0 })
	c := list.Commands[0]
	if len(list.Commands) != 1 || c.State != CommandCompleted || c.ExitStatus == nil || *c.ExitStatus != 6 || !c.StartedAt.IsZero() || c.OutputComplete {
		t.Errorf("%s", shownCommands(list.Commands))
	}
	if s := x.output(m, 0, c); !strings.HasSuffix(s, "text\n") {
		t.Errorf("output %q", s)
	}
}
