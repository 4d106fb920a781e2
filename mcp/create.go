package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The tools that start what tmux is configured to start. They move nobody's
// focus: what they make is selected nowhere.
func createTools() []*tool {
	starts := func(name, title, doc string, params []param, out map[string]schema) tool {
		row := tool{
			name: name, title: title, toolset: execute, doc: doc, params: append(params, waitReadyParam()), output: output(out),
			reach: reachConfigured, effects: []string{effectObserve, effectChange}, classes: []string{classMetadata},
			literal: map[string]string{},
		}
		for _, p := range row.params {
			if p.format != "" {
				row.literal[p.name] = doubled
			}
		}
		return row
	}
	directory := func(missing string) param {
		return literalParam("startDirectory", false, "Where the program starts, an absolute path, taken literally (no ~). Default: "+missing+".")
	}
	size := func(name, doc string) param { return param{name: name, kind: kindInteger, positive: true, doc: doc} }
	respawn := starts("respawn_pane", "Start a pane's command again",
		"Starts the command that a pane was made with again, in the same pane. It must have ended, or killFirst be true.",
		[]param{
			paneParam(true),
			{name: "killFirst", kind: kindBoolean, doc: "End what runs in the pane first. Default false."},
			directory("where it started before"), ownPaneParam(),
		}, map[string]schema{"pane": paneViewOut()})
	respawn.effects = append(respawn.effects, effectDelete)
	return []*tool{
		define(starts("create_session", "Create a session",
			"Creates a session with one window, detached. It starts tmux where none runs.",
			[]param{
				literalParam("name", false, "The session's name, taken literally. Default: a number."),
				literalParam("windowName", false, "The window's name, taken literally."),
				directory("the home directory"), size("width", "Columns. Default 80."), size("height", "Rows. Default 24."),
			}, map[string]schema{
				"paneId": patternOut(panePattern), "session": sessionViewOut(), "windowId": patternOut(windowPattern),
			}), createSession),
		define(starts("create_window", "Create a window",
			"Creates a window at the next free index of a session. It does not become the current window.",
			append(sessionParams(true, "Session id such as $1, or an exact name."),
				literalParam("name", false, "The window's name, taken literally."), directory("that of the session")),
			map[string]schema{"paneId": patternOut(panePattern), "window": windowViewOut()}), createWindow),
		define(starts("split_window", "Split a pane",
			"Splits a pane in two, with a new pane beside it. It does not become the active pane.",
			[]param{
				paneParam(true),
				{name: "direction", enum: splitSides, doc: "Where the new pane goes. Default below."},
				directory("that of the pane that is split"),
			}, map[string]schema{"pane": paneViewOut()}), splitWindow),
		define(respawn, respawnPane),
	}
}

var splitSides = []string{"above", "below", "left", "right"}

func waitReadyParam() param {
	return param{
		name: "waitReadyMs", kind: kindInteger, added: true,
		doc: "Wait at most this many milliseconds until the shell reads input. Default 0.",
	}
}

// startArgs are the arguments of all tools that start something.
type startArgs struct {
	StartDirectory *string `arg:"startDirectory"`
	WaitReadyMs    int64   `arg:"waitReadyMs"`
}

// started is what tmux prints of what it has made.
type started struct {
	session controlmode.SessionID
	window  controlmode.WindowID
	pane    controlmode.PaneID
	path    string // where it was to start, as tmux understood it; "" before 3.3
}

const startedFormat = "#{session_id} #{window_id} #{pane_id} #{pane_start_path}"

func readStarted(body string) (s started, err error) {
	fields := strings.SplitN(strings.TrimSuffix(body, "\n"), " ", 4)
	if len(fields) == 4 {
		var errs [3]error
		s.session, errs[0] = controlmode.ParseSessionID(fields[0])
		s.window, errs[1] = controlmode.ParseWindowID(fields[1])
		s.pane, errs[2] = controlmode.ParsePaneID(fields[2])
		s.path = fields[3]
		if err = errors.Join(errs[:]...); err == nil {
			return s, nil
		}
	}
	return s, &problem{
		reason: "tmux has made it and printed something else than its ids: " + quote(body),
		hint:   "Do not repeat the call; look with list_panes.",
	}
}

