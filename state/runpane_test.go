package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// TestRunPaneIsReaped: a pane that was made for a run goes when nobody has used or
// looked at it for long; any other stays.
func TestRunPaneIsReaped(t *testing.T) {
	onLinux(t)
	need(t, "bash --norc -i")
	x := newTmux(t).start()
	m := x.runMirror()
	for name, c := range map[string]struct {
		plain bool // no pane of its own
		alone bool // the last one of its window
		then  func(id string)
		later time.Duration
		stays bool
	}{
		"unused":       {later: 2 * ownPaneKept},
		"not yet":      {later: ownPaneKept / 2, stays: true},
		"not its own":  {plain: true, later: 2 * ownPaneKept, stays: true},
		"the last one": {alone: true, later: 2 * ownPaneKept, stays: true},
		"typed into": {then: func(id string) {
			x.run("send-keys", "-t", id, "-l", "x")
			until(t, "x is shown", func() bool { return strings.Contains(x.run("capture-pane", "-p", "-t", id), "$ x") })
		}, later: 2 * ownPaneKept, stays: true},
		"looked at": {then: func(id string) { x.run("select-window", "-t", id); t.Cleanup(x.person("main")) }, later: 2 * ownPaneKept, stays: true},
		"respawned": {then: func(id string) { x.run("respawn-pane", "-k", "-t", id, "cat") }, later: 2 * ownPaneKept, stays: true},
		"resized":   {then: func(id string) { x.run("resize-pane", "-Z", "-t", id) }, later: 2 * ownPaneKept, stays: true}, // it counts from now
	} {
		t.Run(name, func(t *testing.T) {
			x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
			id := x.window("PS1='$ ' bash --norc -i")
			if !c.alone {
				x.run("split-window", "-d", "-t", id.String(), "cat")
			}
			v, _ := x.finish(m, x.begin(m, id, RunOptions{Command: "echo", NewPane: !c.plain}))
			m.awaitFor(t, id, WaitsPrompt)
			until(t, "a prompt is shown", func() bool {
				return strings.HasSuffix(strings.TrimSpace(x.run("capture-pane", "-p", "-t", id.String())), "\n\n$")
			})
			now := time.Now()
			j, err := m.runs.find(v.ID)
			if err != nil {
				t.Fatal(err)
			}
			m.runs.reapPanes(within(t), now)
			if c.then != nil {
				c.then(id.String())
			}
			m.runs.reapPanes(within(t), now.Add(c.later))
			stays := strings.Contains("\n"+x.run("list-panes", "-a", "-F", "#{pane_id}")+"\n", "\n"+id.String()+"\n")
			if stays != c.stays {
				t.Errorf("stays: %v", stays)
			}
			if stays {
				j.mu.Lock()
				j.now.NewPane = false // nothing for the next one
				j.mu.Unlock()
				x.run("kill-window", "-t", id.String())
			}
		})
	}
}

// TestRunPaneIsReapedByTheNextDaemon: a run of an earlier daemon is known by the
// next ones as long as the pane that was made for it is to be removed. That they
// begin does not make it stay longer, and what was done in it meanwhile is seen.
func TestRunPaneIsReapedByTheNextDaemon(t *testing.T) {
	onLinux(t)
	need(t, "bash --norc -i")
	x := newTmux(t).start()
	dir := filepath.Join(filepath.Dir(x.sock), "runs")
	life := x.lives(dir)
	m, stop := life()
	own := map[string]controlmode.PaneID{} // by run
	for range 3 {
		id, err := controlmode.ParsePaneID(x.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", x.window("cat").String(), "PS1='$ ' bash --norc -i"))
		if err != nil {
			t.Fatal(err)
		}
		m.awaitFor(t, id, WaitsPrompt)
		v, _ := x.finish(m, x.begin(m, id, RunOptions{Command: "echo; exit 3", NewPane: true}))
		m.awaitFor(t, id, WaitsPrompt)
		for !strings.HasSuffix(strings.TrimSpace(x.run("capture-pane", "-p", "-t", id.String())), "\n\n$") {
		}
		own[v.ID] = id
	}
	known := func() (all []Run) {
		for _, v := range m.Runs(nil) {
			if v.State != RunCompleted || *v.ExitStatus != 3 || !v.NewPane || v.Pane != own[v.ID] || !m.SameProcess(within(t), v.ID) {
				t.Errorf("%+v", v)
			}
			all = append(all, v)
		}
		return all
	}
	now := time.Now()
	m.runs.reapPanes(within(t), now)
	stop()
	m, stop = life()
	all := known()
	if len(all) != 3 || !all[0].Restarted {
		t.Fatalf("%+v", all)
	}
	gone, used, unused := all[0].Pane, all[1].Pane, all[2].Pane
	x.run("kill-pane", "-t", gone.String())
	x.keys(used, "-l", "x")
	for !strings.Contains(x.run("capture-pane", "-p", "-t", used.String()), "$ x") {
	}
	m.runs.reapPanes(within(t), now.Add(ownPaneKept/2))
	stop()
	m, stop = life()
	if all = known(); len(all) != 1 || all[0].Pane != unused {
		t.Errorf("%+v", all)
	}
	m.runs.reapPanes(within(t), now.Add(ownPaneKept+time.Second))
	left := "\n" + x.run("list-panes", "-a", "-F", "#{pane_id}") + "\n"
	for id, stays := range map[controlmode.PaneID]bool{gone: false, used: true, unused: false} {
		if strings.Contains(left, "\n"+id.String()+"\n") != stays {
			t.Errorf("pane %s stays: %v", id, !stays)
		}
	}
	stop()
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files left: %v", entries)
	}
}
