package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// O14, P3: a process that was respawned and is over before anybody has seen it
// run is told with a gap and what it left on the screen, though it may have ended in
// the same second as the one before: tmux 3.8 tells nothing else of whose death it is.
func TestO14RespawnedProcessIsOverAtOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		respawn func(x *testTmux, m *Mirror, command string) error
	}{
		{"Ours", func(x *testTmux, m *Mirror, command string) error {
			return m.Respawn(within(x.t), 1, func() error {
				x.run("respawn-pane", "-t", "%1", command)
				x.died("%1")
				return nil
			})
		}},
		{"Users", func(x *testTmux, m *Mirror, command string) error {
			x.paused("%1")
			x.run("respawn-pane", "-t", "%1", command)
			x.died("%1")
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := respawnTmux(t)
			m := x.mirror()
			_, at, err := m.StartWatch(within(t), 1, CaptureRange{})
			if err != nil {
				t.Fatal(err)
			}
			var ends []string
			for i := range 12 {
				// Every third prints what the one before did.
				word := fmt.Sprintf("word%d", i-i%3/2)
				if err := c.respawn(x, m, "echo "+word); err != nil {
					t.Fatal(err)
				}
				ends = append(ends, x.run("display-message", "-p", "-t", "%1", "#{pane_dead_time}"))
				s, err := m.Since(within(t), 1, at, SinceOptions{})
				// tmux 3.3a may have lost it itself (control-mode 3.4).
				shown := x.run("capture-pane", "-p", "-t", "%1", "-S", "-")
				if err != nil || s.Gap == nil || i%3 != 2 && strings.Contains(shown, word) && !strings.Contains(s.Text, word) {
					t.Fatalf("round %d, deaths %v: gap %+v, text %q, %v, shown %q", i, ends, s.Gap, s.Text, err, shown[max(0, len(shown)-200):])
				}
				at = s.Cursor
				if s, err := m.Since(within(t), 1, at, SinceOptions{}); err != nil || s.news() {
					t.Fatalf("round %d: told again: %+v %v", i, s, err)
				}
			}
			if len(slices.Compact(ends)) == 12 {
				t.Log("this machine was too slow for two deaths in one second")
			}
		})
	}
}

// A second that was not over when tmux told of a death may hold another one.
func TestSameDeath(t *testing.T) {
	shown := func(b byte) (d [32]byte) { d[0] = b; return d }
	for _, c := range []struct {
		name        string
		was, now    death
		same, final bool
	}{
		{"nothing new", death{7, true, shown(1)}, death{7, true, shown(1)}, true, true},
		{"another second", death{7, true, shown(1)}, death{8, true, shown(1)}, false, true},
		{"only words are asked when it is sure", death{7, true, shown(1)}, death{at: 7, final: true}, true, true},
		{"resized when it is sure", death{7, true, shown(1)}, death{7, true, shown(2)}, true, true},
		{"still the same second", death{7, false, shown(1)}, death{7, false, shown(1)}, true, false},
		{"the second is over", death{7, false, shown(1)}, death{7, true, shown(1)}, true, true},
		{"another one in the same second", death{7, false, shown(1)}, death{7, true, shown(2)}, false, false},
		{"it lives", death{7, true, shown(1)}, death{}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOutput(1, 0)
			o.bury(testServer, 0, GapPaneDied)
			o.died = c.was
			if same := o.sameDeath(c.now); same != c.same || o.died.final != c.final || o.deathUnsure() == c.final {
				t.Errorf("same %v, final %v", same, o.died.final)
			}
		})
	}
}

// What tmux told of a death becomes sure when its second is over, without a reader
// and without any other change that would have the pane looked at.
func TestDeathIsLookedAtLater(t *testing.T) {
	x := respawnTmux(t)
	x.run("set-option", "-g", "automatic-rename", "off")
	m := x.mirror()
	if _, _, err := m.StartWatch(within(t), 1, CaptureRange{}); err != nil {
		t.Fatal(err)
	}
	if pane, ok := full(t, m).Pane(1); !ok || pane.PID != 0 {
		return // this tmux tells whose death it is: nothing is unsure
	}
	m.watches.mu.Lock()
	out := m.watches.panes[1].out
	m.watches.mu.Unlock()
	for i := 0; !out.deathUnsure(); i++ {
		if i == 50 {
			t.Fatal("50 deaths, and none was told of in its own second")
		}
		if err := m.Respawn(within(t), 1, func() error {
			x.run("respawn-pane", "-t", "%1", "echo")
			x.died("%1")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for ctx := within(t); out.deathUnsure(); x.run("display-message", "-p", "") {
		if ctx.Err() != nil {
			t.Fatal("nobody has looked again")
		}
	}
}
