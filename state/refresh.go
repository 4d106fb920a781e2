package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// refresher answers reads by group commit: at most one refresh is under way,
// and every read that arrives meanwhile is answered by the one after it, which
// they share. So each read sees tmux as it was after the read arrived (P1), and
// tmux never works on two listings of ours at once.
type refresher struct {
	ask     func(context.Context, Tables) (*Model, error)
	publish func(*Model)
	count   atomic.Uint64

	started chan struct{}

	mu        sync.Mutex // guards the fields that follow
	ctx       context.Context
	wg        *sync.WaitGroup
	running   bool
	next      *refresh
	notBefore time.Time
}

// refresh is one round of questions, shared by the reads that wait for done.
type refresh struct {
	tables  Tables
	readers int
	done    chan struct{}
	model   *Model
	err     error
}

// After a refresh that took T the next starts no earlier than T later, so that
// tmux has half of its time for others however many clients poll (P9). One
// reader alone cannot press so hard: its next read comes only after it has had
// the answer, so for it only long refreshes count.
const (
	longShared = 500 * time.Microsecond
	longAlone  = 8 * time.Millisecond
	// longestRest is enough: a refresh that takes longer has waited for a tmux
	// that was stopped or had other things to do.
	longestRest = time.Second
)

func (f *refresh) long(took time.Duration) bool {
	return took > longAlone || f.readers > 1 && took > longShared
}

func (r *refresher) start(ctx context.Context, wg *sync.WaitGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.wg = ctx, wg
	close(r.started)
}

// read waits for the tables t of a refresh that starts after the call.
func (r *refresher) read(ctx context.Context, t Tables) (*Model, error) {
	select {
	case <-r.started: // calls that come early wait
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return nil, ErrDetached
	}
	f := r.next
	if f == nil {
		f = &refresh{done: make(chan struct{})}
		r.next = f
	}
	f.tables |= t
	f.readers++
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
	r.mu.Unlock()
	select {
	case <-f.done:
		return f.model, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run performs refreshes until no read waits for one. While it runs it alone
// publishes models.
func (r *refresher) run() {
	for {
		r.mu.Lock()
		wait := time.Until(r.notBefore)
		r.mu.Unlock()
		if wait > 0 {
			pause(r.ctx, wait)
		}
		r.mu.Lock()
		f := r.next
		r.next = nil
		r.running = f != nil
		r.mu.Unlock()
		if f == nil {
			return
		}
		begin := time.Now()
		f.model, f.err = r.ask(r.ctx, f.tables)
		took := time.Since(begin)
		r.count.Add(1)
		if f.err == nil && f.model.Have == Full {
			r.publish(f.model)
		}
		// A tmux that did not answer was not kept busy: what waits now must not
		// wait for as long again.
		if f.err == nil && f.long(took) {
			r.mu.Lock()
			r.notBefore = begin.Add(took + min(took, longestRest))
			r.mu.Unlock()
		}
		close(f.done)
	}
}

// ask asks tmux for tables in one line, so that they are of one instant. No
// server is an answer: an empty model.
func (m *Mirror) ask(ctx context.Context, t Tables) (*Model, error) {
	if t == Places {
		return m.askPlaces(ctx)
	}
	return m.askBy(ctx, t, m.query)
}

// query is a way to run a request that only reads.
type query func(context.Context, controlmode.Request) (Server, []controlmode.BlockEnd, error)

func (m *Mirror) askBy(ctx context.Context, t Tables, query query) (*Model, error) {
	if t&Panes != 0 {
		t &^= Places
	}
	var cmds []controlmode.Command
	if t&Sessions != 0 {
		cmds = append(cmds, controlmode.Cmd("list-sessions", "-F", sessionListing.format))
	}
	if t&Windows != 0 {
		cmds = append(cmds, controlmode.Cmd("list-windows", "-a", "-F", windowListing.format))
	}
	if t&Panes != 0 {
		cmds = append(cmds, controlmode.Cmd("list-panes", "-a", "-F", paneListing.format))
	} else if t&Places != 0 {
		cmds = append(cmds, controlmode.Cmd("list-windows", "-a", "-F", windowPlaceListing.format),
			controlmode.Cmd("list-panes", "-a", "-F", placeListing.format))
	}
	if t&Clients != 0 {
		cmds = append(cmds, controlmode.Cmd("list-clients", "-F", clientListing.format))
	}
	asked := time.Now()
	server, blocks, err := query(ctx, controlmode.Request{Commands: cmds, Fence: true})
	if errors.Is(err, ErrNoServer) {
		return &Model{Asked: asked, Have: t}, nil
	}
	if err != nil {
		return nil, err
	}
	model := &Model{Asked: asked, Have: t, Server: server}
	if err := model.fill(blocks, m.isOwn); err != nil {
		m.log.Error("listing", zap.Error(err))
		return nil, err
	}
	return model, nil
}

// fill reads the answers of ask.
func (mod *Model) fill(blocks []controlmode.BlockEnd, own func(int) bool) (err error) {
	next := func() []byte {
		b := blocks[0].Body
		blocks = blocks[1:]
		return b
	}
	if mod.Have&Sessions != 0 {
		if mod.Sessions, err = readSessions(next()); err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
	}
	if mod.Have&Windows != 0 {
		if mod.Windows, err = readWindows(next()); err != nil {
			return fmt.Errorf("windows: %w", err)
		}
	}
	if mod.Have&Panes != 0 {
		if mod.Panes, _, err = readPanes(next(), false); err != nil {
			return fmt.Errorf("panes: %w", err)
		}
	} else if mod.Have&Places != 0 {
		if mod.Panes, err = readPlaces(next(), next()); err != nil {
			return fmt.Errorf("places: %w", err)
		}
	}
	if mod.Have&Clients != 0 {
		if mod.Clients, err = readClients(next(), own); err != nil {
			return fmt.Errorf("clients: %w", err)
		}
	}
	return nil
}
