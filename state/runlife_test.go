package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// awaitRun waits until a run satisfies ok.
func (m *Mirror) awaitRunState(t testing.TB, id string, what string, ok func(Run) bool) Run {
	t.Helper()
	late := time.After(patience)
	for {
		v, changed, err := m.RunNow(id)
		if err != nil {
			t.Fatal(err)
		}
		if ok(v) {
			return v
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("run never %s: %+v", what, v)
		}
	}
}

func began(v Run) bool { return v.Began }
func ended(v Run) bool { return v.Ended() }

// keys types into a pane.
func (x *testTmux) keys(id controlmode.PaneID, keys ...string) {
	x.t.Helper()
	x.run(append([]string{"send-keys", "-t", id.String()}, keys...)...)
}

func (x *testTmux) bash(m *Mirror) controlmode.PaneID {
	x.t.Helper()
	onLinux(x.t)
	id := x.window("bash --norc -i")
	m.awaitFor(x.t, id, WaitsPrompt)
	return id
}

// TestRunStatusAfterAGap: an end mark that was never delivered, because tmux
// paused the pane just then, costs output, not the exit status.
func TestRunStatusAfterAGap(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.bash(m)
	run := x.begin(m, id, RunOptions{Command: "echo before; read x; echo lost; exit 5"})
	m.awaitFor(t, id, WaitsLine)
	s := m.streamOf(t, id)
	if err := m.watches.take(within(t)); err != nil { // nobody lets it go on
		t.Fatal(err)
	}
	if err := s.pauseNow(within(t), id); err != nil {
		t.Fatal(err)
	}
	_, out := m.watches.liveStream(id)
	out.finish(s.server.ID, GapPaused) // as for a pause by tmux
	x.keys(id, "Enter")
	m.awaitFor(t, id, WaitsPrompt)
	m.watches.give()
	m.watches.poke()
	v, text := x.finish(m, run)
	if v.State != RunCompleted || v.ExitStatus == nil || *v.ExitStatus != 5 || v.OutputComplete {
		t.Errorf("%+v", v)
	}
	if !strings.HasPrefix(text, "before\n") || strings.Contains(text, "lost\n") {
		t.Errorf("output %q", text)
	}
	if status, output := x.does(m, id, "echo next"); status != 0 || output != "next\n" {
		t.Errorf("the next run: %d, %q", status, output)
	}
}

// lives begins one daemon after the other, whose runs have the same directory.
func (x *testTmux) lives(dir string) func() (m *Mirror, stop func()) {
	return func() (*Mirror, func()) {
		x.t.Helper()
		m := New(Config{Bin: x.bin, Socket: controlmode.Socket{Path: x.sock}, RunDir: dir})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		stop := sync.OnceFunc(func() { cancel(); <-ended })
		x.t.Cleanup(stop)
		full(x.t, m)
		return m, stop
	}
}

// TestRunSurvivesRestart: a daemon that is replaced during a run knows its exit
// status: of a run that ended meanwhile, and of one that ends later.
func TestRunSurvivesRestart(t *testing.T) {
	x := newTmux(t).start()
	onLinux(t)
	dir := filepath.Join(filepath.Dir(x.sock), "runs")
	life := x.lives(dir)
	m, stop := life()
	early, late := x.bash(m), x.bash(m)
	one := x.begin(m, early, RunOptions{Command: "read x; exit 11"})
	two := x.begin(m, late, RunOptions{Command: "read x; echo after; exit 12"})
	m.awaitFor(t, early, WaitsLine)
	m.awaitFor(t, late, WaitsLine)
	stop()

	x.keys(early, "Enter")
	m, stop = life()
	v := m.awaitRunState(t, one, "ended", ended)
	if v.State != RunCompleted || *v.ExitStatus != 11 || !v.Restarted || v.OutputComplete || v.Pane != early {
		t.Errorf("ended while nobody looked: %+v", v)
	}
	if v, _, err := m.RunNow(two); err != nil || v.State != RunRunning {
		t.Errorf("still running: %+v, %v", v, err)
	}
	if _, err := m.PrepareRun(within(t), late, RunOptions{Command: "true"}); !errors.Is(err, ErrBusy) {
		t.Errorf("the pane of a run of before: %v", err)
	}
	x.keys(late, "Enter")
	v = m.awaitRunState(t, two, "ended", ended)
	if v.State != RunCompleted || *v.ExitStatus != 12 || !v.Restarted {
		t.Errorf("ended later: %+v", v)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files left: %v", entries)
	}
	if status, _ := x.does(m, late, "exit 3"); status != 3 {
		t.Errorf("the next run: %d", status)
	}
	stop()
	m, _ = life()
	if runs := m.Runs(nil); len(runs) != 0 {
		t.Errorf("runs of two lives before: %+v", runs)
	}
}

