package state

import (
	"slices"
	"sync"

	"tmux-mcpd/controlmode"
)

// recall remembers, for panes that are typed into, the look of the last write
// that was done. It may serve as the first look of the next one: it permits
// nothing by itself, as tmux compares what it found with what is when it writes.
type recall struct {
	mu    sync.Mutex
	looks []*Preflight // the newest last
}

// maxRecalled bounds the looks that are remembered.
const maxRecalled = 64

func (r *recall) keep(p *Preflight) {
	if p.signature != InputSignature {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks = append(slices.DeleteFunc(r.looks, p.like), p)
	if len(r.looks) > maxRecalled {
		r.looks = slices.Delete(r.looks, 0, 1)
	}
}

// like tells whether a look is of the same things.
func (p *Preflight) like(o *Preflight) bool {
	return o.scope.target == p.scope.target && o.signature == p.signature
}

// Recall answers the look of the last write to a pane, nil for none, if Write
// would still take it. It asks nothing of tmux. What it shows may be old by any
// time, so it can permit a write and refuse none: whoever would refuse has to
// look with Preflight, and so has who meets ErrChanged.
func (m *Mirror) Recall(s Scope, sig Signature) *Preflight {
	att := m.attachedNow()
	if att == nil {
		return nil
	}
	want := Preflight{scope: s, signature: sig}
	m.recall.mu.Lock()
	defer m.recall.mu.Unlock()
	i := slices.IndexFunc(m.recall.looks, want.like)
	if i < 0 {
		return nil
	}
	p := m.recall.looks[i]
	if p.Model.Server.ID != att.server.ID || slices.ContainsFunc(p.ours, (*controlmode.Process).Ended) {
		m.recall.looks = slices.Delete(m.recall.looks, i, i+1)
		return nil
	}
	return p
}

// processes are the processes of those of our clients that look at a window of
// the model. One whose process is gone already is the nil *Process, which has
// ended.
func (m *Mirror) processes(mod *Model) []*controlmode.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*controlmode.Process
	for _, c := range mod.Clients {
		if c.Own && slices.ContainsFunc(mod.Panes, func(p *Pane) bool { return p.Window == c.Window }) {
			all = append(all, m.own[c.PID].proc)
		}
	}
	return all
}
