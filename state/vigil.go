package state

import (
	"context"

	"tmux-mcpd/controlmode"
)

// Vigil keeps a pane watched and tells that it has printed something, but not
// what. It belongs to one goroutine.
type Vigil struct {
	out    *Output
	wake   chan struct{}
	at     int64 // the end of the log when it was last looked at
	closed bool
}

// Vigil begins to keep a pane watched. wake, which must have room for one, is
// nudged whenever there may be news. The error is one of those of Since. The
// caller must Close it.
func (m *Mirror) Vigil(ctx context.Context, id controlmode.PaneID, wake chan struct{}) (*Vigil, error) {
	if _, err := m.attached(ctx); err != nil {
		return nil, err
	}
	out, err := m.caughtUp(ctx, id, GapAttached)
	if err != nil {
		return nil, err
	}
	v := &Vigil{out: out, wake: wake}
	out.join(wake)
	v.Moved()
	return v, nil
}

// Moved tells whether the pane has printed anything since the last call, or may
// have: a break in what was received counts as well.
func (v *Vigil) Moved() bool {
	v.out.mu.Lock()
	defer v.out.mu.Unlock()
	was := v.at
	v.at = v.out.ring.end
	return v.at != was
}

// Close ends it. It may be called again.
func (v *Vigil) Close() {
	if !v.closed {
		v.closed = true
		v.out.leave(v.wake)
	}
}
