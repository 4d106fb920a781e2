package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The listing tools and those that show one entity: they read the model only.
func listTools() []*tool {
	metadata := func(name, title, doc string, tables state.Tables, params []param, out schema) tool {
		return tool{
			name: name, title: title, toolset: inspect, doc: doc, tables: tables, params: params, output: out,
			reach: reachNone, effects: []string{effectObserve}, classes: []string{classMetadata},
		}
	}
	pane := output(map[string]schema{"pane": paneViewOut()})
	return []*tool{
		define(metadata("list_sessions", "List sessions",
			"Lists all sessions: id, name, number of windows, people attached.",
			state.Sessions|state.Clients, nil, listOut("sessions", sessionViewOut())), listSessions),
		define(metadata("list_windows", "List windows",
			"Lists windows, each once with every session and index it can be reached by.",
			state.Windows, sessionParams(false, "Only windows of this session: an id such as $1, or an exact name."),
			listOut("windows", windowViewOut())), listWindows),
		define(metadata("list_panes", "List panes",
			"Lists panes with their place, size, command, directory and title, and whether a person looks at them.",
			state.Panes|state.Clients, append(sessionParams(false, "Only panes of this session: an id such as $1, or an exact name."),
				windowParam("window", false)), listOut("panes", paneViewOut())), listPanes),
		define(metadata("get_server_info", "Server information",
			"Shows the tmux server: version, process, socket, and how much runs in it.",
			state.Sessions|state.Windows|state.Panes, nil, serverInfoOut()), serverInfo),
		define(metadata("get_session_info", "Session information",
			"Shows one session.", state.Sessions|state.Clients,
			sessionParams(true, "Session id such as $1, or an exact name."),
			output(map[string]schema{"session": sessionViewOut()})), sessionInfo),
		define(metadata("get_window_info", "Window information",
			"Shows one window.", state.Windows, []param{windowParam("windowId", true)},
			output(map[string]schema{"window": windowViewOut()})), windowInfo),
		define(metadata("get_pane_info", "Pane information",
			"Shows one pane, and in _meta what its program waits for: a command line (prompt), a line, a password, keys of a "+
				"full-screen program, or nothing (busy).", 0, []param{paneParam(true)}, pane), paneInfo),
		define(metadata("find_pane_by_position", "Find a pane by its corner",
			"Finds the pane in a corner of a window.", state.Windows|state.Panes|state.Clients,
			[]param{windowParam("windowId", true), {
				name: "corner", required: true, also: []string{"position"},
				doc: "The corner that the pane must touch.", enum: corners,
			}}, pane), paneAt),
	}
}

type noArgs struct{}

// sessionArgs are the ways to name a session.
type sessionArgs struct {
	Session     *string `arg:"session"`
	SessionID   *string `arg:"sessionId"`
	SessionName *string `arg:"sessionName"`
}

// asked is the session named, in the caller's words.
func (a sessionArgs) asked() (string, bool) {
	for _, s := range []*string{a.Session, a.SessionID, a.SessionName} {
		if s != nil {
			return *s, true
		}
	}
	return "", false
}

// matches gives the test for the session named: a text of the form $N is an id
// first and, where no such id exists, a name; sessionId and sessionName are
// only the one or the other.
func (a sessionArgs) matches(exists func(controlmode.SessionID) bool) func(controlmode.SessionID, string) bool {
	asked, _ := a.asked()
	if id, err := controlmode.ParseSessionID(asked); err == nil && a.SessionName == nil {
		if a.SessionID != nil || exists(id) {
			return func(i controlmode.SessionID, _ string) bool { return i == id }
		}
	}
	return func(_ controlmode.SessionID, name string) bool { return name == asked }
}

// session finds the session named in a model with Sessions.
func (c *call) session(ctx context.Context, m *state.Model, a sessionArgs) (*state.Session, error) {
	is := a.matches(func(id controlmode.SessionID) bool { _, ok := m.Session(id); return ok })
	for _, s := range m.Sessions {
		if is(s.ID, s.Name) {
			return s, nil
		}
	}
	asked, _ := a.asked()
	return nil, c.noSession(ctx, asked)
}

func listSessions(ctx context.Context, c *call, _ noArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Sessions|state.Clients)
	if err != nil {
		return nil, err
	}
	v := c.views(m)
	return c.list("sessions", m, len(m.Sessions), func(i int) view { return v.session(m.Sessions[i]) }), nil
}

