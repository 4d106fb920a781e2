package mcp

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// TestStateInMetadata: get_pane_info and snapshot_pane tell what a pane waits
// for, alone and inside a batch, and in their text.
func TestStateInMetadata(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("what a terminal waits for is read from /proc, which this system lacks")
	}
	r := newRig(t, nil).start()
	r.ok("list_panes", args{}) // attached: tmux 3.3a can die of a change during that
	cat, err := controlmode.ParsePaneID(r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "exec cat"))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := r.table.mirror.AwaitWaiting(t.Context(), cat, patience, func(w state.Waiting) bool { return w.For == state.WaitsLine }); w.For != state.WaitsLine {
		t.Fatalf("%+v, %v", w, err)
	}
	for _, name := range []string{"get_pane_info", "snapshot_pane"} {
		res := r.call(name, args{"paneId": cat.String()})
		got, ok := res.Meta[metaState].(waitingState)
		if !ok || got.WaitingFor != state.WaitsLine || !strings.HasPrefix(got.Evidence, "cat reads a line") {
			t.Errorf("%s: %+v", name, res.Meta)
		}
		if !strings.Contains(res.Text, "[waiting for line: cat reads a line") {
			t.Errorf("%s: text %q", name, res.Text)
		}
		ops := []args{{"tool": name, "arguments": args{"paneId": cat.String()}}}
		batch := readAnswer(t, r.call(batchName, args{"operations": ops}).encode(json.RawMessage("1"))).StructuredContent
		var nested struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(batch.Results[0].Result, &nested); err != nil {
			t.Fatal(err)
		}
		got = waitingState{}
		if err := json.Unmarshal(nested.Meta[metaState], &got); err != nil || got.WaitingFor != state.WaitsLine {
			t.Errorf("%s in a batch: %s", name, batch.Results[0].Result)
		}
	}
	r.tmux("copy-mode", "-t", cat.String())
	if got := r.call("snapshot_pane", args{"paneId": cat.String()}).Meta[metaState].(waitingState); got.WaitingFor != state.WaitsMode {
		t.Errorf("in copy mode: %+v", got)
	}
}
