package mcp

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// BenchmarkWaitWake is the time from a program's write to the answer of a
// wait_for_text, beside the time until a bare control client on the same
// transport has the output, and a no-op call. The ratio is that of the medians,
// wake to bare and no-op together: it is to stay below 1.5, and below 2 with
// 1,000 waits pending or another pane flooding.
//
//	go test -run xxx -bench WaitWake ./mcp
func BenchmarkWaitWake(b *testing.B) {
	for _, beside := range []string{"nothing", "1000-waits", "flood"} {
		b.Run(beside, func(b *testing.B) {
			r := newRigOn(b, "", nil)
			r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "--", "stty raw -echo; exec cat")
			path := benchServe(b, newServer(Config{}, r.table))
			idle := benchServe(b, newServer(Config{}, &noop{screenResult(200)}))
			switch beside {
			case "1000-waits":
				ctx, cancel := context.WithCancel(context.Background())
				_, all := r.manyWaits(ctx, r.panes(20), 50)
				defer all.Wait()
				defer cancel()
			case "flood":
				flood := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "yes")
				r.cursorOf(flood)
			}
			r.cursorOf("%0")
			benchWake(b, r, benchDial(b, path), benchDial(b, idle))
		})
	}
}

func benchWake(b *testing.B, r *rig, w, idle *wire) {
	tty, err := os.OpenFile(r.tmux("display-message", "-p", "-t", "%0", "#{pane_tty}"), os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer tty.Close()
	heard := make(chan time.Time, 1)
	bare, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: r.bin, Socket: controlmode.Socket{Path: r.sock}, Session: 0, Flags: []string{"ignore-size", "pause-after=3"},
		Options: controlmode.Options{Event: func(e controlmode.Event) {
			if out, ok := e.(*controlmode.Output); ok && out.Pane == 0 && bytes.Contains(out.Data, []byte("MARK")) {
				heard <- time.Now()
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bare.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	<-bare.Ready()
	followers := r.table.mirror.Status().Followers
	var wakes, bares, noops []time.Duration
	for n := 0; b.Loop(); n++ {
		w.call(n, "wait_for_text", fmt.Sprintf(`{"paneId":"%%0","patterns":["MARK %d."]}`, n))
		for r.table.mirror.Status().Followers == followers {
			time.Sleep(50 * time.Microsecond)
		}
		begin := time.Now()
		fmt.Fprintf(tty, "MARK %d.\r\n", n)
		w.line()
		wakes = append(wakes, time.Since(begin))
		bares = append(bares, (<-heard).Sub(begin))
		for r.table.mirror.Status().Followers != followers {
			time.Sleep(50 * time.Microsecond)
		}
		begin = time.Now()
		idle.call(n, "noop", `{"paneId":"%1"}`)
		idle.line()
		noops = append(noops, time.Since(begin))
	}
	us := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds())
	}
	wake, alone, call := us(wakes), us(bares), us(noops)
	b.ReportMetric(wake, "wake-µs")
	b.ReportMetric(alone, "bare-µs")
	b.ReportMetric(call, "noop-µs")
	b.ReportMetric(wake/(alone+call), "ratio")
}

// BenchmarkWaitCancel is the time from a client's cancelling until nothing of the
// wait is left in the mirror, with 1,000 others pending. The aim is 50 ms.
//
//	go test -run xxx -bench WaitCancel -benchtime 200x ./mcp
func BenchmarkWaitCancel(b *testing.B) {
	r := newRigOn(b, "", nil)
	r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat")
	w := benchDial(b, benchServe(b, newServer(Config{}, r.table)))
	ctx, cancel := context.WithCancel(context.Background())
	_, all := r.manyWaits(ctx, r.panes(20), 50)
	defer all.Wait()
	defer cancel()
	r.cursorOf("%0")
	followers := func() int { return r.table.mirror.Status().Followers }
	before := followers()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		w.call(n, "wait_for_text", waitLong)
		for followers() == before {
			time.Sleep(50 * time.Microsecond)
		}
		begin := time.Now()
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
		for followers() != before {
			time.Sleep(20 * time.Microsecond)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "worst-µs")
}