func listWindows(ctx context.Context, c *call, a sessionArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Windows)
	if err != nil {
		return nil, err
	}
	rows, err := placed(ctx, c, m.Windows, func(w *state.Window) []state.Link { return w.Links }, a)
	if err != nil {
		return nil, err
	}
	v := c.views(m)
	return c.list("windows", m, len(rows), func(i int) view { return v.window(rows[i]) }), nil
}

type listPanesArgs struct {
	sessionArgs
	Window *string `arg:"window"`
}

func listPanes(ctx context.Context, c *call, a listPanesArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Panes|state.Clients)
	if err != nil {
		return nil, err
	}
	rows, err := placed(ctx, c, m.Panes, func(p *state.Pane) []state.Link { return p.Links }, a.sessionArgs)
	if err != nil {
		return nil, err
	}
	if a.Window != nil {
		// An unknown window leaves no rows; it is not an error.
		id, err := controlmode.ParseWindowID(*a.Window)
		rows = slices.DeleteFunc(rows, func(p *state.Pane) bool { return err != nil || p.Window != id })
	}
	v := c.views(m)
	return c.list("panes", m, len(rows), func(i int) view { return v.pane(rows[i]) }), nil
}

// placed gives the rows of a session, or all, in the order of their placement
// there: session, index, then as the model has them (by id). The result is the
// caller's own slice.
func placed[T any](ctx context.Context, c *call, rows []*T, links func(*T) []state.Link, a sessionArgs) ([]*T, error) {
	is := func(controlmode.SessionID, string) bool { return true }
	if _, ok := a.asked(); ok {
		is = a.matches(func(id controlmode.SessionID) bool {
			return slices.ContainsFunc(rows, func(r *T) bool {
				return slices.ContainsFunc(links(r), func(l state.Link) bool { return l.Session == id })
			})
		})
	}
	type row struct {
		link state.Link
		row  *T
	}
	var found []row
	for _, r := range rows {
		all := links(r)
		if i := slices.IndexFunc(all, func(l state.Link) bool { return is(l.Session, l.SessionName) }); i >= 0 {
			found = append(found, row{all[i], r})
		}
	}
	if asked, ok := a.asked(); ok && found == nil {
		return nil, c.noSession(ctx, asked)
	}
	slices.SortStableFunc(found, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.link.Session, y.link.Session), cmp.Compare(x.link.Index, y.link.Index))
	})
	out := make([]*T, len(found))
	for i, f := range found {
		out[i] = f.row
	}
	return out, nil
}

// list makes the answer of a listing: rows from the head while both halves and
// the lines are within their limits.
func (c *call) list(name string, m *state.Model, n int, row func(int) view) *toolResult {
	text := make([]byte, 0, 128*min(n, c.sel.limits.lines))
	rows := make([][]byte, 0, min(n, c.sel.limits.lines))
	size := 0
	for i := range n {
		if len(rows) == c.sel.limits.lines {
			break
		}
		v := row(i)
		added := len(v.json) + 1
		if size+added+len(listEnd(name, n-i-1)) > viewCeiling || len(text)+len(v.text)+1 > viewCeiling {
			break
		}
		size += added
		rows = append(rows, v.json)
		text = append(append(text, v.text...), '\n')
	}
	omitted := n - len(rows)
	var o object
	o.b = make([]byte, 0, size+64)
	o.open()
	o.bool("complete", omitted == 0)
	o.int("omittedEntries", omitted)
	o.array(name, rows)
	o.close()
	switch {
	case n == 0 && m.Server.ID == (state.ServerID{}):
		text = append(text, "No tmux server is running on "+c.table.socketText()+"."...)
	case n == 0:
		text = append(text, "No "+name+"."...)
	case omitted > 0:
		text = fmt.Appendf(text, "[%d more %s not shown]", omitted, name)
	default:
		text = text[:len(text)-1]
	}
	return &toolResult{Text: string(text), Structured: o.b}
}

// listEnd is what a list with that many rows left out has around its rows.
func listEnd(name string, omitted int) string {
	return fmt.Sprintf(`{"complete":false,"omittedEntries":%d,"%s":[]}`, omitted, name)
}

func serverInfoOut() schema {
	return output(map[string]schema{
		"panes":      integerOut(),
		"pid":        orNull(stringOut()),
		"sessions":   integerOut(),
		"socketPath": orNull(stringOut()),
		"version":    stringOut(),
		"windows":    integerOut(),
	})
}

