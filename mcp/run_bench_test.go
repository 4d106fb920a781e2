package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// BenchmarkRunTrue is a run of `true`, from call to answer, beside the shell's own
// time: from typing `true` to its next prompt.
func BenchmarkRunTrue(b *testing.B) {
	r := newRig(b, nil).start()
	pane := r.shellPane(plainBash)
	id, _ := controlmode.ParsePaneID(pane)
	raw, _ := json.Marshal(args{"paneId": pane, "command": "true"})
	r.call("run_shell_command", args{"paneId": pane, "command": "true"}) // watched from here on
	prompt := func() {
		r.table.mirror.AwaitWaiting(b.Context(), id, patience, func(w state.Waiting) bool { return w.For == state.WaitsPrompt })
	}
	var own, run []time.Duration
	for b.Loop() {
		prompt()
		_, at, err := r.table.mirror.StartWatch(b.Context(), id, state.CaptureRange{})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		c := &call{table: r.table, caller: r.caller, policy: r.table.policyOf(r.caller)}
		c.arrival = c.policy.arrive(r.table.mirror, 0)
		err = c.guard(context.Background(), inputTo(id, false), func(g *guarded) error { return g.write(b.Context(), typeLine(id, "true")) })
		for lines := 0; err == nil && lines < 2; { // the echo, and the prompt behind it
			var s *state.Since
			s, err = r.table.mirror.Since(b.Context(), id, at, state.SinceOptions{Wait: patience})
			if err == nil {
				lines, at = lines+s.Lines, s.Cursor
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		own = append(own, time.Since(began))
		prompt()
		began = time.Now()
		if res, err := r.table.call(b.Context(), r.caller, "run_shell_command", raw, nil); err != nil || res.IsError {
			b.Fatal(res, err)
		}
		run = append(run, time.Since(began))
	}
	slices.Sort(own)
	slices.Sort(run)
	median := func(d []time.Duration) float64 { return float64(d[len(d)/2].Microseconds()) / 1000 }
	b.ReportMetric(median(own), "ms-own")
	b.ReportMetric(median(run), "ms-run")
}
