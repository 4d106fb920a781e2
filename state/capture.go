package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// CaptureRange says what of a pane's grid to capture. Rows are tmux's: 0 is the
// top of the visible screen, negative rows are history.
type CaptureRange struct {
	Start, End *int // nil: the visible screen's end of the range
	Join       bool // join wrapped rows
	// MaxRows shortens the range before tmux is asked, keeping its end; 0 for
	// no limit. RowBytes > 0 limits it also to RowBytes/(width*32+1) rows.
	MaxRows  int
	RowBytes int
	// RowsOnly leaves everything of Capture but Lines, Start and End and what
	// is clamped zero where tmux can be spared the question: expanding a
	// format costs it several times what copying a screen does.
	RowsOnly bool
}

// Capture is captured grid text.
type Capture struct {
	Lines          []string // valid UTF-8, no control characters but TAB
	Start, End     *int     // range sent to tmux, nil where none was given
	RangeClamped   bool     // MaxRows or RowBytes shortened the range
	ByteClamped    bool     // RowBytes did
	Width, Height  int
	HistorySize    int
	CursorX        int
	CursorY        int
	ScrollPosition int
	Alternate      bool
}

// Snapshot is a pane's screen, its metadata and, if it is watched, the cursor
// that continues exactly where the screen ends; all of one instant (P2).
type Snapshot struct {
	Capture
	Model  *Model  // as Arrival.Pane
	Pane   *Pane   // the pane in it
	Cursor *Cursor // nil if the pane is not watched
}

// effective is the range to send to tmux for a pane of that size, by the
// contract's rule (tool-contracts 1.6): keep the end, shorten the start. none
// tells that not even one row may be captured.
func (r CaptureRange) effective(width, height int) (c Capture, none bool) {
	c.Start, c.End = r.Start, r.End
	if r.MaxRows <= 0 && r.RowBytes <= 0 {
		return c, false
	}
	first, last := 0, height-1
	if r.Start != nil {
		first = *r.Start
	}
	if r.End != nil {
		last = *r.End
	}
	limit := r.MaxRows
	if r.RowBytes > 0 {
		if byBytes := r.RowBytes / (width*32 + 1); limit <= 0 || byBytes < limit {
			limit = byBytes
			c.ByteClamped = last-first >= limit
		}
	}
	if last < first || last-first < limit {
		c.ByteClamped = false
		return c, false
	}
	c.RangeClamped = true
	if limit <= 0 {
		c.Start, c.End = nil, nil
		return c, true
	}
	start := last - limit + 1
	c.Start = &start
	return c, false
}

// captureCmd captures with styles: without them tmux gives line drawing as the
// letters l, q, k (tmux 3.3a to 3.8).
func captureCmd(id controlmode.PaneID, c Capture, join bool) controlmode.Command {
	args := []string{"-p", "-e", "-t", id.String()}
	if join {
		args = append(args, "-J")
	}
	if c.Start != nil {
		args = append(args, "-S", strconv.Itoa(*c.Start))
	}
	if c.End != nil {
		args = append(args, "-E", strconv.Itoa(*c.End))
	}
	return controlmode.Cmd("capture-pane", args...)
}

func gridCmd(id controlmode.PaneID) controlmode.Command {
	return controlmode.Cmd("display-message", "-p", "-t", id.String(), gridListing.format)
}

// asker sends a request that only reads.
type asker func(ctx context.Context, req controlmode.Request) ([]controlmode.BlockEnd, error)

func (m *Mirror) onStructure(ctx context.Context, req controlmode.Request) ([]controlmode.BlockEnd, error) {
	_, blocks, err := m.query(ctx, req)
	return blocks, err
}

// Capture captures a pane, one round trip in the common case. The screen is
// always tmux's own. ErrNotFound, ErrNoServer.
func (m *Mirror) Capture(ctx context.Context, id controlmode.PaneID, r CaptureRange) (*Capture, error) {
	c, _, err := m.captureBy(ctx, id, r, m.onStructure)
	return c, err
}

// Covered is the main screen, its wrapped rows joined, that a full-screen program
// covers at present; ok is false if none does. ErrNotFound, ErrNoServer.
func (m *Mirror) Covered(ctx context.Context, id controlmode.PaneID) (lines []string, ok bool, err error) {
	blocks, err := m.onStructure(ctx, controlmode.Request{Commands: []controlmode.Command{
		gridCmd(id), controlmode.Cmd("capture-pane", "-p", "-q", "-a", "-e", "-J", "-t", id.String()),
	}, Fence: true})
	if err != nil {
		return nil, false, missing(id, err)
	}
	g, err := readGrid(blocks[0].Body)
	if err != nil || !g.alternate {
		return nil, false, err
	}
	lines = cleanLines(blocks[1].Body)
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines, true, nil
}

