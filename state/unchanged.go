package state

import (
	"context"
	"time"

	"tmux-mcpd/controlmode"
)

// numbersChanges tells the releases of tmux in which every command, key and
// notification, and so everything that changes sessions, windows, panes and the
// clients that are attached, is run under an item number of its own: up to 3.7c.
// What does not say which release it is counts as one that does not.
func numbersChanges(version string) bool {
	v, err := controlmode.ParseVersion(version)
	return err == nil && !v.Before && v.Text[0] >= '0' && v.Text[0] <= '9' && !v.AtLeast("3.8")
}

// itemOf is the number under which tmux answered; 0 if it proves nothing.
func itemOf(s Server, answer controlmode.BlockEnd) uint64 {
	if !numbersChanges(s.Version) {
		return 0
	}
	return answer.Guard.Number
}

// unchanged tells whether tmux ran nothing from one item to another but commands
// of ours that change nothing. Panes may have printed meanwhile. false may also
// mean that it cannot be told.
func (m *Mirror) unchanged(life ServerID, from, to uint64) bool {
	return from != 0 && from <= to && m.itemsOf(life).all(from, to)
}

// markCmd is answered with nothing but its item number.
var markCmd = controlmode.Cmd("display-message", "-p", "")

// known is the newest list of places, and the item under which tmux gave it, 0
// for a list that cannot be used again.
type known struct {
	model *Model
	item  uint64
}

// askPlaces asks for the places of all panes, or if nothing can have changed them
// since they were last asked for, only whether that is so: with hundreds of panes
// the list takes tmux milliseconds. The refresher calls it, one call at a time.
func (m *Mirror) askPlaces(ctx context.Context) (*Model, error) {
	k := &m.places
	if k.item != 0 {
		asked := time.Now()
		server, blocks, err := m.query(ctx, controlmode.Request{Commands: []controlmode.Command{markCmd}, Fence: true})
		if err == nil && server.ID == k.model.Server.ID {
			if now := itemOf(server, blocks[0]); m.unchanged(server.ID, k.item, now) {
				mod := *k.model
				mod.Asked, k.item = asked, now
				return &mod, nil
			}
		}
	}
	var item uint64
	mod, err := m.askBy(ctx, Places, func(ctx context.Context, req controlmode.Request) (Server, []controlmode.BlockEnd, error) {
		server, blocks, err := m.query(ctx, req)
		if err == nil {
			item = itemOf(server, blocks[0])
		}
		return server, blocks, err
	})
	if err != nil {
		item = 0
	}
	*k = known{mod, item}
	return mod, err
}
