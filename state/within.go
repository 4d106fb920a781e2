package state

import (
	"math"
	"slices"

	"tmux-mcpd/controlmode"
)

// NoSession is an id that tmux, which counts from 0, never gives.
const NoSession = controlmode.SessionID(math.MaxUint32)

// Within is the model as somebody sees it for whom only the sessions with
// visible names exist: their windows and panes, each with its placements in
// them, and the clients that look at those. A client that looks at a visible
// window through an invisible session is kept without its name, process and
// session (NoSession): whether a person sees a pane must not depend on who asks.
//
// Whether a client's session is visible is known from the model's own sessions
// and placements, so a model with Clients should have Sessions as well.
func (m *Model) Within(visible func(name string) bool) *Model {
	w := *m
	seen := map[controlmode.SessionID]bool{}
	windows := map[controlmode.WindowID]bool{}
	w.Sessions = nil
	for _, s := range m.Sessions {
		if !visible(s.Name) {
			continue
		}
		seen[s.ID] = true
		own := *s
		if !visible(s.Group) {
			own.Group = ""
		}
		w.Sessions = append(w.Sessions, &own)
	}
	links := func(all []Link) []Link {
		kept := LinksWithin(all, visible)
		for i := range kept {
			seen[kept[i].Session] = true
		}
		return kept
	}
	w.Windows = nil
	for _, row := range m.Windows {
		own := *row
		if own.Links = links(row.Links); len(own.Links) > 0 {
			w.Windows, windows[row.ID] = append(w.Windows, &own), true
		}
	}
	w.Panes = nil
	for _, row := range m.Panes {
		own := *row
		if own.Links = links(row.Links); len(own.Links) > 0 {
			w.Panes, windows[row.Window] = append(w.Panes, &own), true
		}
	}
	w.Clients = nil
	for _, c := range m.Clients {
		switch {
		case seen[c.Session]:
			w.Clients = append(w.Clients, c)
		case windows[c.Window]:
			w.Clients = append(w.Clients, &Client{
				Control: c.Control, Own: c.Own, Session: NoSession, Window: c.Window, Pane: c.Pane, Zoomed: c.Zoomed,
			})
		}
	}
	return &w
}

// LinksWithin are the placements in sessions with visible names.
func LinksWithin(all []Link, visible func(name string) bool) []Link {
	return slices.DeleteFunc(slices.Clone(all), func(l Link) bool { return !visible(l.SessionName) })
}
