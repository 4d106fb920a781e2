package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitSignals: a signal waits until the command has its own handlers, or
// might never have started.
func TestAwaitSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{RunDir: t.TempDir()})
		for name, c := range map[string]struct {
			begins, ends, returns time.Duration
		}{
			"not begun yet":   {300 * time.Millisecond, 0, 300*time.Millisecond + signalsBack},
			"never begins":    {0, 0, startLimit},
			"begun long ago":  {-time.Minute, 0, 0},
			"has just begun":  {-signalsBack / 2, 0, signalsBack / 2},
			"ends before":     {300 * time.Millisecond, 310 * time.Millisecond, 310 * time.Millisecond},
			"ends at once":    {-time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
			"begins too late": {startLimit + time.Second, 0, startLimit},
		} {
			begin := time.Now()
			j := &run{m: m, changed: make(chan struct{}), now: Run{ID: name, State: RunRunning, StartedAt: begin}}
			m.runs.byID[name] = j
			if c.begins < 0 {
				j.now.Began, j.now.StartedAt = true, begin.Add(c.begins)
			} else if c.begins > 0 {
				time.AfterFunc(c.begins, func() { j.change(func(v *Run) { v.Began, v.StartedAt = true, time.Now() }) })
			}
			if c.ends > 0 {
				time.AfterFunc(c.ends, func() { j.change(func(v *Run) { v.State = RunCompleted }) })
			}
			v, err := m.AwaitSignals(t.Context(), name)
			if took := time.Since(begin); err != nil || took != c.returns || v.Ended() != (c.ends > 0) {
				t.Errorf("%s: after %v, want %v: %+v, %v", name, took, c.returns, v, err)
			}
		}
		if _, err := m.AwaitSignals(t.Context(), "other"); !errors.Is(err, ErrNoRun) {
			t.Error(err)
		}
		time.Sleep(time.Minute) // what was begun goes on
	})
}

// TestInterruptAtTheStart: C-c ends a command that has just begun, in every shell,
// also in a fish whose configuration takes long.
func TestInterruptAtTheStart(t *testing.T) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.runMirror()
	shells := plainShells(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "fish"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A loop of its own can be interrupted, and then fish goes on with the command.
	here, on := filepath.Join(dir, "here"), filepath.Join(dir, "on")
	write(t, on, "")
	write(t, filepath.Join(dir, "fish", "config.fish"), "echo >"+here+"\nwhile not test -e "+on+"; end\n")
	shells["slow fish"] = "env XDG_CONFIG_HOME=" + dir + " fish"
	for shell, command := range shells {
		t.Run(string(shell), func(t *testing.T) {
			need(t, command)
			if shell == "slow fish" {
				need(t, "fish")
			}
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window(command)
			for range 3 {
				m.awaitFor(t, id, WaitsPrompt)
				if shell == "slow fish" {
					if err := errors.Join(os.Remove(here), os.Remove(on)); err != nil {
						t.Fatal(err)
					}
				}
				run := x.begin(m, id, RunOptions{Command: "/bin/sleep 1000"})
				if shell == "slow fish" {
					until(t, "the configuration", func() bool { _, err := os.Stat(here); return err == nil })
					if v, _, err := m.RunNow(run); err == nil && !began(v) { // else it counts as begun already
						write(t, on, "")
					}
				}
				m.awaitRunState(t, run, "begun", began)
				if _, err := m.AwaitSignals(within(t), run); err != nil {
					t.Fatal(err)
				}
				x.keys(id, "C-c")
				if v := m.awaitRunState(t, run, "ended", ended); v.State != RunCompleted {
					t.Fatalf("%+v", v)
				}
			}
			x.run("kill-pane", "-t", id.String())
		})
	}
}
