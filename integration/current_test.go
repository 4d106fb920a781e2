package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// TestP1ReadsAreCurrent: what a change that has returned did to tmux, the next
// read shows, however many others change and read at the same time.
//
// TMUX_MCPD_P1_ROUNDS is how many changes (200).
func TestP1ReadsAreCurrent(t *testing.T) {
	const writers = 4
	rounds := int(number(t, "TMUX_MCPD_P1_ROUNDS", 200))
	seed := number(t, "TMUX_MCPD_ORACLE_SEED", rand.Uint64())
	t.Logf("TMUX_MCPD_ORACLE_SEED=%d", seed)
	x := startTmux(t)
	m := x.mirror()
	// All are there before one begins: below 3.7 a session's new name can crash a
	// tmux that another control client is just attaching to.
	all := make([]*writer, writers)
	for i := range all {
		all[i] = newWriter(x, m, i, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() {
			for n := range rounds / writers {
				if err := w.round(n); err != nil {
					t.Errorf("writer %d, round %d: %v", i, n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// writer changes a session of its own and reads what became of it.
type writer struct {
	*rand.Rand
	x       *tmux
	m       *state.Mirror
	control *control // nil for one that runs the tmux binary
	session controlmode.SessionID
	window  controlmode.WindowID
	pane    controlmode.PaneID
}

func newWriter(x *tmux, m *state.Mirror, i int, rnd *rand.Rand) *writer {
	w := &writer{Rand: rnd, x: x, m: m}
	var s, win, p uint32
	out := x.run("new-session", "-d", "-P", "-F", "#{session_id} #{window_id} #{pane_id}", "-x", "80", "-y", "40", "exec cat")
	if _, err := fmt.Sscanf(out, "$%d @%d %%%d", &s, &win, &p); err != nil {
		x.t.Fatalf("new-session printed %q", out)
	}
	w.session, w.window, w.pane = controlmode.SessionID(s), controlmode.WindowID(win), controlmode.PaneID(p)
	// A second window, to select between, and a second pane.
	x.run("new-window", "-d", "-t", w.session.String()+":9", "exec cat")
	x.run("split-window", "-d", "-t", w.pane.String(), "exec cat")
	if i%2 == 1 {
		w.control = x.control(w.session.String())
	}
	return w
}

// tmux changes something and returns what tmux printed.
func (w *writer) tmux(words ...string) (string, error) {
	if w.control == nil {
		return w.x.try(words...)
	}
	line := controlmode.Cmd(words[0], words[1:]...).AppendLine(nil)
	out, err := w.control.try(string(line))
	if err != nil || len(out) == 0 {
		return "", err
	}
	return out[0], nil
}

// round makes one change and reads it.
func (w *writer) round(n int) error {
	c := changes[w.IntN(len(changes))]
	want, err := c.change(w, n)
	if err != nil {
		return err
	}
	model, road, err := w.read(c.tables)
	if err != nil {
		return fmt.Errorf("%s, read by %s: %w", c.name, road, err)
	}
	if got := c.got(w, model); got != want {
		return fmt.Errorf("%s, read by %s: got %s, want %s", c.name, road, got, want)
	}
	return nil
}

// read takes one of the roads that lead to the tables.
func (w *writer) read(need state.Tables) (*state.Model, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch n := w.IntN(4); {
	case n == 0 && need == state.Panes:
		model, err := w.m.Arrive(0).Pane(ctx, w.pane)
		return model, "one pane", err
	case n == 1:
		model, err := w.m.Arrive(need).Model(ctx, need)
		return model, "its table", err
	case n == 2: // a batch that had not said what it would ask for
		a := w.m.Arrive(state.Clients)
		if _, err := a.Model(ctx, state.Clients); err != nil {
			return nil, "batch", err
		}
		model, err := a.Model(ctx, need)
		return model, "batch", err
	default:
		model, err := w.m.Arrive(state.Full).Model(ctx, state.Full)
		return model, "all tables", err
	}
}

// changes are things done to tmux, and how a model shows that they were done.
var changes = []struct {
	name   string
	tables state.Tables
	change func(w *writer, n int) (want string, err error)
	got    func(w *writer, m *state.Model) string
}{
	{
		"rename-session", state.Sessions,
		func(w *writer, n int) (string, error) {
			name := fmt.Sprintf("s%v-%d", w.session, n)
			_, err := w.tmux("rename-session", "-t", w.session.String(), name)
			return name, err
		},
		func(w *writer, m *state.Model) string { s, _ := m.Session(w.session); return s.Name },
	},
	{
		"rename-window", state.Windows,
		func(w *writer, n int) (string, error) {
			name := fmt.Sprintf("w%d", n)
			_, err := w.tmux("rename-window", "-t", w.window.String(), name)
			return name, err
		},
		func(w *writer, m *state.Model) string { v, _ := m.Window(w.window); return v.Name },
	},
	{
		"title", state.Panes,
		func(w *writer, n int) (string, error) {
			title := fmt.Sprintf("t%d", n)
			_, err := w.tmux("select-pane", "-t", w.pane.String(), "-T", title)
			return title, err
		},
		func(w *writer, m *state.Model) string { p, _ := m.Pane(w.pane); return p.Title },
	},
	{
		"split-window and kill-pane", state.Panes | state.Windows,
		func(w *writer, n int) (string, error) {
			born, err := w.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", w.pane.String(), "exec cat")
			if err != nil {
				return "", err
			}
			model, road, err := w.read(state.Panes)
			if err != nil {
				return "", err
			}
			id, err := controlmode.ParsePaneID(born)
			if err != nil {
				return "", err
			}
			if _, ok := model.Pane(id); !ok && road != "one pane" {
				return "", fmt.Errorf("new pane %v is not in the model", id)
			}
			if _, err = w.tmux("kill-pane", "-t", born); err != nil {
				return "", err
			}
			// Its rows went to the other pane: this one must not shrink away.
			_, err = w.tmux("select-layout", "-t", w.window.String(), "even-vertical")
			return "2 panes", err
		},
		func(w *writer, m *state.Model) string {
			v, _ := m.Window(w.window)
			return fmt.Sprintf("%d panes", v.PaneCount)
		},
	},
	{
		"resize-window", state.Windows,
		func(w *writer, n int) (string, error) {
			width := strconv.Itoa(60 + n%40)
			_, err := w.tmux("resize-window", "-t", w.window.String(), "-x", width, "-y", "40")
			return width, err
		},
		func(w *writer, m *state.Model) string { v, _ := m.Window(w.window); return strconv.Itoa(v.Width) },
	},
	{
		"zoom", state.Panes,
		func(w *writer, n int) (string, error) {
			before, err := w.tmux("display-message", "-p", "-t", w.pane.String(), "#{?window_zoomed_flag,false,true}")
			if err != nil {
				return "", err
			}
			_, err = w.tmux("resize-pane", "-Z", "-t", w.pane.String())
			return before, err
		},
		func(w *writer, m *state.Model) string { p, _ := m.Pane(w.pane); return strconv.FormatBool(p.Zoomed) },
	},
	{
		"respawn-pane", state.Panes,
		func(w *writer, n int) (string, error) {
			if _, err := w.tmux("respawn-pane", "-k", "-t", w.pane.String(), "exec cat"); err != nil {
				return "", err
			}
			return w.tmux("display-message", "-p", "-t", w.pane.String(), "#{pane_pid}")
		},
		func(w *writer, m *state.Model) string { p, _ := m.Pane(w.pane); return strconv.Itoa(p.PID) },
	},
	{
		"select-window", state.Windows,
		func(w *writer, n int) (string, error) {
			index := []string{"9", "0"}[n%2]
			_, err := w.tmux("select-window", "-t", w.session.String()+":"+index)
			return strconv.FormatBool(index == "0"), err
		},
		func(w *writer, m *state.Model) string {
			v, _ := m.Window(w.window)
			for _, l := range v.Links {
				if l.Session == w.session && l.Index == 0 {
					return strconv.FormatBool(l.Active)
				}
			}
			return "no link"
		},
	},
	{
		"copy-mode", state.Panes,
		func(w *writer, n int) (string, error) {
			if n%2 == 0 {
				_, err := w.tmux("copy-mode", "-q", "-t", w.pane.String())
				return "", err
			}
			_, err := w.tmux("copy-mode", "-t", w.pane.String())
			return "copy-mode", err
		},
		func(w *writer, m *state.Model) string { p, _ := m.Pane(w.pane); return p.Mode },
	},
}