// fitsLine bounds the texts that are quoted into one command line (contract 1.5).
func fitsLine(texts ...*string) error {
	cost := 0
	for _, s := range texts {
		if s != nil {
			cost += len(*s) + 3*strings.Count(*s, "'") + 2
		}
	}
	if cost > maxInlineText {
		return &problem{
			reason: fmt.Sprintf("the texts take %d bytes of a tmux command line together; the limit is %d", cost, maxInlineText),
			hint:   "Shorten them.",
		}
	}
	return nil
}

// option gives the words of an option with a literal text, none for nil.
func optionWords(flag string, text *string) []string {
	if text == nil {
		return nil
	}
	return []string{flag, controlmode.LiteralFormat(*text)}
}

// mayMakeWindow refuses what would end the server: before 3.7 tmux crashes when a
// window is made while the global option window-size is manual (3.3a, 3.5a; not
// 3.7c; resize.c default_window_size).
func (c *call) mayMakeWindow(ctx context.Context, m *state.Model) error {
	if v, err := controlmode.ParseVersion(m.Server.Version); m.Server.ID == (state.ServerID{}) || err == nil && v.AtLeast("3.7") {
		return nil
	}
	bodies, err := c.ask(ctx, controlmode.Cmd("show-options", "-gwv", "window-size"))
	if err != nil || strings.TrimSpace(bodies[0]) != "manual" {
		return err
	}
	return &problem{
		reason: "the global option window-size is manual, and tmux " + inline(m.Server.Version) + " crashes when a window is made then",
		hint:   "Nothing was done. Somebody must set it to latest first; split_window works meanwhile.",
	}
}

type createSessionArgs struct {
	Name       *string `arg:"name"`
	WindowName *string `arg:"windowName"`
	Width      *int64  `arg:"width"`
	Height     *int64  `arg:"height"`
	startArgs
}

// command is new-session. -E: the session gets the server's environment alone;
// without it tmux would put ours, or that of ours what is missing, into it.
func (a createSessionArgs) command() (controlmode.Command, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	// Without -c, and for a relative one, it would be that of whatever session
	// our own client is on.
	if a.StartDirectory != nil && filepath.IsAbs(*a.StartDirectory) {
		home = *a.StartDirectory
	} else if a.StartDirectory != nil {
		home = filepath.Join(home, *a.StartDirectory)
	}
	size := func(n *int64, missing int64) string {
		if n != nil {
			missing = *n
		}
		return strconv.FormatInt(missing, 10)
	}
	words := []string{"-d", "-E", "-P", "-F", startedFormat, "-x", size(a.Width, 80), "-y", size(a.Height, 24), "-c", controlmode.LiteralFormat(home)}
	words = append(words, optionWords("-s", a.Name)...)
	words = append(words, optionWords("-n", a.WindowName)...)
	return controlmode.Cmd("new-session", words...), fitsLine(a.Name, a.WindowName, &home)
}

func createSession(ctx context.Context, c *call, a createSessionArgs) (*toolResult, error) {
	command, err := a.command()
	if err != nil {
		return nil, err
	}
	name := ""
	if a.Name != nil {
		name = *a.Name
	}
	if err := c.mayStore(name); err != nil {
		return nil, err
	}
	m, err := c.table.mirror.Arrive(state.Sessions).Model(ctx, state.Sessions)
	if err != nil {
		return nil, err
	}
	if err := c.mayMakeWindow(ctx, m); err != nil {
		return nil, err
	}
	var body string
	if m.Server.ID == (state.ServerID{}) {
		body, err = c.startServer(ctx, command)
	} else {
		body, err = c.create(ctx, m, "list_sessions", extent{}, command)
	}
	if err != nil {
		return nil, err
	}
	s, err := readStarted(body)
	if err != nil {
		return nil, err
	}
	return c.sessionStarted(ctx, s, a)
}

