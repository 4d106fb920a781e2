package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestBatchIsOneRefresh: however many operations read the model, tmux is asked
// for it once.
func TestBatchIsOneRefresh(t *testing.T) {
	r := newRig(t, nil).start()
	r.ok("list_panes", nil)
	ops := []args{
		{"tool": "list_panes"},
		{"tool": "list_sessions"},
		{"tool": "list_windows"},
		{"tool": "get_pane_info", "arguments": args{"paneId": "%0"}},
		{"tool": "get_window_info", "arguments": args{"windowId": "@0"}},
		{"tool": "get_session_info", "arguments": args{"session": "main"}},
		{"tool": "get_server_info"},
		{"tool": "find_pane_by_position", "arguments": args{"windowId": "@0", "corner": "top-left"}},
		{"tool": "list_panes", "arguments": args{"session": "main"}},
	}
	// The mirror also refreshes by itself, now and then, when tmux hints at a
	// change: not in each of ten batches.
	least := uint64(1 << 32)
	for range 10 {
		before := r.table.mirror.Status().Refreshes
		v := r.ok(batchName, args{"operations": ops})
		if v["succeeded"] != float64(len(ops)) {
			t.Fatalf("%v", v)
		}
		least = min(least, r.table.mirror.Status().Refreshes-before)
	}
	if least != 1 {
		t.Errorf("%d refreshes for one batch", least)
	}
}

// TestBatchLooksAgainAfterAWait: what changed while an operation waited is in
// the rows after it; the rows before it show what was.
func TestBatchLooksAgainAfterAWait(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("select-pane", "-t", "%0", "-T", "before")
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	info := args{"tool": "get_pane_info", "arguments": args{"paneId": "%0"}}
	wait := args{"tool": "capture_since", "arguments": args{"paneId": "%0", "cursor": cursor, "waitMs": 30_000}}
	raw, err := json.Marshal(args{"operations": []args{info, wait, info}})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan answerOf, 1)
	before := r.table.mirror.Status().Refreshes
	go func() {
		res, err := r.table.call(context.Background(), r.caller, batchName, raw, nil)
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		answered <- readAnswer(t, res.encode(json.RawMessage("1")))
	}()
	// The first row's refresh is over once the count says so; nothing refreshes
	// after it until the wait has ended.
	r.until(func() bool { return r.table.mirror.Status().Refreshes > before })
	r.tmux("select-pane", "-t", "%0", "-T", "after")
	select {
	case a := <-answered:
		t.Fatalf("answered without waiting: %+v", a.StructuredContent)
	default:
	}
	r.tmux("send-keys", "-t", "%0", "text", "Enter")
	a, ok := <-answered
	if !ok || a.StructuredContent == nil || len(a.StructuredContent.Results) != 3 {
		t.Fatalf("%+v", a)
	}
	var titles []string
	for _, i := range []int{0, 2} {
		var row struct {
			StructuredContent struct{ Pane struct{ Title string } }
		}
		if err := json.Unmarshal(a.StructuredContent.Results[i].Result, &row); err != nil {
			t.Fatal(err)
		}
		titles = append(titles, row.StructuredContent.Pane.Title)
	}
	if titles[0] != "before" || titles[1] != "after" {
		t.Errorf("titles %q", titles)
	}
}

// TestBatchCountsWhatItLeavesOut: what a batch leaves out is the largest
// result, and the count is what that result takes alone, less "null".
func TestBatchCountsWhatItLeavesOut(t *testing.T) {
	r := newRig(t, map[string]string{envMaxLines: "10000"}).start()
	r.tmux("set-option", "-g", "history-limit", "2000")
	// Two bytes for each cell: a capture is 2 x 60 kB.
	long := r.printed("long", `'%s\n' $(yes `+strings.Repeat("\u00e9", 79)+` | head -n 1000)`)
	capture := args{"paneId": long, "start": -900}
	wide := args{"tool": "capture_pane", "arguments": capture}
	less := args{"tool": "capture_pane", "arguments": args{"paneId": long, "start": -100}}
	ops := []args{less, wide, less}
	for len(ops) < maxOperations {
		ops = append(ops, wide)
	}
	s := readAnswer(t, r.call(batchName, args{"operations": ops}).encode(json.RawMessage("1"))).StructuredContent
	alone := len(encodeNested(r.call("capture_pane", capture)))
	out := 0
	for i, row := range s.Results {
		if row.ResultTruncated {
			out++
			if i == 0 || i == 2 {
				t.Errorf("row %d is left out, and is not the largest", i)
			}
		}
		if !row.Success {
			t.Errorf("row %d: %v", i, *row.Error)
		}
	}
	if out == 0 || s.TruncatedBytes != out*(alone-len("null")) || !s.Truncated || s.Succeeded != maxOperations {
		t.Errorf("%d left out, %d bytes; one alone takes %d", out, s.TruncatedBytes, alone)
	}
}
