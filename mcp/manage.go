package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The tools that change names, places, sizes and what is selected. They take ids;
// a session's name is looked up in our own model and never given to tmux.
func manageTools() []*tool {
	changes := func(name, title, doc string, params []param, out map[string]schema) tool {
		return tool{
			name: name, title: title, toolset: manage, doc: doc, params: params, output: output(out),
			reach: reachNone, effects: []string{effectObserve, effectChange}, classes: []string{classMetadata},
		}
	}
	literal := func(row tool, field string) tool {
		row.literal = map[string]string{field: doubled}
		return row
	}
	pane := map[string]schema{"pane": paneViewOut()}
	window := map[string]schema{"window": windowViewOut()}
	session := map[string]schema{"session": sessionViewOut()}
	return append([]*tool{
		define(changes("move_window", "Move a window",
			"Moves a window to another index or session. It does not become the current window there unless it was. A session "+
				"whose last window moves away ends.",
			append(append([]param{windowParam("windowId", true)},
				sessionParams(false, "The session to move to: an id such as $1, or an exact name. Default: the one it is in.")...),
				append([]param{{
					name: "index", kind: kindInteger,
					doc: "The index there; it must be free. Default: the first free one.",
				}}, placementParams()...)...), window), moveWindow),
		define(literal(changes("rename_session", "Rename a session",
			"Renames a session; its id stays. tmux before 3.7 stores : and . of a name as _.",
			append(sessionParams(true, "Session id such as $1, or an exact name."), nameParam("The new name, taken literally.")),
			session), "name"), renameSession),
		define(literal(changes("rename_window", "Rename a window",
			"Renames a window; tmux then no longer names it after what runs in it.",
			[]param{windowParam("windowId", true), nameParam("The new name, taken literally.")}, window), "name"), renameWindow),
		define(literal(changes("set_pane_title", "Set a pane's title",
			"Sets the title of a pane. The program in it may set another at any time.",
			[]param{paneParam(true), literalParam("title", true, "The new title, taken literally.")}, pane), "title"), setPaneTitle),
		define(changes("select_pane", "Select a pane",
			"Makes a pane the active one of its window. People who look at the window see their focus move.",
			[]param{paneParam(true)}, pane), selectPane),
		define(changes("select_window", "Select a window",
			"Makes a window the current one of a session. People attached to the session are shown it.",
			append([]param{windowParam("windowId", true)}, placementParams()...), window), selectWindow),
		define(changes("swap_pane", "Swap two panes",
			"Lets two panes change places; each keeps its program and its id.",
			[]param{paneParam(true), renamed(paneParam(true), "otherPaneId")}, map[string]schema{
				"complete":       booleanOut().with("description", "No row was left out."),
				"omittedEntries": countOut().with("description", "Rows left out at the end."),
				"panes":          arrayOut(paneViewOut()).with("description", "Both, paneId first."),
			}), swapPane),
	}, sizeTools(changes)...)
}

// doubled is what is done to text that tmux expands: each # is doubled once.
const doubled = "double-hash-once"

func literalParam(name string, required bool, doc string) param {
	return param{name: name, required: required, doc: doc, format: "literalized-once"}
}

// nameParam is a new name; the Go port calls it new_name.
func nameParam(doc string) param { return withNames(literalParam("name", true, doc), "newName") }

func renamed(p param, name string) param {
	p.name = name
	return p
}

// placementParams name the one placement that is meant, of a window that has several.
func placementParams() []param {
	return []param{
		{
			name: "sourceSession", want: "a session id such as $1, or an exact session name",
			doc: "Where the window is in several places: the session of the one meant, an id such as $1 or an exact name.",
		},
		{name: "sourceIndex", kind: kindInteger, doc: "And its window index there."},
	}
}

type placementArgs struct {
	SourceSession *string `arg:"sourceSession"`
	SourceIndex   *int64  `arg:"sourceIndex"`
}

// placement finds the placement meant. m has Sessions and Windows.
func (a placementArgs) placement(m *state.Model, w *state.Window) (state.Link, error) {
	if len(w.Links) > 1 && (a.SourceSession == nil || a.SourceIndex == nil) {
		return state.Link{}, &problem{
			reason: fmt.Sprintf("window %s is in %d places; give both sourceSession and sourceIndex", w.ID, len(w.Links)),
			hint:   placementsText(w),
		}
	}
	is := func(controlmode.SessionID, string) bool { return true }
	if a.SourceSession != nil {
		is = sessionArgs{Session: a.SourceSession}.matches(func(id controlmode.SessionID) bool { _, ok := m.Session(id); return ok })
	}
	for _, l := range w.Links {
		if is(l.Session, l.SessionName) && (a.SourceIndex == nil || *a.SourceIndex == int64(l.Index)) {
			return l, nil
		}
	}
	return state.Link{}, &problem{
		reason: fmt.Sprintf("window %s is not where sourceSession and sourceIndex say", w.ID), hint: placementsText(w),
	}
}

