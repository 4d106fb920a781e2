package mcp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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
		message, _ = p.redact.unended(message)
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
