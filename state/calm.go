package state

import (
	"context"
	"time"

	"tmux-mcpd/controlmode"
)

// fragile tells the releases whose server can crash when it has something to
// tell every control client while one is just saying who it is (before 3.7,
// tmux/tmux#4980): control_write on a client without a control_state. Seen on
// 3.3a and 3.5a with nothing but tmux attach-session and new-session. A version
// that cannot be read counts as fragile.
func fragile(version string) bool {
	v, err := controlmode.ParseVersion(version)
	return err != nil || !v.AtLeast("3.7")
}

// noteStir remembers when tmux told something to every control client, whether
// it has a session or not. Where such a thing is, others tend to follow: a
// script creates its sessions one after the other.
func (m *Mirror) noteStir(e controlmode.Event) {
	switch e.(type) {
	case controlmode.SessionsChanged, controlmode.SessionRenamed, controlmode.ClientDetached,
		controlmode.PasteBufferChanged, controlmode.PasteBufferDeleted:
		m.stirred.Store(time.Now().UnixNano())
	}
}

const (
	calmFor  = 20 * time.Millisecond  // of nothing told, before a client attaches
	calmMost = 300 * time.Millisecond // waited for that
)

// awaitCalm waits until nothing was told for a moment, not for long, and tells
// whether it waited. It cannot exclude the crash (the moment it is about can
// begin right after), only keep out of the bursts in which it is likely.
func (m *Mirror) awaitCalm(ctx context.Context) (waited bool) {
	limit := time.Now().Add(calmMost)
	for {
		now := time.Now()
		wait := min(time.Unix(0, m.stirred.Load()).Add(calmFor).Sub(now), limit.Sub(now))
		if wait <= 0 || !pause(ctx, wait) {
			return waited
		}
		waited = true
	}
}
