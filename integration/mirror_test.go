package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// mirror runs a Mirror on the private socket until the test ends.
func (x *tmux) mirror(change ...func(*state.Config)) *state.Mirror {
	x.t.Helper()
	m, _ := x.mirrorUntil(change...)
	return m
}

// mirrorUntil runs a Mirror until stop is called, which waits until it has
// ended, or until the test ends.
func (x *tmux) mirrorUntil(change ...func(*state.Config)) (m *state.Mirror, stop func()) {
	x.t.Helper()
	cfg := state.Config{Bin: x.bin, Socket: controlmode.Socket{Path: x.sock}}
	for _, f := range change {
		f(&cfg)
	}
	m = state.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			x.t.Errorf("mirror: %v", err)
		}
	})
	x.t.Cleanup(stop)
	return m, stop
}

// within bounds what must not take long.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// read is one full read, and sound.
func read(t testing.TB, m *state.Mirror) *state.Model {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	model, err := m.Arrive(state.Full).Model(ctx, state.Full)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.Check(model); err != nil {
		t.Fatal(err)
	}
	return model
}

// agree demands that the mirror's model equals the oracle's listing, and returns
// what they agree on. tmux may be at work yet (a process starts, a name follows
// it, a client leaves), so a difference counts only if a second listing, made
// after the model was read, equals the first. The command of a pane must be
// equal in the end only: of a process that starts, tmux 3.8 tells cat, sh and cat
// again (first the words it is to run, then the names the kernel has for it).
func (x *tmux) agree(m *state.Mirror, foreign func(pid int) bool) (agreed *state.Model) {
	x.t.Helper()
	until(x.t, "the model and tmux agree", func() bool {
		before, err := x.listing(foreign)
		if err != nil {
			x.t.Fatal(err)
		}
		model := read(x.t, m)
		if state.Diff(before, model, unlike(before)...) == "" {
			agreed = before
			return true
		}
		after, err := x.listing(foreign)
		if err != nil {
			x.t.Fatal(err)
		}
		diff := state.Diff(before, model, append(unlike(before), "Pane.Command")...)
		if diff != "" && state.Diff(before, after) == "" {
			x.t.Fatalf("the model differs from tmux:\n%s", diff)
		}
		return false
	})
	return agreed
}

// unlike names the fields that tmux may tell differently in two listings. From
// 3.8 on, layouts are JSON for plain clients. And tmux can keep the cell of a
// pane that has gone (3.5a, a random run with zooming and killing): it then reads
// the pane's number from freed memory.
func unlike(listing *state.Model) []string {
	for _, w := range listing.Windows {
		if strings.HasPrefix(w.Layout, "{") {
			return []string{"Window.Layout"}
		}
		l, err := controlmode.ParseLayout(w.Layout)
		if err != nil {
			continue // the comparison stands
		}
		for _, id := range l.Panes() {
			if p, ok := listing.Pane(id); !ok || p.Window != w.ID {
				return []string{"Window.Layout"}
			}
		}
	}
	return nil
}

// number reads a number from the environment: how long or from which seed a
// random test runs.
func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 0, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// readers read all the time, each another part, and demand sound answers.
type readers struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	reads  atomic.Int64
}

// read3 starts three readers.
func read3(t testing.TB, m *state.Mirror, seed uint64) *readers {
	ctx, cancel := context.WithCancel(context.Background())
	r := &readers{cancel: cancel}
	for i := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1+i))
		r.wg.Go(func() {
			for ctx.Err() == nil {
				if err := readOnce(ctx, m, rnd); err != nil && ctx.Err() == nil {
					t.Errorf("reader: %v", err)
					return
				}
				r.reads.Add(1)
			}
		})
	}
	return r
}

func readOnce(ctx context.Context, m *state.Mirror, rnd *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tables := 1 + state.Tables(rnd.IntN(int(state.Full)))
	model, err := m.Arrive(tables).Model(ctx, tables)
	if err != nil {
		return fmt.Errorf("read %b: %w", tables, err)
	}
	if model.Have&tables != tables {
		return fmt.Errorf("asked for %b, got %b", tables, model.Have)
	}
	if err := state.Check(model); err != nil {
		return err
	}
	if len(model.Panes) == 0 {
		return nil
	}
	id := model.Panes[rnd.IntN(len(model.Panes))].ID
	one, err := m.Arrive(0).Pane(ctx, id)
	switch {
	case errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrNoServer):
		return nil // it has ended meanwhile
	case err != nil:
		return fmt.Errorf("pane %v: %w", id, err)
	case len(one.Panes) != 1 || one.Panes[0].ID != id:
		return fmt.Errorf("pane %v: got %+v", id, one.Panes)
	}
	return nil
}

func (r *readers) stop() {
	r.cancel()
	r.wg.Wait()
}
