package state

import (
	"context"
	"sync"
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

// door is passed by one at a time: a client of ours that is just saying who it
// is, or a command of ours that makes tmux tell every control client something.
// So we at least never do to a fragile server what can crash it.
type door chan struct{} // capacity 1

// pass waits for the turn and answers what gives it back, any number of times.
// After attachLimit it goes ahead: somebody has been in the door for longer than
// an attachment can take, as when tmux is stopped.
func (d door) pass(ctx context.Context) (leave func(), err error) {
	limit := time.NewTimer(attachLimit)
	defer limit.Stop()
	select {
	case d <- struct{}{}:
		return sync.OnceFunc(func() { <-d }), nil
	case <-limit.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stirs tells whether a request makes tmux tell every control client something:
// that sessions came, went or were renamed, that a client has left, that a paste
// buffer changed (control-notify.c of 3.3a, 3.5a: no look at the client's
// session). Whatever ends a pane can end its session.
func stirs(req controlmode.Request) bool {
	for _, c := range req.Commands {
		switch c.Words()[0] {
		case "new-session", "rename-session", "kill-session", "detach-client", "switch-client",
			"set-buffer", "load-buffer", "paste-buffer", "delete-buffer",
			"kill-pane", "kill-window", "unlink-window", "join-pane", "break-pane", "move-pane", "move-window", "respawn-pane":
			return true
		}
	}
	return false
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
