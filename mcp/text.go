package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tmux-mcpd/state"
)

// How a wait for text ends.
const (
	outcomeMatched    = "matched"
	outcomeStopped    = "stopped"
	outcomeTimedOut   = "timed_out"
	outcomePaneDied   = "pane_died"
	outcomeNoStream   = "no_stream"
	outcomeCancelled  = "cancelled"
	outcomeOutputLost = "output_lost"
	outcomeStreamLost = "stream_lost"
)

// Why a stream was lost, in the contract's words.
const (
	failureConnection = "connection_lost"
	failureDropped    = "events_dropped"
	failureExpired    = "expired"
	failureTopology   = "topology_changed"
)

const maxPatterns = 64

func cursorParam(doc string) param {
	return param{
		name: "cursor", doc: doc,
		pattern: state.CursorPattern, match: isCursor, want: "a cursor that capture_since or snapshot_pane returned",
	}
}

// waitForText is the row of wait_for_text.
func waitForText() *tool {
	return define(tool{
		name: "wait_for_text", title: "Wait for text in a pane", toolset: inspect,
		doc: "Waits until a pane prints one of the patterns, or anything, and returns what it printed meanwhile. Lines " +
			"are matched as they look, without colours, wrapped ones joined, an unfinished last one too. Text that is on the " +
			"screen already does not match, nor does the echo of keys that were sent through this server; the echo of what " +
			"others type does, unless the shell marks its command lines (OSC 133) or the pattern cannot be in what is typed " +
			"(type DO''NE, wait for DONE). To miss nothing, pass the cursor that was returned before the keys were sent. It " +
			"always comes back in time; after timed_out call again with the returned cursor.",
		params: []param{
			paneParam(true), maxLinesParam(),
			{
				name: "patterns", kind: kindStrings, maxItems: maxPatterns, minLen: 1,
				doc: "Texts to wait for, case-sensitive; the first to appear ends the wait. Leave it out to wait for any output.",
			},
			{name: "regex", kind: kindBoolean, doc: "Take patterns and stop as regular expressions (RE2 syntax); ^ and $ are the ends of a line."},
			cursorParam("Start from this place in the output instead of now. Everything after it counts."),
			timeoutParam(),
			{
				name: "stop", kind: kindStrings, maxItems: maxPatterns, minLen: 1, added: true,
				doc: "Texts that end the wait as a failure: the outcome is then stopped.",
			},
			{name: "includeEcho", kind: kindBoolean, added: true, doc: "Let the echo of typed keys match, too."},
			{name: "includeScreen", kind: kindBoolean, added: true, doc: "Without a cursor: let what the screen shows already match, too."},
		},
		output: output(textOut()), reach: reachNone, effects: []string{effectObserve},
		classes: []string{classMetadata, classTerminal},
	}, runWaitForText)
}

func textOut() map[string]schema {
	return map[string]schema{
		"alreadyOnScreen": booleanOut().with("description", "A pattern is on the screen, and was there before the wait began."),
		"cursor":          orNull(patternOut(state.CursorPattern)).with("description", "Go on from here; null if that is not possible."),
		"droppedLines":    integerOut(), "effectiveTimeoutMs": integerOut(),
		"matched":     orNull(stringOut()).with("description", "The pattern that ended the wait; the newest output if any was waited for."),
		"missedBytes": integerOut(), "omittedBytes": integerOut(),
		"outcome": enumOut(outcomeMatched, outcomeTimedOut, outcomePaneDied, outcomeNoStream, outcomeCancelled,
			outcomeOutputLost, outcomeStreamLost, outcomeStopped),
		"output": stringOut().with("description", "The newest part of what was printed since the start."),
		"paneId": patternOut(panePattern), "returnedBytes": integerOut(),
		"screen":        stringOut().with("description", "The pane's screen, unless a pattern has matched."),
		"screenClamped": booleanOut(),
		"streamFailure": schema{"anyOf": []any{
			enumOut(failureConnection, failureDropped, failureExpired, "hub_closed", failureTopology), schema{"type": "null"},
		}}.with("description", "Why the output could not be followed any more."),
	}
}