func serverInfo(ctx context.Context, c *call, _ noArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Sessions|state.Windows|state.Panes)
	if err != nil {
		return nil, err
	}
	var pid, socket *string
	if m.Server.ID != (state.ServerID{}) {
		s := fmt.Sprint(m.Server.ID.PID)
		pid = &s
	}
	if m.Server.SocketPath != "" {
		s := inline(m.Server.SocketPath)
		socket = &s
	}
	version := clean(m.Server.Version)
	var o object
	o.open()
	o.int("panes", len(m.Panes))
	o.stringOrNull("pid", pid)
	o.int("sessions", len(m.Sessions))
	o.stringOrNull("socketPath", socket)
	o.string("version", version)
	o.int("windows", len(m.Windows))
	o.close()
	if pid == nil {
		return &toolResult{Text: "No tmux server is running on " + c.table.socketText() + ".", Structured: o.b}, nil
	}
	text := fmt.Sprintf("tmux %s, pid %s: %s, %s, %s", version, *pid,
		plural(len(m.Sessions), "session"), plural(len(m.Windows), "window"), plural(len(m.Panes), "pane"))
	if socket != nil {
		text += ", socket " + *socket
	}
	res := &toolResult{Text: text, Structured: o.b}
	if st := c.table.mirror.Status(); st.Degraded {
		// The shape is the contract's and closed: what it has no field for goes here.
		reason := clean(st.Reason)
		res.Text += "\n[" + reason + "; output cannot be followed]"
		res.Meta = map[string]any{"tmux-mcpd/degraded": reason}
	}
	return res, nil
}

// one is the answer of a tool that shows one entity.
func one(name string, v view) *toolResult {
	o := object{b: make([]byte, 0, len(v.json)+16)}
	o.open()
	o.raw(name, v.json)
	o.close()
	return &toolResult{Text: v.text, Structured: o.b}
}

func sessionInfo(ctx context.Context, c *call, a sessionArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Sessions|state.Clients)
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, m, a)
	if err != nil {
		return nil, err
	}
	return one("session", c.views(m).session(s)), nil
}

type windowArgs struct {
	WindowID string `arg:"windowId"`
}

// window finds a window in a model with Windows.
func (c *call) window(ctx context.Context, m *state.Model, id string) (*state.Window, error) {
	if n, err := controlmode.ParseWindowID(id); err == nil {
		if w, ok := m.Window(n); ok {
			return w, nil
		}
	}
	return nil, c.noWindow(ctx, id)
}

func windowInfo(ctx context.Context, c *call, a windowArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Windows)
	if err != nil {
		return nil, err
	}
	w, err := c.window(ctx, m, a.WindowID)
	if err != nil {
		return nil, err
	}
	return one("window", c.views(m).window(w)), nil
}

type paneArgs struct {
	PaneID string `arg:"paneId"`
}

// pane finds a pane, in the call's shared refresh where that brings all panes
// anyway (in a batch).
func (c *call) pane(ctx context.Context, id string) (*state.Model, *state.Pane, error) {
	n, err := c.paneID(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.arrival.Pane(ctx, n)
	if err != nil {
		return nil, nil, c.missing(ctx, err, id)
	}
	p, ok := m.Pane(n)
	if !ok {
		return nil, nil, c.noPane(ctx, id)
	}
	return m, p, nil
}

func paneInfo(ctx context.Context, c *call, a paneArgs) (*toolResult, error) {
	m, p, err := c.pane(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	res, w := one("pane", c.views(m).pane(p)), c.waiting(ctx, p)
	res.Text += "\n[" + waitingText(w) + "]"
	return withState(res, w), nil
}

var corners = []string{"top-left", "top-right", "bottom-left", "bottom-right"}

type cornerArgs struct {
	WindowID string `arg:"windowId"`
	Corner   string `arg:"corner"`
}

func paneAt(ctx context.Context, c *call, a cornerArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Windows|state.Panes|state.Clients)
	if err != nil {
		return nil, err
	}
	w, err := c.window(ctx, m, a.WindowID)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Panes {
		if p.Window == w.ID && touches(p, a.Corner) {
			return one("pane", c.views(m).pane(p)), nil
		}
	}
	return nil, &problem{
		reason: fmt.Sprintf("no pane of window %s touches its %s corner", w.ID, a.Corner),
		hint:   "A zoomed window can hide the corner; list_panes shows its panes.",
	}
}

// touches reads tmux's own at-edge flags.
func touches(p *state.Pane, corner string) bool {
	switch corner {
	case "top-left":
		return p.AtTop && p.AtLeft
	case "top-right":
		return p.AtTop && p.AtRight
	case "bottom-left":
		return p.AtBottom && p.AtLeft
	}
	return p.AtBottom && p.AtRight
}
