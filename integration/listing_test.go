package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// between separates the fields of a listing. No name in these tests holds it.
const between = "<~5kq7~>"

// kind is a kind of row of a listing.
type kind struct {
	letter  string   // what a row starts with
	command []string // of tmux; the format follows
	fields  []string
}

var kinds = []kind{
	{"V", []string{"display-message", "-p"}, []string{"pid", "start_time", "version", "socket_path"}},
	{"S", []string{"list-sessions", "-F"}, []string{
		"session_id", "session_name", "session_group", "session_windows", "session_attached", "session_created",
		"session_activity",
	}},
	{"W", []string{"list-windows", "-a", "-F"}, []string{
		"window_id", "session_id", "window_index", "window_active", "window_name", "window_layout", "window_zoomed_flag",
		"window_panes", "window_width", "window_height",
	}},
	{"P", []string{"list-panes", "-a", "-F"}, []string{
		"pane_id", "window_id", "pane_index", "pane_width", "pane_height", "pane_active", "pane_at_top", "pane_at_bottom",
		"pane_at_left", "pane_at_right", "pane_pid", "pane_tty", "pane_dead", "pane_dead_status", "pane_dead_signal", "pane_dead_time",
		"pane_in_mode", "pane_mode", "pane_input_off", "pane_synchronized", "alternate_on", "pane_current_command",
		"pane_current_path", "pane_title",
	}},
	{"C", []string{"list-clients", "-F"}, []string{
		"client_name", "client_pid", "client_control_mode", "client_flags", "client_session",
	}},
}

// listing asks the tmux binary for everything a Model holds. It is the oracle:
// it shares no code with the product but the types, asks over a plain client
// instead of a control one, separates its fields in another way, and works out
// what a client looks at instead of asking. foreign are the clients that the
// daemon did not start. Without a server it is the empty model.
func (x *tmux) listing(foreign func(pid int) bool) (*state.Model, error) {
	var args []string
	for i, k := range kinds {
		if i > 0 {
			args = append(args, ";")
		}
		format := between + k.letter + between
		for _, f := range k.fields {
			format += "#{" + f + "}" + between
		}
		args = append(append(args, k.command...), format)
	}
	out, err := x.try(append([]string{"-N"}, args...)...)
	if err != nil {
		// A server may be about to end; nothing else is an excuse.
		select {
		case <-x.gone:
			return &state.Model{Have: state.Full}, nil
		case <-time.After(patience):
			return nil, err
		}
	}
	rows := map[string][]fields{}
	parts := strings.Split(out, between)
	for len(parts) > 1 {
		k := slices.IndexFunc(kinds, func(k kind) bool { return k.letter == parts[1] })
		if strings.TrimSpace(parts[0]) != "" || k < 0 || len(parts) < 2+len(kinds[k].fields) {
			return nil, fmt.Errorf("cannot read the listing at %.100q", parts)
		}
		f := fields{}
		for i, name := range kinds[k].fields {
			f[name] = parts[2+i]
		}
		rows[parts[1]] = append(rows[parts[1]], f)
		parts = parts[2+len(kinds[k].fields):]
	}
	return assemble(rows, foreign), nil
}

// fields is one row, by tmux's names.
type fields map[string]string

// num reads a number or the number of an id; what does not apply is 0.
func (f fields) num(name string) int {
	n, err := strconv.Atoi(strings.TrimLeft(f[name], "$@%"))
	if err != nil && f[name] != "" {
		panic(fmt.Sprintf("%s is %q", name, f[name]))
	}
	return n
}

func (f fields) flag(name string) bool { return f.num(name) != 0 }

