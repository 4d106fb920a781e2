package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tmux-mcpd/controlmode"
)

// InvariantError is one place where a Model contradicts itself.
type InvariantError struct {
	N    int    // number of the invariant, as in Invariants
	What string // the contradiction, with the ids it is about
}

func (e *InvariantError) Error() string { return fmt.Sprintf("invariant %d: %s", e.N, e.What) }

// invariant is one statement that every complete Model keeps. The check calls
// bad for each place where it is broken.
type invariant struct {
	says  string
	needs Tables // skipped unless the model has these tables
	check func(m *Model, bad func(format string, args ...any))
}

// invariants are numbered from 1 by their place; a number is never reused.
var invariants = []invariant{
	{"the rows of a table are sorted by id, each id once, each client once", 0, checkSorted},
	{"without a server every table is empty", 0, checkNoServer},
	{"a table that was not asked for is empty", 0, checkTables},
	{"a window is linked at least once, its links are sorted by session and index, each place once", 0, checkLinks},
	{"a link names an existing session by its name", Sessions, checkLinkSessions},
	{"a session has as many links as it says, and one of them is current", Sessions | Windows, checkSessionLinks},
	{"a pane's window exists, and both tell the same links, name and zoom", Windows | Panes, checkPaneWindow},
	{"a window has as many panes as it says, and exactly its active pane is active", Windows | Panes, checkWindowPanes},
	{"the panes of a window have different indexes, and their sizes are positive", Panes, checkPanePlaces},
	{"the sessions of a group hold the same windows", Sessions | Windows, checkGroups},
	{"a client is on the current window of its session, and on a pane of that window", Full, checkClients},
	{"only a dead pane has a dead status or signal", Panes, checkDead},
	{"a pane in a mode has a mode's name, and no other has", Panes, checkModes},
	{"session names are unique", Sessions, checkNames},
}

// Invariants lists what Check checks; element i is invariant number i+1.
func Invariants() []string {
	says := make([]string, len(invariants))
	for i, inv := range invariants {
		says[i] = inv.says
	}
	return says
}

// Check tells where a model contradicts itself: nil, or the joined
// *InvariantErrors. The model must hold complete tables, as those of
// Mirror.Model and Arrival.Model do; that of Arrival.Pane holds one pane only.
// It is meant for tests and the debug command: it reads every row.
func Check(m *Model) error {
	var errs []error
	for i, inv := range invariants {
		if m.Have&inv.needs != inv.needs {
			continue
		}
		inv.check(m, func(format string, args ...any) {
			errs = append(errs, &InvariantError{N: i + 1, What: fmt.Sprintf(format, args...)})
		})
	}
	return errors.Join(errs...)
}

func checkSorted(m *Model, bad func(string, ...any)) {
	sorted(bad, "session", m.Sessions, func(s *Session) controlmode.SessionID { return s.ID })
	sorted(bad, "window", m.Windows, func(w *Window) controlmode.WindowID { return w.ID })
	sorted(bad, "pane", m.Panes, func(p *Pane) controlmode.PaneID { return p.ID })
	// Clients have no id and stand in tmux's order; their names tell them apart.
	names := map[string]bool{}
	for _, c := range m.Clients {
		if names[c.Name] {
			bad("two clients are called %q", c.Name)
		}
		names[c.Name] = true
	}
}

func sorted[T any, K cmp.Ordered](bad func(string, ...any), kind string, rows []*T, key func(*T) K) {
	for i := 1; i < len(rows); i++ {
		if a, b := key(rows[i-1]), key(rows[i]); a >= b {
			bad("%s %v stands before %v", kind, a, b)
		}
	}
}

func checkNoServer(m *Model, bad func(string, ...any)) {
	rows := len(m.Sessions) + len(m.Windows) + len(m.Panes) + len(m.Clients)
	if m.Server.ID == (ServerID{}) && rows > 0 {
		bad("%d rows without a server", rows)
	}
}

