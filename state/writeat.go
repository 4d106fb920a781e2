package state

import (
	"context"
	"errors"
	"time"

	"tmux-mcpd/controlmode"
)

// ErrNotFollowed: the pane's output is not being received, or tmux has too much
// of it to send. Nothing was done.
var ErrNotFollowed = errors.New("the pane's output is not being received, or it floods")

// calmStream is how long a stream client must have received nothing: an answer
// waits behind the output that tmux has for the client.
const calmStream = 5 * time.Millisecond

// WriteAt is Write for input to a pane, on the client that receives its output:
// at is the place in the output in the instant of the write, so that nothing
// before it is the answer to the input, and nothing of the answer is missed. It
// is set as well with ErrUnknown; what was printed just before may follow it
// then. ErrNotFollowed: to be written with Write.
func (m *Mirror) WriteAt(ctx context.Context, p *Preflight, id controlmode.PaneID, cmds ...controlmode.Command) (at Cursor, err error) {
	s, out := m.watches.liveStream(id)
	if s == nil || s.server.ID != p.Model.Server.ID || time.Since(time.Unix(0, s.heard.Load())) < calmStream {
		return at, ErrNotFollowed
	}
	out.touch(time.Now())
	at, ok := out.cursor()
	req := p.line(cmds)
	req.Commands = append([]controlmode.Command{insideCmd(s.session, id)}, req.Commands...)
	if !ok || stirs(req) || long(req) {
		return at, ErrNotFollowed
	}
	exact := at
	req.Begin = func(int) {
		if c, now := out.cursor(); now && ok {
			exact, ok = c, false // the first, before the input
		}
	}
	reply, err := s.proc.Do(ctx, req)
	switch {
	case errors.Is(err, controlmode.ErrNotSent) && ctx.Err() == nil, err == nil && outside(reply.Err(req)):
		return at, ErrNotFollowed
	case err == nil:
		at = exact
	}
	return at, m.written(p, req, reply, err)
}
