package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// TestP1ThroughDaemon: what a run of the tmux binary that has returned did to
// tmux, the next call of the daemon shows, whichever tool, connection and batch
// it comes through, while others poll.
//
// TMUX_MCPD_ROUNDS is how many rounds (200), TMUX_MCPD_ORACLE_SEED repeats a run.
func TestP1ThroughDaemon(t *testing.T) {
	rounds := number(t, "TMUX_MCPD_ROUNDS", 200)
	seed := number(t, "TMUX_MCPD_ORACLE_SEED", rand.Uint64())
	t.Logf("TMUX_MCPD_ORACLE_SEED=%d", seed)
	x := startTmux(t)
	x.run("split-window", "-d", "-t", "%0", "cat")
	d := x.daemon()
	s := &story{Rand: rand.New(rand.NewPCG(seed, 0)), x: x, callers: []*caller{d.dial(), d.dial(), d.bridge().caller}}
	s.callers[0].ok(&s.since, "capture_since", args{"paneId": "%0"})
	defer poll(t, d)()
	for n := range rounds {
		s.n = int(n)
		e := events[s.IntN(len(events))]
		if err := e.happen(s); err != nil {
			t.Fatalf("round %d, %s: %v", n, e.name, err)
		}
	}
}

// poll lists all the time on two connections, so that refreshes are under way
// whenever a call arrives. The function it returns ends that.
func poll(t testing.TB, d *daemon) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		c := d.dial()
		wg.Go(func() {
			for !isClosed(done) {
				if got, err := c.try("list_panes", nil); err != nil || got.isError {
					t.Errorf("polling: %v %s", err, got.text)
					return
				}
			}
		})
	}
	return func() {
		close(done)
		wg.Wait()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// story is tmux changed by the tmux binary and read through the daemon.
type story struct {
	*rand.Rand
	x       *tmux
	n       int
	callers []*caller
	since   since // the newest delta of pane %0
	lines   int   // typed into it
}

// An event is a change and the looks that must show it.
type event struct {
	name   string
	happen func(s *story) error
}

// look is a call and what it must show.
type look struct {
	tool string
	args args
	path []any  // to one value of the structured half; a string of digits and a sigil finds the row of that id
	want any    // the value there; absent for none
	fail string // instead: the tool's error holds this
}

// absent is the value where there is none.
type absentType struct{}

var absent = absentType{}

// sees takes one of the looks, on one of the connections, alone or in a batch.
func (s *story) sees(looks ...look) error {
	l := looks[s.IntN(len(looks))]
	c := s.callers[s.IntN(len(s.callers))]
	batched := s.IntN(3) == 0
	got, err := s.ask(c, l, batched)
	if err != nil {
		return err
	}
	how := fmt.Sprintf("%s %v by %s, batched %t", l.tool, l.args, c.name, batched)
	if got.isError != (l.fail != "") || !strings.Contains(got.text, l.fail) {
		return fmt.Errorf("%s: error %t: %.300s", how, got.isError, got.text)
	}
	if got.isError {
		return nil
	}
	var v any
	if err := json.Unmarshal(got.structured, &v); err != nil {
		return fmt.Errorf("%s: %w", how, err)
	}
	if found := walk(v, l.path); found != l.want {
		return fmt.Errorf("%s: %v is %v, want %v in %.300s", how, l.path, found, l.want, got.structured)
	}
	return nil
}

// ask makes the call, or a batch that makes it after others.
func (s *story) ask(c *caller, l look, batched bool) (answer, error) {
	if !batched {
		return c.try(l.tool, l.args)
	}
	got, err := c.try("call_read_tools_batch", args{"onError": "continue", "operations": []args{
		{"tool": "list_sessions"}, {"tool": "capture_pane", "arguments": args{"paneId": "%0"}}, {"tool": l.tool, "arguments": l.args},
	}})
	if err != nil {
		return answer{}, err
	}
	var batch struct {
		Results []struct{ Result json.RawMessage }
	}
	if err := json.Unmarshal(got.structured, &batch); err != nil || len(batch.Results) != 3 {
		return answer{}, fmt.Errorf("batch: %.300s: %w", got.text, err)
	}
	return readAnswer(batch.Results[2].Result)
}

// walk follows a path: a name enters an object, an id the row of a list.
func walk(v any, path []any) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[step.(string)]
		case []any:
			v = any(absent)
			for _, row := range at {
				if m, ok := row.(map[string]any); ok && (m["id"] == step || m["sessionId"] == step) {
					v = row
				}
			}
		}
		if v == any(absent) {
			break
		}
	}
	if m, ok := v.(map[string]any); ok && m["id"] != nil {
		return m["id"]
	}
	return v
}

func (s *story) name(prefix string) string { return fmt.Sprintf("%s%d", prefix, s.n) }

// paneLooks are the ways to see a value of a pane's view.
func paneLooks(id, field string, want any) []look {
	return []look{
		{tool: "list_panes", path: []any{"panes", id, field}, want: want},
		{tool: "list_panes", args: args{"session": "$0"}, path: []any{"panes", id, field}, want: want},
		{tool: "get_pane_info", args: args{"paneId": id}, path: []any{"pane", field}, want: want},
		{tool: "snapshot_pane", args: args{"paneId": id}, path: []any{"pane", field}, want: want},
	}
}

func windowLooks(id, field string, want any) []look {
	return []look{
		{tool: "list_windows", path: []any{"windows", id, field}, want: want},
		{tool: "get_window_info", args: args{"windowId": id}, path: []any{"window", field}, want: want},
	}
}