func checkTables(m *Model, bad func(string, ...any)) {
	for _, t := range []struct {
		table Tables
		name  string
		rows  int
	}{
		{Sessions, "sessions", len(m.Sessions)},
		{Windows, "windows", len(m.Windows)},
		{Panes | Places, "panes", len(m.Panes)},
		{Clients, "clients", len(m.Clients)},
	} {
		if m.Have&t.table == 0 && t.rows > 0 {
			bad("%d %s, which were not asked for", t.rows, t.name)
		}
	}
}

func checkLinks(m *Model, bad func(string, ...any)) {
	for _, w := range m.Windows {
		linksInOrder(bad, "window "+w.ID.String(), w.Links)
	}
	for _, p := range m.Panes {
		linksInOrder(bad, "pane "+p.ID.String(), p.Links)
	}
}

func linksInOrder(bad func(string, ...any), what string, links []Link) {
	if len(links) == 0 {
		bad("%s has no link", what)
	}
	for i := 1; i < len(links); i++ {
		a, b := links[i-1], links[i]
		if cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Index, b.Index)) >= 0 {
			bad("%s: link %v:%d stands before %v:%d", what, a.Session, a.Index, b.Session, b.Index)
		}
	}
}

func checkLinkSessions(m *Model, bad func(string, ...any)) {
	see := func(what string, links []Link) {
		for _, l := range links {
			if s, ok := m.Session(l.Session); !ok {
				bad("%s is linked into %v, which does not exist", what, l.Session)
			} else if s.Name != l.SessionName {
				bad("%s calls %v %q, but it is %q", what, l.Session, l.SessionName, s.Name)
			}
		}
	}
	for _, w := range m.Windows {
		see("window "+w.ID.String(), w.Links)
	}
	for _, p := range m.Panes {
		see("pane "+p.ID.String(), p.Links)
	}
}

func checkSessionLinks(m *Model, bad func(string, ...any)) {
	type place struct {
		session controlmode.SessionID
		index   int
	}
	held := map[place]controlmode.WindowID{}
	links := map[controlmode.SessionID]int{}
	current := map[controlmode.SessionID]int{}
	for _, w := range m.Windows {
		for _, l := range w.Links {
			at := place{l.Session, l.Index}
			if other, taken := held[at]; taken {
				bad("windows %v and %v are both at %v:%d", other, w.ID, l.Session, l.Index)
			}
			held[at] = w.ID
			links[l.Session]++
			if l.Active {
				current[l.Session]++
			}
		}
	}
	for _, s := range m.Sessions {
		if links[s.ID] != s.Windows {
			bad("session %v says %d windows and has %d links", s.ID, s.Windows, links[s.ID])
		}
		if current[s.ID] != 1 {
			bad("session %v has %d current windows", s.ID, current[s.ID])
		}
	}
}

func checkPaneWindow(m *Model, bad func(string, ...any)) {
	for _, p := range m.Panes {
		w, ok := m.Window(p.Window)
		if !ok {
			bad("pane %v is in window %v, which does not exist", p.ID, p.Window)
			continue
		}
		if p.WindowName != w.Name {
			bad("pane %v calls window %v %q, but it is %q", p.ID, w.ID, p.WindowName, w.Name)
		}
		if p.Zoomed != w.Zoomed {
			bad("pane %v and window %v differ in zoom", p.ID, w.ID)
		}
		if !slices.Equal(p.Links, w.Links) {
			bad("pane %v and window %v differ in links: %v, %v", p.ID, w.ID, p.Links, w.Links)
		}
	}
}

func checkWindowPanes(m *Model, bad func(string, ...any)) {
	panes := map[controlmode.WindowID]int{}
	for _, p := range m.Panes {
		panes[p.Window]++
		if w, ok := m.Window(p.Window); ok && p.Active != (p.ID == w.ActivePane) {
			bad("pane %v says active %t, window %v says %v", p.ID, p.Active, w.ID, w.ActivePane)
		}
	}
	for _, w := range m.Windows {
		if panes[w.ID] != w.PaneCount {
			bad("window %v says %d panes and has %d", w.ID, w.PaneCount, panes[w.ID])
		}
		if p, ok := m.Pane(w.ActivePane); !ok || p.Window != w.ID {
			bad("window %v has active pane %v, which is not in it", w.ID, w.ActivePane)
		}
	}
}