// captureBy captures with ask. The size of the pane decides the range, so the
// newest known size is tried and the line sent again if it was not the present
// one.
func (m *Mirror) captureBy(ctx context.Context, id controlmode.PaneID, r CaptureRange, ask asker) (*Capture, grid, error) {
	width, height := 0, 0
	if p, ok := m.Model().Pane(id); ok {
		width, height = p.Width, p.Height
	}
	if r.rowsOnly() && width > 0 {
		blocks, err := ask(ctx, controlmode.Request{Commands: []controlmode.Command{captureCmd(id, Capture{}, false)}, Fence: true})
		if err != nil {
			return nil, grid{}, missing(id, err)
		}
		if c := r.rows(blocks[0].Body, width); c != nil {
			return c, grid{}, nil
		}
	}
	for {
		c, none := r.effective(width, height)
		cmds := []controlmode.Command{gridCmd(id)}
		if !none && width > 0 {
			cmds = append(cmds, captureCmd(id, c, r.Join))
		}
		blocks, err := ask(ctx, controlmode.Request{Commands: cmds, Fence: true})
		if err != nil {
			return nil, grid{}, missing(id, err)
		}
		g, err := readGrid(blocks[0].Body)
		if err != nil {
			return nil, grid{}, fmt.Errorf("pane %s: %w", id, err)
		}
		if !g.found {
			return nil, grid{}, fmt.Errorf("pane %s: %w", id, ErrNotFound)
		}
		if again, no := r.effective(g.width, g.height); width == 0 || no != none || !sameRange(again, c) {
			width, height = g.width, g.height
			continue
		}
		if len(blocks) > 1 {
			c.Lines = cleanLines(blocks[1].Body)
		}
		c.take(g)
		return &c, g, nil
	}
}

// take notes the grid's state, and drops what tmux gave for a range that lies
// wholly outside the grid: it answers the nearest row instead of none (O16).
func (c *Capture) take(g grid) {
	c.Width, c.Height, c.HistorySize, c.Alternate = g.width, g.height, g.history, g.alternate
	c.CursorX, c.CursorY, c.ScrollPosition = g.cursorX, g.cursorY, g.scrollPos
	above := c.End != nil && *c.End < -g.history && (c.Start == nil || *c.Start < -g.history)
	below := c.Start != nil && *c.Start >= g.height && (c.End == nil || *c.End >= g.height)
	if above || below {
		c.Lines = nil
	}
}

func sameRange(a, b Capture) bool {
	same := func(x, y *int) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return same(a.Start, b.Start) && same(a.End, b.End) && a.RangeClamped == b.RangeClamped && a.ByteClamped == b.ByteClamped
}

// missing turns tmux's complaint about a pane into ErrNotFound.
func missing(id controlmode.PaneID, err error) error {
	var refused *controlmode.CommandError
	if errors.As(err, &refused) && strings.Contains(refused.Text, "can't find pane") {
		return fmt.Errorf("pane %s: %w", id, ErrNotFound)
	}
	return err
}

// cleanLines splits a capture with styles into lines of valid UTF-8 without
// control characters but TAB and without trailing blanks.
func cleanLines(body []byte) []string {
	if len(body) == 0 {
		return []string{""}
	}
	body = bytes.TrimSuffix(body, []byte("\n"))
	lines := make([]string, 0, bytes.Count(body, []byte("\n"))+1)
	for boxes := false; ; {
		line, rest, more := bytes.Cut(body, []byte("\n"))
		var text string
		text, boxes = transcript.Unstyle(string(line), boxes)
		lines = append(lines, cleanLine(text))
		if !more {
			return lines
		}
		body = rest
	}
}

func cleanLine(s string) string {
	s = strings.TrimRight(s, " ")
	plain := true
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r >= 0xa0) {
			return r
		}
		return -1
	}, s)
}

// Snapshot takes a Snapshot of the visible screen with wrapped rows joined. It
// never starts a watch.
func (m *Mirror) Snapshot(ctx context.Context, id controlmode.PaneID) (*Snapshot, error) {
	for _, all := range []bool{false, true} {
		asked := time.Now()
		server, blocks, cursor, err := m.snapshotLine(ctx, id, all)
		if err != nil {
			return nil, missing(id, err)
		}
		mod := &Model{Asked: asked, Have: Panes | Clients, Server: server}
		elsewhere, err := mod.onePane(id, blocks[0].Body, blocks[1].Body, !all, m.isOwn)
		if err != nil {
			return nil, err
		}
		if elsewhere && !all {
			continue
		}
		g, err := readGrid(blocks[2].Body)
		if err != nil {
			return nil, fmt.Errorf("pane %s: %w", id, err)
		}
		s := &Snapshot{Model: mod, Pane: mod.Panes[0], Cursor: cursor}
		s.Lines = cleanLines(blocks[3].Body)
		s.take(g)
		return s, nil
	}
	panic("unreachable")
}

// snapshotLine asks for everything a snapshot shows in one line, on the
// connection that receives the pane's output if there is one.
func (m *Mirror) snapshotLine(ctx context.Context, id controlmode.PaneID, all bool) (Server, []controlmode.BlockEnd, *Cursor, error) {
	req := controlmode.Request{Commands: []controlmode.Command{
		paneCmd(id, all), clientsCmd, gridCmd(id), captureCmd(id, Capture{}, true),
	}, Fence: true}
	if s, out := m.watches.liveStream(id); s != nil {
		var at *Cursor
		req.Begin = func(i int) {
			if i == 0 {
				if c, ok := out.cursor(); ok {
					at = &c
				}
			}
		}
		blocks, err := s.ask(ctx, req)
		if err == nil {
			return s.server, blocks, at, nil
		}
		if !lostStream(err) {
			return Server{}, nil, nil, err
		}
		req.Begin = nil
	}
	server, blocks, err := m.query(ctx, req)
	return server, blocks, nil, err
}
