package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// paneStart is how long a new pane's shell may take to read its rc files.
const paneStart = 10 * time.Second

// startBeside makes a pane beside another and starts a run in it. Neither focus
// nor zoom changes. The pane stays, with the shell in it, until the output has
// been read: what the last program of a pane prints can be lost with it (O14).
func (c *call) startBeside(ctx context.Context, id controlmode.PaneID, opt state.RunOptions) (string, error) {
	m, err := c.arrival.Pane(ctx, id)
	if err != nil {
		return "", err
	}
	p, ok := m.Pane(id)
	if !ok {
		return "", fmt.Errorf("pane %s: %w", id, state.ErrNotFound)
	}
	split := []string{"-d", "-P", "-F", "#{pane_id}", "-t", id.String(), "-c", "#{pane_current_path}"}
	if p.Zoomed {
		split = append(split, "-Z")
	}
	bodies, err := c.write(ctx, write{
		life: m.Server.ID, commands: []controlmode.Command{controlmode.Cmd("split-window", split...)}, look: "list_panes",
		extent: extent{windows: []controlmode.WindowID{p.Window}},
	})
	if err != nil {
		return "", err
	}
	made, err := controlmode.ParsePaneID(strings.TrimSpace(bodies[0]))
	if err != nil {
		return "", fmt.Errorf("tmux answered split-window with %q: %w", bodies[0], err)
	}
	opt.NewPane, opt.Ready = true, paneStart
	run, err := c.start(ctx, made, opt, false)
	if err != nil {
		if run == "" {
			c.removePane(ctx, made)
		}
		return run, err
	}
	return run, nil
}

// remains reads what the pane of a run still shows that was made for it, where the
// output went with an earlier daemon: all there is of it, before the pane goes.
func (c *call) remains(ctx context.Context, v state.Run, limit *int64, text *state.RunText) bool {
	if !v.NewPane || !v.Restarted || !v.Ended() || !c.table.mirror.SameProcess(ctx, v.ID) {
		return false
	}
	r := c.captureRange(captureArgs{JoinWrapped: true, MaxLines: limit, History: true})
	shot, err := c.arrival.Capture(ctx, v.Pane, r)
	if err != nil {
		return false
	}
	first := -shot.HistorySize
	if shot.Start != nil {
		first = max(first, *shot.Start)
	}
	c.redactShot(ctx, v.Pane, shot, first, shot.Height-1)
	s := newest(screenText(shot), c.lines(limit))
	text.Text, text.Lines, text.OmittedBytes = s.text, s.lines-s.dropped, s.omitted
	text.DroppedLines = s.dropped + first + shot.HistorySize
	return true
}

// tidy removes the pane that was made for a run that has ended and whose output
// has been read: unless somebody uses it now, or looks at it.
func (c *call) tidy(ctx context.Context, v state.Run) {
	if !v.NewPane || !v.Ended() {
		return
	}
	if _, busy := c.table.mirror.ActiveRun(v.Pane); busy {
		return
	}
	if !c.table.mirror.SameProcess(ctx, v.ID) {
		return // the pane is somebody else's now
	}
	if w, err := c.table.mirror.Waiting(ctx, v.Pane); err != nil || w.For != state.WaitsPrompt && w.For != state.WaitsDead {
		return
	}
	c.removePane(ctx, v.Pane)
}

// removePane kills a pane that this daemon made. A pane that is attended stays, and
// so does the last one of its window, which would take more with it.
func (c *call) removePane(ctx context.Context, id controlmode.PaneID) {
	// What keeps it is no fault of the call: list_panes shows it.
	_ = c.guard(ctx, endOfPane(id, false), func(g *guarded) error {
		if len(g.model.Panes) == 1 {
			return nil
		}
		return g.write(ctx, controlmode.Cmd("kill-pane", "-t", id.String()))
	})
}