// TestRunLeftoversAreOnlyOurs: at the start only regular files of our own name
// pattern are removed.
func TestRunLeftoversAreOnlyOurs(t *testing.T) {
	x := newTmux(t).start()
	dir := filepath.Join(filepath.Dir(x.sock), "runs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	digest := newRunFiles(dir, x.sock).digest
	ours := []string{digest + "0123456789", digest + "0123456789.s", digest + "abcdefabcd.c"}
	others := []string{"readme", digest, digest + "0123456789.x", digest + "0123456789ab", "0" + digest[1:] + "ZZZZZZZZZZ", digest + "0000000000"}
	target := filepath.Join(filepath.Dir(x.sock), "target")
	write(t, target, "keep")
	for _, name := range append(ours, others[:len(others)-1]...) {
		write(t, filepath.Join(dir, name), "7\n")
	}
	if err := os.Symlink(target, filepath.Join(dir, others[len(others)-1])); err != nil {
		t.Fatal(err)
	}
	x.runMirror()
	for _, name := range ours {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, _ := os.ReadFile(target); string(b) != "keep" {
		t.Errorf("what a link named is %q", b)
	}
}

// TestRunDirectoryIsPrivate: a directory that others could use is refused.
func TestRunDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	f := newRunFiles(dir, "/s")
	if err := f.stage("0123456789abcdef", staged{file: "x"}, runRecord{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "/0123456789abcdef", "/0123456789abcdef.s", "/0123456789abcdef.r"} {
		st, err := os.Stat(dir + name)
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if err := f.stage("0123456789abcdef", staged{file: "y"}, runRecord{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("an existing file was written: %v", err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := f.stage("fedcba9876543210", staged{file: "x"}, runRecord{}); err == nil {
		t.Error("a directory that others may read was used")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := newRunFiles(link, "/s").stage("0123456789abcdef", staged{file: "x"}, runRecord{}); err == nil {
		t.Error("a link was used as the directory")
	}
}

// TestRunPaneDies: the shell itself is killed, the pane is killed, the server is
// killed: the run ends with it, and says so.
func TestRunPaneDies(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	x.run("set-option", "-g", "remain-on-exit", "on")
	dies, goes, server := x.bash(m), x.bash(m), x.bash(m)
	one := x.begin(m, dies, RunOptions{Command: "echo before; kill -9 $$; sleep 1000"})
	v, text := x.finish(m, one)
	// tmux may not deliver what a pane printed just before its end (O14): the run
	// does not claim to be complete.
	if v.State != RunPaneDied || v.ExitStatus != nil || v.OutputComplete || !strings.HasPrefix("before\n", text) {
		t.Errorf("kill -9 $$: %+v, %q", v, text)
	}
	two := x.begin(m, goes, RunOptions{Command: "sleep 1000"})
	m.awaitRunState(t, two, "begun", began)
	x.run("kill-pane", "-t", goes.String())
	if v, _ := x.finish(m, two); v.State != RunPaneDied {
		t.Errorf("kill-pane: %+v", v)
	}
	three := x.begin(m, server, RunOptions{Command: "sleep 1000"})
	m.awaitRunState(t, three, "begun", began)
	x.stop()
	if v, _ := x.finish(m, three); v.State != RunPaneDied {
		t.Errorf("kill-server: %+v", v)
	}
}

// TestRunStopped: C-z stops a run and frees its pane; after fg it ends with the
// true status. It reads a pipe: a read of the terminal that is just being stopped
// can still take a byte of what the shell is sent next (Linux looks at what there
// is to read before it looks at signals), such as the answer to ash's question
// where the cursor is.
func TestRunStopped(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	for _, command := range []string{"bash --norc -i", "zsh -f -i", "dash -i", "busybox ash -i", "mksh -i", "ksh93 -i"} {
		t.Run(command, func(t *testing.T) {
			need(t, command)
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window(command)
			m.awaitFor(t, id, WaitsPrompt)
			run := x.begin(m, id, RunOptions{Command: "sh -c 'echo here; read x' <" + fifo + "; exit 9"})
			until(t, "the command", func() bool { return strings.Contains(x.run("capture-pane", "-p", "-t", id.String()), "here") })
			x.keys(id, "C-z")
			v := m.awaitRunState(t, run, "stopped", func(v Run) bool { return v.State == RunStopped })
			if v.ExitStatus != nil || v.Active() || v.Ended() {
				t.Errorf("%+v", v)
			}
			if status, output := x.does(m, id, "echo between"); status != 0 || output != "between\n" {
				t.Errorf("a run in between: %d, %q", status, output)
			}
			m.awaitFor(t, id, WaitsPrompt)
			x.keys(id, "fg", "Enter")
			m.awaitRunState(t, run, "resumed", func(v Run) bool { return v.State == RunRunning })
			if _, err := pipe.WriteString("\n"); err != nil {
				t.Fatal(err)
			}
			if v = m.awaitRunState(t, run, "ended", ended); v.State != RunCompleted || *v.ExitStatus != 9 {
				t.Errorf("after fg: %+v", v)
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestR01MarksOfOthersEndNoRun: marks of other runs, of a shell's own and forged
// ones do not end a run, nor does old text that holds its own.
func TestR01MarksOfOthersEndNoRun(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.bash(m)
	forge := `for v in ${!_t*}; do id=${v#_t}; done
echo one; printf '\033]133;D;0;aid=0123456789abcdef\007\033]133;D\007\033]133;D;0\007'
printf '\033]133;D;1;aid=%s\007' "$id"; echo two; read x
printf '\033]133;C;aid=%s\007' "$id"; echo three; exit 42`
	run := x.begin(m, id, RunOptions{Command: forge})
	m.awaitFor(t, id, WaitsLine)
	v := m.awaitRunState(t, run, "begun", began)
	if v.Ended() {
		t.Fatalf("ended by a forged mark: %+v", v)
	}
	x.keys(id, "Enter")
	v, text := x.finish(m, run)
	if v.State != RunCompleted || *v.ExitStatus != 42 || !v.Foreign {
		t.Errorf("%+v", v)
	}
	if text != "one\ntwo\n\nthree\n" { // the echo of Enter between
		t.Errorf("output %q", text)
	}
}

// TestR04NothingIsTypedElsewhere: in a program that is no shell's prompt a run is
// refused by what is there, and nothing is typed.
func TestR04NothingIsTypedElsewhere(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.runMirror()
	for _, tt := range []struct {
		command string
		waits   WaitingFor
		says    string
	}{
		{"cat", WaitsLine, "cat reads a line"},
		{"bash -c 'read -s x'", WaitsPassword, "without echo"},
		{"less /etc/passwd", WaitsFullscreen, "less"},
		{"python3 -q", WaitsLine, "python"},
		{"sleep 1000", WaitsBusy, "sleep runs"},
		{"bash -c 'seq 1000 | less'", WaitsFullscreen, "less"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			need(t, tt.command)
			if strings.Contains(tt.command, "less") {
				need(t, "less")
			}
			id := x.window(tt.command)
			m.awaitFor(t, id, tt.waits)
			before := x.run("capture-pane", "-p", "-t", id.String())
			_, err := m.PrepareRun(within(t), id, RunOptions{Command: "echo hi"})
			var not *NotReadyError
			if !errors.As(err, &not) || !errors.Is(err, ErrNotReady) || not.Waiting.For != tt.waits || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("PrepareRun: %v", err)
			}
			if after := x.run("capture-pane", "-p", "-t", id.String()); after != before {
				t.Errorf("the screen was %q, is %q", before, after)
			}
			if _, busy := m.ActiveRun(id); busy {
				t.Error("the pane is taken")
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestRunBehindTypedText: what is left on the command line keeps the command
// from running; the run says that it did not start, and is not typed again.
func TestRunBehindTypedText(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	dir := t.TempDir()
	for _, command := range []string{"bash --norc -i", "zsh -f -i", "dash -i", "busybox ash -i", "mksh -i", "ksh93 -i", "fish --no-config"} {
		t.Run(command, func(t *testing.T) {
			need(t, command)
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window(command)
			m.awaitFor(t, id, WaitsPrompt)
			x.keys(id, "-l", "echo x y")
			trap := filepath.Join(dir, "trap")
			run := x.begin(m, id, RunOptions{Command: "echo > " + trap})
			v := m.awaitRunState(t, run, "ended", ended)
			if v.State != RunNotStarted || v.ExitStatus != nil || v.Began {
				t.Errorf("%+v", v)
			}
			if text := m.EarlyText(run); strings.Count(text, "\n") < 2 { // each shell has its own words
				t.Errorf("why: %q", text)
			}
			if _, err := os.Stat(trap); err == nil {
				t.Error("the command ran")
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestRunSame: in the shell itself cd and variables last.
func TestRunSame(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	for shell, command := range plainShells(t) {
		t.Run(string(shell), func(t *testing.T) {
			need(t, command)
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window(command)
			assign := "VAR=kept"
			if shell == ShellFish {
				assign = "set -g VAR kept"
			}
			v, text := x.finish(m, x.begin(m, id, RunOptions{Command: "cd /; " + assign + "; echo here; false", Same: true}))
			if v.State != RunCompleted || *v.ExitStatus != 1 || text != "here\n" {
				t.Errorf("%+v, %q", v, text)
			}
			v, text = x.finish(m, x.begin(m, id, RunOptions{Command: "pwd; echo $VAR", Same: true}))
			if v.State != RunCompleted || *v.ExitStatus != 0 || text != "/\nkept\n" {
				t.Errorf("%+v, %q", v, text)
			}
			if status, text := x.does(m, id, "pwd; echo on"); status != 0 || text != "/\non\n" {
				t.Errorf("%d, %q", status, text)
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}

// TestR08LongOutput: more output than an answer holds is counted exactly, and
// paged through from the run's cursor.
func TestR08LongOutput(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.bash(m)
	// In parts, so that a machine that is slower than 3 s for all of it keeps up.
	const last, part = 200_000, 20_000
	var command []string
	for n := 1; n < last; n += part {
		command = append(command, fmt.Sprintf("seq %d %d", n, n+part-1))
	}
	var run string
	var v Run
	for try := 1; ; try++ {
		run = x.begin(m, id, RunOptions{Command: strings.Join(command, "; sleep 0.3; ")})
		v = m.awaitRunState(t, run, "ended", ended)
		if v.State != RunCompleted || *v.ExitStatus != 0 || try == 10 {
			t.Fatalf("%+v", v)
		}
		if v.OutputComplete {
			break
		}
		// On a machine that is slower than 3 s for this, tmux pauses the pane.
		t.Logf("try %d: output is missing: %+v", try, v)
	}
	_, text, err := m.RunText(run, RunTextOptions{MaxLines: 10})
	if err != nil || text.Text != lines(last-9, last) || text.DroppedLines != last-10 || text.Missed != 0 {
		t.Errorf("the newest: %+v, %v", text, err)
	}
	_, text, _ = m.RunText(run, RunTextOptions{MaxBytes: 64 << 10})
	if len(text.Text) != 64<<10 || text.OmittedBytes+len(text.Text) != len(lines(1, last)) {
		t.Errorf("64 KiB: %d bytes, %d omitted", len(text.Text), text.OmittedBytes)
	}
	var all strings.Builder
	at := v.Cursor
	for pages := 0; ; pages++ {
		_, page, err := m.RunText(run, RunTextOptions{From: at, MaxLines: 100_000})
		if err != nil || page.DroppedLines != 0 || page.Missed != 0 || pages > 10 {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		all.WriteString(page.Text)
		at = page.Cursor
		if !page.More {
			break
		}
	}
	if all.String() != lines(1, last) {
		t.Errorf("the pages together have %d bytes", all.Len())
	}
}

// TestRunsAtOnce: eight runs in eight panes do not disturb each other.
func TestRunsAtOnce(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	ids := make([]controlmode.PaneID, 8)
	for i := range ids {
		ids[i] = x.bash(m)
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			for n := range 5 {
				p, err := m.PrepareRun(within(t), id, RunOptions{Command: fmt.Sprintf("seq %d %d; exit %d", i*100, i*100+50, i*10+n), Ready: patience})
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := x.command("send-keys", "-t", id.String(), "-l", p.Line, ";", "send-keys", "-t", id.String(), "Enter").CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				v, err := m.AwaitRun(context.Background(), p.Typed(), patience)
				_, text, _ := m.RunText(v.ID, RunTextOptions{})
				if err != nil || v.State != RunCompleted || *v.ExitStatus != i*10+n || text.Text != lines(i*100, i*100+50) {
					t.Errorf("pane %d, run %d: %+v, %q, %v", i, n, v, text.Text, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestRunsAreBounded: the oldest runs that have ended are forgotten.
func TestRunsAreBounded(t *testing.T) {
	m := New(Config{Socket: controlmode.Socket{Path: "/nowhere"}, RunDir: filepath.Join(t.TempDir(), "r")})
	for n := range maxRuns + 10 {
		id := fmt.Sprintf("%016x", n)
		m.runs.byID[id] = &run{changed: make(chan struct{}), now: Run{ID: id, State: RunCompleted, EndedAt: time.Now().Add(time.Duration(n) * time.Millisecond)}}
	}
	old := fmt.Sprintf("%016x", 5000)
	m.runs.byID[old] = &run{changed: make(chan struct{}), now: Run{ID: old, State: RunCompleted, EndedAt: time.Now().Add(-2 * runAge)}}
	running := fmt.Sprintf("%016x", 6000)
	m.runs.byID[running] = &run{changed: make(chan struct{}), now: Run{ID: running, State: RunRunning}}
	runs := m.Runs(nil)
	if len(runs) != maxRuns+1 {
		t.Errorf("%d runs are remembered", len(runs))
	}
	if _, _, err := m.RunNow(old); !errors.Is(err, ErrNoRun) {
		t.Error("an old run is remembered")
	}
	if _, _, err := m.RunNow(running); err != nil {
		t.Error("a run that runs was forgotten")
	}
}
