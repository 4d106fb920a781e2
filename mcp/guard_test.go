package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// guarded runs a write under guard, as a tool would.
func (r *rig) guarded(ctx context.Context, what guards, write func(*guarded) error) error {
	p := r.table.policyOf(r.caller)
	c := &call{table: r.table, caller: r.caller, policy: p, arrival: p.arrive(r.table.mirror, 0)}
	return c.guard(ctx, what, write)
}

// mark is a write that leaves a trace.
func mark(ctx context.Context) func(*guarded) error {
	return func(g *guarded) error { return g.write(ctx, controlmode.Cmd("set-option", "-ga", "@mark", "x")) }
}

func (r *rig) marks() int { return len(r.tmux("show-options", "-gqv", "@mark")) }

// permits checks whether a write is permitted, that it is done once then and
// never otherwise, and what a refusal says.
func (r *rig) permits(what guards, refusal ...string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := r.marks()
	err := r.guarded(ctx, what, mark(ctx))
	done := r.marks() - before
	if len(refusal) == 0 {
		if err != nil || done != 1 {
			r.Errorf("%+v: done %d times: %v", what, done, err)
		}
		return
	}
	var p *problem
	if !errors.As(err, &p) || done != 0 {
		r.Fatalf("%+v: done %d times: %v, which is no refusal", what, done, err)
	}
	for _, w := range refusal {
		if !strings.Contains(p.Error(), w) {
			r.Errorf("%+v: %q lacks %q", what, p.Error(), w)
		}
	}
}

func TestGuardRefusesInput(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "remain-on-exit", "on")
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	r.permits(inputTo(0, false))

	r.tmux("copy-mode", "-t", "%0")
	r.permits(inputTo(0, false), "pane %0 is in copy-mode", "Somebody may be reading")
	r.permits(inputTo(0, true), "copy-mode")
	r.permits(endOfPane(0, false))
	r.tmux("copy-mode", "-q", "-t", "%0")

	r.tmux("select-pane", "-d", "-t", "%0")
	r.permits(inputTo(0, true), "input to pane %0 is disabled")
	r.tmux("select-pane", "-e", "-t", "%0")
	r.permits(inputTo(0, false))

	r.exits("%1", 3)
	r.permits(inputTo(1, true), "pane %1 is dead: its process has ended with status 3 at 20", "respawn_pane")
	r.permits(endOfPane(1, false))

	err := r.guarded(context.Background(), inputTo(77, false), nil)
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a pane that does not exist: %v", err)
	}
}

// TestM11CallerPane: the caller's own pane is known by ancestry, or by an
// environment that proves right, and takes force; an environment that cannot be
// read refuses everything unless ancestry settles it. (The guards' half; what a
// bridge passes on is tested with the bridge.)
func TestM11CallerPane(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	var pid int
	fmt.Sscan(r.tmux("display-message", "-p", "-t", "%1", "#{pane_pid}"), &pid)
	server := r.tmux("display-message", "-p", "#{pid}")
	inside := Caller{Ancestors: []int{99999999, pid, 1}}
	for _, c := range []struct {
		what    string
		caller  Caller
		force   bool
		refusal string // of input to %1
	}{
		{"nobody", Caller{}, false, ""},
		{"ancestry", inside, false, "pane %1 is your own"},
		{"ancestry, forced", inside, true, ""},
		{"environment", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "%1"}}, false, "pane %1 is your own"},
		{"a stale session is no matter", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",7", TMUXPane: "%1"}}, false, "pane %1 is your own"},
		{"environment, forced", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "%1"}}, true, ""},
		{"another server, commas in its path", Caller{Hello: Hello{TMUX: "/p/a,b/sock,123,7", TMUXPane: "%1"}}, false, ""},
		{"a pane that is gone", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "%17"}}, false, ""},
		{"half of it", Caller{Hello: Hello{TMUXPane: "%1"}}, true, "TMUX_PANE is set and TMUX is not"},
		{"the other half", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0"}}, true, "TMUX is set and TMUX_PANE is not"},
		{"no pane", Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "1"}}, true, "no pane id"},
		{"no TMUX", Caller{Hello: Hello{TMUX: "nonsense", TMUXPane: "%1"}}, true, "not PATH,PID,SESSION"},
		{"unreadable, but ancestry settles it", Caller{Ancestors: inside.Ancestors, Hello: Hello{TMUXPane: "%1"}}, true, ""},
	} {
		r.caller = &c.caller
		t.Log(c.what)
		if c.refusal == "" {
			r.permits(inputTo(1, c.force))
			r.permits(endOfPane(1, c.force))
		} else {
			r.permits(inputTo(1, c.force), c.refusal)
			r.permits(endOfPane(1, c.force), c.refusal)
			r.permits(endOfWindow(0, c.force), c.refusal)
			r.permits(endOfSession(0, c.force), c.refusal)
		}
	}
	r.caller = &inside
	r.permits(inputTo(0, false))
	r.permits(endOfPane(0, false))
}

