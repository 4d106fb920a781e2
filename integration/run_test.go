package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runOf is what the run tools answer.
type runOf struct {
	RunID, Outcome, Output string
	ExitStatus             *int
	StillRunning           bool
	Run                    struct {
		RunID, State   string
		ExitStatus     *int
		OutputComplete bool
	}
	Runs []struct{ RunID, PaneID, State string }
}

// shellPane opens a window with a shell.
func (x *tmux) shellPane() string {
	x.t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		x.t.Skip("what a terminal waits for is read from /proc, which this system lacks")
	}
	return x.run("new-window", "-d", "-P", "-F", "#{pane_id}", "HISTFILE= exec bash --norc -i")
}

// atPrompt waits until a pane's shell reads a command line.
func (c *caller) waitsFor(pane, what string) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; {
		got := c.ok(nil, "get_pane_info", args{"paneId": pane})
		state, _ := got.meta["tmux-mcpd/state"].(map[string]any)
		if state["waitingFor"] == what {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("pane %s: %v, want %s", pane, state, what)
		}
	}
}

// ended waits for the end of a run.
func (c *caller) ended(run string) (got runOf) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; {
		c.ok(&got, "get_run", args{"runId": run, "waitMs": 5000})
		if got.Run.State != "running" {
			return got
		}
		if time.Now().After(end) {
			c.t.Fatalf("%+v", got)
		}
	}
}

// TestRunSurvivesItsClient: a client that is killed during a run leaves a run
// that another one reads: output and exit status.
func TestRunSurvivesItsClient(t *testing.T) {
	x := startTmux(t)
	pane := x.shellPane()
	d := x.daemon()
	other := d.dial()
	other.waitsFor(pane, "prompt")
	dies := d.bridge()
	called := make(chan struct{})
	go func() {
		defer close(called)
		dies.try("run_shell_command", args{"paneId": pane, "command": "echo before; read x; echo after; exit 21"})
	}()
	other.waitsFor(pane, "line")
	dies.once.Do(func() {
		dies.cmd.Process.Kill()
		dies.cmd.Wait()
	})
	<-called
	var list runOf
	other.ok(&list, "list_runs", args{"paneId": pane})
	if len(list.Runs) != 1 || list.Runs[0].State != "running" {
		t.Fatalf("%+v", list)
	}
	x.run("send-keys", "-t", pane, "Enter")
	got := other.ended(list.Runs[0].RunID)
	if got.Run.State != "completed" || *got.Run.ExitStatus != 21 || got.Output != "before\n\nafter\n" || !got.Run.OutputComplete {
		t.Errorf("%+v", got)
	}
}

// TestRunSurvivesAKilledDaemon: the daemon after one that was killed during a run
// knows the run's exit status.
func TestRunSurvivesAKilledDaemon(t *testing.T) {
	x := startTmux(t)
	ends, goesOn := x.shellPane(), x.shellPane()
	d := x.daemon()
	c := d.dial()
	var one, two runOf
	c.waitsFor(ends, "prompt")
	c.waitsFor(goesOn, "prompt")
	c.ok(&one, "run_shell_command", args{"paneId": ends, "command": "read x; exit 21", "timeoutMs": 1})
	c.ok(&two, "run_shell_command", args{"paneId": goesOn, "command": "read x; exit 22", "timeoutMs": 1})
	c.waitsFor(ends, "line")
	c.waitsFor(goesOn, "line")
	d.once.Do(func() {
		d.cmd.Process.Kill()
		d.cmd.Wait()
		<-d.done
	})
	x.run("send-keys", "-t", ends, "Enter") // ends while no daemon is there
	next := x.daemon()
	c = next.dial()
	if got := c.ended(one.RunID); got.Run.State != "completed" || *got.Run.ExitStatus != 21 || got.Run.OutputComplete {
		t.Errorf("%+v", got)
	}
	x.run("send-keys", "-t", goesOn, "Enter")
	if got := c.ended(two.RunID); got.Run.State != "completed" || *got.Run.ExitStatus != 22 {
		t.Errorf("%+v", got)
	}
	left, _ := filepath.Glob(filepath.Join(x.dir, "run", "tmcp", "*"))
	if len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// TestRunPaneIsRemovedAfterARestart: the pane that was made for a run is there
// until its output has been read, whoever restarts the daemon meanwhile; the
// reading then shows what there is, and the pane goes.
func TestRunPaneIsRemovedAfterARestart(t *testing.T) {
	x := startTmux(t)
	shell := x.shellPane()
	x.run("set-option", "-g", "default-command", "HISTFILE= exec bash --norc -i")
	beside := x.run("display-message", "-p", "-t", shell, "#{window_id}")
	d := x.daemon()
	c := d.dial()
	var run runOf
	c.ok(&run, "run_shell_command", args{"paneId": shell, "command": "read x; echo after; exit 21", "newPane": true, "timeoutMs": 1})
	var list runOf
	c.ok(&list, "list_runs", args{})
	own := list.Runs[0].PaneID
	c.waitsFor(own, "line")
	x.run("send-keys", "-t", own, "Enter")
	until(t, "the end of the run", func() bool {
		c.ok(&list, "list_runs", args{})
		return list.Runs[0].State == "completed"
	})
	c.waitsFor(own, "prompt")
	d.stop()
	d = x.daemon()
	c = d.dial()
	if c.ok(&list, "list_runs", args{}); len(list.Runs) != 1 || list.Runs[0].RunID != run.RunID || list.Runs[0].PaneID != own || list.Runs[0].State != "completed" {
		t.Fatalf("%+v", list)
	}
	if panes := x.run("list-panes", "-t", beside, "-F", "#{pane_id}"); panes != shell+"\n"+own {
		t.Fatalf("panes %q", panes)
	}
	var got runOf
	c.ok(&got, "get_run", args{"runId": run.RunID, "maxLines": 1})
	if panes := x.run("list-panes", "-t", beside, "-F", "#{pane_id}"); panes != shell+"\n"+own {
		t.Errorf("not all has been read; panes %q", panes)
	}
	c.ok(&got, "get_run", args{"runId": run.RunID})
	if got.Run.State != "completed" || *got.Run.ExitStatus != 21 || got.Run.OutputComplete || !strings.Contains(got.Output, "\nafter\n") {
		t.Errorf("%+v", got)
	}
	if panes := x.run("list-panes", "-t", beside, "-F", "#{pane_id}"); panes != shell {
		t.Errorf("after reading: panes %q", panes)
	}
}
