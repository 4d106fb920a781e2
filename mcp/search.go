package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// Budgets of one search (contract 1.5).
const (
	searchPaneLimit  = 200
	searchLineLimit  = 20_000
	searchByteLimit  = 262_144
	searchTime       = 5 * time.Second
	searchConcurrent = 8
	searchPerPane    = 5
)

func searchTools() []*tool {
	lines := param{name: "maxLines", kind: kindInteger, hidden: true, positive: true}
	return []*tool{define(tool{
		name: "search_panes", title: "Search panes", toolset: inspect,
		doc: "Finds text in what panes show, line by line with wrapped rows joined, optionally with some of their " +
			"history. Says which limit ended the search if one did. The cursor of a match is its place in the pane's " +
			"output, which stays when lines scroll or are wrapped anew.",
		tables: state.Places,
		params: append(sessionParams(false, "Only panes of this session: an id such as $1, or an exact name."),
			param{name: "pattern", required: true, minLen: 1, doc: "Text to find, case-sensitive; or with regex a regular expression."},
			param{name: "regex", kind: kindBoolean, doc: "Take pattern as a regular expression (RE2 syntax)."},
			param{name: "maxMatchesPerPane", kind: kindInteger, positive: true, doc: "Most matching lines of each pane. Default 5."},
			param{name: "scrollbackLines", kind: kindInteger, doc: "Rows of history to search too. Default 0."},
			lines),
		output: output(searchOut()), reach: reachNone, effects: []string{effectObserve},
		classes: []string{classMetadata, classTerminal},
	}, searchPanes)}
}

func searchOut() map[string]schema {
	return map[string]schema{
		"capturesByteClamped":      booleanOut(),
		"effectiveScrollbackLines": integerOut(),
		"matches": arrayOut(objectOut(map[string]schema{
			"cursor": orNull(patternOut(state.CursorPattern)).with("description",
				"The place in the pane's output just after the line's last change; null if the pane is not watched."),
			"lineNumber": integerOut().with("description", "Line within the searched part of the pane, from 1."),
			"paneId":     patternOut(panePattern),
			"placements": arrayOut(placementOut(nil)),
			"text":       stringOut(),
			"windowName": stringOut(),
		})),
		"matchesTruncated":    booleanOut().with("description", "A limit may have hidden matches."),
		"matchingByteClamped": booleanOut(),
		"matchingLineClamped": booleanOut(),
		"matchingTimeClamped": booleanOut(),
		"paneLimitClamped":    booleanOut(),
		"panesFailed":         integerOut(),
		"panesSearched":       integerOut(),
		"scrollbackClamped":   booleanOut(),
	}
}

type searchArgs struct {
	sessionArgs
	Pattern           string `arg:"pattern"`
	Regex             bool   `arg:"regex"`
	MaxMatchesPerPane *int64 `arg:"maxMatchesPerPane"`
	ScrollbackLines   int64  `arg:"scrollbackLines"`
	MaxLines          *int64 `arg:"maxLines"`
}

// search is one running search and what it has used of its budgets.
type search struct {
	matches    func(string) bool
	perPane    int
	total      int // most matches
	scrollback int
	until      time.Time

	lines, bytes int
	found        [][]byte
	text         []byte
	size         int
	searched     int
	failed       int

	clampedBytes, clampedLines, clampedTime, clampedPanes, clampedScrollback, clampedCaptures bool
	truncated                                                                                 bool

	redact func(controlmode.PaneID, []state.ShownLine) []state.ShownLine // nil for none
}

func searchPanes(ctx context.Context, c *call, a searchArgs) (*toolResult, error) {
	s := &search{total: c.lines(a.MaxLines), perPane: min(searchPerPane, c.sel.limits.lines)}
	if a.MaxMatchesPerPane != nil {
		s.perPane = int(min(*a.MaxMatchesPerPane, int64(c.sel.limits.lines)))
	}
	s.scrollback = int(min(a.ScrollbackLines, int64(c.sel.limits.lines)))
	s.clampedScrollback = int64(s.scrollback) < a.ScrollbackLines
	var err error
	if s.matches, err = compilePattern(a.Pattern, a.Regex); err != nil {
		return nil, err
	}
	m, err := c.model(ctx, state.Places)
	if err != nil {
		return nil, err
	}
	rows, err := placed(ctx, c, m.Panes, func(p *state.Pane) []state.Link { return p.Links }, a.sessionArgs)
	if err != nil {
		return nil, err
	}
	if len(rows) > searchPaneLimit {
		rows, s.clampedPanes = rows[:searchPaneLimit], true
	}
	s.redact = c.redactLines(ctx, -s.scrollback)
	last := s.run(ctx, c.table.mirror, rows)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.searched == 0 && s.failed > 0 {
		return nil, fmt.Errorf("no pane could be read: %w", last)
	}
	return s.result(), nil
}

// screens is where a search reads what panes show; Mirror is one.
type screens interface {
	Shown(context.Context, []controlmode.PaneID) *state.Shown
	Capture(context.Context, controlmode.PaneID, state.CaptureRange) (*state.Capture, error)
}

