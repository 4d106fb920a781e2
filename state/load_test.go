package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// crowd runs a Mirror on a server with 300 panes in 100 sessions.
func crowd(b *testing.B) (*Mirror, *testTmux) {
	x := newTmux(b)
	for i := range 100 {
		x.run("new-session", "-d", "-s", fmt.Sprintf("s%d", i), "-x", "120", "-y", "40", "cat", ";",
			"split-window", "-d", "cat", ";", "split-window", "-d", "cat")
	}
	m := x.mirror(func(c *Config) { c.Log = zap.NewNop() })
	if mod := fullB(b, m); len(mod.Panes) != 300 || len(mod.Sessions) != 100 {
		b.Fatalf("%d panes in %d sessions", len(mod.Panes), len(mod.Sessions))
	}
	return m, x
}

func fullB(b *testing.B, m *Mirror) *Model {
	mod, err := m.Arrive(Full).Model(context.Background(), Full)
	if err != nil {
		b.Fatal(err)
	}
	return mod
}

// second attaches a control client of somebody else.
func (x *testTmux) second(b *testing.B) *controlmode.Process {
	p, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: x.bin, Socket: controlmode.Socket{Path: x.sock}, Flags: []string{"ignore-size", "no-output"},
	})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(context.Background()) }()
	b.Cleanup(func() { p.Close(); <-ended })
	<-p.Ready()
	return p
}

func ask(b *testing.B, p *controlmode.Process, words ...string) time.Duration {
	begin := time.Now()
	_, err := p.Do(context.Background(), controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd(words[0], words[1:]...)}})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds())
}

// BenchmarkReadsBesideBareCommands takes turns between a read of ours and the
// bare command of the same content, so that both see the same machine. The
// metrics are medians in microseconds and their ratio.
func BenchmarkReadsBesideBareCommands(b *testing.B) {
	m, x := crowd(b)
	p := x.second(b)
	ctx := context.Background()
	for _, c := range []struct {
		name string
		read func() error
		bare []string
	}{
		// The refresh itself: after a long one the next read waits, on purpose.
		{
			"full against list-panes -a", func() error { _, err := m.ask(ctx, Full); return err },
			[]string{"list-panes", "-a", "-F", paneListing.format},
		},
		{
			"pane against display-message", func() error { _, err := m.Arrive(0).Pane(ctx, 150); return err },
			[]string{"display-message", "-p", "-t", "%150", "x"},
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, bare []time.Duration
			for b.Loop() {
				begin := time.Now()
				if err := c.read(); err != nil {
					b.Fatal(err)
				}
				ours = append(ours, time.Since(begin))
				bare = append(bare, ask(b, p, c.bare...))
			}
			b.ReportMetric(median(ours), "read-us")
			b.ReportMetric(median(bare), "bare-us")
			b.ReportMetric(median(ours)/median(bare), "ratio")
		})
	}
}

// BenchmarkPolled is how long a bare command of somebody else takes while eight
// readers list 300 panes without a pause, against how long it takes idle.
func BenchmarkPolled(b *testing.B) {
	m, x := crowd(b)
	p := x.second(b)
	var idle, polled []time.Duration
	for range 300 {
		idle = append(idle, ask(b, p, "display-message", "-p", "x"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := m.Arrive(Panes|Clients).Model(ctx, Panes|Clients); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		})
	}
	before := m.Status().Refreshes
	for b.Loop() {
		polled = append(polled, ask(b, p, "display-message", "-p", "x"))
	}
	b.ReportMetric(float64(m.Status().Refreshes-before)/b.Elapsed().Seconds(), "refreshes/s")
	cancel()
	wg.Wait()
	b.ReportMetric(median(idle), "idle-us")
	b.ReportMetric(median(polled), "polled-us")
	b.ReportMetric(median(polled)/median(idle), "ratio")
}

// listed is what tmux answers to ask(Full) with n panes, three a session.
func listed(n int) []controlmode.BlockEnd {
	table := func(l listing, n int, ids func(i int) []string) controlmode.BlockEnd {
		var body strings.Builder
		for i := range n {
			head := ids(i)
			for w := range l.words {
				if w < len(head) {
					body.WriteString(head[w] + ",")
				} else {
					body.WriteString("1,")
				}
			}
			body.WriteString(strings.Repeat(`some\ text|`, l.texts) + "\n")
		}
		return controlmode.BlockEnd{Body: []byte(body.String())}
	}
	return []controlmode.BlockEnd{
		table(sessionListing, n/3, func(i int) []string { return []string{fmt.Sprintf("$%d", i)} }),
		table(windowListing, n/3, func(i int) []string {
			return []string{fmt.Sprintf("@%d", i), fmt.Sprintf("$%d", i), "0", "1", "0", "3", "80", "24", fmt.Sprintf("%%%d", 3*i)}
		}),
		table(paneListing, n, func(i int) []string {
			return []string{fmt.Sprintf("%%%d", i), fmt.Sprintf("@%d", i/3), fmt.Sprintf("$%d", i/3)}
		}),
		table(clientListing, 2, func(i int) []string { return []string{fmt.Sprint(i + 1), "1", "$0", "@0", "%0", "0"} }),
	}
}

// A refresh allocates in proportion to what it lists and little by itself: at
// most 24 times per pane (with its share of windows and sessions) and 100 more.
func TestRefreshAllocatesLinearly(t *testing.T) {
	allocs := func(panes int) float64 {
		blocks := listed(panes)
		return testing.AllocsPerRun(20, func() {
			mod := &Model{Have: Full}
			if err := mod.fill(blocks, func(int) bool { return true }); err != nil || len(mod.Panes) != panes {
				t.Fatal(err)
			}
		})
	}
	few, many, most := allocs(30), allocs(300), allocs(3000)
	t.Logf("allocations: %v for 30 panes, %v for 300, %v for 3000", few, many, most)
	for panes, n := range map[float64]float64{30: few, 300: many, 3000: most} {
		if n > 100+24*panes {
			t.Errorf("%v allocations for %v panes", n, panes)
		}
	}
	if most > 12*many {
		t.Errorf("ten times the panes take %v times the allocations", most/many)
	}
}
