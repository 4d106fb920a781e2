package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// sight is a call's look at tmux through its socket's policy. Everything a tool
// knows of sessions, windows, panes and clients comes through it (call.model,
// call.pane, call.window, call.session, call.paneID): what is filtered here
// does not exist for the tool. Tools that read other sources, such as the
// journal or runs, must put what they find to call.change or call.paneID.
type sight struct {
	*state.Arrival
	mirror *state.Mirror
	policy *policy

	redacted atomic.Int64 // secrets taken out before the answer was made

	mu   sync.Mutex
	used map[controlmode.PaneID]bool // panes the call was allowed to use; nil without a limit
}

// arrive marks the moment a call arrived.
func (p *policy) arrive(m *state.Mirror, tables state.Tables) *sight {
	s := &sight{mirror: m, policy: p}
	if p.restricted() {
		tables |= state.Sessions
		s.used = map[controlmode.PaneID]bool{}
	}
	s.Arrival = m.Arrive(tables)
	return s
}

// again is the same look for another operation of a batch.
func (s *sight) again() *sight {
	n := &sight{Arrival: s.Arrival, mirror: s.mirror, policy: s.policy}
	if s.used != nil {
		n.used = map[controlmode.PaneID]bool{}
	}
	return n
}

// Model is Arrival.Model, of what the caller may see.
func (s *sight) Model(ctx context.Context, t state.Tables) (*state.Model, error) {
	if !s.policy.restricted() {
		return s.Arrival.Model(ctx, t)
	}
	m, err := s.Arrival.Model(ctx, t|state.Sessions)
	return s.policy.within(m), err
}

// Pane is Arrival.Pane, for a pane that the caller may see.
func (s *sight) Pane(ctx context.Context, id controlmode.PaneID) (*state.Model, error) {
	m, err := s.Arrival.Pane(ctx, id)
	if err != nil || !s.policy.restricted() {
		return m, err
	}
	m = s.policy.within(m)
	if _, ok := m.Pane(id); !ok {
		return nil, fmt.Errorf("pane %s: %w", id, state.ErrNotFound)
	}
	s.mu.Lock()
	s.used[id] = true
	s.mu.Unlock()
	return m, nil
}

// Capture is Arrival.Capture, of a pane that the caller may see.
func (s *sight) Capture(ctx context.Context, id controlmode.PaneID, r state.CaptureRange) (*state.Capture, error) {
	if err := s.see(ctx, id); err != nil {
		return nil, err
	}
	return s.Arrival.Capture(ctx, id, r)
}

// see fails with state.ErrNotFound for a pane that does not exist for the caller.
func (s *sight) see(ctx context.Context, id controlmode.PaneID) error {
	if !s.policy.restricted() {
		return nil
	}
	_, err := s.Pane(ctx, id)
	return err
}

// still checks that no pane the call used has left the caller's sight meanwhile:
// what it printed after that is not the caller's to read. A pane that has ended
// was in sight to its end.
func (s *sight) still(ctx context.Context) error {
	s.mu.Lock()
	used := slices.Collect(maps.Keys(s.used))
	s.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	all, err := s.mirror.Arrive(state.Panes).Model(ctx, state.Panes)
	if err != nil {
		return err
	}
	seen := s.policy.within(all)
	for _, id := range used {
		_, exists := all.Pane(id)
		if _, ok := seen.Pane(id); exists && !ok {
			return fmt.Errorf("pane %s: %w", id, state.ErrNotFound)
		}
	}
	return nil
}

// mayName refuses a session name that would put the session out of the caller's
// sight: what a socket's clients make must exist for them. tmux has the last
// word on a name, so the name that it will make of it must be given.
func (c *call) mayName(session string) error {
	if c.policy.visible(session) {
		return nil
	}
	return &problem{
		reason: "the session name " + quote(session) + " is not one that this socket may use",
		hint:   "Names must match one of: " + strings.Join(quoted(c.policy.cfg.Sessions), ", ") + ".",
	}
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return out
}

// beyond refuses what belongs to no session: server and global tables tell of
// sessions that do not exist for the caller, and changing them reaches those.
// what is as in "the global environment". nil if the caller's sight has no limit.
func (c *call) beyond(what string) error {
	if !c.policy.restricted() {
		return nil
	}
	return &problem{
		reason: what + " is outside the sessions that this socket is limited to",
		hint:   "Ask about one of the sessions, windows or panes that list_sessions and list_panes show.",
	}
}