// startServer makes the first session of a server that it starts.
func (c *call) startServer(ctx context.Context, command controlmode.Command) (string, error) {
	out, err := c.table.mirror.Start(ctx, command)
	c.wrote = true
	var refused *controlmode.CommandError
	switch {
	case errors.Is(err, controlmode.ErrNUL):
		return "", unsure(fmt.Errorf("%w: %w", err, controlmode.ErrNotSent), "")
	case errors.As(err, &refused) && !errors.Is(err, state.ErrNoServer), errors.Is(err, controlmode.ErrNoBinary):
		return "", err
	case errors.Is(err, controlmode.ErrTimeout):
		return "", unsure(err, "list_sessions")
	case err != nil:
		return "", &problem{reason: "tmux could not be started: " + err.Error(), hint: "Look with list_sessions before you call again."}
	}
	return string(out), nil
}

// create runs a command that makes something and prints what.
func (c *call) create(ctx context.Context, m *state.Model, look string, of extent, command controlmode.Command) (string, error) {
	bodies, err := c.write(ctx, write{life: m.Server.ID, look: look, extent: of, commands: []controlmode.Command{command}})
	if err != nil {
		return "", err
	}
	return bodies[0], nil
}

func (c *call) sessionStarted(ctx context.Context, s started, a createSessionArgs) (*toolResult, error) {
	waiting, m, pane, n, err := c.settled(ctx, s, a.startArgs, state.Sessions)
	if err != nil {
		return nil, err
	}
	session, ok := m.Session(s.session)
	if !ok {
		return nil, endedSince("session "+s.session.String(), "list_sessions")
	}
	if a.Name != nil {
		n = append(storedAs("name", *a.Name, session.Name), n...)
	}
	v := c.views(m).session(session)
	var o object
	o.open()
	o.string("paneId", s.pane.String())
	o.raw("session", v.json)
	o.string("windowId", s.window.String())
	o.close()
	text := n.over(fmt.Sprintf("%s\npane %s in window %s", v.text, pane.ID, s.window))
	return withState(&toolResult{Text: text, Structured: o.b}, waiting), nil
}

// settled waits until what was started is ready, if that is asked for, and looks
// at it.
func (c *call) settled(ctx context.Context, s started, a startArgs, tables state.Tables) (
	w state.Waiting, m *state.Model, p *state.Pane, n notices, err error,
) {
	if a.WaitReadyMs > 0 {
		limit := c.wait(a.WaitReadyMs)
		w, err = c.table.mirror.WaitReady(ctx, s.pane, limit)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return w, nil, nil, nil, unsureReady(ctx, err)
		}
		n.add(err == nil && w.For != state.WaitsPrompt, "not at a prompt within %d ms; %s", limit.Milliseconds(), waitingText(w))
	}
	if m, err = c.after(ctx, tables|state.Panes|state.Clients, "list_panes"); err != nil {
		return w, nil, nil, nil, err
	}
	p, ok := m.Pane(s.pane)
	if !ok {
		return w, nil, nil, nil, &problem{
			reason: fmt.Sprintf("pane %s was made and has ended before it could be read: its program exited", s.pane),
			hint:   "tmux's options default-command and default-shell say what is started.",
		}
	}
	if a.WaitReadyMs == 0 {
		w = c.waiting(ctx, p)
	}
	if a.StartDirectory != nil {
		why := unusable(s.path)
		n.add(why != "" && p.Path != s.path, "tmux did not use the directory %s (%s); the pane started elsewhere", quote(s.path), why)
	}
	return w, m, p, n, nil
}

func unsureReady(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &problem{
		reason: "tmux has started it; whether it is ready could not be seen: " + err.Error(), hint: "Do not repeat the call; look with list_panes.",
	}
}

// unusable says why a process cannot start in a directory, "" if it can. tmux
// then takes the home directory, and says nothing (spawn.c spawn_pane).
func unusable(path string) string {
	if path == "" {
		return ""
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "it does not exist"
	case err != nil:
		return "it cannot be entered"
	case !st.IsDir():
		return "it is no directory"
	case unix.Access(path, unix.X_OK) != nil:
		return "it may not be entered"
	}
	return ""
}

// paneStarted is the answer of a tool that has started a pane.
func (c *call) paneStarted(ctx context.Context, s started, a startArgs) (*toolResult, error) {
	waiting, m, p, n, err := c.settled(ctx, s, a, 0)
	if err != nil {
		return nil, err
	}
	res := one("pane", c.views(m).pane(p))
	res.Text = n.over(res.Text)
	return withState(res, waiting), nil
}
