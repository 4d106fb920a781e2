package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"tmux-mcpd/mcp"
)

// sockets are the listening sockets of a daemon.
type sockets struct {
	server *mcp.Server
	log    *logger

	// mu guards the fields that follow.
	mu      sync.Mutex
	open    map[string]*openSocket // by path
	serving context.Context        // nil before serve
	ended   bool
	wg      sync.WaitGroup
	errs    []error
}

// openSocket is one of them.
type openSocket struct {
	ln     *mcp.Listener
	policy *mcp.Policy
	cfg    *listener
	stop   context.CancelFunc // ends its serving; nil before that
}

// listen makes a socket.
func (s *sockets) listen(l *listener) error {
	ln, err := mcp.Listen(l.path)
	var inUse *mcp.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("socket %s of [[listen]]: %s", l.path, inUse)
	}
	if err != nil {
		return err
	}
	if err := s.add(l, ln); err != nil {
		return errors.Join(err, ln.Close())
	}
	return nil
}

// add puts a listening socket under its policy.
func (s *sockets) add(l *listener, ln *mcp.Listener) error {
	p, err := s.server.NewPolicy(l.policy)
	if err != nil {
		return coded(exitUsage, "socket %s: %w", l.path, err)
	}
	ln.Under(p)
	if l.mode != socketMode {
		if err := ln.SetMode(l.mode); err != nil {
			return fmt.Errorf("socket %s: %w", l.path, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &openSocket{ln: ln, policy: p, cfg: l}
	s.open[l.path] = k
	if s.serving != nil && !s.ended {
		s.start(k, func() {})
	}
	return nil
}

// start serves a socket, and calls after when that has ended. mu is held.
func (s *sockets) start(k *openSocket, after func()) {
	ctx, cancel := context.WithCancel(s.serving)
	k.stop = cancel
	s.wg.Go(func() {
		defer after()
		defer cancel()
		if err := s.server.Serve(ctx, k.ln); err != nil {
			s.mu.Lock()
			s.errs = append(s.errs, fmt.Errorf("socket %s: %w", k.ln.Path(), err))
			s.mu.Unlock()
			if ctx.Err() == nil {
				s.log.Error("socket not served any more", zap.String("socket", k.ln.Path()), zap.Error(err))
			}
		}
	})
}

// serve serves all sockets until ctx ends or the main one, of that path, cannot
// be served any more, and gives what went wrong on the way to the end.
func (s *sockets) serve(ctx context.Context, mainPath string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.serving = ctx
	for path, k := range s.open {
		after := func() {}
		if path == mainPath {
			after = cancel
		}
		s.start(k, after)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wg.Wait()
	return errors.Join(s.errs...)
}

// close closes what is open, the locks last of all.
func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, k := range s.open {
		k.ln.Close()
	}
}

// reloading is how a daemon learns that its configuration is to be read again.
type reloading struct {
	asked  <-chan struct{}
	reread func() (*config, error)
}

// reload applies a new configuration whenever it is asked to, until ctx ends. A
// faulty one changes nothing.
func (s *sockets) reload(ctx context.Context, c *config, re reloading) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-re.asked:
		}
		next, err := re.reread()
		if err != nil {
			s.log.Error("configuration not reloaded", zap.Error(err))
			continue
		}
		s.apply(c, next)
		s.server.ToolsChanged()
		s.log.Info("configuration reloaded", zap.String("file", next.configPath))
	}
}

// apply changes the daemon that runs with c to what next says.
func (s *sockets) apply(c, next *config) {
	for i := range settings {
		set := &settings[i]
		if set.live || set.show == nil {
			continue
		}
		if was, is := set.show(c, &c.main), set.show(next, &next.main); !reflect.DeepEqual(was, is) {
			s.log.Warn("this takes a restart to change", zap.String("setting", set.key), zap.Any("is", was), zap.Any("asked", is))
		}
	}
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(next.logLevel)); err == nil {
		s.log.level.SetLevel(level)
	}
	next.main.path = c.main.path // the socket that clients know
	wanted := map[string]*listener{c.main.path: &next.main}
	for _, l := range next.further {
		wanted[l.path] = l
	}
	s.mu.Lock()
	open := map[string]*openSocket{}
	for path, k := range s.open {
		open[path] = k
	}
	s.mu.Unlock()
	for path, k := range open {
		if wanted[path] == nil {
			s.remove(path, k)
		}
	}
	for path, l := range wanted {
		if k := open[path]; k != nil {
			s.change(k, l)
		} else if err := s.listen(l); err != nil {
			s.log.Error("socket not opened", zap.String("socket", path), zap.Error(err))
		} else {
			s.log.Info("further socket", zap.String("socket", path))
		}
	}
}

// change puts an open socket under new rules; its connections stay.
func (s *sockets) change(k *openSocket, l *listener) {
	if err := k.policy.Set(l.policy); err != nil {
		s.log.Error("policy not changed", zap.String("socket", l.path), zap.Error(err))
		return
	}
	if l.mode != k.cfg.mode {
		if err := k.ln.SetMode(l.mode); err != nil {
			s.log.Error("mode not changed", zap.String("socket", l.path), zap.Error(err))
		}
	}
	k.cfg = l
}

// remove takes a socket and its connections away.
func (s *sockets) remove(path string, k *openSocket) {
	s.mu.Lock()
	delete(s.open, path)
	stop := k.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	k.ln.Close()
	s.log.Info("socket closed", zap.String("socket", path))
}
