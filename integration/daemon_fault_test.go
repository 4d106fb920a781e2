package integration

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inFlight asks the daemon how many requests are under way, itself excluded.
func (c *caller) inFlight() int {
	c.t.Helper()
	raw, err := c.request("tmux-mcpd/status", map[string]any{})
	if err != nil {
		c.t.Fatal(err)
	}
	var s struct{ Clients struct{ InFlight int } }
	if err := json.Unmarshal(raw, &s); err != nil {
		c.t.Fatal(err)
	}
	return s.Clients.InFlight - 1
}

// outcome is what became of a call made in the background.
type outcome struct {
	answer
	err error
}

// start makes a call in the background.
func (c *caller) start(tool string, a args) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := c.try(tool, a)
		done <- outcome{got, err}
	}()
	return done
}

// mustFail waits for the end of a call: a tool error that says one of these.
func mustFail(t testing.TB, what string, done <-chan outcome, texts ...string) {
	t.Helper()
	select {
	case got := <-done:
		if got.err != nil {
			t.Fatalf("%s: %v", what, got.err)
		}
		for _, text := range texts {
			if got.isError && strings.Contains(got.text, text) {
				return
			}
		}
		t.Errorf("%s: error %t: %q, want one of %q", what, got.isError, got.text, texts)
	case <-time.After(2 * patience):
		t.Fatalf("%s: no answer", what)
	}
}

// TestServerKilledDuringCalls: tmux dies by SIGKILL while calls wait for it. They
// fail, the daemon lives, and serves the next server, for which the cursors of
// the first are none.
func TestServerKilledDuringCalls(t *testing.T) {
	x := startTmux(t)
	d := x.daemon()
	c, status := d.dial(), d.dial()
	var seed since
	c.ok(&seed, "capture_since", args{"paneId": "%0"})

	// One call waits for output.
	waiting := d.dial().start("capture_since", args{"paneId": "%0", "cursor": seed.Cursor, "waitMs": 25_000})
	until(t, "the call", func() bool { return status.inFlight() == 1 })
	pid := x.pid()
	// Others wait for an answer of tmux, which does not come.
	x.signal(pid, syscall.SIGSTOP)
	stuck := []<-chan outcome{
		d.dial().start("capture_pane", args{"paneId": "%0"}),
		d.dial().start("snapshot_pane", args{"paneId": "%0"}),
		d.dial().start("capture_since", args{"paneId": "%0"}),
		d.dial().start("get_pane_info", args{"paneId": "%0"}),
	}
	until(t, "the calls", func() bool { return status.inFlight() == 1+len(stuck) })
	x.signal(pid, syscall.SIGKILL)
	gone := []string{"no tmux server is running on socket " + x.sock, "the connection to tmux was lost during the call"}
	mustFail(t, "the waiting call", waiting, gone...)
	for _, done := range stuck {
		mustFail(t, "a call that tmux did not answer", done, gone...)
	}
	x.waitGone()
	if got := c.call("list_panes", nil); got.isError || !strings.Contains(got.text, "No tmux server is running") {
		t.Errorf("without a server: %s", got.text)
	}
	if got := c.call("capture_since", args{"paneId": "%0", "cursor": seed.Cursor}); !got.isError || !strings.Contains(got.text, "no tmux server is running") {
		t.Errorf("the cursor without a server: %s", got.text)
	}

	x.start("-s", "second", "-x", "80", "-y", "24", "cat")
	if got := c.call("list_panes", nil); got.isError || !strings.Contains(got.text, "%0 second:0.0 80x24") {
		t.Errorf("the second server: %s", got.text)
	}
	if got := c.call("capture_since", args{"paneId": "%0", "cursor": seed.Cursor}); !got.isError || !strings.Contains(got.text, "the tmux server was restarted") {
		t.Errorf("the cursor of the first server: %s", got.text)
	}
	c.ok(&seed, "capture_since", args{"paneId": "%0"})
	x.run("send-keys", "-t", "%0", "-l", "hello")
	var delta since
	if c.ok(&delta, "capture_since", args{"paneId": "%0", "cursor": seed.Cursor, "waitMs": 25_000}); !strings.HasPrefix("hello", delta.Text) || delta.Text == "" {
		t.Errorf("the second server prints %q", delta.Text)
	}
}

// TestServerStopped: while tmux is stopped (SIGSTOP, a debugger, a swapped-out
// machine) calls end at their deadline and say why; afterwards all is well, and
// the old cursor says what it may have missed.
func TestServerStopped(t *testing.T) {
	x := startTmux(t)
	d := x.daemon("LIBTMUX_MCP_COMMAND_TIMEOUT_MS=2000")
	c := d.dial()
	var seed since
	c.ok(&seed, "capture_since", args{"paneId": "%0"})
	pid := x.pid()
	x.signal(pid, syscall.SIGSTOP)
	// Before anything else at the end: a stopped server cannot be ended in order.
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })

	calls := map[string]args{
		"list_panes": nil, "get_server_info": nil, "get_pane_info": {"paneId": "%0"}, "capture_pane": {"paneId": "%0"},
		"snapshot_pane": {"paneId": "%0"}, "capture_since": {"paneId": "%0", "cursor": seed.Cursor, "waitMs": 500},
	}
	for range 2 { // the second time they find the connection given up
		var done []<-chan outcome
		var names []string
		for name, a := range calls {
			done = append(done, d.dial().start(name, a))
			names = append(names, name)
		}
		for i := range done {
			mustFail(t, names[i], done[i], "tmux is not answering")
		}
	}
	x.signal(pid, syscall.SIGCONT)
	until(t, "the daemon back at work", func() bool { return !c.call("list_panes", nil).isError })
	for name, a := range calls {
		if got := c.call(name, a); got.isError {
			t.Errorf("%s after the stop: %s", name, got.text)
		}
	}
	var delta since
	x.run("send-keys", "-t", "%0", "-l", "hello")
	c.ok(&delta, "capture_since", args{"paneId": "%0"})
	until(t, "the text", func() bool { return strings.Contains(c.call("capture_pane", args{"paneId": "%0"}).text, "hello") })
	x.run("send-keys", "-t", "%0", "Enter")
	for text := ""; !strings.Contains(text, "hello\n"); text += delta.Text {
		c.ok(&delta, "capture_since", args{"paneId": "%0", "cursor": delta.Cursor, "waitMs": 25_000})
	}
	if got := x.pid(); got != pid {
		t.Errorf("tmux was %d and is %d", pid, got)
	}
}