func checkPanePlaces(m *Model, bad func(string, ...any)) {
	type place struct {
		window controlmode.WindowID
		index  int
	}
	held := map[place]controlmode.PaneID{}
	for _, p := range m.Panes {
		at := place{p.Window, p.Index}
		if other, taken := held[at]; taken {
			bad("panes %v and %v are both index %d of %v", other, p.ID, p.Index, p.Window)
		}
		held[at] = p.ID
		if p.Width <= 0 || p.Height <= 0 {
			bad("pane %v has size %dx%d", p.ID, p.Width, p.Height)
		}
	}
}

// checkGroups does not compare indexes: move-window -r renumbers one session
// of a group only (tmux 3.3a, session.c session_renumber_windows).
func checkGroups(m *Model, bad func(string, ...any)) {
	windows := map[controlmode.SessionID][]controlmode.WindowID{}
	for _, w := range m.Windows {
		for _, l := range w.Links {
			windows[l.Session] = append(windows[l.Session], w.ID)
		}
	}
	first := map[string]*Session{}
	for _, s := range m.Sessions {
		if s.Group == "" {
			continue
		}
		if f, ok := first[s.Group]; !ok {
			first[s.Group] = s
		} else if !slices.Equal(windows[f.ID], windows[s.ID]) {
			bad("sessions %v and %v of group %q hold %v and %v", f.ID, s.ID, s.Group, windows[f.ID], windows[s.ID])
		}
	}
}

func checkClients(m *Model, bad func(string, ...any)) {
	for _, c := range m.Clients {
		if _, ok := m.Session(c.Session); !ok {
			bad("client %q is on session %v, which does not exist", c.Name, c.Session)
			continue
		}
		w, ok := m.Window(c.Window)
		if !ok {
			bad("client %q is on window %v, which does not exist", c.Name, c.Window)
			continue
		}
		if !slices.ContainsFunc(w.Links, func(l Link) bool { return l.Session == c.Session && l.Active }) {
			bad("client %q is on window %v, which is not current in %v", c.Name, c.Window, c.Session)
		}
		if c.Zoomed != w.Zoomed {
			bad("client %q and window %v differ in zoom", c.Name, w.ID)
		}
		// Not "the active pane": up to 3.7c a client with the flag active-pane
		// has one of its own.
		if p, ok := m.Pane(c.Pane); !ok || p.Window != c.Window {
			bad("client %q is on pane %v, which is not in window %v", c.Name, c.Pane, c.Window)
		}
	}
}

func checkDead(m *Model, bad func(string, ...any)) {
	for _, p := range m.Panes {
		if !p.Dead && (p.DeadStatus != "" || p.DeadSignal != "") {
			bad("pane %v lives and has dead status %q, signal %q", p.ID, p.DeadStatus, p.DeadSignal)
		}
		// Nothing is said of its process: tmux 3.8 forgets that as soon as it has
		// ended, before the pane counts as dead.
	}
}

func checkModes(m *Model, bad func(string, ...any)) {
	for _, p := range m.Panes {
		if p.InMode < 0 || (p.InMode > 0) != (p.Mode != "") {
			bad("pane %v is in %d modes and the newest is %q", p.ID, p.InMode, p.Mode)
		}
	}
}

func checkNames(m *Model, bad func(string, ...any)) {
	held := map[string]controlmode.SessionID{}
	for _, s := range m.Sessions {
		if other, taken := held[s.Name]; taken {
			bad("sessions %v and %v are both called %q", other, s.ID, s.Name)
		}
		held[s.Name] = s.ID
	}
}
