package state

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// runMirror is a mirror with a directory of its own for runs.
func (x *testTmux) runMirror(change ...func(*Config)) *Mirror {
	x.t.Helper()
	dir := filepath.Join(filepath.Dir(x.sock), "runs")
	m := x.mirror(append(change, func(c *Config) { c.RunDir = dir })...)
	if _, err := m.Arrive(Full).Model(within(x.t), Full); err != nil {
		x.t.Fatal(err)
	}
	return m
}

// shells are the shells that are installed here, as tmux starts them, with a
// plain configuration.
func plainShells(t testing.TB) map[Shell]string {
	t.Helper()
	onLinux(t)
	return map[Shell]string{
		ShellBash: "bash --norc -i",
		ShellZsh:  "zsh -f -i",
		ShellDash: "dash -i",
		ShellAsh:  "busybox ash -i",
		ShellKsh:  "ksh93 -i",
		ShellMksh: "mksh -i",
		ShellFish: "fish --no-config",
	}
}

// begin starts a run.
func (x *testTmux) begin(m *Mirror, id controlmode.PaneID, opt RunOptions) string {
	x.t.Helper()
	if opt.Ready == 0 {
		opt.Ready = patience
	}
	p, err := m.PrepareRun(within(x.t), id, opt)
	if err != nil {
		x.t.Fatalf("run %.100q: %v", opt.Command, err)
	}
	x.run("send-keys", "-t", id.String(), "-l", p.Line, ";", "send-keys", "-t", id.String(), "Enter")
	return p.Typed()
}

// finish waits for a run's end and answers it with its whole output.
func (x *testTmux) finish(m *Mirror, run string) (Run, string) {
	x.t.Helper()
	v, err := m.AwaitRun(context.Background(), run, patience)
	if err != nil {
		x.t.Fatal(err)
	}
	_, text, err := m.RunText(run, RunTextOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return v, text.Text
}

// does runs a command to its end, which must be an ordinary one.
func (x *testTmux) does(m *Mirror, id controlmode.PaneID, command string) (status int, output string) {
	x.t.Helper()
	v, text := x.finish(m, x.begin(m, id, RunOptions{Command: command}))
	if v.State != RunCompleted || v.ExitStatus == nil {
		x.t.Fatalf("%.100q: %+v; %q", command, v, m.EarlyText(v.ID))
	}
	if !v.OutputComplete || v.Foreign || v.EndedAt.Before(v.StartedAt) {
		x.t.Errorf("%.100q: %+v", command, v)
	}
	return *v.ExitStatus, text
}

func TestRunInEveryShell(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	for shell, command := range plainShells(t) {
		t.Run(string(shell), func(t *testing.T) {
			need(t, command)
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window(command)
			for _, c := range []struct {
				command string
				status  int
				output  string
			}{
				{"true", 0, ""},
				{"echo hello", 0, "hello\n"},
				{"false", 1, ""},
				{"sh -c 'exit 7'", 7, ""},
				{"printf 'no newline'", 0, "no newline"},
				{"echo one\necho two # not three\n", 0, "one\ntwo\n"},
				{"echo \"it's\" 'a \"quoted\"' text", 0, "it's a \"quoted\" text\n"},
				{"seq 1 1000", 0, lines(1, 1000)},
			} {
				if status, output := x.does(m, id, c.command); status != c.status || output != c.output {
					t.Errorf("%q: status %d, output %.100q; want %d, %.100q", c.command, status, output, c.status, c.output)
				}
			}
			entries, _ := os.ReadDir(m.runs.files.dir)
			if len(entries) > 0 {
				t.Errorf("files left: %v", entries)
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString(itoa(n) + "\n")
	}
	return b.String()
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
