package mcp

import (
	"context"
	"errors"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// write is a change of tmux.
type write struct {
	life     state.ServerID // of the model the ids are from; zero if it names none
	commands []controlmode.Command
	look     string // the tool that shows whether it was done
	extent
}

// write changes tmux, once: nothing is ever sent again. It gives the bodies of
// the answers.
func (c *call) write(ctx context.Context, w write) ([]string, error) {
	if w.life != (state.ServerID{}) {
		if err := c.sameServer(w.life); err != nil {
			return nil, err
		}
	}
	if err := c.alone(ctx, w.extent); err != nil {
		return nil, err
	}
	req := controlmode.Request{Commands: w.commands, Fence: true}
	reply, err := c.table.mirror.DoOn(ctx, w.life, req)
	c.wrote = c.wrote || !errors.Is(err, controlmode.ErrNotSent)
	if err != nil {
		return nil, unsure(err, w.look)
	}
	if err := reply.Err(req); err != nil {
		return nil, err
	}
	bodies := make([]string, len(w.commands))
	for i := range bodies {
		bodies[i] = string(reply.Blocks[i].Body)
	}
	return bodies, nil
}

// unsure makes an error of a change that tmux has not answered say what is known
// of it: that nothing was done, or nothing at all.
func unsure(err error, look string) error {
	notSent := errors.Is(err, controlmode.ErrNotSent)
	switch {
	case errors.Is(err, state.ErrNoServer) && notSent, errors.Is(err, state.ErrOtherServer):
		return err // these say it well
	case errors.Is(err, controlmode.ErrNUL):
		return &problem{reason: "tmux cannot take a NUL character", hint: "Leave it out."}
	case errors.Is(err, controlmode.ErrTooLong):
		return &problem{reason: "the text is too long for a tmux command line", hint: "Shorten it."}
	case notSent && errors.Is(err, context.Canceled):
		return err
	case notSent:
		return &problem{
			reason: "tmux could not be told: the daemon is not attached to it. Nothing was changed",
			hint:   "The connection is renewed by itself; call again.",
		}
	}
	return &lostAnswer{cause: err, what: "it was done", where: "with " + look}
}

// after gives the model that shows what the call has changed: of a look at tmux
// that started after the change.
func (c *call) after(ctx context.Context, tables state.Tables, look string) (*state.Model, error) {
	m, err := c.policy.arrive(c.table.mirror, tables).Model(ctx, tables)
	if err != nil && ctx.Err() == nil {
		return nil, &problem{
			reason: "tmux has made the change, and could not be looked at afterwards: " + err.Error(),
			hint:   "Do not repeat the call; look with " + look + ".",
		}
	}
	return m, err
}

// endedSince is the answer where the change was made and its object is not there
// any more.
func endedSince(what, look string) error {
	return &problem{
		reason: "tmux has made the change, and " + what + " has ended since",
		hint:   "Look with " + look + ".",
	}
}

// changedWindow is the answer of a tool that has changed a window.
func (c *call) changedWindow(ctx context.Context, id controlmode.WindowID, note func(*state.Model, *state.Window) notices) (*toolResult, error) {
	m, err := c.after(ctx, state.Windows|state.Sessions, "list_windows")
	if err != nil {
		return nil, err
	}
	w, ok := m.Window(id)
	if !ok {
		return nil, endedSince("window "+id.String(), "list_windows")
	}
	res := one("window", c.views(m).window(w))
	if note != nil {
		res.Text = note(m, w).over(res.Text)
	}
	return res, nil
}

// changedPane is the answer of a tool that has changed a pane.
func (c *call) changedPane(ctx context.Context, id controlmode.PaneID, note func(*state.Pane) notices) (*toolResult, error) {
	m, err := c.after(ctx, state.Panes|state.Clients, "list_panes")
	if err != nil {
		return nil, err
	}
	p, ok := m.Pane(id)
	if !ok {
		return nil, endedSince("pane "+id.String(), "list_panes")
	}
	res := one("pane", c.views(m).pane(p))
	if note != nil {
		res.Text = note(p).over(res.Text)
	}
	return res, nil
}
