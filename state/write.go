package state

import (
	"context"
	"fmt"

	"tmux-mcpd/controlmode"
)

// Write runs a request that changes tmux, on the structure client and only if
// the server is the one that life names (the zero ServerID is any): ids of
// another life would name strangers. It is sent once and never again. An error
// that is controlmode.ErrNotSent says that nothing was done; any other of Write,
// that nobody knows. A command that tmux refused is in the Reply. It blocks
// until tmux has answered, at most Config.Timeout and the time to attach again.
// Errors: ErrNoServer, ErrDetached, ErrOtherServer, those of controlmode.Client.Do.
func (m *Mirror) Write(ctx context.Context, life ServerID, req controlmode.Request) (controlmode.Reply, error) {
	att, err := m.attached(ctx)
	if err == nil && life != (ServerID{}) && att.server.ID != life {
		err = ErrOtherServer
	}
	if err != nil {
		return controlmode.Reply{}, fmt.Errorf("%w: %w", err, controlmode.ErrNotSent)
	}
	return att.proc.Do(ctx, req)
}

// WriteSessions is Write for what may create, rename or end a session. Releases
// that can crash when that happens while a control client attaches (see fragile)
// are kept from it as far as our own clients go: none attaches meanwhile.
func (m *Mirror) WriteSessions(ctx context.Context, life ServerID, req controlmode.Request) (controlmode.Reply, error) {
	if att := m.attachedNow(); att == nil || !fragile(att.server.Version) {
		return m.Write(ctx, life, req)
	}
	turn, cancel := context.WithTimeoutCause(ctx, m.cfg.Timeout, controlmode.ErrTimeout)
	err := m.watches.take(turn)
	cancel()
	if err != nil {
		return controlmode.Reply{}, fmt.Errorf("%w: %w", err, controlmode.ErrNotSent)
	}
	defer m.watches.give()
	return m.Write(ctx, life, req)
}
