package state

import (
	"context"
	"os"
	"strconv"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// markName is the variable in the environment of our control clients that says
// whose they are: the value is the daemon's process id.
const markName = "TMUX_MCPD_CLIENT"

// clientMark is what a client of ours carries in its environment.
func clientMark() []string { return []string{markName + "=" + strconv.Itoa(os.Getpid())} }

// detachStale detaches control clients that an earlier life of the daemon left
// behind (they end with their daemon unless something keeps them: a stop, a
// debugger). Only a client whose process carries our mark, and whose daemon no
// longer runs, is touched: neither a person's client, nor another program's, nor
// that of a second daemon on the same server. A mark whose pid has been taken by
// somebody else since leaves the client alone. One after the other: see leave.
func (m *Mirror) detachStale(ctx context.Context, proc *controlmode.Process) {
	reply, err := proc.Do(ctx, controlmode.Request{
		Commands: []controlmode.Command{controlmode.Cmd("list-clients", "-F", clientListing.format)}, Fence: true,
	})
	if err != nil || len(reply.Blocks) != 1 || reply.Blocks[0].Error {
		return // the end of the client tells why
	}
	clients, err := readClients(reply.Blocks[0].Body, m.isOwn)
	if err != nil {
		m.log.Error("clients", zap.Error(err))
		return
	}
	for _, c := range clients {
		if c.Own || !c.Control {
			continue
		}
		daemon, ok := markOf(c.PID)
		if !ok || processExists(daemon) {
			continue
		}
		m.log.Info("detach a client of an earlier life", zap.Int("client", c.PID), zap.Int("daemon", daemon))
		// It may have left meanwhile, which is an error that changes nothing.
		if _, err := proc.Do(ctx, controlmode.Request{
			Commands: []controlmode.Command{controlmode.Cmd("detach-client", "-t", c.Name)}, Fence: true,
		}); err != nil {
			return
		}
	}
}