func placementsText(w *state.Window) string {
	shown := w.Links[:min(len(w.Links), maxAlternatives)]
	texts := make([]string, len(shown))
	for i, l := range shown {
		texts[i] = fmt.Sprintf("%s (%s) index %d", l.Session, shortName(l.SessionName), l.Index)
	}
	text := "It is in: " + strings.Join(texts, ", ")
	if more := len(w.Links) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more; get_window_info shows all of them", more)
	}
	return text
}

// target names a placement for tmux: by id, or by index where the session has the
// window more than once.
func target(w *state.Window, l state.Link) string {
	twice := 0
	for _, other := range w.Links {
		if other.Session == l.Session {
			twice++
		}
	}
	if twice > 1 {
		return l.Session.String() + ":" + strconv.Itoa(l.Index)
	}
	return l.Session.String() + ":" + w.ID.String()
}

type moveWindowArgs struct {
	windowArgs
	sessionArgs
	Index *int64 `arg:"index"`
	placementArgs
}

func moveWindow(ctx context.Context, c *call, a moveWindowArgs) (*toolResult, error) {
	m, w, from, err := c.placed(ctx, a.WindowID, a.placementArgs)
	if err != nil {
		return nil, err
	}
	to := from.Session
	if _, ok := a.asked(); ok {
		s, err := c.session(ctx, m, a.sessionArgs)
		if err != nil {
			return nil, err
		}
		to = s.ID
	}
	words := []string{"-s", target(w, from), "-t", to.String() + ":"}
	if a.Index != nil {
		words[3] += strconv.FormatInt(*a.Index, 10)
	}
	// Without -d tmux makes it the current window there. If it is, that keeps it.
	if to != from.Session || !from.Active {
		words = append([]string{"-d"}, words...)
	}
	if _, err := c.write(ctx, write{
		life: m.Server.ID, look: "list_windows",
		extent:   extent{windows: []controlmode.WindowID{w.ID}, fills: []controlmode.SessionID{to}},
		commands: []controlmode.Command{controlmode.Cmd("move-window", words...)},
	}); err != nil {
		return nil, err
	}
	return c.changedWindow(ctx, w.ID, func(m *state.Model, _ *state.Window) (n notices) {
		_, lives := m.Session(from.Session)
		n.add(!lives, "session %s (%s) has ended: it was its last window", from.Session, shortName(from.SessionName))
		return n
	})
}

// placed finds a window and the placement meant.
func (c *call) placed(ctx context.Context, id string, a placementArgs) (*state.Model, *state.Window, state.Link, error) {
	m, err := c.model(ctx, state.Sessions|state.Windows)
	if err != nil {
		return nil, nil, state.Link{}, err
	}
	w, err := c.window(ctx, m, id)
	if err != nil {
		return nil, nil, state.Link{}, err
	}
	l, err := a.placement(m, w)
	return m, w, l, err
}

type renameSessionArgs struct {
	sessionArgs
	Name string `arg:"name"`
}

func renameSession(ctx context.Context, c *call, a renameSessionArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Sessions|state.Clients)
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, m, a.sessionArgs)
	if err != nil {
		return nil, err
	}
	if err := c.mayStore(a.Name); err != nil {
		return nil, err
	}
	if _, err := c.write(ctx, write{
		life: m.Server.ID, look: "list_sessions",
		commands: []controlmode.Command{
			controlmode.Cmd("rename-session", "-t", s.ID.String(), "--", controlmode.LiteralFormat(a.Name)),
		},
	}); err != nil {
		return nil, err
	}
	if m, err = c.after(ctx, state.Sessions|state.Clients, "list_sessions"); err != nil {
		return nil, err
	}
	s, ok := m.Session(s.ID)
	if !ok {
		return nil, endedSince("the session", "list_sessions")
	}
	res := one("session", c.views(m).session(s))
	res.Text = storedAs("name", a.Name, s.Name).over(res.Text)
	return res, nil
}

// mayStore is mayName for a name that tmux may store otherwise: before 3.7 with _
// for : and . in it, and escaped where it holds what is not printed.
func (c *call) mayStore(name string) error {
	if !c.policy.restricted() {
		return nil
	}
	if err := c.mayName(name); err != nil {
		return err
	}
	if inline(name) != name || strings.Contains(name, "\\") {
		return &problem{reason: "tmux would store the session name " + quote(name) + " otherwise", hint: "Leave out control characters and backslashes."}
	}
	return c.mayName(strings.NewReplacer(":", "_", ".", "_").Replace(name))
}

// storedAs remarks that tmux has kept something other than what was asked for:
// it has rules of its own for what names may hold.
func storedAs(what, asked, stored string) (n notices) {
	n.add(asked != stored, "tmux stores the %s as %s", what, quote(stored))
	return n
}

type renameWindowArgs struct {
	windowArgs
	Name string `arg:"name"`
}

func renameWindow(ctx context.Context, c *call, a renameWindowArgs) (*toolResult, error) {
	w, err := c.writeWindow(ctx, a.WindowID, func(id string) []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("rename-window", "-t", id, "--", controlmode.LiteralFormat(a.Name))}
	})
	if err != nil {
		return nil, err
	}
	return c.changedWindow(ctx, w.ID, func(_ *state.Model, w *state.Window) notices { return storedAs("name", a.Name, w.Name) })
}

