package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"tmux-mcpd/controlmode"
)

// degradedError is why reads are answered by tmux processes for now.
type degradedError struct{ cause error }

func (e *degradedError) Error() string {
	return "attaching keeps failing, reads are answered by tmux processes: " + e.cause.Error()
}

func (e *degradedError) Unwrap() error { return e.cause }

// degraded tells whether a reason for being detached means that reads are to be
// answered by processes.
func degraded(reason error) bool {
	var d *degradedError
	return errors.As(reason, &d) || errors.Is(reason, errUnwelcome)
}

// alive tells whether the Mirror still runs.
func (m *Mirror) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ended
}

// byProcess runs a request that only reads in one tmux process. tmux runs the
// commands of one process one after the other without anything between, so the
// answer is of one instant, too.
func (m *Mirror) byProcess(ctx context.Context, req controlmode.Request) (Server, []controlmode.BlockEnd, error) {
	var nonce [8]byte
	rand.Read(nonce[:])
	mark := hex.EncodeToString(nonce[:])
	fence := controlmode.Cmd("display-message", "-p", mark)
	cmds := []controlmode.Command{controlmode.Cmd("display-message", "-p", serverListing.format), fence}
	for i, c := range req.Commands {
		if req.Begin != nil {
			req.Begin(i)
		}
		cmds = append(cmds, c, fence)
	}
	out, err := m.binary().Output(ctx, cmds...)
	if err != nil {
		return Server{}, nil, err
	}
	bodies := splitAt(out, mark)
	if len(bodies) != len(req.Commands)+1 {
		return Server{}, nil, fmt.Errorf("tmux process: %d answers to %d commands", len(bodies)-1, len(req.Commands))
	}
	blocks := make([]controlmode.BlockEnd, 0, len(req.Commands))
	for _, b := range bodies {
		blocks = append(blocks, controlmode.BlockEnd{Body: b})
	}
	server, err := readServer(blocks[0].Body)
	return server, blocks[1:], err
}

// splitAt cuts what a process printed into what stands before each line that is
// the mark, without its last newline.
func splitAt(out []byte, mark string) (bodies [][]byte) {
	start := 0
	for at := 0; at < len(out); {
		line := out[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		next := min(at+len(line)+1, len(out))
		if string(line) == mark {
			bodies = append(bodies, bytes.TrimSuffix(out[start:at], []byte("\n")))
			start = next
		}
		at = next
	}
	return bodies
}

// leave ends those of our clients that now keep alive what tmux would otherwise
// have ended: a session under destroy-unattached, the server under
// exit-unattached, once nobody else is attached.
//
// They leave one after the other, each when tmux has forgotten the one before,
// the structure client last: tmux 3.3a crashed in every other run when a session
// was destroyed while another control client of it was just leaving.
func (m *Mirror) leave(ctx context.Context, mod *Model) {
	att := m.attachedNow()
	if att == nil {
		return
	}
	structure := false
	for _, c := range mod.Clients {
		if !c.Own || !mod.unwelcome(c.Session) {
			continue
		}
		if c.PID == att.proc.PID() {
			structure = true
			continue
		}
		m.mu.Lock()
		o := m.own[c.PID]
		m.mu.Unlock()
		if o.proc == nil || !m.part(ctx, o.proc) {
			return // to be looked at again: the end of a client is a hint
		}
	}
	if structure {
		m.log.Info("leaving a session or server that lives only while somebody is attached")
		att.proc.Close()
	}
}

// unwelcome tells whether being attached to a session would keep alive what is
// to end.
func (mod *Model) unwelcome(id controlmode.SessionID) bool {
	s, ok := mod.Session(id)
	if !ok || !s.EndsUnattached && !s.ServerEndsUnattached {
		return false
	}
	anywhere := false
	for _, c := range mod.Clients {
		if !c.Own && c.Session == id {
			return false
		}
		anywhere = anywhere || !c.Own
	}
	return s.EndsUnattached || !anywhere
}

// part ends a client and waits until tmux no longer lists it.
func (m *Mirror) part(ctx context.Context, proc *controlmode.Process) bool {
	proc.Close()
	limit := time.NewTimer(attachLimit)
	defer limit.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return false
	case <-limit.C:
		return false
	}
	for {
		mod, err := m.reads.read(ctx, Clients)
		if err != nil {
			return false
		}
		if !slices.ContainsFunc(mod.Clients, func(c *Client) bool { return c.PID == proc.PID() }) {
			return true
		}
	}
}
