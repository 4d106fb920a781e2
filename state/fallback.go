package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"go.uber.org/zap"

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
		return Server{}, nil, noServer(err)
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
func (m *Mirror) leave(mod *Model) {
	others := map[controlmode.SessionID]bool{}
	for _, c := range mod.Clients {
		if !c.Own {
			others[c.Session] = true
		}
	}
	for _, c := range mod.Clients {
		s, ok := mod.Session(c.Session)
		if !c.Own || !ok || others[c.Session] {
			continue
		}
		if s.EndsUnattached || s.ServerEndsUnattached && len(others) == 0 {
			m.mu.Lock()
			o := m.own[c.PID]
			m.mu.Unlock()
			if o.proc != nil {
				m.log.Info("leaving a session that lives only while somebody is attached", zap.Stringer("session", s.ID))
				o.proc.Close()
			}
		}
	}
}
