package mcp

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// respawnRounds are of two panes each; TMUX_MCPD_RESPAWNS is another number. Without
// the care a tmux of 3.3a ends within the first few.
func respawnRounds() int {
	if n, err := strconv.Atoi(os.Getenv("TMUX_MCPD_RESPAWNS")); err == nil {
		return n
	}
	return 5
}

// TestRespawnsDoNotEndTheServer: a pane that prints, and that somebody follows, is
// respawned again and again by our own tool, in every round dead or in the middle of its
// output; up to 3.7c that ends a tmux that is not handled with care (control-mode
// 12.1). The reader goes on all the while, and is told.
func TestRespawnsDoNotEndTheServer(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		t.Parallel()
		r := newRigOn(t, bin, nil)
		r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat", ";", "set-option", "-g", "remain-on-exit", "on", ";",
			"new-window", "-d", "-t", "main:", "while :; do seq 1 3000; sleep 0.05; done", ";", "new-window", "-d", "-t", "main:", "seq 1 3000")
		server := r.tmux("display-message", "-p", "#{pid}")
		cursor := map[string]any{}
		for _, pane := range []string{"%1", "%2"} {
			cursor[pane] = r.ok("capture_since", args{"paneId": pane})["cursor"]
		}
		for i := range respawnRounds() {
			for _, pane := range []string{"%1", "%2"} {
				if p := r.whole("respawn_pane", "pane", args{"paneId": pane, "killFirst": true}); p["id"] != pane {
					t.Fatalf("%v", p)
				}
				v := r.ok("capture_since", args{"paneId": pane, "cursor": cursor[pane], "waitMs": 20000, "maxLines": 50})
				if v["cursor"] == nil || v["text"] == "" && v["gap"] == nil {
					t.Fatalf("round %d of %s: nothing came: %v", i, pane, v)
				}
				cursor[pane] = v["cursor"]
			}
			if got := r.tmux("display-message", "-p", "#{pid}"); got != server {
				t.Fatalf("round %d: server %s became %s", i, server, got)
			}
		}
	})
}

// TestRespawnPane: refusals, and what it starts.
func TestRespawnPane(t *testing.T) {
	r := newRig(t, nil).start()
	starts := filepath.Join(filepath.Dir(r.sock), "starts")
	r.tmux("set-option", "-g", "remain-on-exit", "on", ";", "new-window", "-d", "-t", "main:", "echo >>"+starts+"; exit 3", ";",
		"new-window", "-d", "-t", "main:", "cat")
	r.until(func() bool { return r.format("%1", "#{pane_dead}") == "1" })
	r.ok("capture_since", args{"paneId": "%2"})
	cursor := r.ok("capture_since", args{"paneId": "%2"})["cursor"]
	r.refused("respawn_pane", args{"paneId": "%2"}, "is still active", "killFirst")
	if v := r.ok("capture_since", args{"paneId": "%2", "cursor": cursor}); v["gap"] != nil {
		t.Errorf("a refused respawn left a gap: %v", v)
	}
	r.refused("respawn_pane", args{"paneId": "%9"}, "pane %9 does not exist")
	if p := r.whole("respawn_pane", "pane", args{"paneId": "%1"}); p["id"] != "%1" {
		t.Errorf("%v", p)
	}
	r.until(func() bool { return readAll(t, starts) == "\n\n" })
	leave := r.attach("main")
	r.refused("respawn_pane", args{"paneId": "%0", "killFirst": true, "force": true}, "is attended")
	leave()
	server := r.tmux("display-message", "-p", "#{pid}")
	r.caller = &Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "%0"}}
	r.refused("respawn_pane", args{"paneId": "%0", "killFirst": true}, "is your own", "force")
	if p := r.whole("respawn_pane", "pane", args{"paneId": "%0", "killFirst": true, "force": true}); p["dead"] != false {
		t.Errorf("%v", p)
	}
	if v := r.ok("capture_since", args{"paneId": "%2", "cursor": cursor}); v["gap"] != nil {
		t.Errorf("another pane's respawn left a gap: %v", v)
	}
}
