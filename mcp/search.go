package mcp

import (
	"context"
	"fmt"
	"regexp"
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
		doc: "Finds text in what panes show, row by row, optionally with some of their history. Says which limit " +
			"ended the search if one did.",
		tables: state.Panes,
		params: append(sessionParams(false, "Only panes of this session: an id such as $1, or an exact name."),
			param{name: "pattern", required: true, minLen: 1, doc: "Text to find, case-sensitive; or with regex a regular expression."},
			param{name: "regex", kind: kindBoolean, doc: "Take pattern as a regular expression (RE2 syntax)."},
			param{name: "maxMatchesPerPane", kind: kindInteger, positive: true, doc: "Most matching rows of each pane. Default 5."},
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
			"lineNumber": integerOut().with("description", "Row within the searched part of the pane, from 1."),
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

	lines, bytes int
	found        [][]byte
	text         []byte
	size         int
	searched     int
	failed       int

	clampedBytes, clampedLines, clampedTime, clampedPanes, clampedScrollback, clampedCaptures bool
	truncated                                                                                 bool
}

func searchPanes(ctx context.Context, c *call, a searchArgs) (*toolResult, error) {
	s := &search{total: c.lines(a.MaxLines), perPane: min(searchPerPane, c.sel.limits.lines)}
	if a.MaxMatchesPerPane != nil {
		s.perPane = int(min(*a.MaxMatchesPerPane, int64(c.sel.limits.lines)))
	}
	s.scrollback = int(min(a.ScrollbackLines, int64(c.sel.limits.lines)))
	s.clampedScrollback = int64(s.scrollback) < a.ScrollbackLines
	s.matches = func(line string) bool { return strings.Contains(line, a.Pattern) }
	if a.Regex {
		re, err := regexp.Compile(a.Pattern)
		if err != nil {
			return nil, &problem{
				reason: "pattern is not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "),
				hint:   "The syntax is RE2: no look-around, no back-references. Leave regex out to find the text itself.",
			}
		}
		s.matches = re.MatchString
	}
	m, err := c.model(ctx, state.Panes)
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
	last := s.run(ctx, c.table.mirror.Capture, rows)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.searched == 0 && s.failed > 0 {
		return nil, fmt.Errorf("no pane could be read: %w", last)
	}
	return s.result(), nil
}

// capturer is Mirror.Capture.
type capturer func(context.Context, controlmode.PaneID, state.CaptureRange) (*state.Capture, error)

type shotOf struct {
	shot *state.Capture
	err  error
}

// run captures the panes and looks at them in order. It returns the error of
// the last capture that failed.
func (s *search) run(ctx context.Context, capture capturer, panes []*state.Pane) (last error) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	r := state.CaptureRange{RowBytes: resultCeiling}
	if s.scrollback > 0 {
		start := -s.scrollback
		r.Start = &start
	}
	shots, done := captureAll(ctx, capture, panes, r)
	defer func() {
		cancel()
		<-done
	}()
	for i, p := range panes {
		got := <-shots[i]
		if time.Since(started) >= searchTime {
			s.clampedTime, s.truncated = true, true
			return last
		}
		if got.err != nil {
			s.failed++
			last = got.err
			continue
		}
		s.searched++
		s.clampedCaptures = s.clampedCaptures || got.shot.ByteClamped
		if !s.pane(p, got.shot) {
			return last
		}
	}
	return last
}

// captureAll captures panes, a few at a time. Each capture arrives on its own
// channel, which takes it even if nobody reads; done is closed when all have
// ended, which they do soon after ctx.
func captureAll(ctx context.Context, capture capturer, panes []*state.Pane, r state.CaptureRange) (shots []chan shotOf, done chan struct{}) {
	shots, done = make([]chan shotOf, len(panes)), make(chan struct{})
	for i := range shots {
		shots[i] = make(chan shotOf, 1)
	}
	slots := make(chan struct{}, searchConcurrent)
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i, p := range panes {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				shots[i] <- shotOf{err: context.Cause(ctx)}
				continue
			}
			wg.Go(func() {
				shot, err := capture(ctx, p.ID, r)
				shots[i] <- shotOf{shot, err}
				<-slots
			})
		}
	}()
	return shots, done
}

// pane looks through one capture. It reports whether the search may go on.
func (s *search) pane(p *state.Pane, shot *state.Capture) bool {
	hits := 0
	for i, line := range shot.Lines {
		s.lines++
		s.bytes += len(line) + 1
		s.clampedLines = s.clampedLines || s.lines > searchLineLimit
		s.clampedBytes = s.clampedBytes || s.bytes > searchByteLimit
		if s.clampedLines || s.clampedBytes {
			s.truncated = true
			return false
		}
		if !s.matches(line) {
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
func (s *search) add(p *state.Pane, number int, line string) bool {
	if len(s.found) == s.total {
		return false
	}
	var o object
	o.open()
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
	o.string("text", line)
	o.string("windowName", clean(p.WindowName))
	o.close()
	text := append([]byte(p.ID.String()), ' ')
	text = appendPlaces(text, p.Links)
	text = fmt.Appendf(text, " line %d: %s\n", number, inline(line))
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
	n := notices{fmt.Sprintf("%s in %s", plural(len(s.found), "matching row"), plural(s.searched, "pane"))}
	n.add(s.failed > 0, "%s could not be read", plural(s.failed, "pane"))
	n.add(s.truncated, "a limit ended the search; there may be more matches")
	if len(s.found) == 0 {
		return &toolResult{Text: strings.Join(n, "\n"), Structured: o.b}
	}
	return &toolResult{Text: n.over(string(s.text[:len(s.text)-1])), Structured: o.b}
}