// TestGuardLeavesAttendedPanesAlone: every pane of a window that a person looks
// at, and of a zoomed one the active pane only; force changes nothing.
func TestGuardLeavesAttendedPanesAlone(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	defer r.attach("main")()
	for _, force := range []bool{false, true} {
		for _, what := range []guards{inputTo(0, force), inputTo(1, force), endOfPane(1, force), endOfWindow(0, force), endOfSession(0, force)} {
			r.permits(what, "is attended: a person is looking at it on client-", "force does not change that")
		}
		r.permits(inputTo(2, force))
		r.permits(endOfWindow(1, force))
	}
	r.tmux("resize-pane", "-Z", "-t", "%0")
	r.permits(inputTo(0, false), "pane %0 is attended")
	r.permits(inputTo(1, false))
}

// TestGuardStartsOver: whoever changes what was checked stops the write; it is
// checked anew, and refused if the change calls for it.
func TestGuardStartsOver(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, c := range []struct {
		change  func(try int)
		looks   int
		refusal string
	}{
		{func(int) {}, 1, ""},
		{func(try int) {
			if try == 1 {
				r.tmux("resize-pane", "-Z", "-t", "%0")
			}
		}, 2, ""},
		{func(int) { r.tmux("resize-pane", "-Z", "-t", "%0") }, maxLooks, "changed during setup"},
		{func(int) { r.tmux("copy-mode", "-t", "%0") }, 1, "copy-mode"},
	} {
		before, looks := r.marks(), 0
		err := r.guarded(ctx, inputTo(0, false), func(g *guarded) error {
			looks++
			c.change(looks)
			return mark(ctx)(g)
		})
		if done := r.marks() - before; looks != c.looks || (err != nil) != (done == 0) || c.refusal == "" != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("after %d looks, done %d times: %v, want %q", looks, done, err, c.refusal)
		}
	}
}

// TestS13Cohort: input for a synchronised pane reaches the others, so that all
// of them are checked; an end does not. (The guards' half.)
func TestS13Cohort(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	r.tmux("set-option", "-w", "-t", "@0", "synchronize-panes", "on")
	r.tmux("set-option", "-p", "-t", "%1", "synchronize-panes", "off")
	reached := func(what guards) (ids []controlmode.PaneID) {
		if err := r.guarded(context.Background(), what, func(g *guarded) error { ids = g.ids(); return nil }); err != nil {
			t.Error(err)
		}
		return ids
	}
	for what, want := range map[*guards][]controlmode.PaneID{
		ptr(inputTo(0, false)): {0, 2}, ptr(inputTo(1, false)): {1}, ptr(endOfPane(0, false)): {0}, ptr(endOfWindow(0, false)): {0, 1, 2},
	} {
		if got := reached(*what); !slices.Equal(got, want) {
			t.Errorf("%+v reaches %v, want %v", what, got, want)
		}
	}
	r.tmux("copy-mode", "-t", "%2")
	r.permits(inputTo(0, false), "pane %2 is in copy-mode", "synchronize-panes sends input for %0 there, too")
	r.permits(inputTo(1, false))
	r.permits(endOfPane(0, false))
}

// restart ends the server and starts another like the first.
func (r *rig) restart() {
	r.Helper()
	old := r.tmux("display-message", "-p", "#{pid}")
	r.tmux("kill-server")
	r.until(func() bool { // a dying server still takes connections
		r.command("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "-n", "w", "cat").Run()
		now, err := r.command("display-message", "-p", "#{pid}").Output()
		return err == nil && strings.TrimSpace(string(now)) != old
	})
}

func ptr[T any](v T) *T { return &v }

// TestM01IdsOfAnotherLife: after a restart of tmux a connection that was told the
// ids of before may not change anything by ids until it has looked again.
func TestM01IdsOfAnotherLife(t *testing.T) {
	r := newRig(t, nil).start()
	r.caller = &Caller{known: new(knownLife)}
	other := &Caller{known: new(knownLife)}
	r.ok("list_panes", nil)
	r.permits(inputTo(0, false))
	r.restart()
	r.permits(inputTo(0, false), "the tmux server was restarted", "List again")
	r.permits(endOfSession(0, true), "restarted")
	r.ok("get_server_info", nil)
	r.permits(inputTo(0, false))
	r.caller = other // was told nothing
	r.permits(inputTo(0, false))
}

// TestTurns: one at a time and in order, all panes of a call or none, and no
// trace afterwards.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q turns
		give, err := q.take(t.Context(), 3, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		free, err := q.take(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := q.take(ctx, 4, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := q.take(t.Context(), 0, 2, 3); !errors.Is(err, errTurn) {
			t.Errorf("busy for ever: %v", err)
		}
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				give, err := q.take(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				give()
			})
			synctest.Wait()
		}
		give()
		give()
		free()
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
		if len(q.panes) != 0 {
			t.Errorf("queues left: %v", q.panes)
		}
	})
}