func assemble(rows map[string][]fields, foreign func(pid int) bool) *state.Model {
	m := &state.Model{Have: state.Full}
	if len(rows["V"]) == 1 {
		v := rows["V"][0]
		m.Server = state.Server{
			ID:      state.ServerID{PID: v.num("pid"), StartTime: int64(v.num("start_time"))},
			Version: v["version"], SocketPath: v["socket_path"],
		}
	}
	for _, f := range rows["S"] {
		m.Sessions = append(m.Sessions, &state.Session{
			ID: controlmode.SessionID(f.num("session_id")), Name: f["session_name"], Group: f["session_group"],
			Windows: f.num("session_windows"), Attached: f.num("session_attached"),
			Created: int64(f.num("session_created")), Activity: int64(f.num("session_activity")),
		})
	}
	slices.SortFunc(m.Sessions, func(a, b *state.Session) int { return int(a.ID) - int(b.ID) })
	links := map[int][]state.Link{}
	for _, f := range rows["W"] {
		s, _ := m.Session(controlmode.SessionID(f.num("session_id")))
		links[f.num("window_id")] = append(links[f.num("window_id")],
			state.Link{Session: s.ID, SessionName: s.Name, Index: f.num("window_index"), Active: f.flag("window_active")})
	}
	for _, f := range rows["W"] {
		id := controlmode.WindowID(f.num("window_id"))
		if slices.ContainsFunc(m.Windows, func(w *state.Window) bool { return w.ID == id }) {
			continue
		}
		l := links[f.num("window_id")]
		slices.SortFunc(l, func(a, b state.Link) int {
			if a.Session != b.Session {
				return int(a.Session) - int(b.Session)
			}
			return a.Index - b.Index
		})
		m.Windows = append(m.Windows, &state.Window{
			ID: id, Name: f["window_name"], Layout: f["window_layout"], Zoomed: f.flag("window_zoomed_flag"),
			PaneCount: f.num("window_panes"), Width: f.num("window_width"), Height: f.num("window_height"), Links: l,
		})
	}
	slices.SortFunc(m.Windows, func(a, b *state.Window) int { return int(a.ID) - int(b.ID) })
	assemblePanes(m, rows["P"])
	for _, f := range rows["C"] {
		c := &state.Client{
			Name: f["client_name"], PID: f.num("client_pid"), Control: f.flag("client_control_mode"),
			Own: !foreign(f.num("client_pid")), Flags: f["client_flags"],
		}
		if s, ok := m.SessionNamed(f["client_session"]); ok {
			c.Session = s.ID
		}
		for _, w := range m.Windows {
			if slices.ContainsFunc(w.Links, func(l state.Link) bool { return l.Session == c.Session && l.Active }) {
				c.Window, c.Pane, c.Zoomed = w.ID, w.ActivePane, w.Zoomed
			}
		}
		m.Clients = append(m.Clients, c)
	}
	return m
}

func assemblePanes(m *state.Model, rows []fields) {
	for _, f := range rows {
		id := controlmode.PaneID(f.num("pane_id"))
		if slices.ContainsFunc(m.Panes, func(p *state.Pane) bool { return p.ID == id }) {
			continue // once more for each link of its window
		}
		w, _ := m.Window(controlmode.WindowID(f.num("window_id")))
		if f.flag("pane_active") {
			w.ActivePane = id
		}
		m.Panes = append(m.Panes, &state.Pane{
			ID: id, Window: w.ID, WindowName: w.Name, Index: f.num("pane_index"), Width: f.num("pane_width"),
			Height: f.num("pane_height"), Active: f.flag("pane_active"), Zoomed: w.Zoomed,
			AtTop: f.flag("pane_at_top"), AtBottom: f.flag("pane_at_bottom"), AtLeft: f.flag("pane_at_left"),
			AtRight: f.flag("pane_at_right"), PID: f.num("pane_pid"), TTY: f["pane_tty"], Dead: f.flag("pane_dead"),
			DeadStatus: f["pane_dead_status"], DeadSignal: f["pane_dead_signal"],
			DeadTime: int64(f.num("pane_dead_time")), InMode: f.num("pane_in_mode"),
			Mode: f["pane_mode"], InputOff: f.flag("pane_input_off"), Synced: f.flag("pane_synchronized"),
			Alternate: f.flag("alternate_on"), Command: f["pane_current_command"], Path: f["pane_current_path"],
			Title: f["pane_title"], Links: w.Links,
		})
	}
	slices.SortFunc(m.Panes, func(a, b *state.Pane) int { return int(a.ID) - int(b.ID) })
}
