package integration

import (
	"slices"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// C16, P6: attaching, every kind of read, and detaching leave the sizes of
// windows, the environment of sessions, focus, zoom and modes as they were, with
// a person attached and without.
func TestP6NothingIsChanged(t *testing.T) {
	for _, transport := range []controlmode.Transport{controlmode.PTY, controlmode.Pipe} {
		for _, attended := range []bool{true, false} {
			name := string(transport) + map[bool]string{true: " beside a person", false: ""}[attended]
			t.Run(name, func(t *testing.T) { nothingIsChanged(t, transport, attended) })
		}
	}
}

func nothingIsChanged(t *testing.T, transport controlmode.Transport, attended bool) {
	x := startTmux(t)
	// What tmux would copy into a session that we attach to without -E.
	t.Setenv("DISPLAY", ":77")
	t.Setenv("SSH_AUTH_SOCK", "/of/the/daemon")
	// A name that follows its command changes some time after it.
	x.run("set-option", "-g", "automatic-rename", "off")
	x.run("set-environment", "-t", "main", "SSH_AUTH_SOCK", "/of/the/person")
	// A program that asks for focus events, and shows those it gets. Beside a
	// person it gets none from us. With nobody attached it would: tmux counts
	// every attached client as one that looks and no client flag prevents it, so
	// that the active pane is told ESC [ I when we attach (window.c,
	// window_pane_update_focus; seen on 3.3a with focus-events on, on 3.5a, 3.7c
	// and 3.8 whatever that option says).
	if attended {
		x.run("set-option", "-s", "focus-events", "on")
		x.run("respawn-pane", "-k", "-t", "main:0", "printf '\\033[?1004h'; exec cat -v")
	}
	x.run("split-window", "-d", "-t", "main:0", "exec cat")
	x.run("new-window", "-d", "-t", "main:1", "exec cat")
	x.run("split-window", "-t", "main:1", "-h", "exec cat")
	x.run("resize-pane", "-Z", "-t", "main:1")
	x.run("new-window", "-d", "-t", "main:2", "printf '\\033[?1049h'; seq 100; exec cat")
	x.run("resize-window", "-t", "main:2", "-x", "55", "-y", "17")
	x.run("new-session", "-d", "-s", "side", "-x", "132", "-y", "43", "seq 200; exec cat")
	x.run("link-window", "-d", "-s", "main:1", "-t", "side:4")
	foreign := nobody
	if attended {
		p := x.person("main", 100, 30)
		x.person("side", 90, 25)
		foreign = func(int) bool { return true }
		p.types("abc")
	}
	x.run("copy-mode", "-t", "side:0")
	x.run("send-keys", "-t", "side:0", "-X", "-N", "30", "scroll-up")
	x.settle(foreign)
	before := x.traces()

	m, stop := x.mirrorUntil(func(c *state.Config) { c.Transport = transport })
	model := read(t, m)
	start := -50
	for _, p := range model.Panes {
		if _, err := m.Arrive(0).Pane(within(t), p.ID); err != nil {
			t.Error(err)
		}
		if _, err := m.Capture(within(t), p.ID, state.CaptureRange{Start: &start, Join: true}); err != nil {
			t.Error(err)
		}
		_, cursor, err := m.StartWatch(within(t), p.ID, state.CaptureRange{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Snapshot(within(t), p.ID); err != nil {
			t.Error(err)
		}
		if _, err := m.Since(within(t), p.ID, cursor, state.SinceOptions{}); err != nil {
			t.Error(err)
		}
	}
	if d := changed(before, x.traces()); d != "" {
		t.Errorf("while attached:\n%s", d)
	}
	stop()
	until(t, "our clients gone", func() bool {
		return !strings.Contains(x.run("list-clients", "-F", "#{client_control_mode}"), "1")
	})
	if d := changed(before, x.traces()); d != "" {
		t.Errorf("after detaching:\n%s", d)
	}
}

// changed tells the lines of two traces that differ.
func changed(before, after string) string {
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out strings.Builder
	for _, line := range b {
		if !slices.Contains(a, line) {
			out.WriteString("-" + line + "\n")
		}
	}
	for _, line := range a {
		if !slices.Contains(b, line) {
			out.WriteString("+" + line + "\n")
		}
	}
	if out.Len() == 0 && before != after {
		return "lines in another order or number"
	}
	return out.String()
}

// settle waits until the programs of the panes and the people's terminals have
// come to rest: two listings are equal and all panes run cat.
func (x *tmux) settle(foreign func(int) bool) {
	x.t.Helper()
	last := ""
	until(x.t, "programs at rest", func() bool {
		model, err := x.listing(foreign)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, p := range model.Panes {
			if p.Command != "cat" {
				return false
			}
		}
		now := x.traces()
		same := now == last
		last = now
		return same
	})
}

// traces is all that a visitor could disturb, as tmux tells it. What tmux counts
// for every attached client is left out: session_attached, session_activity,
// session_last_attached and window_active_clients.
func (x *tmux) traces() string {
	var b strings.Builder
	for _, words := range [][]string{
		{"list-sessions", "-F", "#{session_id} #{session_name} #{session_windows} #{session_alerts} #{session_path}"},
		{"list-windows", "-a", "-F", "#{session_id}:#{window_index} #{window_id} #{window_name} #{window_flags} #{window_width}x#{window_height} " +
			"#{window_layout} #{window_visible_layout} #{window_zoomed_flag} #{window_last_flag} #{window_bell_flag}"},
		{"list-panes", "-a", "-F", "#{pane_id} #{pane_active} #{pane_width}x#{pane_height} #{pane_pid} #{pane_title} #{pane_in_mode} #{pane_mode} " +
			"#{scroll_position} #{cursor_x},#{cursor_y} #{history_size} #{alternate_on} #{pane_input_off} #{pane_pipe} #{pane_marked}"},
		{"list-clients", "-F", "#{client_control_mode} #{client_name} #{client_width}x#{client_height} #{client_flags} #{session_id} " +
			"#{window_id} #{pane_id} #{client_key_table} #{client_prefix}"},
		{"show-environment", "-t", "main"},
		{"show-environment", "-t", "side"},
		{"show-environment", "-g"},
		{"show-options", "-g"},
		{"show-options", "-s"},
		{"show-options", "-gw"},
		{"show-hooks", "-g"},
		{"list-buffers"},
	} {
		b.WriteString(strings.Join(words[:min(2, len(words))], " ") + "\n")
		for line := range strings.Lines(x.run(words...)) {
			if words[0] == "list-clients" && strings.HasPrefix(line, "1 ") {
				continue // a control client: ours
			}
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}
