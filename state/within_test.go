package state

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
)

// Whatever a model holds, nothing of an invisible session is in what is within,
// everything of a visible one is, and the model itself stays as it is.
func TestWithinProperty(t *testing.T) {
	visible := func(name string) bool { return strings.HasPrefix(name, "v") }
	rapid.Check(t, func(t *rapid.T) {
		m := &Model{Have: Full}
		n := rapid.IntRange(0, 6).Draw(t, "sessions")
		for i := range n {
			name := rapid.SampledFrom([]string{"v", "i"}).Draw(t, "side") + string(rune('a'+i))
			m.Sessions = append(m.Sessions, &Session{ID: controlmode.SessionID(i), Name: name, Group: rapid.SampledFrom([]string{"", "vg", "ig"}).Draw(t, "group")})
		}
		if n > 0 {
			for i := range rapid.IntRange(0, 8).Draw(t, "windows") {
				w := &Window{ID: controlmode.WindowID(i)}
				for _, s := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, n, rapid.ID[int]).Draw(t, "links") {
					w.Links = append(w.Links, Link{Session: controlmode.SessionID(s), SessionName: m.Sessions[s].Name})
				}
				m.Windows = append(m.Windows, w)
				m.Panes = append(m.Panes, &Pane{ID: controlmode.PaneID(i), Window: w.ID, Links: w.Links})
				m.Clients = append(m.Clients, &Client{Name: "c", PID: 7, Session: w.Links[0].Session, Window: w.ID, Pane: controlmode.PaneID(i)})
			}
		}
		in := m.Within(visible)
		for _, s := range m.Sessions {
			got, ok := in.Session(s.ID)
			if ok != visible(s.Name) || ok && got.Group != "" && !visible(got.Group) {
				t.Fatalf("session %+v: %v, %+v", s, ok, got)
			}
		}
		for i, w := range m.Windows {
			want := 0
			for _, l := range w.Links {
				if visible(l.SessionName) {
					want++
				}
			}
			row, ok := in.Window(w.ID)
			pane, okPane := in.Pane(m.Panes[i].ID)
			if ok != (want > 0) || okPane != ok {
				t.Fatalf("window %+v: %v, its pane: %v", w, ok, okPane)
			}
			if !ok {
				continue
			}
			if len(row.Links) != want || len(pane.Links) != want {
				t.Fatalf("%d and %d placements, want %d", len(row.Links), len(pane.Links), want)
			}
			if in.Attended(pane) != m.Attended(m.Panes[i]) {
				t.Fatal("whether a person looks depends on who asks")
			}
		}
		for _, c := range in.Clients {
			s, ok := in.Session(c.Session)
			if !ok && (c.Name != "" || c.PID != 0 || c.Session != NoSession) {
				t.Fatalf("client %+v of session %+v", c, s)
			}
		}
	})
}
