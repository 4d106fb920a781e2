package state

import (
	"cmp"
	"slices"

	"tmux-mcpd/controlmode"
)

// Session finds a session by id.
func (m *Model) Session(id controlmode.SessionID) (*Session, bool) {
	return find(m.Sessions, id, func(s *Session) controlmode.SessionID { return s.ID })
}

// SessionNamed finds a session by its exact name.
func (m *Model) SessionNamed(name string) (*Session, bool) {
	for _, s := range m.Sessions {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Window finds a window by id.
func (m *Model) Window(id controlmode.WindowID) (*Window, bool) {
	return find(m.Windows, id, func(w *Window) controlmode.WindowID { return w.ID })
}

// Pane finds a pane by id.
func (m *Model) Pane(id controlmode.PaneID) (*Pane, bool) {
	return find(m.Panes, id, func(p *Pane) controlmode.PaneID { return p.ID })
}

func find[T any, K cmp.Ordered](rows []*T, id K, key func(*T) K) (*T, bool) {
	i, ok := slices.BinarySearchFunc(rows, id, func(r *T, id K) int { return cmp.Compare(key(r), id) })
	if !ok {
		return nil, false
	}
	return rows[i], true
}

// Attended tells whether a person is looking at the pane: it is in the current
// window of a person's client, and is its active pane when the window is
// zoomed. It needs Panes and Clients.
func (m *Model) Attended(p *Pane) bool { return m.LookingAt(p) != nil }

// LookingAt is a client through which a person is looking at the pane, nil for
// none. See Attended.
func (m *Model) LookingAt(p *Pane) *Client {
	for _, c := range m.Clients {
		if c.Person() && c.Window == p.Window && (!c.Zoomed || c.Pane == p.ID) {
			return c
		}
	}
	return nil
}

// People counts the people's clients on a session. It needs Clients.
func (m *Model) People(id controlmode.SessionID) int {
	n := 0
	for _, c := range m.Clients {
		if c.Person() && c.Session == id {
			n++
		}
	}
	return n
}
