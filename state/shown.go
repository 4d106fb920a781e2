package state

import (
	"context"
	"maps"
	"strings"
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
			found := s.shown(ctx, m, outs)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(shown.panes, found)
		})
	}
	wg.Wait()
	return shown
}

// compared is what a stream client's panes were when they were last compared with
// tmux's grids: all that they had printed, and their process. Panes whose
// transcripts did not agree are not in it.
type compared struct {
	item  uint64 // that tmux had come to; 0 if that proves nothing
	panes map[controlmode.PaneID]comparedPane
}

type comparedPane struct {
	offset int64
	pid    int
}

// fewPanes is up to how many panes are picked from the list by name.
const fewPanes = 64

// shown finds the panes that are still in the client's session and whose
// transcripts agree with their grids. A pane that has printed nothing since they
// last did agrees still if tmux has run nothing that could have changed it.
func (s *stream) shown(ctx context.Context, m *Mirror, outs map[controlmode.PaneID]*Output) map[controlmode.PaneID]shownPane {
	found := make(map[controlmode.PaneID]shownPane, len(outs))
	s.mu.Lock()
	last := s.compared
	s.mu.Unlock()
	next := compared{panes: make(map[controlmode.PaneID]comparedPane, len(outs))}
	changed := outs
	if last.item != 0 {
		probes, layouts, mark, err := s.probeAll(ctx, outs, markCmd)
		if err != nil {
			return nil
		}
		if now := itemOf(s.server, mark); m.unchanged(s.server.ID, last.item, now) {
			changed = map[controlmode.PaneID]*Output{}
			next = compared{now, maps.Clone(last.panes)} // those not asked for now, too
			for id, out := range outs {
				if c, ok := last.panes[id]; ok && probes[id].still(c) && out.live(c.pid) {
					found[id] = shownPane{out, s, layouts}
				} else {
					changed[id] = out
					delete(next.panes, id)
				}
			}
		}
	}
	if len(changed) > 0 && !s.compare(ctx, changed, found, &next) {
		return found
	}
	s.mu.Lock()
	s.compared = next
	s.mu.Unlock()
	return found
}

// compare asks for the grids of panes and adds those that agree. It fails if tmux
// does not answer.
func (s *stream) compare(ctx context.Context, outs map[controlmode.PaneID]*Output, found map[controlmode.PaneID]shownPane, next *compared) bool {
	words := []string{"-s", "-t", s.session.String(), "-F", shownListing.format}
	if len(outs) <= fewPanes {
		words = append(words, "-f", amongFilter(outs))
	}
	probes, layouts, b, err := s.probeAll(ctx, outs, controlmode.Cmd("list-panes", words...))
	if err != nil {
		return false
	}
	if next.item == 0 {
		next.item = itemOf(s.server, b)
	}
	return shownListing.each(b.Body, func(r *row) {
		id := controlmode.PaneID(r.id(0, '%'))
		g := grid{
			width: r.num(1), height: r.num(2), history: r.num(3), cursorX: r.num(4), cursorY: r.num(5),
			alternate: r.flag(6), pid: r.num(7), dead: r.flag(8),
		}
		if out := outs[id]; out != nil && !g.dead && out.live(g.pid) && probes[id].agrees(g) {
			found[id], next.panes[id] = shownPane{out, s, layouts}, comparedPane{probes[id].offset, g.pid}
		}
	}) == nil
}

// amongFilter is a list's filter that keeps those panes.
func amongFilter(outs map[controlmode.PaneID]*Output) string {
	var b strings.Builder
	b.WriteString("#{m:* #{pane_id} *, ")
	for id := range outs {
		b.WriteString(id.String() + " ")
	}
	b.WriteString("}")
	return b.String()
}

// probeAll asks one command that only reads and notes where the transcripts stand
// at the instant of the answer.
func (s *stream) probeAll(ctx context.Context, outs map[controlmode.PaneID]*Output, cmd controlmode.Command) (map[controlmode.PaneID]probe, uint64, controlmode.BlockEnd, error) {
	var layouts uint64
	probes := make(map[controlmode.PaneID]probe, len(outs))
	blocks, err := s.ask(ctx, controlmode.Request{
		Commands: []controlmode.Command{cmd}, Fence: true,
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
		return nil, 0, controlmode.BlockEnd{}, err
	}
	return probes, layouts, blocks[0], nil
}

// still tells whether the transcript stands as it did when it was compared.
func (p probe) still(c comparedPane) bool { return p.ok && !p.stale && p.offset == c.offset }

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
