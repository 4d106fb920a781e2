package state

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// window opens a window and answers its pane. The command is a shell command
// line for tmux.
func (x *testTmux) window(command string) controlmode.PaneID {
	x.t.Helper()
	id, err := controlmode.ParsePaneID(x.run("new-window", "-d", "-P", "-F", "#{pane_id}", command))
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

// need skips a test for which a program is not installed here.
func need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(strings.Fields(program)[0]); err != nil {
		t.Skipf("%s is not installed here", program)
	}
}

func onLinux(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("what a terminal waits for is read from /proc, which this system lacks")
	}
}

// awaitFor waits until a pane waits for something.
func (m *Mirror) awaitFor(t testing.TB, id controlmode.PaneID, want WaitingFor) Waiting {
	t.Helper()
	w, err := m.AwaitWaiting(context.Background(), id, patience, func(w Waiting) bool { return w.For == want })
	if err != nil || w.For != want {
		t.Fatalf("pane %s waits for %s (%s), %v; want %s", id, w.For, w.Evidence, err, want)
	}
	return w
}

// TestWaitingRealPrograms: the truth table of real programs.
func TestWaitingRealPrograms(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	tests := []struct {
		command string
		want    WaitingFor
		shell   Shell
		program string
	}{
		{"bash --norc -i", WaitsPrompt, ShellBash, "bash"},
		{"exec -a vim bash --norc -i", WaitsPrompt, ShellBash, "bash"},
		{"zsh -f -i", WaitsPrompt, ShellZsh, "zsh"},
		{"dash -i", WaitsPrompt, ShellDash, "dash"},
		{"busybox ash -i", WaitsPrompt, ShellAsh, "ash"},
		{"ksh93", WaitsPrompt, ShellKsh, "ksh93"},
		{"mksh", WaitsPrompt, ShellMksh, "mksh"},
		{"fish --no-config", WaitsPrompt, ShellFish, "fish"},
		{"bash --norc -c 'bash --norc -i; true'", WaitsPrompt, ShellBash, "bash"},
		{"cat", WaitsLine, "", "cat"},
		{"bash -c 'seq 3 | cat; read -r x; true'", WaitsLine, "", "bash"},
		{"dash -c 'read x'", WaitsLine, "", "dash"},
		{"bash -c 'read -s x'", WaitsPassword, "", "bash"},
		{"bash -c 'read -e x'", WaitsLine, "", "bash"},
		{"bash -c 'read -n1 x'", WaitsLine, "", "bash"},
		{"bash -c 'read -sn1 x'", WaitsLine, "", "bash"},
		{"sleep 1000", WaitsBusy, "", "sleep"},
		{"bash -c 'sleep 1000; true'", WaitsBusy, "", "sleep"},
		{"bash -c 'while :; do sleep 0.2; done'", WaitsBusy, "", "sleep"},
		{"less /etc/passwd", WaitsFullscreen, "", "less"},
		{"vim -u NONE -i NONE", WaitsFullscreen, "", ""},
		{"busybox top", WaitsFullscreen, "", "top"},
		{"script -q -c 'bash --norc -i' /dev/null", WaitsPrompt, ShellBash, "bash"},
		{"script -q -c 'cat' /dev/null", WaitsLine, "", "cat"},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			need(t, strings.TrimPrefix(strings.TrimPrefix(tt.command, "exec -a vim "), "exec "))
			command := tt.command
			if strings.HasPrefix(command, "exec ") {
				command = "bash -c '" + command + "'"
			}
			id := x.window(command)
			// A shell that has yet to start its program, or is between two, is a
			// state that passes: the whole row is awaited.
			is := func(w Waiting) bool {
				return w.For == tt.want && w.Shell == tt.shell && (tt.program == "" || w.Program == tt.program)
			}
			w, err := m.AwaitWaiting(t.Context(), id, patience, is)
			if err != nil || !is(w) {
				t.Fatalf("%+v, %v, want %s, shell %q, program %q", w, err, tt.want, tt.shell, tt.program)
			}
			if relayed := strings.HasPrefix(command, "script"); w.Relayed != relayed {
				t.Errorf("relayed is %t: %s", w.Relayed, w.Evidence)
			}
			if now, err := m.Waiting(within(t), id); err != nil || now.Evidence == "" {
				t.Errorf("Waiting = %+v, %v", now, err)
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestWaitingSeesTheInnerProgram: a shell that runs something is not ready, and
// is again afterwards.
func TestWaitingSeesTheInnerProgram(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	id := x.window("bash --norc -i")
	m.awaitFor(t, id, WaitsPrompt)
	for _, step := range []struct {
		keys string
		want WaitingFor
	}{
		{"cat", WaitsLine},
		{"C-d", WaitsPrompt},
		{"read -s x", WaitsPassword},
		{"C-c", WaitsPrompt},
		{"sleep 1000", WaitsBusy},
		{"C-z", WaitsPrompt},
		{"fg", WaitsBusy},
		{"C-c", WaitsPrompt},
	} {
		x.run("send-keys", "-t", id.String(), step.keys)
		if !strings.HasPrefix(step.keys, "C-") {
			x.run("send-keys", "-t", id.String(), "Enter")
		}
		m.awaitFor(t, id, step.want)
	}
}

// TestWaitingDeadAndMode: what tmux itself says of a pane comes first.
func TestWaitingDeadAndMode(t *testing.T) {
	x := newTmux(t).start()
	x.run("set-option", "-g", "remain-on-exit", "on")
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	id := x.window("cat")
	x.run("copy-mode", "-t", id.String())
	if w := m.awaitFor(t, id, WaitsMode); !strings.Contains(w.Evidence, "copy-mode") {
		t.Errorf("evidence %q", w.Evidence)
	}
	// tmux learns the status a moment after it knows that the pane is dead; of one
	// in a hundred or so 3.3a never does (seen with nothing but tmux).
	told := func(w Waiting) bool { return w.For == WaitsDead && strings.Contains(w.Evidence, "status 3") }
	for try := 1; ; try++ {
		w, err := m.AwaitWaiting(within(t), x.window("exit 3"), 3*time.Second, told)
		if err == nil && told(w) {
			break
		}
		if err != nil || w.For != WaitsDead || try == 5 {
			t.Fatalf("%+v, %v", w, err)
		}
	}
}

// TestWaitReadyAfterSlowStart: a shell whose rc file takes its time, and reads
// nothing, is ready exactly when it reads a command line; every shell.
func TestWaitReadyAfterSlowStart(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	dir := t.TempDir()
	begin, ran := filepath.Join(dir, "begin"), filepath.Join(dir, "ran")
	rc := "while ! test -e " + begin + "; do sleep 0.05; done; echo > " + ran + "\n"
	write(t, filepath.Join(dir, ".zshrc"), rc)
	write(t, filepath.Join(dir, "rc"), rc)
	for _, tt := range []struct{ program, command string }{
		{"bash", "bash --rcfile " + dir + "/rc -i"},
		{"zsh", "ZDOTDIR=" + dir + " zsh -i"},
		{"dash", "ENV=" + dir + "/rc dash -i"},
		{"busybox", "ENV=" + dir + "/rc busybox ash -i"},
		{"ksh93", "ENV=" + dir + "/rc ksh93 -i"},
		{"mksh", "ENV=" + dir + "/rc mksh -i"},
		{"fish", "fish --no-config -C 'sh " + dir + "/rc'"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			need(t, tt.program)
			id := x.window(tt.command)
			w, err := m.WaitReady(within(t), id, 100*time.Millisecond)
			if err != nil || w.For == WaitsPrompt {
				t.Errorf("ready before its rc file has ended: %+v, %v", w, err)
			}
			write(t, begin, "")
			w, err = m.WaitReady(within(t), id, patience)
			if err != nil || w.For != WaitsPrompt || !w.Settled {
				t.Fatalf("WaitReady = %+v, %v", w, err)
			}
			if _, err := os.Stat(ran); err != nil {
				t.Error("ready, but the rc file has not run to its end")
			}
			os.Remove(begin)
			os.Remove(ran)
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestWaitReadyAnswersQuestions: a start that asks something is told long before
// the limit, and so is a pane that dies or goes.
func TestWaitReadyAnswersQuestions(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	asks := x.window("sh -c 'stty -echo; read x; sleep 1000'")
	if w, err := m.WaitReady(within(t), asks, time.Hour); err != nil || w.For != WaitsPassword {
		t.Errorf("WaitReady = %+v, %v", w, err)
	}
	goes := x.window("sleep 0.3")
	if _, err := m.WaitReady(within(t), goes, time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pane that has gone: %v", err)
	}
	x.run("set-option", "-g", "remain-on-exit", "on")
	dies := x.window("sleep 0.3")
	if w, err := m.WaitReady(within(t), dies, time.Hour); err != nil || w.For != WaitsDead {
		t.Errorf("a pane that has died: %+v, %v", w, err)
	}
	if _, err := m.Waiting(within(t), 4242); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pane that never was: %v", err)
	}
}

// TestFollowWaiting: every lasting change arrives; the channel closes with the
// pane and with the context.
func TestFollowWaiting(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	id := x.window("bash --norc -i")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	states := m.FollowWaiting(ctx, id)
	await := func(want WaitingFor) {
		t.Helper()
		late := time.After(patience)
		for {
			select {
			case w, ok := <-states:
				if !ok {
					t.Fatalf("closed before %s", want)
				}
				if w.For == want {
					return
				}
			case <-late:
				t.Fatalf("never %s", want)
			}
		}
	}
	await(WaitsPrompt)
	x.run("send-keys", "-t", id.String(), "cat", "Enter")
	await(WaitsLine)
	x.run("send-keys", "-t", id.String(), "C-c")
	await(WaitsPrompt)
	x.run("kill-pane", "-t", id.String())
	for w := range states { // closed when the pane has gone
		if w.For != WaitsDead {
			t.Errorf("after the end: %+v", w)
		}
	}
	other := m.FollowWaiting(ctx, 0)
	cancel()
	for range other {
	}
}

// TestWaitingOfIsCheap: a read that shows the state waits for a second look only
// the first time.
func TestWaitingOfIsCheap(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.mirror()
	full(t, m) // tmux 3.3a can die of a change while a client attaches
	m.awaitFor(t, 0, WaitsLine)
	p := full(t, m).Panes[0]
	if w := m.WaitingOf(within(t), p); w.For != WaitsLine || !w.Settled {
		t.Fatalf("WaitingOf = %+v", w)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // a second look would end with it
	if w := m.WaitingOf(ended, p); w.For != WaitsLine || !w.Settled {
		t.Errorf("again: %+v", w)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLook is the cost of one look: what a waiting caller pays every 20 to
// 50 ms.
func BenchmarkLook(b *testing.B) {
	onLinux(b)
	x := newTmux(b).start()
	pid := x.run("display-message", "-p", "-t", "%0", "#{pane_pid}")
	tty := x.run("display-message", "-p", "-t", "%0", "#{pane_tty}")
	n := 0
	for _, c := range pid {
		n = n*10 + int(c-'0')
	}
	for b.Loop() {
		if s := look(n, tty); s.problem != "" || s.gone {
			b.Fatal(s.problem)
		}
	}
}
