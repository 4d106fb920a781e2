package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// ErrChannels: so many channels are waited for that no more can be.
var ErrChannels = errors.New("too many channels are waited for")

const (
	maxChannels = 128 // processes at once
	maxSentries = 16  // of these, for channels nobody waits for any more
)

// channels are the channels of tmux's wait-for that somebody waits for. The
// waiting is done by a tmux process for each channel, as wait-for blocks whoever
// says it.
//
// Before 3.8 tmux keeps the place of a waiter that has gone, and the next signal
// is spent on it (3.3a, 3.5a, 3.7c: wait-for, kill it, wait-for -S, wait-for
// waits for ever). So there a process outlives the calls that wanted it, as a
// sentry: should the signal come when nobody waits, it is given again, which is
// what tmux would have kept.
type channels struct {
	m *Mirror

	mu    sync.Mutex // guards the fields that follow
	open  map[string]*channel
	ended bool
	wg    sync.WaitGroup
}

// channel is one process that waits for a channel.
type channel struct {
	name    string
	child   *controlmode.Child
	life    ServerID // of the server, zero if it was not known
	waiters int
	left    time.Time // when the last waiter went
	done    chan struct{}
	err     error // set before done is closed
}

// ChannelWait is a wait for a channel. It must be closed.
type ChannelWait struct {
	of   *channels
	ch   *channel
	once sync.Once
}

// WaitChannel begins to wait for a channel. It does not block, and fails only if
// no process can be had: ErrChannels, ErrDetached after the end of Run.
func (m *Mirror) WaitChannel(name string) (*ChannelWait, error) {
	c := &m.channels
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, ErrDetached
	}
	ch := c.open[name]
	if ch == nil {
		if len(c.open) >= maxChannels {
			return nil, fmt.Errorf("%w: %d", ErrChannels, len(c.open))
		}
		child, err := m.binary().Spawn(controlmode.Cmd("wait-for", "--", name))
		if err != nil {
			return nil, err
		}
		ch = &channel{name: name, child: child, done: make(chan struct{})}
		if att := m.attachedNow(); att != nil {
			ch.life = att.server.ID
		}
		if c.open == nil {
			c.open = map[string]*channel{}
		}
		c.open[name] = ch
		c.wg.Go(func() { c.guard(ch) })
	}
	ch.waiters++
	return &ChannelWait{of: c, ch: ch}, nil
}

// Done is closed when the wait has ended.
func (w *ChannelWait) Done() <-chan struct{} { return w.ch.done }

// Err is nil if the channel was signalled, after Done.
func (w *ChannelWait) Err() error { return w.ch.err }

// Close gives the wait up.
func (w *ChannelWait) Close() { w.once.Do(func() { w.of.leave(w.ch) }) }

func (c *channels) leave(ch *channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.waiters--; ch.waiters > 0 || c.open[ch.name] != ch {
		return
	}
	if v, err := controlmode.ParseVersion(c.m.version()); err == nil && v.AtLeast("3.8") {
		ch.child.Kill()
		delete(c.open, ch.name)
		return
	}
	ch.left = time.Now()
	c.trim()
}

// trim ends the sentry that has stood longest if there are too many. The caller
// holds mu.
func (c *channels) trim() {
	var oldest *channel
	n := 0
	for _, ch := range c.open {
		if ch.waiters > 0 {
			continue
		}
		if n++; oldest == nil || ch.left.Before(oldest.left) {
			oldest = ch
		}
	}
	if n > maxSentries {
		oldest.child.Kill()
		delete(c.open, oldest.name)
	}
}

// guard waits for the end of a channel's process.
func (c *channels) guard(ch *channel) {
	<-ch.child.Done()
	err := ch.child.Err()
	if err == nil {
		err = c.m.stillThere(ch.life)
	} else if !errors.Is(err, ErrNoServer) && !c.m.serverListens() {
		err = fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	c.mu.Lock()
	if c.open[ch.name] == ch {
		delete(c.open, ch.name)
	}
	again := err == nil && ch.waiters == 0 && !c.ended
	c.mu.Unlock()
	ch.err = err
	close(ch.done)
	if again {
		if err := c.m.SignalChannel(context.Background(), ch.name); err != nil {
			c.m.log.Warn("a channel's signal is lost", zap.Error(err))
		}
	}
}

// stillThere tells whether a signal was one: a tmux that ends wakes all who wait
// (server.c, server_send_exit).
func (m *Mirror) stillThere(life ServerID) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Timeout)
	defer cancel()
	server, _, err := m.query(ctx, controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true})
	switch {
	case errors.Is(err, ErrNoServer), errors.Is(err, errEmpty):
		return ErrNoServer
	case err == nil && life != (ServerID{}) && server.ID != (ServerID{}) && server.ID != life:
		return ErrOtherServer
	}
	return nil
}

// end ends all processes and waits for them.
func (c *channels) end() {
	c.mu.Lock()
	c.ended = true
	for _, ch := range c.open {
		ch.child.Kill()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// SignalChannel signals a channel of tmux's wait-for, by a process of its own:
// whoever waits goes on, or else the next who comes. ErrNoServer.
func (m *Mirror) SignalChannel(ctx context.Context, name string) error {
	_, err := m.binary().Output(ctx, controlmode.Cmd("wait-for", "-S", "--", name))
	return err
}

// version is the version of the tmux server that we are, or were last, attached
// to.
func (m *Mirror) version() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.att != nil {
		return m.att.server.Version
	}
	return m.model.Load().Server.Version
}

func (c *channels) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
