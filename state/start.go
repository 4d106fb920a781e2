package state

import (
	"context"

	"tmux-mcpd/controlmode"
)

// Start runs commands in a tmux process of their own, which starts the server if
// none runs, with Config.Server. It blocks until they have run, at most
// Config.Timeout. It is for making the first session: everything else is done on
// the server there is. Errors: those of controlmode.Binary.Start.
func (m *Mirror) Start(ctx context.Context, commands ...controlmode.Command) ([]byte, error) {
	out, err := m.binary().Start(ctx, m.cfg.Server.File, append(m.cfg.Server.Commands[:len(m.cfg.Server.Commands):len(m.cfg.Server.Commands)], commands...)...)
	nudge(m.kick) // there is something to attach to
	return out, err
}

// ServerConfig is how a tmux server is started by us.
type ServerConfig struct {
	File     string                // configuration file, "" for tmux's usual ones
	Commands []controlmode.Command // run before anything else
}
