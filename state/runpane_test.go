package state

import (
	"strings"
	"testing"
	"time"
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
