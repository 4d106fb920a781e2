package state

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// forge prints an end mark of the run that it is in, in bash.
const forge = `for v in ${!_t*}; do id=${v#_t}; done
forge() { printf '\033]133;D;%s;aid=%s\007' "$1" "$id"; }
`

// held is a pipe that a command reads from until it is let go.
func held(t *testing.T) (path string, letGo func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return path, func() {
		if _, err := pipe.WriteString("\n"); err != nil {
			t.Error(err)
		}
	}
}

// runOf is the run with an id, after a forged mark was seen to be one.
func (m *Mirror) runOf(t *testing.T, id string) *run {
	t.Helper()
	j, err := m.runs.find(id)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "what was forged", func() bool { return j.view().Foreign })
	return j
}

// TestR01ForgedMarkAndTheTrueOneLate: a run's own mark, forged, does not end it
// when the shell is back at its prompt and tmux has not told the true one yet,
// whatever status it tells and however many there are.
func TestR01ForgedMarkAndTheTrueOneLate(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	fifo, letGo := held(t)
	server, err := strconv.Atoi(x.run("display-message", "-p", "#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ status, times string }{{"1", "1"}, {"42", "1"}, {"0", "40"}} {
		t.Run(tt.times+" with "+tt.status, func(t *testing.T) {
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.bash(m)
			run := x.begin(m, id, RunOptions{Command: forge + "for ((i=0; i<" + tt.times + "; i++)); do forge " + tt.status +
				"; done; echo one; read x <" + fifo + "; echo two; exit 42"})
			j := m.runOf(t, run)
			if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			goOn := sync.OnceFunc(func() { syscall.Kill(server, syscall.SIGCONT) })
			defer goOn()
			letGo()
			until(t, "the prompt", func() bool { w := classify(look(j.shell, j.tty)); return w.For == WaitsPrompt && w.pid == j.shell })
			// Whoever follows the run now sees the prompt, and then believes what was
			// forged, or asks tmux.
			until(t, "a look at the run", func() bool { return ended(j.view()) || time.Since(j.out.lastUse()) > 10*followFast })
			goOn()
			v, text := x.finish(m, run)
			if v.State != RunCompleted || *v.ExitStatus != 42 || !v.Foreign || !v.OutputComplete {
				t.Errorf("%+v", v)
			}
			if text != "one\ntwo\n" {
				t.Errorf("output %q", text)
			}
		})
	}
}

// TestR01ForgedMarkAndStopped: a run that forged its own mark and is stopped has
// not ended.
func TestR01ForgedMarkAndStopped(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.bash(m)
	fifo, letGo := held(t)
	run := x.begin(m, id, RunOptions{Command: forge + "forge 0; sh -c 'read x' <" + fifo + "; exit 9"})
	m.runOf(t, run)
	x.keys(id, "C-z")
	m.awaitRunState(t, run, "stopped", func(v Run) bool { return v.State == RunStopped })
	m.awaitFor(t, id, WaitsPrompt)
	x.keys(id, "fg", "Enter")
	m.awaitRunState(t, run, "resumed", func(v Run) bool { return v.State == RunRunning })
	letGo()
	if v := m.awaitRunState(t, run, "ended", ended); v.State != RunCompleted || *v.ExitStatus != 9 {
		t.Errorf("after fg: %+v", v)
	}
}

// TestRunStatusNotOnRecord: where the status cannot be written, the mark tells it.
func TestRunStatusNotOnRecord(t *testing.T) {
	x := newTmux(t).start()
	m := x.runMirror()
	id := x.bash(m)
	status, output := x.does(m, id, "for f in "+m.RunDir()+"/*.s; do rm $f; mkdir $f; done; echo one; exit 7")
	if status != 7 || output != "one\n" {
		t.Errorf("%d, %q", status, output)
	}
}

// TestLookSoon: the looks at a job that ends become rarer, and a mark that was
// heard after the clock was read asks for one at once.
func TestLookSoon(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{
		-time.Hour: 1, -3 * time.Millisecond: 1, 0: 1, 2 * time.Millisecond: 2, 5 * time.Millisecond: 4, time.Hour: 64,
	} {
		if got := lookSoon(since); got != want*time.Millisecond {
			t.Errorf("%v after the mark: %v, want %d ms", since, got, want)
		}
	}
}
