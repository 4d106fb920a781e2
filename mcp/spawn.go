package mcp

import (
	"context"
	"errors"
	"fmt"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

type createWindowArgs struct {
	sessionArgs
	Name *string `arg:"name"`
	startArgs
}

func createWindow(ctx context.Context, c *call, a createWindowArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Sessions)
	if err != nil {
		return nil, err
	}
	session, err := c.session(ctx, m, a.sessionArgs)
	if err == nil {
		err = fitsLine(a.Name, a.StartDirectory)
	}
	if err == nil {
		err = c.mayMakeWindow(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	words := []string{"-d", "-P", "-F", startedFormat, "-t", session.ID.String() + ":"}
	words = append(words, optionWords("-n", a.Name)...)
	words = append(words, optionWords("-c", a.StartDirectory)...)
	body, err := c.create(ctx, m, "list_windows", extent{fills: []controlmode.SessionID{session.ID}}, controlmode.Cmd("new-window", words...))
	if err != nil {
		return nil, err
	}
	s, err := readStarted(body)
	if err != nil {
		return nil, err
	}
	waiting, m, p, n, err := c.settled(ctx, s, a.startArgs, state.Windows|state.Sessions)
	if err != nil {
		return nil, err
	}
	w, ok := m.Window(s.window)
	if !ok {
		return nil, endedSince("window "+s.window.String(), "list_windows")
	}
	if a.Name != nil {
		n = append(storedAs("name", *a.Name, w.Name), n...)
	}
	v := c.views(m).window(w)
	var o object
	o.open()
	o.string("paneId", p.ID.String())
	o.raw("window", v.json)
	o.close()
	res := &toolResult{Text: n.over(v.text + "\npane " + p.ID.String()), Structured: o.b}
	return withState(res, waiting), nil
}

type splitArgs struct {
	paneArgs
	Direction *string `arg:"direction"`
	startArgs
}

func splitWindow(ctx context.Context, c *call, a splitArgs) (*toolResult, error) {
	m, p, err := c.pane(ctx, a.PaneID)
	if err == nil {
		err = fitsLine(a.StartDirectory)
	}
	if err != nil {
		return nil, err
	}
	where := []string{"-v"}
	if a.Direction != nil {
		where = map[string][]string{"above": {"-v", "-b"}, "below": {"-v"}, "left": {"-h", "-b"}, "right": {"-h"}}[*a.Direction]
	}
	words := append(where[:len(where):len(where)], "-d", "-P", "-F", startedFormat, "-t", p.ID.String())
	if p.Zoomed {
		words = append(words, "-Z") // stays zoomed
	}
	dir := a.StartDirectory
	if dir == nil && p.Path != "" {
		// A format would be that of the active pane of the session (spawn.c).
		dir = &p.Path
	}
	body, err := c.create(ctx, m, "list_panes", extent{windows: []controlmode.WindowID{p.Window}}, controlmode.Cmd("split-window", append(words, optionWords("-c", dir)...)...))
	if err != nil {
		return nil, err
	}
	s, err := readStarted(body)
	if err != nil {
		return nil, err
	}
	return c.paneStarted(ctx, s, a.startArgs)
}

// program names what runs in a pane.
func (c *call) program(ctx context.Context, id controlmode.PaneID) string {
	m, err := c.arrival.Pane(ctx, id)
	if err == nil {
		if p, ok := m.Pane(id); ok {
			return quote(p.Command)
		}
	}
	return "something"
}

type respawnArgs struct {
	paneArgs
	KillFirst bool `arg:"killFirst"`
	Force     bool `arg:"force"`
	startArgs
}

func respawnPane(ctx context.Context, c *call, a respawnArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err == nil {
		err = fitsLine(a.StartDirectory)
	}
	if err != nil {
		return nil, err
	}
	words := append([]string{"-t", id.String()}, optionWords("-c", a.StartDirectory)...)
	if a.KillFirst {
		words = append(words, "-k")
	}
	err = c.guard(ctx, endOfPane(id, a.Force), func(g *guarded) error {
		if p := g.panes[0]; !p.Dead && !a.KillFirst {
			return &problem{
				reason: fmt.Sprintf("pane %s is still active: %s runs in it", id, c.program(ctx, id)),
				hint:   "Set killFirst to true to end it first.",
			}
		}
		return c.table.mirror.Respawn(ctx, id, func() error { return g.write(ctx, controlmode.Cmd("respawn-pane", words...)) })
	})
	if errors.Is(err, state.ErrUnknown) {
		err = unsure(err, "get_pane_info")
	}
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	s := started{pane: id}
	if a.StartDirectory != nil {
		if bodies, err := c.ask(ctx, controlmode.Cmd("display-message", "-p", "-t", id.String(), startedFormat)); err == nil {
			s, _ = readStarted(bodies[0])
			s.pane = id
		}
	}
	return c.paneStarted(ctx, s, a.startArgs)
}