// run looks at the panes in order: at the transcripts of watched ones, at
// captures of the others. It returns the error of the last capture that failed.
func (s *search) run(ctx context.Context, from screens, panes []*state.Pane) (last error) {
	s.until = time.Now().Add(searchTime)
	ctx, cancel := context.WithDeadline(ctx, s.until)
	ids := make([]controlmode.PaneID, len(panes))
	for i, p := range panes {
		ids[i] = p.ID
	}
	shown := from.Shown(ctx, ids)
	shots, done := s.captureAll(ctx, from, slices.DeleteFunc(ids, shown.Has))
	defer func() {
		cancel()
		<-done
	}()
	for _, p := range panes {
		lines, ok := shown.Lines(p.ID, s.scrollback)
		if !ok {
			var got shotOf
			if shots[p.ID] != nil {
				got = <-shots[p.ID]
			} else {
				got = s.capture(ctx, from, p.ID)
			}
			if s.late() {
				return last
			}
			if got.err != nil {
				s.failed++
				last = got.err
				continue
			}
			s.clampedCaptures = s.clampedCaptures || got.shot.ByteClamped
			lines = got.lines()
		}
		if s.redact != nil { // what cannot be read cannot be searched for
			lines = s.redact(p.ID, lines)
		}
		s.searched++
		if !s.pane(p, lines) {
			return last
		}
	}
	return last
}

// late notes that the time is over.
func (s *search) late() bool {
	if time.Now().Before(s.until) {
		return false
	}
	s.clampedTime, s.truncated = true, true
	return true
}

type shotOf struct {
	shot *state.Capture
	err  error
}

func (got shotOf) lines() []state.ShownLine {
	lines := make([]state.ShownLine, len(got.shot.Lines))
	for i, l := range got.shot.Lines {
		lines[i].Text = l
	}
	return lines
}

func (s *search) capture(ctx context.Context, from screens, id controlmode.PaneID) (got shotOf) {
	r := state.CaptureRange{Join: true, RowBytes: resultCeiling}
	if s.scrollback > 0 {
		start := -s.scrollback
		r.Start = &start
	}
	got.shot, got.err = from.Capture(ctx, id, r)
	return got
}

// captureAll captures panes, a few at a time. Each capture arrives on its own
// channel, which takes it even if nobody reads; done is closed when all have
// ended, which they do soon after ctx.
func (s *search) captureAll(ctx context.Context, from screens, ids []controlmode.PaneID) (shots map[controlmode.PaneID]chan shotOf, done chan struct{}) {
	shots, done = make(map[controlmode.PaneID]chan shotOf, len(ids)), make(chan struct{})
	for _, id := range ids {
		shots[id] = make(chan shotOf, 1)
	}
	slots := make(chan struct{}, searchConcurrent)
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, id := range ids {
			shot := shots[id]
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				shot <- shotOf{err: context.Cause(ctx)}
				continue
			}
			wg.Go(func() {
				shot <- s.capture(ctx, from, id)
				<-slots
			})
		}
	}()
	return shots, done
}

// timeEvery is after how many lines the clock is looked at.
const timeEvery = 16

// pane looks through what one pane shows. It reports whether the search may go on.
func (s *search) pane(p *state.Pane, lines []state.ShownLine) bool {
	hits := 0
	for i, line := range lines {
		s.lines++
		s.bytes += len(line.Text) + 1
		s.clampedLines = s.clampedLines || s.lines > searchLineLimit
		s.clampedBytes = s.clampedBytes || s.bytes > searchByteLimit
		if s.clampedLines || s.clampedBytes {
			s.truncated = true
			return false
		}
		if s.lines%timeEvery == 0 && s.late() {
			return false
		}
		if !s.matches(line.Text) {
			continue
		}
		if hits == s.perPane {
			s.truncated = true
			return true
		}
		if !s.add(p, i+1, line) {
			s.truncated = true
			return false
		}
		hits++
	}
	return true
}

// add appends a match while the answer has room.
func (s *search) add(p *state.Pane, number int, line state.ShownLine) bool {
	if len(s.found) == s.total {
		return false
	}
	var o object
	o.open()
	if line.At == (state.Cursor{}) {
		o.null("cursor")
	} else {
		o.string("cursor", line.At.String())
	}
	o.int("lineNumber", number)
	o.string("paneId", p.ID.String())
	o.key("placements")
	o.b = append(o.b, '[')
	for i := range p.Links {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendPlacement(o.b, &p.Links[i], false)
	}
	o.b = append(o.b, ']')
	o.string("text", line.Text)
	o.string("windowName", clean(p.WindowName))
	o.close()
	text := append([]byte(p.ID.String()), ' ')
	text = appendPlaces(text, p.Links)
	text = fmt.Appendf(text, " line %d: %s\n", number, inline(line.Text))
	if s.size+len(o.b)+1 > viewCeiling || len(s.text)+len(text) > viewCeiling {
		return false
	}
	s.size += len(o.b) + 1
	s.found = append(s.found, o.b)
	s.text = append(s.text, text...)
	return true
}

func (s *search) result() *toolResult {
	s.truncated = s.truncated || s.clampedPanes
	var o object
	o.open()
	o.bool("capturesByteClamped", s.clampedCaptures)
	o.int("effectiveScrollbackLines", s.scrollback)
	o.array("matches", s.found)
	o.bool("matchesTruncated", s.truncated)
	o.bool("matchingByteClamped", s.clampedBytes)
	o.bool("matchingLineClamped", s.clampedLines)
	o.bool("matchingTimeClamped", s.clampedTime)
	o.bool("paneLimitClamped", s.clampedPanes)
	o.int("panesFailed", s.failed)
	o.int("panesSearched", s.searched)
	o.bool("scrollbackClamped", s.clampedScrollback)
	o.close()
	n := notices{fmt.Sprintf("%s in %s", plural(len(s.found), "matching line"), plural(s.searched, "pane"))}
	n.count(s.failed, "%s could not be read", "pane")
	n.add(s.truncated, "a limit ended the search; there may be more matches")
	if len(s.found) == 0 {
		return &toolResult{Text: strings.Join(n, "\n"), Structured: o.b}
	}
	return &toolResult{Text: n.over(string(s.text[:len(s.text)-1])), Structured: o.b}
}
