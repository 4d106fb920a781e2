package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"tmux-mcpd/controlmode"
)

// BenchmarkFloor is read tools from end to end, on a tmux with 30 panes, beside
// what they cannot do without, in turns, so that a noisy machine is noisy to all
// alike:
//
//   - bare: a round trip of a control client of the benchmark's own with the
//     commands that the daemon sends for the call;
//   - noop: a call on our transport of a tool that does nothing and answers
//     the same bytes.
//
// The figures are medians, in microseconds. x-floor is call / (bare + noop); the
// aim is 2. x-one is a batch of 16 captures / one capture; the aim is 4.
//
//	go test -run xxx -bench Floor ./mcp
func BenchmarkFloor(b *testing.B) {
	f := newBeside(b)
	paneList := controlmode.Cmd("list-panes", "-a", "-F", benchPanes)
	clientList := controlmode.Cmd("list-clients", "-F", benchClientFormat)
	grid := controlmode.Cmd("display-message", "-p", "-t", "%5", benchGrid)
	capture := func(pane string) controlmode.Command { return controlmode.Cmd("capture-pane", "-p", "-t", pane) }

	f.measure(b, "list_panes", benchCall("list_panes", args{}), nil, paneList, clientList)
	one := benchCall("capture_pane", args{"paneId": "%5"})
	f.measure(b, "capture_pane", one, nil, capture("%5"))
	var ops []args
	var captures []controlmode.Command
	for i := range maxOperations {
		pane := fmt.Sprintf("%%%d", i)
		ops = append(ops, args{"tool": "capture_pane", "arguments": args{"paneId": pane}})
		captures = append(captures, capture(pane))
	}
	f.measure(b, "batch of 16", benchCall(batchName, args{"operations": ops}), one, captures...)
	f.measure(b, "capture_since", benchCall("capture_since", args{"paneId": "%5", "cursor": f.cursor("%5")}), nil, grid)
	f.measure(b, "snapshot_pane", benchCall("snapshot_pane", args{"paneId": "%5"}), nil,
		controlmode.Cmd("display-message", "-p", "-t", "%5", benchPanes), clientList, grid, capture("%5"))
}

// benchCall is the line of a call.
func benchCall(tool string, a args) []byte {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return []byte(callLine("1", tool, string(raw)) + "\n")
}

// Formats of the daemon's listings (state/query.go), field by field.
var (
	benchPanes = benchFormat("pane_id window_id session_id window_index pane_index pane_width pane_height pane_active "+
		"window_zoomed_flag pane_at_top pane_at_bottom pane_at_left pane_at_right pane_pid pane_dead pane_dead_status "+
		"pane_dead_signal pane_in_mode pane_input_off pane_synchronized alternate_on window_active",
		"session_name window_name pane_tty pane_mode pane_current_command pane_current_path pane_title")
	benchClientFormat = benchFormat("client_pid client_control_mode session_id window_id pane_id window_zoomed_flag",
		"client_name client_flags")
	benchGrid = benchFormat("pane_id pane_width pane_height history_size cursor_x cursor_y scroll_position alternate_on "+
		"pane_pid pane_dead history_limit", "")
)

func benchFormat(words, texts string) string {
	var s strings.Builder
	for _, w := range strings.Fields(words) {
		s.WriteString("#{" + w + "},")
	}
	for _, w := range strings.Fields(texts) {
		s.WriteString("#{q:" + w + "}|")
	}
	return s.String()
}

// beside is the daemon, in this process, and what it is compared with.
type beside struct {
	log  *zap.Logger
	rig  *rig
	call *wire
	bare *controlmode.Process
}

func newBeside(b *testing.B) *beside {
	r := newRig(b, nil)
	r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "seq 1000; exec cat")
	for range 29 {
		r.tmux("new-window", "-d", "-t", "main:", "seq 1000; exec cat")
	}
	// Each call is logged as in the daemon.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { null.Close() })
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(null), zap.InfoLevel))
	path := benchServe(b, newServer(Config{Log: log}, r.table))
	f := &beside{log: log, rig: r, call: benchDial(b, path), bare: benchAttach(b, r)}
	exchange(f.call, benchCall("get_server_info", args{})) // the daemon is attached
	return f
}

// benchAttach attaches a control client of the benchmark's own.
func benchAttach(b *testing.B, r *rig) *controlmode.Process {
	p, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: r.bin, Socket: controlmode.Socket{Path: r.sock}, Session: 0, Flags: []string{"ignore-size", "no-output"},
	})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	b.Cleanup(func() {
		p.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case <-p.Ready():
	case <-time.After(patience):
		b.Fatal("the control client does not attach")
	}
	return p
}

func (f *beside) cursor(pane string) string {
	var m struct {
		Result struct{ StructuredContent struct{ Cursor string } }
	}
	line := exchange(f.call, benchCall("capture_since", args{"paneId": pane}))
	if err := json.Unmarshal(line, &m); err != nil || m.Result.StructuredContent.Cursor == "" {
		f.call.t.Fatalf("no cursor in %s", line)
	}
	return m.Result.StructuredContent.Cursor
}

// exchange sends a line and returns the next one, until the following read.
func exchange(w *wire, line []byte) []byte {
	if _, err := w.Write(line); err != nil {
		w.t.Fatal(err)
	}
	got, err := w.r.ReadSlice('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// measure compares a call with the line of commands and with a no-op of the same
// answer, and with the call one if that is not nil.
func (f *beside) measure(b *testing.B, name string, call, one []byte, commands ...controlmode.Command) {
	b.Run(name, func(b *testing.B) {
		noop := f.noop(b, exchange(f.call, call))
		idle := benchCall("noop", args{"paneId": "%1"})
		req := controlmode.Request{Commands: commands, Fence: true}
		turns := []func(){
			func() { exchange(f.call, call) },
			func() {
				reply, err := f.bare.Do(context.Background(), req)
				if err == nil {
					err = reply.Err(req)
				}
				if err != nil {
					b.Fatal(err)
				}
			},
			func() { exchange(noop, idle) },
		}
		if one != nil {
			turns = append(turns, func() { exchange(f.call, one) })
		}
		took := make([][]float64, len(turns))
		for b.Loop() {
			for i, run := range turns {
				begin := time.Now()
				run()
				took[i] = append(took[i], float64(time.Since(begin).Nanoseconds())/1e3)
			}
		}
		whole, bare, idled := median(took[0]), median(took[1]), median(took[2])
		b.ReportMetric(0, "ns/op") // of all together: says nothing
		b.ReportMetric(whole, "call-us")
		b.ReportMetric(bare, "bare-us")
		b.ReportMetric(idled, "noop-us")
		b.ReportMetric(whole/(bare+idled), "x-floor")
		b.ReportMetric(whole/idled, "x-noop")
		if one != nil {
			b.ReportMetric(whole/median(took[3]), "x-one")
		}
	})
}

// noop serves a tool that does nothing and gives the result in a line, its calls
// logged as all are.
func (f *beside) noop(b *testing.B, line []byte) *wire {
	var m struct {
		Result struct {
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
			Meta              map[string]any `json:"_meta"`
			IsError           bool
		}
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Result.IsError || len(m.Result.Content) != 1 {
		b.Fatalf("not an answer: %s", line)
	}
	return benchDial(b, benchServe(b, newServer(Config{Log: f.log}, &noop{&toolResult{
		Text: m.Result.Content[0].Text, Structured: m.Result.StructuredContent, Meta: m.Result.Meta,
	}})))
}

func median(t []float64) float64 {
	slices.Sort(t)
	return t[len(t)/2]
}
