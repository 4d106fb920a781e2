package mcp

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "ab", 2},
		{"pane", "panes", 1},
		{"paneid", "paneId", 1},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"list_pnaes", "list_panes", 1},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringN(0, 300, 400).Draw(t, "a"), rapid.StringMatching(`[ab]{0,8}`).Draw(t, "b")
		d := editDistance(a, b)
		if d != editDistance(b, a) || d == 0 != (a[:min(len(a), maxCompared)] == b) {
			t.Fatalf("%q %q: %d", a, b, d)
		}
	})
}

func TestNotFound(t *testing.T) {
	c := testCall(t, nil)
	m := &state.Model{Server: state.Server{ID: state.ServerID{PID: 1, StartTime: 1}}}
	var all []alternative
	for i := range 15 {
		all = append(all, alternative{text: fmt.Sprintf("%%%d (main:w bash)", i), distance: apart(uint32(i), 20)})
	}
	got := c.table.notFound("pane %20", m, all, "Panes", "list_panes").Error()
	if !strings.HasPrefix(got, "pane %20 does not exist on this tmux server\n\nPanes: %14 (main:w bash), %13") ||
		!strings.HasSuffix(got, "%3 (main:w bash) and 3 more; list_panes shows all of them") {
		t.Error(got)
	}
	got = c.table.notFound("pane %20", m, nil, "Panes", "list_panes").Error()
	if !strings.Contains(got, "The server has no panes.") {
		t.Error(got)
	}
	c.table.cfg.Socket = controlmode.Socket{Path: "/run/x/sock"}
	got = c.table.notFound("pane %20", &state.Model{}, nil, "Panes", "list_panes").Error()
	for _, w := range []string{"no tmux server is running on socket /run/x/sock", "--tmux-socket-path", "LIBTMUX_SOCKET", "operator"} {
		if !strings.Contains(got, w) {
			t.Errorf("%s\nlacks %s", got, w)
		}
	}
}

func TestLikeness(t *testing.T) {
	names := []string{"build-2", "bulid", "deploy", "my-build"}
	best, bestDistance := "", 1<<30
	for _, n := range names {
		if d := likeness("build", n); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	if best != "build-2" {
		t.Error(best)
	}
	if likeness("Build", "build") != 0 {
		t.Error("case differs only")
	}
}
