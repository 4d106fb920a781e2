package state

import (
	"tmux-mcpd/controlmode"
)

// Places come from two lists: tmux takes about a microsecond for every word of
// every row, and most of them are about the window.
var (
	placeListing       = newListing([]string{"pane_id", "window_id"}, nil)
	windowPlaceListing = newListing([]string{"window_id", "session_id", "window_index", "window_active"}, []string{"session_name", "window_name"})
)

// shownListing is what a transcript is compared with, of many panes at once:
// tmux takes about a microsecond for every word of every pane.
var shownListing = newListing([]string{
	"pane_id", "pane_width", "pane_height", "history_size", "cursor_x", "cursor_y", "alternate_on", "pane_pid", "pane_dead",
}, nil)

// readPlaces reads rows of windowPlaceListing and of placeListing.
func readPlaces(windows, panes []byte) ([]*Pane, error) {
	names := map[controlmode.WindowID]string{}
	links := map[controlmode.WindowID][]Link{}
	err := windowPlaceListing.each(windows, func(r *row) {
		id := controlmode.WindowID(r.id(0, '@'))
		names[id] = r.text(1)
		links[id] = append(links[id], Link{
			Session: controlmode.SessionID(r.id(1, '$')), SessionName: r.text(0), Index: r.num(2), Active: r.flag(3),
		})
	})
	if err != nil {
		return nil, err
	}
	byID := map[controlmode.PaneID]*Pane{}
	err = placeListing.each(panes, func(r *row) {
		id, window := controlmode.PaneID(r.id(0, '%')), controlmode.WindowID(r.id(1, '@'))
		byID[id] = &Pane{ID: id, Window: window, WindowName: names[window], Links: links[window]}
	})
	return sortPanes(byID), err
}
