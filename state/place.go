package state

import (
	"context"
	"errors"
	"time"

	"tmux-mcpd/controlmode"
)

// Watched tells whether the pane's output is being received. It does not ask
// tmux.
func (m *Mirror) Watched(id controlmode.PaneID) bool {
	s, _ := m.watches.liveStream(id)
	return s != nil
}

// placeLimit is how long Place waits for output that is on its way. A pane that
// floods is answered late on its own connection.
const placeLimit = 500 * time.Millisecond

// Place is the place in a pane's output after all that tmux had received from it
// when the call was made, for a reader who wants to see what comes next. It
// starts the watch if there is none. From a pane that floods it is the place
// after what has been delivered. ErrNotFound, ErrNoServer, ErrDetached.
func (m *Mirror) Place(ctx context.Context, id controlmode.PaneID) (Cursor, error) {
	reason := GapAttached
	if s, out := m.watches.liveStream(id); s != nil {
		out.touch(time.Now())
		at, ok := out.cursor()
		short, cancel := context.WithTimeout(ctx, placeLimit)
		defer cancel()
		_, err := s.ask(short, controlmode.Request{
			Commands: []controlmode.Command{insideCmd(s.session, id)}, Fence: true,
			Begin: func(int) {
				if c, now := out.cursor(); now {
					at, ok = c, true
				}
			},
		})
		late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case ok && (err == nil || late) && out.live(0):
			return at, nil
		case outside(err):
			reason = GapOwnerChanged
		case err != nil && !lostStream(err):
			return Cursor{}, missing(id, err)
		}
	}
	_, out, err := m.watch(ctx, id, reason)
	if err != nil {
		return Cursor{}, err
	}
	at, ok := out.cursor()
	if !ok {
		return Cursor{}, ErrDetached
	}
	return at, nil
}

// Here is Place for who must not wait: the place as far as the output has been
// received, without asking tmux. ok is false for a pane that is not watched.
func (m *Mirror) Here(id controlmode.PaneID) (at Cursor, ok bool) {
	_, out := m.watches.liveStream(id)
	if out == nil {
		return at, false
	}
	return out.cursor()
}
