package mcp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// O07: while a full-screen program runs, what it shows is said to be that, never
// mixed with the rows above it, and the main screen that it covers is offered.
func TestO07AlternateScreenIsSaid(t *testing.T) {
	r := newRig(t, nil).start()
	id := r.printed("full", `'line %d\n' $(seq 1 60); printf '\033[?1049h\033[H\033[2Jfull screen'`, "-t", "main:")

	res := r.call("capture_since", args{"paneId": id})
	v := r.ok("capture_since", args{"paneId": id})
	if v["alternateScreen"] != true || v["text"] != "full screen" || v["seeded"] != true || !strings.Contains(res.Text, "full-screen program") {
		t.Errorf("the first read: %v\n%s", v, res.Text)
	}
	snap := r.call("snapshot_pane", args{"paneId": id})
	main := ""
	for i := 38; i <= 60; i++ {
		main += fmt.Sprintf("line %d\n", i)
	}
	if got := snap.Meta[metaMain]; got != strings.TrimSuffix(main, "\n") {
		t.Errorf("the main screen: %q", got)
	}
	if content := r.ok("snapshot_pane", args{"paneId": id})["content"]; content != "full screen" || !strings.Contains(snap.Text, "alternate screen") {
		t.Errorf("the snapshot: %q\n%s", content, snap.Text)
	}
	above := r.call("capture_pane", args{"paneId": id, "start": -2})
	if !strings.Contains(above.Text, "rows from 0 on are its screen") {
		t.Errorf("rows of both screens: %s", above.Text)
	}
	if v := r.ok("capture_pane", args{"paneId": id}); v["text"] != "full screen"+strings.Repeat("\n", 23) {
		t.Errorf("the screen: %q", v["text"])
	}
	plain := r.call("snapshot_pane", args{"paneId": "%0"})
	if _, ok := plain.Meta[metaMain]; ok || strings.Contains(plain.Text, "alternate") {
		t.Errorf("a pane without one: %v\n%s", plain.Meta, plain.Text)
	}
}

// historyLines is how long the history of TestO19 is, or TMUX_MCPD_HISTORY.
func historyLines(t *testing.T) int {
	n := 20_000
	if s := os.Getenv("TMUX_MCPD_HISTORY"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// O19: no tool asks tmux for more than a capture's cap of a huge history, whatever
// range is asked for, and paging reaches all of it; so another client is served
// between any two captures.
func TestO19HugeHistory(t *testing.T) {
	lines := historyLines(t)
	const width, most = 200, resultCeiling / (200*32 + 1)
	r := newRig(t, map[string]string{envMaxLines: "10000"})
	r.tmux("new-session", "-d", "-s", "main", "-x", fmt.Sprint(width), "-y", "24", "cat")
	r.tmux("set-option", "-g", "history-limit", fmt.Sprint(lines+1000))
	id := r.printed("huge", fmt.Sprintf(`'%%0190d line\n' $(seq 1 %d)`, lines), "-t", "main:")
	size := r.tmux("display-message", "-p", "-t", id, "#{pane_width}x#{pane_height}")

	var wg sync.WaitGroup
	stop := make(chan struct{})
	calls := map[string][]args{
		"capture_pane": {
			{"paneId": id, "start": -9007199254740991},
			{"paneId": id, "history": true},
			{"paneId": id, "start": -9007199254740991, "joinWrapped": true, "maxLines": 10_000},
		},
		"snapshot_pane": {{"paneId": id, "history": true}},
		"search_panes":  {{"pattern": "no such text", "scrollbackLines": 10_000}},
		"capture_since": {{"paneId": id}},
	}
	for name, all := range calls {
		for _, a := range all {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						if n > 0 {
							return
						}
					default:
					}
					v := r.ok(name, a)
					if total, ok := v["totalLines"].(float64); ok && (total > most || v["rangeClamped"] != true || v["byteClamped"] != true) {
						t.Errorf("%s %v: %v lines, clamped %v and %v", name, a, total, v["rangeClamped"], v["byteClamped"])
					}
				}
			})
		}
	}
	var took []time.Duration
	for range 20 {
		begin := time.Now()
		if r.tmux("display-message", "-p", "x") != "x" {
			t.Error("another client is not served")
		}
		took = append(took, time.Since(begin))
	}
	close(stop)
	wg.Wait()
	slices.Sort(took)
	t.Logf("another client waits %v in the median, %v at most", took[len(took)/2], took[len(took)-1])

	for _, first := range []int{1, lines / 2} { // pages
		row := first - lines - 1 + 23
		v := r.ok("capture_pane", args{"paneId": id, "start": row, "end": row + 99})
		want := fmt.Sprintf("%0190d line", first)
		if got, _, _ := strings.Cut(v["text"].(string), "\n"); got != want || v["totalLines"] != 100.0 || v["rangeClamped"] != false {
			t.Errorf("the page at %d begins with %q: %v", row, got, v["totalLines"])
		}
	}
	if now := r.tmux("display-message", "-p", "-t", id, "#{pane_width}x#{pane_height}"); now != size {
		t.Errorf("the pane was %s and is %s", size, now)
	}
}
