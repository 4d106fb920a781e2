package state

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"tmux-mcpd/controlmode"
)

// screens are the visible screens of several panes, asked for in one line of
// commands: one round trip, and all of one instant.
type screens struct {
	panes  []controlmode.PaneID
	once   sync.Once
	bodies map[controlmode.PaneID][]byte // nil if the line failed
}

// Share declares the panes whose visible screens will be captured through this
// Arrival with RowsOnly. They then come with one request. It must be called
// before the first Capture.
func (a *Arrival) Share(panes []controlmode.PaneID) {
	panes = slices.Clone(panes)
	slices.Sort(panes)
	a.screens.panes = slices.Compact(panes)
}

// Capture is Mirror.Capture, sharing the request where Share has said so.
func (a *Arrival) Capture(ctx context.Context, id controlmode.PaneID, r CaptureRange) (*Capture, error) {
	if _, shared := slices.BinarySearch(a.screens.panes, id); shared && r.rowsOnly() && len(a.screens.panes) > 1 {
		a.screens.once.Do(func() { a.screens.take(ctx, a.m) })
		if body, ok := a.screens.bodies[id]; ok {
			if c := r.rows(body, a.m.knownWidth(id)); c != nil {
				return c, nil
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return a.m.Capture(ctx, id, r)
}

// take asks for all screens. If a pane is gone tmux drops what follows in the
// line; then each pane is asked for alone, and its own error found.
func (s *screens) take(ctx context.Context, m *Mirror) {
	cmds := make([]controlmode.Command, 0, len(s.panes))
	for _, id := range s.panes {
		cmds = append(cmds, captureCmd(id, Capture{}, false))
	}
	blocks, err := m.onStructure(ctx, controlmode.Request{Commands: cmds, Fence: true})
	if err != nil {
		return
	}
	s.bodies = make(map[controlmode.PaneID][]byte, len(blocks))
	for i, b := range blocks {
		s.bodies[s.panes[i]] = b.Body
	}
}

// rowsOnly tells whether the screen's rows alone will do.
func (r CaptureRange) rowsOnly() bool {
	return r.RowsOnly && r.Start == nil && r.End == nil && !r.Join
}

// rows is the Capture of a visible screen of which nothing else was asked. tmux
// prints blank rows too, so their number is the present height. nil if that is
// more than the range allows, or the width is not known. The width may have
// grown since; the byte limit on the text holds all the same, it is only not
// foreseen.
func (r CaptureRange) rows(body []byte, width int) *Capture {
	c, none := r.effective(width, bytes.Count(body, []byte("\n")))
	if width == 0 || none || c.RangeClamped {
		return nil
	}
	c.Lines = cleanLines(body)
	return &c
}

// knownWidth is the newest known width of a pane, 0 if there is none.
func (m *Mirror) knownWidth(id controlmode.PaneID) int {
	if p, ok := m.Model().Pane(id); ok {
		return p.Width
	}
	return 0
}
