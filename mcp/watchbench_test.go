package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"tmux-mcpd/controlmode"
)

// BenchmarkWake is how long after a pane has printed a waiting capture_since is
// answered, beside what that cannot do without: the time until a control client of
// the benchmark's own hears of the output, and a call of a tool that does nothing.
// In turns, medians in microseconds. x-floor is wake / (bare + noop); the aim is
// 1.5.
//
//	go test -run xxx -bench Wake -benchtime 500x ./mcp
func BenchmarkWake(b *testing.B) {
	f := newBeside(b)
	tty, bare := f.listen(b, "%5")
	cursor := f.cursor("%5")
	noop := f.noop(b, exchange(f.call, benchCall("capture_since", args{"paneId": "%5", "cursor": cursor})))
	idle := benchCall("noop", args{"paneId": "%1"})
	var woken, heard, idled []float64
	since := func(t0 time.Time) float64 { return float64(time.Since(t0).Nanoseconds()) / 1e3 }
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		exchange(noop, idle)
		idled = append(idled, since(begin))

		// The bare client hears each line; both are asleep when it is printed.
		f.send(benchCall("capture_since", args{"paneId": "%5", "cursor": cursor, "waitMs": 10_000}))
		time.Sleep(3 * time.Millisecond)
		begin = time.Now()
		fmt.Fprintf(tty, "line %d\r\n", i)
		line, err := f.call.r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		woken = append(woken, since(begin))
		cursor = cursorIn(b, line)
		<-bare

		time.Sleep(3 * time.Millisecond)
		begin = time.Now()
		fmt.Fprintf(tty, "line %d again\r\n", i)
		heard = append(heard, float64((<-bare).Sub(begin).Nanoseconds())/1e3)
		cursor = cursorIn(b, exchange(f.call, benchCall("capture_since", args{"paneId": "%5", "cursor": cursor})))
	}
	wake, hear, none := median(woken), median(heard), median(idled)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wake, "wake-us")
	b.ReportMetric(hear, "bare-us")
	b.ReportMetric(none, "noop-us")
	b.ReportMetric(wake/(hear+none), "x-floor")
}

func (f *beside) send(line []byte) {
	if _, err := f.call.Write(line); err != nil {
		f.call.t.Fatal(err)
	}
}

func cursorIn(b *testing.B, line []byte) string {
	var m struct {
		Result struct {
			StructuredContent struct{ Cursor, Text string }
		}
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Result.StructuredContent.Cursor == "" {
		b.Fatalf("no cursor in %s", line)
	}
	return m.Result.StructuredContent.Cursor
}

// listen attaches a control client that receives output, and answers a terminal
// to print on in a pane and when the client has heard of it.
func (f *beside) listen(b *testing.B, pane string) (tty *os.File, heard chan time.Time) {
	heard = make(chan time.Time, 1)
	id, err := controlmode.ParsePaneID(pane)
	if err != nil {
		b.Fatal(err)
	}
	p, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: f.rig.bin, Socket: controlmode.Socket{Path: f.rig.sock}, Session: 0, Flags: []string{"ignore-size"},
		Options: controlmode.Options{Event: func(e controlmode.Event) {
			if o, ok := e.(*controlmode.Output); ok && o.Pane == id && strings.HasSuffix(string(o.Data), "\n") {
				select {
				case heard <- time.Now():
				default:
				}
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	b.Cleanup(func() { p.Close(); <-ended })
	<-p.Ready()
	tty, err = os.OpenFile(f.rig.tmux("display-message", "-p", "-t", pane, "#{pane_tty}"), os.O_RDWR, 0)
	if err == nil {
		_, err = term.MakeRaw(int(tty.Fd()))
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tty.Close() })
	return tty, heard
}

// BenchmarkSince is capture_since from end to end with nothing new and with 100
// new lines, beside a line of commands as it asks and a tool that does nothing
// and answers the same. x-floor as in BenchmarkFloor; x-noop is call / noop.
func BenchmarkSince(b *testing.B) {
	f := newBeside(b)
	tty, _ := f.listen(b, "%5")
	before := f.cursor("%5")
	for i := range 100 {
		fmt.Fprintf(tty, "line %d of a hundred, with a little more text in it\r\n", i)
	}
	at := before
	for text := ""; !strings.Contains(text, "line 99 "); {
		line := exchange(f.call, benchCall("capture_since", args{"paneId": "%5", "cursor": at, "waitMs": 5000}))
		text, at = string(line), cursorIn(b, line)
	}
	grid := controlmode.Cmd("display-message", "-p", "-t", "%5", benchGrid)
	f.measure(b, "nothing", benchCall("capture_since", args{"paneId": "%5", "cursor": at}), nil, grid)
	f.measure(b, "100 lines", benchCall("capture_since", args{"paneId": "%5", "cursor": before}), nil, grid)
}

// BenchmarkSearch is a search over 300 panes, watched and not, beside the list of
// their places and one of their grids. Where others command, the bare client's lists
// come in between, after which all must be listed again; else nobody but the daemon
// commands tmux. The aim is less than 5 ms for watched panes.
func BenchmarkSearch(b *testing.B) {
	f := newBeside(b)
	for i := 30; i < 300; i++ {
		f.rig.tmux("split-window", "-d", "-t", fmt.Sprintf("main:%d", i%30), "seq 1000; exec cat", ";",
			"select-layout", "-t", fmt.Sprintf("main:%d", i%30), "tiled")
	}
	search := benchCall("search_panes", args{"pattern": "no such text"})
	windows := controlmode.Cmd("list-windows", "-a", "-F", benchFormat("window_id session_id window_index window_active", "session_name window_name"))
	places := controlmode.Cmd("list-panes", "-a", "-F", benchFormat("pane_id window_id", ""))
	grids := controlmode.Cmd("list-panes", "-s", "-F", benchFormat(
		"pane_id pane_width pane_height history_size cursor_x cursor_y alternate_on pane_pid pane_dead", ""))
	f.measure(b, "captured", search, nil, windows, places)
	for i := range 300 {
		f.cursor(fmt.Sprintf("%%%d", i))
	}
	f.measure(b, "watched, others command", search, nil, windows, places, grids)
	var ttys []*os.File
	for i := range 5 {
		tty, _ := f.listen(b, fmt.Sprintf("%%%d", 50*i))
		ttys = append(ttys, tty)
	}
	for name, before := range map[string]func(){
		"watched": func() {},
		"watched, five print": func() {
			for _, tty := range ttys {
				fmt.Fprint(tty, "text\r\n")
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				before()
				begin := time.Now()
				exchange(f.call, search)
				took = append(took, float64(time.Since(begin).Nanoseconds())/1e3)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "call-us")
		})
	}
}
