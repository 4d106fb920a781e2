package state

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// benchMirror runs a Mirror on a server with panes panes of cat, ten a window.
func benchMirror(b *testing.B, panes int) (*Mirror, *testTmux) {
	x := newTmux(b)
	x.run("new-session", "-d", "-s", "main", "-x", "200", "-y", "100", "cat")
	for i := 1; i < panes; i++ {
		if i%10 == 0 {
			x.run("new-window", "-d", "-t", fmt.Sprintf("main:%d", i/10), "cat")
			continue
		}
		x.run("split-window", "-d", "-t", fmt.Sprintf("main:%d", i/10), "cat")
		x.run("select-layout", "-t", fmt.Sprintf("main:%d", i/10), "tiled")
	}
	return x.mirror(func(c *Config) { c.Log = zap.NewNop() }), x
}

func bare(b *testing.B, m *Mirror, req controlmode.Request) {
	ctx := context.Background()
	for b.Loop() {
		if _, err := m.Do(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkState(b *testing.B) {
	for _, n := range []int{30, 300} {
		m, _ := benchMirror(b, n)
		ctx := context.Background()
		if _, err := m.Arrive(Full).Model(ctx, Full); err != nil {
			b.Fatal(err)
		}
		name := func(s string) string { return fmt.Sprintf("%s/%d", s, n) }
		b.Run(name("bare-display-message"), func(b *testing.B) {
			bare(b, m, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "x")}})
		})
		b.Run(name("bare-list-panes"), func(b *testing.B) {
			bare(b, m, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("list-panes", "-a", "-F", paneListing.format)}})
		})
		b.Run(name("panes"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Arrive(Panes|Clients).Model(ctx, Panes|Clients); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name("full"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Arrive(Full).Model(ctx, Full); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name("one-pane"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Arrive(0).Pane(ctx, 5); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name("bare-capture"), func(b *testing.B) {
			bare(b, m, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("capture-pane", "-p", "-t", "%5")}})
		})
		b.Run(name("capture"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Capture(ctx, 5, CaptureRange{MaxRows: 200, RowBytes: 1e6}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name("snapshot"), func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Snapshot(ctx, 5); err != nil {
					b.Fatal(err)
				}
			}
		})
		_, at, err := m.StartWatch(ctx, 5, CaptureRange{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name("since-nothing"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Since(ctx, 5, at, SinceOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
