package state

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// Arrival is one call's look at tmux. Its methods may be called by several
// goroutines, so that the operations of a batch share one refresh.
type Arrival struct {
	m        *Mirror
	declared Tables
	screens  screens

	once  sync.Once
	done  chan struct{} // closed when model and err are set
	model *Model
	err   error
}

// Arrive marks the moment a call arrived (promise P1) and the tables it will
// ask for. It starts nothing. All reads of one batch share one Arrival.
func (m *Mirror) Arrive(t Tables) *Arrival {
	return &Arrival{m: m, declared: t, done: make(chan struct{})}
}

// Model answers the tables t of a refresh that started after the Arrival was
// made. Tables declared in Arrive come with one shared refresh; others cost
// their own. Without a tmux server the model is empty (Server.ID zero).
func (a *Arrival) Model(ctx context.Context, t Tables) (*Model, error) {
	if t&^a.declared != 0 {
		return a.m.reads.read(ctx, t)
	}
	first := false
	a.once.Do(func() { first = true })
	if first {
		a.model, a.err = a.m.reads.read(ctx, a.declared)
		close(a.done)
	}
	select {
	case <-a.done:
		return a.model, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Pane answers a model with that one pane, its Links, and all clients: one round
// trip whatever the number of panes, unless the pane's window has several
// placements. If Panes and Clients were declared it is the shared model.
// ErrNotFound or ErrNoServer otherwise.
func (a *Arrival) Pane(ctx context.Context, id controlmode.PaneID) (*Model, error) {
	if a.declared&(Panes|Clients) != Panes|Clients {
		return a.m.onePane(ctx, id)
	}
	mod, err := a.Model(ctx, a.declared)
	if err != nil {
		return nil, err
	}
	if mod.Server.ID == (ServerID{}) {
		return nil, ErrNoServer
	}
	if _, ok := mod.Pane(id); !ok {
		return nil, fmt.Errorf("pane %s: %w", id, ErrNotFound)
	}
	return mod, nil
}

func (m *Mirror) onePane(ctx context.Context, id controlmode.PaneID) (*Model, error) {
	for _, all := range []bool{false, true} {
		asked := time.Now()
		server, blocks, err := m.query(ctx, controlmode.Request{
			Commands: []controlmode.Command{paneCmd(id, all), clientsCmd}, Fence: true,
		})
		if err != nil {
			return nil, err
		}
		mod := &Model{Asked: asked, Have: Panes | Clients, Server: server}
		elsewhere, err := mod.onePane(id, blocks[0].Body, blocks[1].Body, !all, m.isOwn)
		if err != nil {
			return nil, err
		}
		if !elsewhere || all {
			return mod, nil
		}
	}
	panic("unreachable")
}

var clientsCmd = controlmode.Cmd("list-clients", "-F", clientListing.format)

// paneCmd asks for one pane: through one placement of its window, or all. The
// filter costs tmux a look at every pane.
func paneCmd(id controlmode.PaneID, all bool) controlmode.Command {
	if all {
		return controlmode.Cmd("list-panes", "-a", "-f", "#{==:#{pane_id},"+id.String()+"}", "-F", paneListing.format)
	}
	return controlmode.Cmd("display-message", "-p", "-t", id.String(), onePaneListing.format)
}

// onePane fills the model with one pane and the clients.
func (mod *Model) onePane(id controlmode.PaneID, pane, clients []byte, single bool, own func(int) bool) (elsewhere bool, err error) {
	if len(pane) == 0 || bytes.HasPrefix(pane, []byte(",")) {
		return false, fmt.Errorf("pane %s: %w", id, ErrNotFound)
	}
	if mod.Panes, elsewhere, err = readPanes(pane, single); err != nil {
		return false, fmt.Errorf("pane %s: %w", id, err)
	}
	if len(mod.Panes) != 1 || mod.Panes[0].ID != id {
		return false, fmt.Errorf("pane %s: %w", id, ErrNotFound)
	}
	if mod.Clients, err = readClients(clients, own); err != nil {
		return false, fmt.Errorf("clients: %w", err)
	}
	return elsewhere, nil
}
