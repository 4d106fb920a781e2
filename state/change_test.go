package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestChanges(t *testing.T) {
	base := func() *Model {
		return &Model{
			Have: Full, Server: Server{ID: testServer}, Asked: time.Unix(1, 0),
			Sessions: []*Session{{ID: 1, Name: "main", Windows: 1}},
			Windows:  []*Window{{ID: 2, Name: "w", Width: 80, Height: 24, ActivePane: 3, Links: []Link{{Session: 1, Index: 0, Active: true}}}},
			Panes:    []*Pane{{ID: 3, Window: 2, PID: 10, Command: "sh", Links: []Link{{Session: 1}}}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Model)
		want   []string
	}{
		{"nothing", func(*Model) {}, nil},
		{"session renamed", func(m *Model) { m.Sessions[0].Name = "x" }, []string{"renamed main>x"}},
		{"session created", func(m *Model) { m.Sessions = append(m.Sessions, &Session{ID: 4, Name: "y"}) }, []string{"session_created >y"}},
		{"session closed", func(m *Model) { m.Sessions = nil }, []string{"session_closed main>"}},
		{"window moved", func(m *Model) { m.Windows[0].Links[0].Index = 5 }, []string{"moved $1:0>$1:5"}},
		{"window resized", func(m *Model) { m.Windows[0].Width = 100 }, []string{"resized 80x24>100x24"}},
		{"window selected", func(m *Model) {
			m.Windows[0].Links = append(m.Windows[0].Links, Link{Session: 7, Index: 1, Active: true})
		}, []string{"moved $1:0>$1:0 $7:1", "selected >@2"}},
		{"active pane", func(m *Model) { m.Windows[0].ActivePane = 9 }, []string{"selected %3>%9"}},
		{"pane died", func(m *Model) { m.Panes[0].Dead, m.Panes[0].DeadStatus = true, "7" }, []string{"pane_died >status 7"}},
		{"pane killed by a signal", func(m *Model) { m.Panes[0].Dead, m.Panes[0].DeadSignal = true, "9" }, []string{"pane_died >signal 9"}},
		{"respawned", func(m *Model) { m.Panes[0].PID = 11 }, []string{"respawned 10>11"}},
		{"command", func(m *Model) { m.Panes[0].Command = "vim" }, []string{"command_changed sh>vim"}},
		{"mode", func(m *Model) { m.Panes[0].Mode = "copy-mode" }, []string{"mode_changed >copy-mode"}},
		{"pane moved", func(m *Model) { m.Panes[0].Window = 5 }, []string{"moved @2>@5"}},
		{"pane closed", func(m *Model) { m.Panes = nil }, []string{"pane_closed sh>"}},
		{"person", func(m *Model) { m.Clients = []*Client{{Name: "/dev/pts/1", PID: 5, Session: 1}} }, []string{"person_attached >/dev/pts/1"}},
		{"our own client", func(m *Model) { m.Clients = []*Client{{Name: "/dev/pts/1", PID: 5, Session: 1, Own: true}} }, nil},
		{"server gone", func(m *Model) { *m = Model{Have: Full} }, []string{
			"session_closed main>", "window_closed w>", "pane_closed sh>", "server_gone 4242>",
		}},
		{"another server", func(m *Model) { m.Server.ID.PID++ }, []string{
			"session_closed main>", "window_closed w>", "pane_closed sh>", "server_gone 4242>",
			"session_created >main", "window_created >w", "pane_created >sh",
		}},
	} {
		next := base()
		c.change(next)
		var got []string
		for _, ch := range changes(base(), next) {
			got = append(got, fmt.Sprintf("%s %s>%s", ch.Kind, ch.Before, ch.After))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A reader that follows the journal sees every change once, or is told of the
// gap.
func TestJournalSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j Journal
		at, total := uint64(0), uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				n := rapid.IntRange(0, journalLength/4).Draw(t, "n")
				j.add(make([]Change, n))
				total += uint64(n)
				continue
			}
			got, gap := j.Since(at)
			if want := total-at > journalLength; gap != want {
				t.Fatalf("gap %v after %d of %d", gap, at, total)
			}
			if gap {
				at = total - journalLength
			}
			for _, c := range got {
				if at++; c.Seq != at {
					t.Fatalf("change %d where %d was due", c.Seq, at)
				}
			}
			if at != total || j.Seq() != total {
				t.Fatalf("read to %d of %d", at, total)
			}
		}
		if _, gap := j.Since(total + 1); !gap {
			t.Fatal("a number from nowhere was taken")
		}
	})
}

// Who only hears of changes is nudged, and costs tmux nothing.
func TestJournalHears(t *testing.T) {
	var j Journal
	waits, hears := make(chan struct{}, 1), make(chan struct{}, 1)
	j.Hear(hears)
	if j.awaited() {
		t.Error("nobody waits")
	}
	j.Join(waits)
	if !j.awaited() {
		t.Error("somebody waits")
	}
	j.add([]Change{{Kind: Bell}})
	if len(waits) != 1 || len(hears) != 1 {
		t.Error("not nudged")
	}
	j.Leave(waits)
	if j.awaited() {
		t.Error("nobody waits any more")
	}
	j.Leave(hears)
	<-hears
	if j.add([]Change{{Kind: Bell}}); len(hears) != 0 {
		t.Error("nudged after it had left")
	}
}
