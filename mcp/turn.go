package mcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// turns is the one queue that each pane has for everything that writes to it:
// whoever holds a pane's turn is the only one of this daemon that types into it,
// pastes, or ends it. Any goroutine may use it.
type turns struct {
	mu    sync.Mutex
	panes map[controlmode.PaneID]*turn
}

// turn is the queue of one pane. Waiting senders of a channel are served in the
// order they came (runtime chan.go), so nobody starves.
type turn struct {
	held  chan struct{} // capacity 1
	users int           // holding or waiting, guarded by turns.mu
}

// turnLimit is how long a call waits for its turn.
const turnLimit = 20 * time.Second

// errTurn: others held the pane for too long.
var errTurn = errors.New("other calls are writing to it")

// take waits for the turn of every pane, at most turnLimit, and returns the
// function that gives them back, which may be called more than once. Panes are
// taken in the order of their ids, so that two calls cannot block each other; a
// caller must not hold a turn already. It returns errTurn or the context's end.
func (q *turns) take(ctx context.Context, panes ...controlmode.PaneID) (give func(), err error) {
	panes = slices.Compact(slices.Sorted(slices.Values(panes)))
	var held []controlmode.PaneID
	give = sync.OnceFunc(func() {
		for _, id := range held {
			<-q.of(id, 0).held
			q.of(id, -1)
		}
	})
	var limit <-chan time.Time
	for _, id := range panes {
		t := q.of(id, +1)
		select {
		case t.held <- struct{}{}:
			held = append(held, id)
			continue
		default:
		}
		if limit == nil {
			timer := time.NewTimer(turnLimit)
			defer timer.Stop()
			limit = timer.C
		}
		select {
		case t.held <- struct{}{}:
			held = append(held, id)
		case <-limit:
			err = errTurn
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			q.of(id, -1)
			give()
			return nil, err
		}
	}
	return give, nil
}

// of finds a pane's queue and changes the number of its users; the last one
// takes the queue away.
func (q *turns) of(id controlmode.PaneID, change int) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.panes[id]
	if t == nil {
		if q.panes == nil {
			q.panes = map[controlmode.PaneID]*turn{}
		}
		t = &turn{held: make(chan struct{}, 1)}
		q.panes[id] = t
	}
	if t.users += change; t.users == 0 {
		delete(q.panes, id)
	}
	return t
}
