package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestP2CounterThroughDaemon: a pane prints a counter. Each snapshot, the delta
// from its cursor and the delta from that one's are the counter: no number is
// missing or repeated, and what is reported as dropped or missed is exactly what
// is missing.
//
// The counter runs in bursts. TMUX_MCPD_ROUNDS (how many snapshots, 200) makes it
// run as fast as it can: that is for a machine that does nothing else, as a daemon
// slower than tmux has the pane paused, and then nobody can say what is missing.
// The daemon is built without the race detector for the same reason.
func TestP2CounterThroughDaemon(t *testing.T) {
	rounds := number(t, "TMUX_MCPD_ROUNDS", 200)
	counting := "i=1; while :; do seq -f %.0f $i $((i+499)); i=$((i+500)); sleep 0.01; done"
	if os.Getenv("TMUX_MCPD_ROUNDS") != "" {
		counting = "exec seq -f %.0f 1 1000000000000"
	}
	x := startTmux(t)
	// So that what scrolls by between two calls can still be told.
	x.run("set-option", "-g", "history-limit", "20000")
	pane := x.run("new-window", "-d", "-P", "-F", "#{pane_id}", counting)
	until(t, "a screen full of it", func() bool {
		return x.run("display-message", "-p", "-t", pane, "#{?#{e|>:#{history_size},50},yes,no}") == "yes"
	})
	c := x.daemonOf(program(t, false), "LIBTMUX_MCP_MAX_RESULT_LINES=10000").dial()
	c.ok(nil, "capture_since", args{"paneId": pane})
	whole, retold, broken, lines, newest := 0, 0, 0, 0, 0
	for i := range rounds {
		var shot struct{ Content string }
		meta := c.ok(&shot, "snapshot_pane", args{"paneId": pane}).meta
		at, err := counterEnd(shot.Content)
		if err != nil {
			t.Fatalf("round %d: snapshot: %v", i, err)
		}
		cursor, _ := meta["tmux-mcpd/cursor"].(string)
		if cursor == "" { // the pane is paused at this moment
			broken++
			c.ok(nil, "capture_since", args{"paneId": pane})
			continue
		}
		for n := range 2 {
			var d since
			c.ok(&d, "capture_since", args{"paneId": pane, "cursor": cursor, "waitMs": 25_000})
			if d.Gap != nil && d.Gap.Reason != "evicted" {
				broken++ // reported, and nobody can say how much
				t.Logf("round %d, delta %d: gap %+v", i, n, d.Gap)
				break
			}
			if d.Text == "" {
				t.Fatalf("round %d, delta %d: nothing new", i, n)
			}
			before := at
			if at, err = at.after(d); err != nil {
				t.Fatalf("round %d, delta %d, dropped %d, omitted %d, missed %d: %v", i, n, d.DroppedLines, d.OmittedBytes, d.MissedBytes, err)
			}
			if d.DroppedLines+d.MissedBytes == 0 {
				whole++
				if before.at > 0 && !d.ContinuesLine && strings.HasPrefix(d.Text, before.digits()) {
					retold++
				}
			}
			newest = at.n
			lines += strings.Count(d.Text, "\n")
			cursor = d.Cursor
		}
	}
	t.Logf("%d of %d deltas whole, the loss of the others exact, %d gaps; %d numbers read, up to %d; %d times an unfinished line was told again",
		whole, 2*rounds, broken, lines, newest, retold)
	if whole < int(rounds) {
		t.Errorf("only %d of %d deltas are whole", whole, 2*rounds)
	}
}

// counter is a place in the stream of seq on a terminal: before byte at of the
// line of n, which is its digits, CR and LF.
type counter struct{ n, at int }

func (c counter) digits() string { return strconv.Itoa(c.n) }

// ended tells whether nothing but the line's end is still to come.
func (c counter) ended() bool { return c.at >= len(c.digits()) }

// counterEnd reads a screen full of the counter and answers the place where it
// ends.
func counterEnd(screen string) (counter, error) {
	lines := strings.Split(screen, "\n")
	last := lines[len(lines)-1]
	lines = lines[:len(lines)-1]
	if len(lines) < 2 {
		return counter{}, fmt.Errorf("a screen of %d lines", len(lines))
	}
	first, err := strconv.Atoi(lines[0])
	if err != nil {
		return counter{}, err
	}
	for i, l := range lines {
		if l != strconv.Itoa(first+i) {
			return counter{}, fmt.Errorf("%q follows %d", l, first+i-1)
		}
	}
	c := counter{first + len(lines), len(last)}
	if !strings.HasPrefix(c.digits(), last) {
		return counter{}, fmt.Errorf("%q follows %d", last, c.n-1)
	}
	return c, nil
}

// after demands that a delta goes on where c is, less the reported losses, and
// answers where it ends.
func (c counter) after(d since) (counter, error) {
	if d.OmittedBytes > 0 {
		return c, fmt.Errorf("a delta above the byte ceiling")
	}
	first := c // where the delta's first line begins
	switch {
	case d.MissedBytes > 0:
		// Lines are missed whole; their end may count or not.
		for rest := d.MissedBytes; rest > 0; {
			n := min(rest, len(first.digits())+2-first.at)
			rest -= n
			if first.at += n; first.at == len(first.digits())+2 {
				first = counter{first.n + 1, 0}
			}
		}
		if first.at > 0 && !first.ended() {
			return c, fmt.Errorf("missed up to byte %d of line %d", first.at, first.n)
		}
		if first.at > 0 {
			first = counter{first.n + 1, 0}
		}
	case d.ContinuesLine && d.DroppedLines == 0:
	case c.ended() && !strings.HasPrefix(d.Text, strconv.Itoa(c.n+d.DroppedLines)+"\n"):
		first = counter{c.n + 1, 0} // an end of line alone is no news
	default:
		first = counter{c.n, 0} // an unfinished line is told again, whole
	}
	if d.DroppedLines > 0 {
		first = counter{first.n + d.DroppedLines, 0}
	}
	for at, text := first, d.Text; ; at = (counter{at.n + 1, 0}) {
		line, rest, more := strings.Cut(text, "\n")
		if want := at.digits()[at.at:]; line != want && (more || !strings.HasPrefix(want, line)) {
			return at, fmt.Errorf("%q where %q (of line %d) belongs", line, want, at.n)
		}
		if !more {
			return counter{at.n, at.at + len(line)}, nil
		}
		text = rest
	}
}