type textArgs struct {
	PaneID        string   `arg:"paneId"`
	MaxLines      *int64   `arg:"maxLines"`
	Patterns      []string `arg:"patterns"`
	Regex         bool     `arg:"regex"`
	Cursor        *string  `arg:"cursor"`
	TimeoutMs     *int64   `arg:"timeoutMs"`
	Stop          []string `arg:"stop"`
	IncludeEcho   bool     `arg:"includeEcho"`
	IncludeScreen bool     `arg:"includeScreen"`
}

// textWait is one running wait for text and, when it has ended, its answer.
type textWait struct {
	c              *call
	f              *state.Follow
	patterns, stop []state.Pattern
	shown          bool // what the screen shows counts
	limit          int
	seen           []bool // patterns that were on the screen at the start
	first          bool   // nothing was looked at yet

	outcome string
	matched *string
	already bool
	failure string // "" for none
	gap     *state.Gap
	gone    bool // the tmux server is
	since   *state.Since
	screen  shortened
}

func runWaitForText(ctx context.Context, c *call, a textArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	w := &textWait{c: c, limit: c.lines(a.MaxLines), shown: a.IncludeScreen, first: true}
	if w.patterns, err = patternsOf(a.Patterns, a.Regex); err != nil {
		return nil, err
	}
	if w.stop, err = patternsOf(a.Stop, a.Regex); err != nil {
		return nil, err
	}
	opt := state.FollowOptions{Typed: a.IncludeEcho, Shown: a.IncludeScreen}
	if a.Cursor != nil {
		from, err := c.cursor(ctx, id, *a.Cursor)
		if err != nil {
			return nil, err
		}
		opt.From = &from
	}
	p := c.clock(a.TimeoutMs)
	defer p.end()
	wake := make(chan struct{}, 1)
	w.f, err = c.table.mirror.Follow(ctx, id, opt, wake)
	if err != nil {
		if opt.From != nil {
			err = cursorProblem(err, id, *opt.From)
		}
		return nil, c.missing(ctx, noStream(err), a.PaneID)
	}
	defer w.f.Close()
	if err := w.run(ctx, p, wake); err != nil {
		return nil, err
	}
	return w.result(p), nil
}

// noStream explains that output cannot be followed.
func noStream(err error) error {
	if errors.Is(err, state.ErrDetached) {
		return &problem{
			reason: "no_stream: the pane's output cannot be followed at present: " + err.Error(),
			hint:   "Read the screen with capture_pane, or try again in a moment.",
		}
	}
	return err
}

