package state

import (
	"context"
	"maps"

	"tmux-mcpd/controlmode"
)

// route makes out receive the pane's output on this client from the next line
// on; nil stops it.
func (s *stream) route(id controlmode.PaneID, out *Output) {
	next := maps.Clone(*s.routes.Load())
	if out == nil {
		delete(next, id)
	} else {
		next[id] = out
	}
	s.routes.Store(&next)
}

// refreshClient changes the delivery of panes on this client, many in one command.
func refreshClient(state string, ids ...controlmode.PaneID) controlmode.Command {
	args := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		args = append(args, "-A", id.String()+":"+state)
	}
	return controlmode.Cmd("refresh-client", args...)
}

// mute pauses panes nobody watches. tmux then neither sends nor queues their
// output for this client.
func (s *stream) mute(ctx context.Context, ids []controlmode.PaneID) error {
	const most = 500 // keeps the line far below 64 kB
	for len(ids) > 0 {
		n := min(len(ids), most)
		batch := ids[:n:n]
		ids = ids[n:]
		routes := *s.routes.Load()
		batch = filter(batch, func(id controlmode.PaneID) bool { return routes[id] == nil })
		s.mu.Lock()
		for _, id := range batch {
			s.muted[id] = true
			delete(s.noisy, id)
		}
		s.mu.Unlock()
		if len(batch) == 0 {
			continue
		}
		if _, err := s.proc.Do(ctx, controlmode.Request{
			Commands: []controlmode.Command{refreshClient("pause", batch...)}, Fence: true,
		}); err != nil {
			return err
		}
	}
	return nil
}

// unmute takes the command that makes the pane's output flow again, if it was
// muted; the caller sends it in the line that begins the epoch.
func (s *stream) unmute(id controlmode.PaneID) []controlmode.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.noisy, id)
	_, stopped := s.paused[id]
	if !s.muted[id] && !stopped {
		return nil
	}
	delete(s.muted, id)
	delete(s.paused, id)
	return []controlmode.Command{refreshClient("continue", id)}
}

func filter[T any](all []T, keep func(T) bool) []T {
	var kept []T
	for _, x := range all {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}
