package mcp

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// PolicyConfig says what clients of one socket may see and do. The zero value
// permits everything and selects the contract's tools.
type PolicyConfig struct {
	// AllowUIDs are users besides our own whose processes may connect. The
	// socket's mode must let them in as well.
	AllowUIDs []int
	// Toolsets bound what a connection may select, and are what one gets that
	// selects nothing. nil: all may be selected, the contract's are. Tools are
	// added to both, Exclude is removed from both, inside batches as well.
	Toolsets, Tools, Exclude []string
	// Sessions are the names of the sessions that exist for clients; * stands for
	// any characters and ? for one. nil for all, empty for none.
	Sessions []string
	// MaxLines and MaxWait bound answers and waits within the contract's limits;
	// 0 for the default.
	MaxLines int
	MaxWait  time.Duration
	// Rate is the most calls a second, operations of batches counted, and
	// Concurrency the most at once, through all connections of the socket
	// together; 0 for no limit.
	Rate, Concurrency int
	// Redact takes secrets out of what clients are told: what looks like a
	// credential or a private key, and what Patterns (RE2) match.
	Redact   bool
	Patterns []string
	// Precise advertises what each tool really does in its annotations, instead
	// of the contract's caution on every tool.
	Precise bool
}

// Policy is what clients of a socket may see and do. It can be changed while
// they are connected. Any goroutine may use it.
type Policy struct {
	table *table
	now   atomic.Pointer[policy]
}

// NewPolicy makes a policy for listeners of this server. It fails on names of
// toolsets and tools that do not exist.
func (s *Server) NewPolicy(cfg PolicyConfig) (*Policy, error) {
	t, ok := s.reg.(*table)
	if !ok {
		return nil, fmt.Errorf("this server's tools know no policies")
	}
	return newPolicy(t, cfg)
}

func newPolicy(t *table, cfg PolicyConfig) (*Policy, error) {
	p := &Policy{table: t}
	return p, p.Set(cfg)
}

// Set changes the policy: calls that begin after it are under the new one, those
// that run end under the one they began with. On an error nothing changes.
func (p *Policy) Set(cfg PolicyConfig) error {
	next := &policy{cfg: cfg, sees: matcher(cfg.Sessions)}
	if err := next.picks.start(p.table, &cfg); err != nil {
		return err
	}
	if cfg.Redact {
		r, err := newRedactor(cfg.Patterns)
		if err != nil {
			return err
		}
		next.redact = r
	}
	next.meter.start(cfg.Rate, cfg.Concurrency)
	p.now.Store(next)
	return nil
}

// admits tells whether processes of a user may connect besides our own.
func (p *Policy) admits(uid int) bool {
	return p != nil && slices.Contains(p.now.Load().cfg.AllowUIDs, uid)
}

// policy is one state of a Policy. All but its counters stays as it is.
type policy struct {
	cfg   PolicyConfig
	picks selections
	sees  func(session string) bool // nil for all
	meter meter

	redact *redactor // nil for none
}

// policyOf is the policy of a connection at this moment.
func (t *table) policyOf(c *Caller) *policy {
	if c.policy == nil {
		return t.open.now.Load()
	}
	return c.policy.now.Load()
}

// restricted tells whether only some sessions exist for the caller.
func (p *policy) restricted() bool { return p.sees != nil }

// visible tells whether a session of that name exists for the caller.
func (p *policy) visible(session string) bool { return p.sees == nil || p.sees(session) }

// within is a model as the caller may see it.
func (p *policy) within(m *state.Model) *state.Model {
	if p.sees == nil || m == nil {
		return m
	}
	return m.Within(p.sees)
}

// progress is what tools report through. A report can be of what a pane prints,
// and is not looked at again: where only some sessions exist it says nothing, as
// the pane may have left them meanwhile, and secrets are taken out of it.
func (p *policy) progress(tell func(string)) func(string) {
	switch {
	case tell == nil || p.sees == nil && p.redact == nil:
		return tell
	case p.sees != nil:
		return func(string) { tell("") }
	}
	return func(message string) {
		message, _ = p.redact.text(message)
		tell(message)
	}
}