// patternsOf reads patterns, at most 1,000,000 bytes of them.
func patternsOf(texts []string, regex bool) ([]state.Pattern, error) {
	total := 0
	var all []state.Pattern
	for _, text := range texts {
		if total += len(text); total > maxRequestText {
			return nil, &problem{reason: fmt.Sprintf("the patterns have more than %d bytes together", maxRequestText)}
		}
		if regex {
			if _, err := compilePattern(text, true); err != nil {
				return nil, err
			}
		}
		p, err := state.NewPattern(text, regex)
		if err != nil {
			return nil, badPattern(text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func badPattern(text string, err error) error {
	return &problem{
		reason: fmt.Sprintf("the pattern %s is %s", quote(text), err),
		hint: "Lines are matched one by one. Regular expressions have RE2 syntax: no look-around, no back-references; " +
			"leave regex out to wait for the text itself.",
	}
}

// run waits to the end.
func (w *textWait) run(ctx context.Context, p *clock, wake <-chan struct{}) error {
	w.seen = w.f.OnScreen(w.patterns)
	for {
		over, err := w.look(ctx)
		if over || err != nil {
			return err
		}
		select {
		case <-wake:
		case <-p.tick:
			p.tell(w.c.redactLine(w.f.Newest(), w.f.Start(), w.f.Printed))
		case <-p.late:
			return w.lastLook(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lastLook gives what tmux has already received its chance, at the deadline.
func (w *textWait) lastLook(ctx context.Context) error {
	if err := w.f.CatchUp(ctx); err != nil {
		return err
	}
	if over, err := w.look(ctx); over || err != nil {
		return err
	}
	return w.miss(ctx, outcomeTimedOut)
}

// look looks at what is new, and tells whether that ends the wait.
func (w *textWait) look(ctx context.Context) (over bool, err error) {
	s := w.f.Look()
	first := w.first
	w.first = false
	for i := range s.Lines {
		if w.line(&s.Lines[i]) {
			w.already = first && w.shown && w.outcome == outcomeMatched && w.wasShown()
			w.since, err = w.c.redactSince(w.f.Start(), state.SinceOptions{MaxLines: w.limit, MaxBytes: resultCeiling}, w.f.Printed)
			return true, err
		}
	}
	switch {
	case s.Over || s.Gap != nil:
		return true, w.broken(ctx, s)
	case s.Lost:
		return true, w.miss(ctx, outcomeOutputLost)
	}
	return false, nil
}

// broken ends a wait whose pane has ended, or of which output is missing. What
// of that tmux still shows counts.
func (w *textWait) broken(ctx context.Context, s state.Sight) error {
	why := state.WhyGap
	if s.Over {
		var err error
		if why, err = w.f.Why(ctx); err != nil {
			return err
		}
	}
	if why == state.WhyGap {
		if err := w.f.Again(ctx); err != nil {
			return err
		}
		more := w.f.Look()
		for i := range more.Lines {
			if w.line(&more.Lines[i]) {
				var err error
				w.since, err = w.c.redactSince(w.f.Start(), state.SinceOptions{MaxLines: w.limit, MaxBytes: resultCeiling}, w.f.Printed)
				return err
			}
		}
		if s.Gap == nil {
			s.Gap = more.Gap
		}
	}
	return w.ended(ctx, why, s)
}

// wasShown tells whether the pattern that has matched was there at the start.
func (w *textWait) wasShown() bool {
	for i := range w.patterns {
		if w.matched != nil && w.patterns[i].Text == *w.matched {
			return w.seen[i]
		}
	}
	return false
}

// line checks one line; a pattern comes before a stop pattern.
func (w *textWait) line(l *state.Fresh) bool {
	for _, check := range []struct {
		patterns []state.Pattern
		outcome  string
	}{{w.patterns, outcomeMatched}, {w.stop, outcomeStopped}} {
		for i := range check.patterns {
			if p := &check.patterns[i]; l.Has(p) {
				w.outcome, w.matched = check.outcome, &p.Text
				return true
			}
		}
	}
	if len(w.patterns) == 0 && l.Any() {
		end := tailRunes(w.c.redactLine(l.Text, w.f.Start(), w.f.Printed), 80)
		w.outcome, w.matched = outcomeMatched, &end
		return true
	}
	return false
}

// ended is the end of a wait whose pane is not followed any more.
func (w *textWait) ended(ctx context.Context, why state.Why, s state.Sight) error {
	w.gap = s.Gap
	switch {
	case why == state.WhyServerGone:
		w.gone, w.failure = true, failureConnection
		return w.miss(ctx, outcomeStreamLost)
	case why == state.WhyPaneDied, w.gap != nil && (w.gap.Reason == state.GapRespawned || w.gap.Reason == state.GapPaneDied):
		return w.miss(ctx, outcomePaneDied)
	}
	w.failure = failureConnection
	if w.gap != nil {
		switch w.gap.Reason {
		case state.GapPaused, state.GapEvicted:
			w.failure = failureDropped
		case state.GapOwnerChanged:
			w.failure = failureTopology
		case state.GapNotWatched:
			w.failure = failureExpired
		}
	}
	return w.miss(ctx, outcomeStreamLost)
}

// miss is the end of a wait without a match: the answer shows the screen, and
// whether a pattern was there all the time.
func (w *textWait) miss(ctx context.Context, outcome string) error {
	w.outcome = outcome
	opt := state.SinceOptions{MaxLines: w.limit, MaxBytes: resultCeiling}
	since, err := w.c.redactSince(w.f.Start(), opt, w.f.Printed)
	if outcome == outcomeStreamLost && !w.gone {
		if again, err := w.c.readSince(ctx, w.f.Pane(), w.f.Start(), opt); err == nil {
			since = again // the cursor is of a stream that goes on
		}
	}
	if err != nil {
		return err
	}
	w.since = since
	if w.gone {
		return ctx.Err()
	}
	shot, err := w.c.table.mirror.Capture(ctx, w.f.Pane(), state.CaptureRange{Join: true})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		w.c.redactShot(ctx, w.f.Pane(), shot, 0, shot.Height-1)
		w.screen = newest(screenText(shot), w.limit)
		for i := range w.patterns {
			w.already = w.already || w.seen[i] && w.patterns[i].In(shot.Lines)
		}
	}
	return nil
}

// tailRunes is the last n characters of a text.
func tailRunes(s string, n int) string {
	r := []rune(strings.TrimRight(s, " "))
	return string(r[max(len(r)-n, 0):])
}

func (w *textWait) result(p *clock) *toolResult {
	var o object
	o.open()
	o.bool("alreadyOnScreen", w.already)
	if w.gone {
		o.null("cursor")
	} else {
		o.string("cursor", w.since.Cursor.String())
	}
	o.int("droppedLines", w.since.DroppedLines)
	o.int("effectiveTimeoutMs", int(p.effective.Milliseconds()))
	o.stringOrNull("matched", w.matched)
	o.int("missedBytes", int(w.since.Missed))
	o.int("omittedBytes", w.since.OmittedBytes)
	o.string("outcome", w.outcome)
	o.string("output", w.since.Text)
	o.string("paneId", w.f.Pane().String())
	o.int("returnedBytes", len(w.since.Text)+len(w.screen.text))
	o.string("screen", w.screen.text)
	o.bool("screenClamped", w.screen.dropped > 0 || w.screen.omitted > 0)
	if w.failure == "" {
		o.null("streamFailure")
	} else {
		o.string("streamFailure", w.failure)
	}
	o.close()
	return &toolResult{Structured: o.b, Text: w.readable(p)}
}

// readable is the text half of the answer.
func (w *textWait) readable(p *clock) string {
	var n notices
	switch w.outcome {
	case outcomeMatched, outcomeStopped:
		n.add(true, "%s: %s", w.outcome, quote(*w.matched))
	case outcomeTimedOut:
		n.add(true, "timed out after %d ms; call again with the cursor to go on waiting", p.effective.Milliseconds())
	case outcomePaneDied:
		n.add(true, "the pane's process has ended, or the pane is gone")
	case outcomeOutputLost:
		n.add(true, "output came faster than it could be kept; some of it was not looked at")
	case outcomeStreamLost:
		n.add(w.gone, "the tmux server is gone")
		n.add(!w.gone, "output was lost (%s); go on from the cursor", w.failure)
	}
	n.add(w.gap != nil && w.outcome != outcomeMatched, "output may be missing: %s", gapReason(w.gap))
	n.add(w.already, "the pattern is on the screen, and was there before the wait began")
	n.count(int(w.since.Missed), "%s missed", "byte")
	n.count(w.since.DroppedLines, "%s before these not shown", "line")
	n.count(w.since.OmittedBytes, "%s before these not shown", "byte")
	body := w.since.Text
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	if w.screen.text != "" {
		body += "[the screen]\n" + strings.TrimRight(w.screen.text, "\n") + "\n"
	}
	if !w.gone {
		body += "[cursor " + w.since.Cursor.String() + "]"
	}
	return n.over(body)
}

func gapReason(g *state.Gap) string {
	if g == nil {
		return ""
	}
	return string(g.Reason)
}
