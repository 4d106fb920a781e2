package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// TestRunFindsTypedText: where the shell marks the end of its prompt, what is left
// on the command line is found before anything is typed, and stays as it is.
func TestRunFindsTypedText(t *testing.T) {
	eachShell(t, func(t *testing.T, x *testTmux, m *Mirror, s Shell, kind string, id controlmode.PaneID) {
		if kind != "hooks" {
			return
		}
		if status, output := x.does(m, id, "echo first"); status != 0 || output != "first\n" {
			t.Fatalf("%d %q", status, output)
		}
		m.awaitFor(t, id, WaitsPrompt)
		from, err := m.Place(within(t), id)
		if err != nil {
			t.Fatal(err)
		}
		x.keys(id, "-l", "echo x y")
		typed := func() string {
			if _, err := m.Since(within(t), id, from, SinceOptions{Wait: 10 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			_, out := m.watches.liveStream(id)
			line, ok := out.commandLine()
			if !ok {
				return "nothing known"
			}
			return line.text
		}
		until(t, "the text is shown", func() bool { return strings.Contains(typed(), "echo x y") })
		for range 2 {
			_, err := m.PrepareRun(within(t), id, RunOptions{Command: "echo no", Ready: patience})
			var left *LeftoverError
			if !errors.As(err, &left) || left.Text != "echo x y" {
				t.Fatalf("%v", err)
			}
		}
		if _, busy := m.ActiveRun(id); busy {
			t.Error("the pane is taken")
		}
		x.awaitRead(id, "echo x y")
		x.keys(id, "C-c")
		until(t, "the text is gone", func() bool { return typed() == "" })
		if status, output := x.does(m, id, "echo second"); status != 0 || output != "second\n" {
			t.Errorf("%d %q", status, output)
		}
	})
}

// TestRunAtAPromptMarkedEarly: what always stands behind the mark is part of the
// prompt. It holds up one run, until another prompt shows the same.
func TestRunAtAPromptMarkedEarly(t *testing.T) {
	onLinux(t)
	need(t, "bash --norc -i")
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.window(`PS1='\[\e]133;B\a\]mine> ' bash --norc -i`)
	m.awaitFor(t, id, WaitsPrompt)
	if _, err := m.Place(within(t), id); err != nil {
		t.Fatal(err)
	}
	x.keys(id, "Enter") // the first prompt came before the watch
	var left *LeftoverError
	until(t, "the text is found", func() bool { return errors.As(x.tries(m, id), &left) })
	if left.Text != "mine>" {
		t.Errorf("%q", left.Text)
	}
	x.keys(id, "Enter")
	until(t, "the prompt is shown", func() bool { return !errors.As(x.tries(m, id), &left) })
	for range 3 {
		if status, output := x.does(m, id, "echo on"); status != 0 || output != "on\n" {
			t.Errorf("%d %q", status, output)
		}
	}
}

// tries prepares a run and drops it.
func (x *testTmux) tries(m *Mirror, id controlmode.PaneID) error {
	x.t.Helper()
	p, err := m.PrepareRun(within(x.t), id, RunOptions{Command: "true", Ready: patience})
	if err == nil {
		p.Cancel()
	}
	return err
}