var events = []event{
	{"rename-session", func(s *story) error {
		name := s.name("s")
		s.x.run("rename-session", "-t", "$0", name)
		return s.sees(
			look{tool: "list_sessions", path: []any{"sessions", "$0", "name"}, want: name},
			look{tool: "get_session_info", args: args{"sessionName": name}, path: []any{"session", "id"}, want: "$0"},
			look{tool: "get_pane_info", args: args{"paneId": "%0"}, path: []any{"pane", "placements", "$0", "sessionName"}, want: name},
		)
	}},
	{"rename-window", func(s *story) error {
		name := s.name("w")
		s.x.run("rename-window", "-t", "@0", name)
		return s.sees(append(windowLooks("@0", "name", name), paneLooks("%0", "windowName", name)...)...)
	}},
	{"title", func(s *story) error {
		title := s.name("t")
		s.x.run("select-pane", "-t", "%1", "-T", title)
		return s.sees(paneLooks("%1", "title", title)...)
	}},
	{"select-pane", func(s *story) error {
		first := s.x.run("display-message", "-p", "-t", "%0", "#{pane_active}") == "1"
		if s.x.run("select-pane", "-t", map[bool]string{true: "%1", false: "%0"}[first]); s.IntN(2) == 0 {
			return s.sees(paneLooks("%0", "active", !first)...)
		}
		return s.sees(paneLooks("%1", "active", first)...)
	}},
	{"new-window and kill-window", func(s *story) error {
		var window, pane string
		fmt.Sscan(s.x.run("new-window", "-d", "-P", "-F", "#{window_id} #{pane_id}", "-n", "born", "cat"), &window, &pane)
		err := s.sees(append(append(windowLooks(window, "name", "born"), paneLooks(pane, "windowId", window)...),
			look{tool: "get_server_info", path: []any{"windows"}, want: 2.0},
			look{tool: "get_session_info", args: args{"session": "$0"}, path: []any{"session", "windows"}, want: 2.0},
			look{tool: "find_pane_by_position", args: args{"windowId": window, "corner": "top-left"}, path: []any{"pane"}, want: pane})...)
		s.x.run("kill-window", "-t", window)
		return errors.Join(err, s.sees(
			look{tool: "list_windows", path: []any{"windows", window}, want: absent},
			look{tool: "list_panes", path: []any{"panes", pane}, want: absent},
			look{tool: "get_window_info", args: args{"windowId": window}, fail: "window " + window + " does not exist"},
			look{tool: "get_session_info", args: args{"session": "$0"}, path: []any{"session", "windows"}, want: 1.0},
			look{tool: "get_server_info", path: []any{"panes"}, want: 2.0},
		))
	}},
	{"split-window and kill-pane", func(s *story) error {
		pane := s.x.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "%1", "cat")
		err := s.sees(append(append(windowLooks("@0", "panes", 3.0), paneLooks(pane, "windowId", "@0")...),
			look{tool: "capture_pane", args: args{"paneId": pane}, path: []any{"paneId"}, want: pane},
			look{tool: "find_pane_by_position", args: args{"windowId": "@0", "corner": "bottom-right"}, path: []any{"pane"}, want: pane})...)
		s.x.run("kill-pane", "-t", pane)
		gone := "pane " + pane + " does not exist"
		return errors.Join(err, s.sees(append(windowLooks("@0", "panes", 2.0),
			look{tool: "list_panes", path: []any{"panes", pane}, want: absent},
			look{tool: "get_pane_info", args: args{"paneId": pane}, fail: gone},
			look{tool: "capture_pane", args: args{"paneId": pane}, fail: gone},
			look{tool: "capture_since", args: args{"paneId": pane}, fail: gone},
			look{tool: "snapshot_pane", args: args{"paneId": pane}, fail: gone})...))
	}},
	{"resize-pane", func(s *story) error {
		s.x.run("resize-pane", "-t", "%0", "-y", fmt.Sprint(5+s.n%12))
		return s.sees(paneLooks("%0", "height", float64(5+s.n%12))...)
	}},
	{"send-keys", typed},
}

// typed sends text to a pane. It is current once tmux itself shows it: between
// tmux and the screen lies the program in the pane.
func typed(s *story) error {
	s.lines++
	word := fmt.Sprintf("word-%d.", s.lines)
	s.x.run("send-keys", "-t", "%0", "-l", word)
	s.x.run("send-keys", "-t", "%0", "Enter")
	// cat repeats the line that the terminal has echoed.
	until(s.x.t, word, func() bool {
		return strings.Contains(s.x.run("capture-pane", "-p", "-t", "%0"), word+"\n"+word+"\n")
	})
	c := s.callers[s.IntN(len(s.callers))]
	switch s.IntN(3) {
	case 0:
		if got, err := c.try("capture_pane", args{"paneId": "%0"}); err != nil || !strings.Contains(got.text, word+"\n"+word) {
			return fmt.Errorf("capture_pane by %s lacks %q: %s %w", c.name, word, got.text, err)
		}
	case 1:
		if got, err := c.try("snapshot_pane", args{"paneId": "%0"}); err != nil || !strings.Contains(got.text, word+"\n"+word) {
			return fmt.Errorf("snapshot_pane by %s lacks %q: %s %w", c.name, word, got.text, err)
		}
	}
	got, err := c.try("capture_since", args{"paneId": "%0", "cursor": s.since.Cursor})
	if err != nil || got.isError {
		return fmt.Errorf("capture_since by %s: %s %w", c.name, got.text, err)
	}
	if err := json.Unmarshal(got.structured, &s.since); err != nil {
		return err
	}
	if want := word + "\n" + word + "\n"; s.since.Text != want {
		return fmt.Errorf("capture_since by %s: %q, want %q", c.name, s.since.Text, want)
	}
	return nil
}