// matcher makes the test for session names, nil if all match.
func matcher(patterns []string) func(string) bool {
	if patterns == nil {
		return nil
	}
	exact := map[string]bool{}
	var globs []*regexp.Regexp
	for _, p := range patterns {
		if !strings.ContainsAny(p, "*?") {
			exact[p] = true
			continue
		}
		var b strings.Builder
		for _, r := range p {
			switch r {
			case '*':
				b.WriteString(".*")
			case '?':
				b.WriteByte('.')
			default:
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
		globs = append(globs, regexp.MustCompile(`(?s)\A`+b.String()+`\z`))
	}
	return func(name string) bool {
		return exact[name] || slices.ContainsFunc(globs, func(g *regexp.Regexp) bool { return g.MatchString(name) })
	}
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

// change is a change of the journal as the caller may see it; false if the
// caller may not. Whatever enters or leaves the caller's sight is created or
// closed.
func (c *call) change(ch state.Change) (state.Change, bool) {
	p := c.policy
	if !p.restricted() || ch.Kind == state.ServerGone {
		return ch, true
	}
	was, is := state.LinksWithin(ch.Was, p.sees), state.LinksWithin(ch.Is, p.sees)
	if len(was) == 0 && len(is) == 0 {
		return ch, false
	}
	now := is
	if len(now) == 0 {
		now = was
	}
	session := now[0].Session
	ch.Session, ch.Was, ch.Is = &session, was, is
	entered := len(was) == 0 && ch.Kind != state.PersonAttached
	left := len(is) == 0 && ch.Kind != state.PersonLeft
	switch {
	case entered || left:
		return crossed(ch, entered)
	case ch.Kind == state.Moved && ch.Pane == nil:
		ch.Before, ch.After = state.Placements(was), state.Placements(is)
		return ch, ch.Before != ch.After
	}
	return ch, true
}

// crossed is the change for somebody who sees only one side of it: what moved or
// was renamed into sight is created, what went out of it closed.
func crossed(ch state.Change, entered bool) (state.Change, bool) {
	kinds := [2]state.ChangeKind{state.SessionClosed, state.SessionCreated}
	switch {
	case ch.Pane != nil:
		kinds = [2]state.ChangeKind{state.PaneClosed, state.PaneCreated}
	case ch.Window != nil:
		kinds = [2]state.ChangeKind{state.WindowClosed, state.WindowCreated}
	}
	kind := kinds[0]
	if entered {
		kind = kinds[1]
	}
	switch ch.Kind {
	case kind:
		return ch, true
	case state.Renamed: // the name on the other side is not the caller's to know
		if entered {
			ch.Before = ""
		} else {
			ch.After = ""
		}
	case state.Moved:
		ch.Before, ch.After = "", ""
	default:
		return ch, false
	}
	ch.Kind = kind
	return ch, true
}

// meter counts calls. The zero value has no limits.
type meter struct {
	rate, most int

	// mu guards the fields that follow.
	mu      sync.Mutex
	tokens  float64 // calls that may begin now; below 0 while a batch is paid off
	filled  time.Time
	running int
}

func (m *meter) start(rate, most int) {
	m.rate, m.most = rate, most
	m.tokens, m.filled = float64(rate), time.Now()
}

// take counts n calls. It fails, with the time after which to try again, if not
// even one may begin now.
func (m *meter) take(n int) (after time.Duration, ok bool) {
	if m.rate == 0 {
		return 0, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.tokens = min(float64(m.rate), m.tokens+now.Sub(m.filled).Seconds()*float64(m.rate))
	m.filled = now
	if n > 0 && m.tokens < 1 {
		return time.Duration((1 - m.tokens) / float64(m.rate) * float64(time.Second)), false
	}
	m.tokens -= float64(n)
	return 0, true
}

// begin lets a call begin, and gives what is to be called at its end.
func (p *policy) begin() (end func(), err error) {
	m := &p.meter
	if err := p.spend(1); err != nil {
		return nil, err
	}
	if m.most == 0 {
		return func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running >= m.most {
		return nil, &problem{
			reason: fmt.Sprintf("%s run through this socket already, the most it allows", plural(m.running, "call")),
			hint:   "Nothing was done. Try again when one has ended.",
		}
	}
	m.running++
	return func() {
		m.mu.Lock()
		m.running--
		m.mu.Unlock()
	}, nil
}

// spend counts n calls against the rate.
func (p *policy) spend(n int) error {
	if after, ok := p.meter.take(n); !ok {
		return &problem{
			reason: fmt.Sprintf("this socket allows %s a second", plural(p.meter.rate, "call")),
			hint:   fmt.Sprintf("Nothing was done. Try again in %d ms.", after.Milliseconds()+1),
		}
	}
	return nil
}

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