// writeWindow changes a window that is found by its id.
func (c *call) writeWindow(ctx context.Context, id string, commands func(id string) []controlmode.Command) (*state.Window, error) {
	m, err := c.model(ctx, state.Windows)
	if err != nil {
		return nil, err
	}
	w, err := c.window(ctx, m, id)
	if err != nil {
		return nil, err
	}
	_, err = c.write(ctx, write{
		life: m.Server.ID, commands: commands(w.ID.String()), look: "get_window_info",
		extent: extent{windows: []controlmode.WindowID{w.ID}},
	})
	return w, err
}

// writePane changes a pane that is found by its id. The pane is as it was before.
func (c *call) writePane(ctx context.Context, id string, commands func(p *state.Pane) []controlmode.Command) (*state.Pane, error) {
	m, p, err := c.pane(ctx, id)
	if err != nil {
		return nil, err
	}
	_, err = c.write(ctx, write{
		life: m.Server.ID, commands: commands(p), look: "get_pane_info",
		extent: extent{windows: []controlmode.WindowID{p.Window}},
	})
	return p, err
}

type titleArgs struct {
	paneArgs
	Title string `arg:"title"`
}

func setPaneTitle(ctx context.Context, c *call, a titleArgs) (*toolResult, error) {
	// tmux takes no title with control characters, and says nothing (3.3a to 3.8,
	// screen.c screen_set_title); some releases change them.
	if i := strings.IndexFunc(a.Title, func(r rune) bool { return r < 0x20 || r == 0x7f }); i >= 0 {
		return nil, &problem{
			reason: fmt.Sprintf("a title cannot hold control characters; this one has %s at byte %d", inline(a.Title[i:i+1]), i),
			hint:   "Leave them out.",
		}
	}
	p, err := c.writePane(ctx, a.PaneID, func(p *state.Pane) []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("select-pane", "-t", p.ID.String(), "-T", controlmode.LiteralFormat(a.Title))}
	})
	if err != nil {
		return nil, err
	}
	return c.changedPane(ctx, p.ID, func(p *state.Pane) (n notices) {
		n.add(p.Title != a.Title, "the title is %s now: tmux did not take the one asked for as it was, or the program has set another", quote(p.Title))
		return n
	})
}

func selectPane(ctx context.Context, c *call, a paneArgs) (*toolResult, error) {
	p, err := c.writePane(ctx, a.PaneID, func(p *state.Pane) []controlmode.Command {
		// -Z: a zoomed window stays zoomed.
		return []controlmode.Command{controlmode.Cmd("select-pane", "-Z", "-t", p.ID.String())}
	})
	if err != nil {
		return nil, err
	}
	return c.changedPane(ctx, p.ID, nil)
}

type selectWindowArgs struct {
	windowArgs
	placementArgs
}

func selectWindow(ctx context.Context, c *call, a selectWindowArgs) (*toolResult, error) {
	m, w, l, err := c.placed(ctx, a.WindowID, a.placementArgs)
	if err != nil {
		return nil, err
	}
	if _, err := c.write(ctx, write{
		life: m.Server.ID, look: "get_window_info",
		commands: []controlmode.Command{controlmode.Cmd("select-window", "-t", target(w, l))},
	}); err != nil {
		return nil, err
	}
	return c.changedWindow(ctx, w.ID, nil)
}

type swapPaneArgs struct {
	paneArgs
	OtherPaneID string `arg:"otherPaneId"`
}

func swapPane(ctx context.Context, c *call, a swapPaneArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Panes|state.Clients)
	if err != nil {
		return nil, err
	}
	ids, windows := make([]controlmode.PaneID, 2), make([]controlmode.WindowID, 2)
	for i, text := range []string{a.PaneID, a.OtherPaneID} {
		if ids[i], err = c.paneID(ctx, text); err != nil {
			return nil, err
		}
		p, ok := m.Pane(ids[i])
		if !ok {
			return nil, c.noPane(ctx, text)
		}
		windows[i] = p.Window
	}
	if _, err := c.write(ctx, write{
		life: m.Server.ID, look: "list_panes", extent: extent{windows: windows},
		// -d: what is active stays where it was; -Z: a zoomed window stays zoomed.
		commands: []controlmode.Command{controlmode.Cmd("swap-pane", "-d", "-Z", "-s", ids[0].String(), "-t", ids[1].String())},
	}); err != nil {
		return nil, err
	}
	if m, err = c.after(ctx, state.Panes|state.Clients, "list_panes"); err != nil {
		return nil, err
	}
	var rows []*state.Pane
	for _, id := range slices.Compact(ids) {
		p, ok := m.Pane(id)
		if !ok {
			return nil, endedSince("pane "+id.String(), "list_panes")
		}
		rows = append(rows, p)
	}
	v := c.views(m)
	return c.list("panes", m, len(rows), func(i int) view { return v.pane(rows[i]) }), nil
}
