package state

import (
	"context"
	"maps"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// Shown is what watched panes show by their transcripts, which had taken in all
// that tmux had received from them when it was asked for (P1). A pane is left
// out while its transcript does not stand for its screen; it is to be captured.
type Shown struct {
	panes map[controlmode.PaneID]shownPane
}

type shownPane struct {
	out    *Output
	stream *stream
	// layouts is how often the stream client had been told of a new layout.
	layouts uint64
}

// ShownLine is a logical line of what a pane shows. At is the place in the pane's
// output just after what last changed the line.
type ShownLine struct {
	Text string
	At   Cursor
}

// shownPatience is how long Shown waits: behind a flood an answer may take
// seconds on a stream client, where a capture takes none.
const shownPatience = 250 * time.Millisecond

// Shown looks which of the panes can be read from their transcripts. It takes
// one round trip, on all stream clients at once.
func (m *Mirror) Shown(ctx context.Context, ids []controlmode.PaneID) *Shown {
	byStream := map[*stream]map[controlmode.PaneID]*Output{}
	for _, id := range ids {
		if s, out := m.watches.liveStream(id); s != nil {
			if byStream[s] == nil {
				byStream[s] = map[controlmode.PaneID]*Output{}
			}
			byStream[s][id] = out
		}
	}
	ctx, cancel := context.WithTimeout(ctx, shownPatience)
	defer cancel()
	shown := &Shown{panes: map[controlmode.PaneID]shownPane{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for s, outs := range byStream {
		wg.Go(func() {
			found := s.shown(ctx, outs)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(shown.panes, found)
		})
	}
	wg.Wait()
	return shown
}

// shown finds the panes that are still in the client's session and whose
// transcripts agree with their grids at the instant of one answer.
func (s *stream) shown(ctx context.Context, outs map[controlmode.PaneID]*Output) map[controlmode.PaneID]shownPane {
	var layouts uint64
	probes := make(map[controlmode.PaneID]probe, len(outs))
	blocks, err := s.ask(ctx, controlmode.Request{
		Commands: []controlmode.Command{controlmode.Cmd("list-panes", "-s", "-t", s.session.String(), "-F", shownListing.format)},
		Fence:    true,
		Begin: func(i int) {
			if i == 0 {
				layouts = s.layouts.Load()
				for id, out := range outs {
					probes[id] = out.probe()
				}
			}
		},
	})
	if err != nil {
		return nil
	}
	found := map[controlmode.PaneID]shownPane{}
	err = shownListing.each(blocks[0].Body, func(r *row) {
		id := controlmode.PaneID(r.id(0, '%'))
		g := grid{
			width: r.num(1), height: r.num(2), history: r.num(3), cursorX: r.num(4), cursorY: r.num(5),
			alternate: r.flag(6), pid: r.num(7), dead: r.flag(8),
		}
		if out := outs[id]; out != nil && !g.dead && out.live(g.pid) && probes[id].agrees(g) {
			found[id] = shownPane{out, s, layouts}
		}
	})
	if err != nil {
		return nil
	}
	return found
}

// Has tells whether the pane can be read.
func (s *Shown) Has(id controlmode.PaneID) bool {
	_, ok := s.panes[id]
	return ok
}

// Lines are the logical lines of the pane's screen and of up to history rows
// above it, as Capture gives them with Join for that range. It fails when the
// transcript does not reach back so far or the pane may have been resized since
// Shown: then the pane is to be captured.
func (s *Shown) Lines(id controlmode.PaneID, history int) ([]ShownLine, bool) {
	p, ok := s.panes[id]
	if !ok {
		return nil, false
	}
	o := p.out
	o.mu.Lock()
	defer o.mu.Unlock()
	// A new layout is told before what is printed in it. Other sizes than the
	// window's there are none.
	if o.text == nil || o.held >= 0 || o.stale || !o.open || p.stream.layouts.Load() != p.layouts {
		return nil, false
	}
	found, known := o.text.Shown(history)
	if !known {
		return nil, false
	}
	lines := make([]ShownLine, len(found))
	for i, l := range found {
		lines[i] = ShownLine{cleanLine(l.Text), o.streamLocked(l.Offset)}
	}
	return lines, true
}
