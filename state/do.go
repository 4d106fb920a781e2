package state

import (
	"context"
	"fmt"

	"tmux-mcpd/controlmode"
)

// DoOn runs a request that changes tmux, on the structure client and only if
// the server is the one that life names (the zero ServerID is any): ids of
// another life would name strangers. It is sent once and never again. An error
// that is also controlmode.ErrNotSent says that nothing was done; any other, that
// nobody knows. A command that tmux refused is in the Reply. It blocks until tmux
// has answered, at most Config.Timeout and the time to attach again.
// What must be so when tmux runs it, a Preflight looks at; see Write.
// Errors: ErrNoServer, ErrDetached, ErrOtherServer, those of controlmode.Client.Do.
func (m *Mirror) DoOn(ctx context.Context, life ServerID, req controlmode.Request) (controlmode.Reply, error) {
	att, err := m.attached(ctx)
	if err == nil && life != (ServerID{}) && att.server.ID != life {
		err = ErrOtherServer
	}
	leave := func() {}
	if err == nil && fragile(att.server.Version) && stirs(req) {
		leave, err = m.door.pass(ctx)
	}
	if err != nil {
		return controlmode.Reply{}, fmt.Errorf("%w: %w", err, controlmode.ErrNotSent)
	}
	defer leave()
	return att.proc.Do(ctx, req)
}
