package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// resident is what a process has in memory, in KiB.
type resident struct {
	rss int // all of it, pages shared with other processes in full
	pss int // each shared page divided by the number of its users
}

// residentOf reads the kernel's account of a process.
func residentOf(t testing.TB, pid int) (r resident) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.Atoi(f[1])
		switch f[0] {
		case "Rss:":
			r.rss = n
		case "Pss:":
			r.pss = n
		}
	}
	if r.rss == 0 || r.pss == 0 {
		t.Fatalf("no figures in %q", b)
	}
	return r
}

// childrenOf lists the child processes of a process.
func childrenOf(t testing.TB, pid int) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, _ := os.ReadFile(path) // a thread may have ended
		for _, f := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// P10: a daemon that serves 30 panes to 8 bridges costs next to nothing. The
// figures are of the ordinary build and of whole resident sets: pages that the
// processes share, as their code, count in each. Proportional shares (Pss), in
// which such a page counts once, and the tmux clients that the daemon keeps are
// reported beside.
func TestP10Memory(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip("the kernel tells resident memory through /proc only:", err)
	}
	const (
		panes, bridges = 30, 8
		mostDaemon     = 25 << 10 // KiB
		mostBridge     = 10 << 10
		mostTogether   = 100 << 10
	)
	x := newTmux(t)
	x.fill(panes)
	d := x.daemonOf(program(t, false))
	all := []*caller{d.dial()}
	pids := []int{d.cmd.Process.Pid}
	for range bridges {
		b := d.bridge()
		all = append(all, b.caller)
		pids = append(pids, b.cmd.Process.Pid)
	}
	for _, c := range all {
		if got := c.listsAndCaptures(); got != panes {
			t.Fatalf("%d panes", got)
		}
	}
	alone := residentOf(t, pids[0])
	var sum resident
	for i, pid := range pids {
		r := residentOf(t, pid)
		if i > 0 && r.rss >= mostBridge {
			t.Errorf("a bridge has %d KiB resident, %d allowed", r.rss, mostBridge)
		}
		sum.rss += r.rss
		sum.pss += r.pss
	}
	tmux := residentOf(t, x.pid())
	var clients resident
	for _, pid := range childrenOf(t, pids[0]) {
		r := residentOf(t, pid)
		clients.rss += r.rss
		clients.pss += r.pss
	}
	t.Logf("KiB: daemon Rss %d, Pss %d; with %d bridges Pss %d, Rss %d; its %d tmux clients Pss %d; the tmux server itself Rss %d",
		alone.rss, alone.pss, bridges, sum.pss, sum.rss, len(childrenOf(t, pids[0])), clients.pss, tmux.rss)
	if alone.rss >= mostDaemon {
		t.Errorf("the daemon has %d KiB resident, %d allowed", alone.rss, mostDaemon)
	}
	if sum.rss >= mostTogether {
		t.Errorf("daemon and bridges have %d KiB together, %d allowed", sum.rss, mostTogether)
	}
}

// fill starts a server with panes of cat in windows of ten, each with a full
// screen.
func (x *tmux) fill(panes int) {
	x.t.Helper()
	x.start("-s", "main", "-x", "200", "-y", "100", "seq 500; exec cat")
	for i := 1; i < panes; i++ {
		window := fmt.Sprintf("main:%d", i/10)
		if i%10 == 0 {
			x.run("new-window", "-d", "-t", window, "seq 500; exec cat")
			continue
		}
		x.run("split-window", "-d", "-t", window, "seq 500; exec cat", ";", "select-layout", "-t", window, "tiled")
	}
}

// listsAndCaptures reads every pane: by a list, captures alone and in batches, a
// snapshot, and the start of a watch. It answers the number of panes.
func (c *caller) listsAndCaptures() int {
	c.t.Helper()
	var list struct{ Panes []struct{ ID string } }
	c.ok(&list, "list_panes", nil)
	var ops []args
	for _, p := range list.Panes {
		c.ok(nil, "capture_pane", args{"paneId": p.ID, "start": -400})
		c.ok(nil, "snapshot_pane", args{"paneId": p.ID})
		c.ok(nil, "capture_since", args{"paneId": p.ID})
		ops = append(ops, args{"tool": "capture_pane", "arguments": args{"paneId": p.ID}})
	}
	for len(ops) > 0 {
		n := min(16, len(ops))
		c.ok(nil, "call_read_tools_batch", args{"operations": ops[:n]})
		ops = ops[n:]
	}
	return len(list.Panes)
}
