package mcp

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

func somePanes(n int) []*state.Pane {
	panes := make([]*state.Pane, n)
	for i := range panes {
		panes[i] = &state.Pane{ID: controlmode.PaneID(i)}
	}
	return panes
}

func newSearch(perPane, total int) *search {
	return &search{perPane: perPane, total: total, matches: func(s string) bool { return strings.Contains(s, "hit") }}
}

// unwatched are screens of panes that all have to be captured.
type unwatched func(context.Context, controlmode.PaneID) (*state.Capture, error)

func (unwatched) Shown(context.Context, []controlmode.PaneID) *state.Shown { return &state.Shown{} }

func (f unwatched) Capture(ctx context.Context, id controlmode.PaneID, _ state.CaptureRange) (*state.Capture, error) {
	return f(ctx, id)
}

func showing(lines ...string) unwatched {
	return func(context.Context, controlmode.PaneID) (*state.Capture, error) {
		return &state.Capture{Lines: lines}, nil
	}
}

func repeated(line string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line
	}
	return lines
}

// TestSearchBudgets: each budget ends the search and says so.
func TestSearchBudgets(t *testing.T) {
	for _, c := range []struct {
		name                            string
		s                               *search
		panes                           int
		lines                           []string
		found                           int
		searched                        int
		lineClamp, byteClamp, truncated bool
	}{
		{"none", newSearch(5, 200), 3, []string{"hit", "miss", "hit"}, 6, 3, false, false, false},
		{"per pane", newSearch(2, 200), 3, repeated("hit", 3), 6, 3, false, false, true},
		{"per pane, exactly", newSearch(3, 200), 3, repeated("hit", 3), 9, 3, false, false, false},
		{"total", newSearch(5, 4), 3, repeated("hit", 3), 4, 2, false, false, true},
		{"lines", newSearch(5, 200), 3, append(repeated("", searchLineLimit/2), "hit"), 1, 2, true, false, true},
		{"bytes", newSearch(5, 200), 3, []string{"hit", strings.Repeat("é", searchByteLimit/4)}, 2, 2, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.s.run(t.Context(), showing(c.lines...), somePanes(c.panes)); err != nil {
				t.Fatal(err)
			}
			if len(c.s.found) != c.found || c.s.searched != c.searched || c.s.clampedLines != c.lineClamp ||
				c.s.clampedBytes != c.byteClamp || c.s.truncated != c.truncated {
				t.Errorf("found %d, searched %d, lines %v, bytes %v, truncated %v",
					len(c.s.found), c.s.searched, c.s.clampedLines, c.s.clampedBytes, c.s.truncated)
			}
		})
	}
}

func TestSearchSkipsFailedPanes(t *testing.T) {
	gone := errors.New("gone")
	s := newSearch(5, 200)
	last := s.run(t.Context(), unwatched(func(_ context.Context, id controlmode.PaneID) (*state.Capture, error) {
		if id%2 == 1 {
			return nil, gone
		}
		return &state.Capture{Lines: []string{"hit"}, ByteClamped: id == 2}, nil
	}), somePanes(5))
	if last != gone || s.searched != 3 || s.failed != 2 || len(s.found) != 3 || !s.clampedCaptures {
		t.Errorf("%v: %+v", last, s)
	}
}

// TestSearchTime: captures run eight at a time, and a search that takes too
// long answers what it has; no capture outlives it.
func TestSearchTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		capture := func(ctx context.Context, _ controlmode.PaneID) (*state.Capture, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-time.After(time.Second):
				return &state.Capture{Lines: []string{"hit"}}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		s := newSearch(5, 200)
		started := time.Now()
		_ = s.run(t.Context(), unwatched(capture), somePanes(100))
		if took := time.Since(started); took != searchTime {
			t.Errorf("took %v", took)
		}
		if !s.clampedTime || !s.truncated || s.searched != 4*searchConcurrent || most.Load() != searchConcurrent || running.Load() != 0 {
			t.Errorf("searched %d, %d at a time, %d still running, clamped %v", s.searched, most.Load(), running.Load(), s.clampedTime)
		}
	})
}

// TestSearchTimeOfMatching: lines that take long to match do not run past the
// time either.
func TestSearchTimeOfMatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearch(5, 200)
		s.matches = func(string) bool { time.Sleep(100 * time.Millisecond); return false }
		started := time.Now()
		_ = s.run(t.Context(), showing(repeated("x", 1000)...), somePanes(3))
		if took := time.Since(started); took < searchTime || took > searchTime+timeEvery*100*time.Millisecond || !s.clampedTime || !s.truncated {
			t.Errorf("took %v, clamped %v", took, s.clampedTime)
		}
	})
}

// TestPatterns: what is no pattern, or one that would cost too much, is refused
// with what to do instead.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		regex   bool
		says    string // "" for accepted
	}{
		{"(?<=a)b", true, "RE2"},
		{"(a", true, "not a regular expression"},
		{"a\\", true, "not a regular expression"},
		{"(a", false, ""},
		{strings.Repeat("x", 900_000), false, ""},
		{strings.Repeat("x", maxRegex), true, ""},
		{strings.Repeat("x", maxRegex+1), true, "too long"},
		{"x{1001}", true, "not a regular expression"},
		{"(x{1000}){2}", true, "not a regular expression"},
		{"x{1000}", true, ""},
		{`(\pL{500}|\d{500}){1,2}`, true, ""},
		{strings.Repeat("(x{999})", 11), true, "too large"},
	} {
		match, err := compilePattern(c.pattern, c.regex)
		if c.says != "" {
			var p *problem
			if !errors.As(err, &p) || !strings.Contains(p.reason+p.hint, c.says) || p.hint == "" {
				t.Errorf("%.40q: %v", c.pattern, err)
			}
			continue
		}
		if err != nil || match("no such line") {
			t.Errorf("%.40q: %v", c.pattern, err)
		}
	}
}
