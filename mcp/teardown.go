package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The tools that delete. Panes that a person looks at are never ended, the
// caller's own only with force, and of several panes all or none.
func teardownTools() []*tool {
	deletes := func(name, title, doc, answer, pattern string, params []param, effects ...string) tool {
		return tool{
			name: name, title: title, toolset: teardown, doc: doc, params: params,
			output: output(map[string]schema{answer: patternOut(pattern)}),
			reach:  reachNone, effects: append(effects, effectDelete), classes: []string{classMetadata},
		}
	}
	return []*tool{
		define(deletes("clear_pane_scrollback", "Clear a pane's history",
			"Deletes the history of a pane; its screen stays.", "cleared", panePattern,
			[]param{paneParam(true)}), clearScrollback),
		define(deletes("kill_pane", "End a pane",
			"Ends a pane and what runs in it; with its last pane a window ends.", "killed", panePattern,
			[]param{paneParam(true), ownPaneParam()}, effectObserve), killPane),
		define(deletes("kill_window", "End a window",
			"Ends a window and all its panes, in every session that it is in. If one of them may not be ended, none is.",
			"killed", windowPattern, []param{windowParam("windowId", true), ownPaneParam()}, effectObserve), killWindow),
		define(deletes("kill_session", "End a session",
			"Ends a session, and its windows but those that are in another session too. If one pane inside may not be ended, "+
				"nothing is.",
			"killed", sessionPattern, append(sessionParams(true, "Session id such as $1, or an exact name."), ownPaneParam()),
			effectObserve), killSession),
	}
}

// ownPaneParam allows the caller's own pane; the Java and Go ports call it
// confirm_self.
func ownPaneParam() param {
	return withNames(param{
		name: "force", kind: kindBoolean,
		doc: "Also end the pane that you run in yourself. It does not permit panes that a person is looking at.",
	}, "confirmSelf")
}

func clearScrollback(ctx context.Context, c *call, a paneArgs) (*toolResult, error) {
	p, err := c.writePane(ctx, a.PaneID, func(p *state.Pane) []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("clear-history", "-t", p.ID.String())}
	})
	if err != nil {
		return nil, err
	}
	return deleted("cleared", p.ID.String(), fmt.Sprintf("history of pane %s is cleared", p.ID)), nil
}

// deleted is the answer of a tool that deletes.
func deleted(name, id, text string) *toolResult {
	var o object
	o.open()
	o.string(name, id)
	o.close()
	return &toolResult{Text: text, Structured: o.b}
}

// end ends everything of a scope, if it may be ended.
func (c *call) end(ctx context.Context, what guards, look string, command ...string) error {
	err := c.guard(ctx, what, func(g *guarded) error {
		return g.write(ctx, controlmode.Cmd(command[0], command[1:]...))
	})
	if errors.Is(err, state.ErrUnknown) {
		return unsure(err, look)
	}
	return err
}

// ended is the answer after something was ended: what is said to be gone is.
func (c *call) ended(ctx context.Context, before *state.Model, what, id, look string, gone func(*state.Model) bool) (*toolResult, error) {
	m, err := c.after(ctx, state.Sessions|state.Windows, look)
	if err != nil {
		return nil, err
	}
	if m.Server.ID == before.Server.ID && !gone(m) {
		return nil, &problem{
			reason: fmt.Sprintf("tmux took the command to end %s %s, and still shows it", what, id),
			hint:   "Look with " + look + ".",
		}
	}
	text := fmt.Sprintf("ended %s %s", what, id)
	if m.Server.ID != before.Server.ID {
		return deleted("killed", id, text+"; it was the last one, and tmux has ended"), nil
	}
	if others := lost(before, m, id); others != "" {
		text += "; with it ended " + others
	}
	return deleted("killed", id, text), nil
}

// lost names the sessions and windows that ended, too.
func lost(before, m *state.Model, id string) string {
	var all []string
	for _, s := range before.Sessions {
		if _, ok := m.Session(s.ID); !ok && s.ID.String() != id {
			all = append(all, fmt.Sprintf("session %s (%s)", s.ID, shortName(s.Name)))
		}
	}
	for _, w := range before.Windows {
		if _, ok := m.Window(w.ID); !ok && w.ID.String() != id {
			all = append(all, fmt.Sprintf("window %s (%s)", w.ID, shortName(w.Name)))
		}
	}
	if more := len(all) - maxAlternatives; more > 0 {
		all = append(all[:maxAlternatives], fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

type killPaneArgs struct {
	paneArgs
	Force bool `arg:"force"`
}

func killPane(ctx context.Context, c *call, a killPaneArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	before, err := c.model(ctx, state.Sessions|state.Windows)
	if err != nil {
		return nil, err
	}
	if err := c.end(ctx, endOfPane(id, a.Force), "list_panes", "kill-pane", "-t", id.String()); err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	// Whether the pane is gone only a look at panes tells.
	all, err := c.after(ctx, state.Panes, "list_panes")
	if err != nil {
		return nil, err
	}
	return c.ended(ctx, before, "pane", id.String(), "list_panes", func(*state.Model) bool { _, ok := all.Pane(id); return !ok })
}

type killWindowArgs struct {
	windowArgs
	Force bool `arg:"force"`
}

func killWindow(ctx context.Context, c *call, a killWindowArgs) (*toolResult, error) {
	before, err := c.model(ctx, state.Sessions|state.Windows)
	if err != nil {
		return nil, err
	}
	w, err := c.window(ctx, before, a.WindowID)
	if err != nil {
		return nil, err
	}
	if err := c.end(ctx, endOfWindow(w.ID, a.Force), "list_windows", "kill-window", "-t", w.ID.String()); err != nil {
		if errors.Is(err, state.ErrNotFound) {
			err = c.noWindow(ctx, a.WindowID)
		}
		return nil, err
	}
	return c.ended(ctx, before, "window", w.ID.String(), "list_windows", func(m *state.Model) bool { _, ok := m.Window(w.ID); return !ok })
}

type killSessionArgs struct {
	sessionArgs
	Force bool `arg:"force"`
}

func killSession(ctx context.Context, c *call, a killSessionArgs) (*toolResult, error) {
	before, err := c.model(ctx, state.Sessions|state.Windows)
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, before, a.sessionArgs)
	if err != nil {
		return nil, err
	}
	if err := c.end(ctx, endOfSession(s.ID, a.Force), "list_sessions", "kill-session", "-t", s.ID.String()); err != nil {
		if errors.Is(err, state.ErrNotFound) {
			err = c.noSession(ctx, s.ID.String())
		}
		return nil, err
	}
	return c.ended(ctx, before, "session", s.ID.String(), "list_sessions", func(m *state.Model) bool { _, ok := m.Session(s.ID); return !ok })
}
