package integration

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hearsOf reads what the server says unasked until it is that a resource changed.
func (c *caller) hearsOf(uri string) {
	c.t.Helper()
	if err := c.by(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			c.t.Fatalf("never heard of %s: %v", uri, err)
		}
		var m struct {
			Method string
			Params struct{ URI string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			c.t.Fatalf("%.200q: %v", line, err)
		}
		if m.Method == "notifications/resources/updated" && m.Params.URI == uri {
			return
		}
	}
}

// TestD07SubscriptionOverARestart: a client that follows a resource goes on
// hearing of it when the daemon is another: first that it may have changed
// meanwhile, then of each change.
func TestD07SubscriptionOverARestart(t *testing.T) {
	const uri = "tmux://panes/%250/content"
	x := startTmux(t)
	socket := filepath.Join(x.dir, "m")
	env := append(slices.Clone(x.env), "GORACE=atexit_sleep_ms=0", "TMUX_MCPD_LISTEN="+socket,
		"TMUX_MCPD_TMUX_SOCKET_PATH="+x.sock, "TMUX_MCPD_TMUX_BIN="+x.bin, "XDG_STATE_HOME="+x.dir)
	t.Cleanup(func() { endDaemonOn(t, socket) })
	c := startBridge(t, env, program(t, raced), "stdio")
	// A change that the pane shows is heard of, and then read.
	follows := func(text string) {
		t.Helper()
		x.run("send-keys", "-t", "%0", text, "Enter")
		c.hearsOf(uri) // before any request, which would hear it as well
		until(t, text, func() bool {
			raw, err := c.request("resources/read", args{"uri": uri})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(raw), text)
		})
	}
	if _, err := c.request("resources/subscribe", args{"uri": uri}); err != nil {
		t.Fatal(err)
	}
	follows("before")
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid := c.servedBy()
		if err := syscall.Kill(pid, end); err != nil {
			t.Fatal(err)
		}
		c.hearsOf(uri)
		if next := c.servedBy(); next == pid {
			t.Errorf("pid %d serves after it was sent %v", pid, end)
		}
		follows("after-" + end.String()[:3])
	}
}
