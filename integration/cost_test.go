package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkWatchedQuietPanes is what a daemon has resident more when it watches
// 300 panes that print nothing, each with a full screen and 400 rows of history.
// The aim is less than 60 MiB.
//
//	go test -run xxx -bench WatchedQuiet -benchtime 1x ./integration
func BenchmarkWatchedQuietPanes(b *testing.B) {
	const panes = 300
	x := newTmux(b)
	x.fill(panes)
	for b.Loop() {
		d := x.daemonOf(program(b, false))
		c := d.dial()
		var list struct{ Panes []struct{ ID string } }
		c.ok(&list, "list_panes", nil)
		before := residentOf(b, d.cmd.Process.Pid).rss
		for i := range panes {
			c.ok(nil, "capture_since", args{"paneId": fmt.Sprintf("%%%d", i)})
		}
		after := residentOf(b, d.cmd.Process.Pid).rss
		b.ReportMetric(float64(before)/1024, "MiB-before")
		b.ReportMetric(float64(after-before)/1024, "MiB-watching")
		d.stop()
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFloodCPU is the processor time that the daemon takes while a watched
// pane floods, by the time that tmux takes. The aim is less than half. A reader
// asks for what is new all the time, as an agent that follows would.
//
//	go test -run xxx -bench FloodCPU -benchtime 3x ./integration
func BenchmarkFloodCPU(b *testing.B) {
	for name, line := range map[string]string{
		"plain":  "seq -f 'a line of a log with some text in it, number %%.0f' 1 %d",
		"colour": "seq -f '\x1b[1;32mok\x1b[0m a line with \x1b[38;5;9mcolours\x1b[m in it, number %%.0f' 1 %d",
		"cjk":    "seq -f '\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587\u306e\u884c\u3001\u756a\u53f7 %%.0f' 1 %d",
	} {
		for _, reader := range []string{"asleep", "following"} {
			b.Run(name+"/"+reader, func(b *testing.B) { floodCPU(b, fmt.Sprintf(line, 500_000), reader == "following") })
		}
	}
}

func floodCPU(b *testing.B, command string, following bool) {
	x := newTmux(b)
	x.start("-s", "main", "-x", "80", "-y", "24", "cat")
	d := x.daemonOf(program(b, false))
	c := d.dial()
	var ours, theirs time.Duration
	for b.Loop() {
		pane := x.run("new-window", "-d", "-P", "-F", "#{pane_id}", "read x; "+command+"; read x")
		var s since
		c.ok(&s, "capture_since", args{"paneId": pane})
		cpu, server := cpuOf(b, d.cmd.Process.Pid), cpuOf(b, x.pid())
		x.run("send-keys", "-t", pane, "Enter")
		for done := false; !done; {
			if following {
				c.ok(&s, "capture_since", args{"paneId": pane, "cursor": s.Cursor, "waitMs": 1000})
			}
			done = strings.Contains(x.run("capture-pane", "-p", "-t", pane), " 500000\n")
			if !done && !following {
				time.Sleep(50 * time.Millisecond) // asking takes tmux's time too
			}
		}
		c.ok(&s, "capture_since", args{"paneId": pane, "cursor": s.Cursor}) // all has come
		ours += cpuOf(b, d.cmd.Process.Pid) - cpu
		theirs += cpuOf(b, x.pid()) - server
		if s.Gap != nil && s.Gap.Reason != "evicted" {
			b.Logf("gap %+v", s.Gap)
		}
		x.run("kill-pane", "-t", pane)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds()/float64(b.N), "daemon-s")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "tmux-s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
}

// cpuOf is the processor time a process has taken so far, in ticks of 10 ms.
func cpuOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip("the kernel tells processor time through /proc only:", err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := 0
	for _, s := range f[11:13] { // utime, stime
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// BenchmarkThousandWaits is the processor time of a daemon in which 1,000 waits
// of wait_for_text are pending on 300 panes, while nothing happens.
// The aim is less than 1 % of a core.
//
//	go test -run xxx -bench ThousandWaits -benchtime 1x ./integration
func BenchmarkThousandWaits(b *testing.B) {
	const panes, waits, perClient = 300, 1000, 50
	x := newTmux(b)
	x.fill(panes)
	d := x.daemonOf(program(b, false))
	c := d.dial()
	for i := range panes {
		c.ok(nil, "capture_since", args{"paneId": fmt.Sprintf("%%%d", i)})
	}
	for b.Loop() {
		var clients []*caller
		for begun := 0; begun < waits; begun += perClient {
			client := d.dial()
			clients = append(clients, client)
			for i := range perClient {
				client.begin("wait_for_text", args{
					"paneId": fmt.Sprintf("%%%d", (begun+i)%panes), "patterns": []string{"never", "no [0-9]+ way"}, "regex": true, "timeoutMs": 55_000,
				})
			}
		}
		time.Sleep(5 * time.Second) // until all of them have begun, and what is periodic is in its stride
		cpu, since := cpuOf(b, d.cmd.Process.Pid), time.Now()
		time.Sleep(20 * time.Second)
		spent, over := cpuOf(b, d.cmd.Process.Pid)-cpu, time.Since(since)
		for _, client := range clients {
			if err := client.by(time.Now().Add(time.Millisecond)); err != nil {
				b.Fatal(err)
			}
			if line, err := client.in.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
				b.Fatalf("a wait ended: %s, %v", line, err)
			}
		}
		b.ReportMetric(100*spent.Seconds()/over.Seconds(), "%-of-a-core")
		b.ReportMetric(float64(residentOf(b, d.cmd.Process.Pid).rss)/1024, "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// begin sends a call whose answer nobody waits for.
func (c *caller) begin(tool string, a args) {
	c.n++
	line, err := json.Marshal(args{"jsonrpc": "2.0", "id": c.n, "method": "tools/call", "params": args{"name": tool, "arguments": a}})
	if err == nil {
		_, err = c.conn.Write(append(line, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
