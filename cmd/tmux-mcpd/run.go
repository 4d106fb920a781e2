package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/mcp"
	"tmux-mcpd/state"
)

// detachTimeout bounds the wait for our tmux clients to leave.
const detachTimeout = 2 * time.Second

// run is the daemon: it takes the socket, attaches and serves until ctx ends,
// and stops in the reverse order. It is the only place where the packages meet.
// ready is called once, when clients can connect. It returns when everything
// it started has ended.
func run(ctx context.Context, c *config, log *logger, ready func(path string), re reloading) error {
	started := time.Now()
	ln, err := ownListener(ctx, c, log.Logger)
	if err != nil {
		return err
	}
	defer ln.Close() // last: the lock keeps the next daemon out until we are gone
	dedicated := false
	if c.start == "dedicated" {
		if dedicated, err = startDedicated(ctx, c); err != nil {
			return err
		}
	}
	// Always by path: without one, tmux would follow TMUX of our environment.
	socket := controlmode.Socket{Path: c.tmuxSocket}
	mirror := state.New(state.Config{
		Server: serverConfig(c, dedicated),
		Bin:    c.tmuxBin, Socket: socket, Transport: controlmode.Transport(c.transport),
		Watch: state.WatchMode(c.watch), Timeout: c.commandTimeout, Log: log.Named("state"),
		CursorFile: c.stateFile(".cursors"),
	})
	server, err := mcp.New(mcp.Config{Version: versionText(), Log: log.Named("mcp"), Audit: log.audit}, mirror,
		mcp.ToolConfig{Socket: c.tmux, Dedicated: dedicated})
	if err != nil {
		return coded(exitUsage, "%w", err)
	}
	socks := &sockets{server: server, log: log, open: map[string]*openSocket{}}
	if err := socks.add(&c.main, ln); err != nil {
		return err
	}
	for _, l := range c.further {
		if err := socks.listen(l); err != nil {
			socks.close()
			return err
		}
	}
	defer socks.close()
	err = server.Answer(statusMethod, func(context.Context) (any, error) {
		return reportStatus(c, started, mirror.Status(), server.Status()), nil
	})
	if err == nil {
		err = server.Answer(checkMethod, func(ctx context.Context) (any, error) { return mirror.Verify(ctx) })
	}
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if c.debugSocket != "" {
		end, err := serveDebug(c.debugSocket, mirror, log.Logger)
		if err != nil {
			return err
		}
		defer end()
	}

	// Connections wait in the socket's queue from here on. Said before the
	// mirror starts, so that it is the first thing said.
	ready(ln.Path())
	tellManager(log.Logger, daemon.SdNotifyReady)
	for _, l := range c.further {
		log.Info("further socket", zap.String("socket", l.path))
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// The mirror outlives ctx: calls that are being finished still need it.
	mirrorCtx, stopMirror := context.WithCancel(context.WithoutCancel(ctx))
	defer stopMirror()
	mirrorEnded := make(chan error, 1)
	go func() {
		err := mirror.Run(mirrorCtx)
		if mirrorCtx.Err() == nil {
			end(fmt.Errorf("the connection to tmux gave up: %w", err))
		}
		mirrorEnded <- err
	}()
	watchdogEnded := make(chan struct{})
	go func() {
		defer close(watchdogEnded)
		keepWatchdog(ctx, log.Logger, func() { _, _ = mirror.Status(), server.Status() })
	}()
	idleEnded := make(chan struct{})
	go func() {
		defer close(idleEnded)
		if awaitIdle(ctx, c.idleExit, func() bool { return nobody(mirror.Status(), server.Status()) }) {
			log.Info("ending: the tmux server and all clients have been gone", zap.Duration("for", c.idleExit))
			end(errIdle)
		}
	}()

	lostEnded := make(chan struct{})
	go func() {
		defer close(lostEnded)
		if awaitLost(ctx, lookEvery(c.idleExit), func() bool { return astray(ln, server.Status()) }) {
			log.Info("ending: clients cannot find the socket any more", zap.String("socket", ln.Path()))
			end(errIdle)
		}
	}()

	go socks.reload(ctx, c, re)
	err = socks.serve(ctx, ln.Path())
	cause := context.Cause(ctx)
	end(nil)
	tellManager(log.Logger, daemon.SdNotifyStopping)
	<-idleEnded
	<-lostEnded
	<-watchdogEnded
	stopMirror()
	select {
	case merr := <-mirrorEnded:
		if merr != nil && !errors.Is(merr, context.Canceled) {
			err = errors.Join(err, merr)
		}
	case <-time.After(detachTimeout):
		err = errors.Join(err, fmt.Errorf("tmux clients did not leave within %v", detachTimeout))
	}
	if cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, errIdle) {
		err = errors.Join(cause, err)
	}
	return err
}

// errIdle ends a daemon that nobody needs.
var errIdle = errors.New("idle")

// astray tells whether a daemon is of no use where it is: another has its socket's
// place, or nobody does and its clients are gone. logind, for one, removes the
// runtime directory with the last login; the next login has another daemon.
func astray(ln *mcp.Listener, s mcp.Status) bool {
	lost, other := ln.Lost()
	return other || lost && len(s.Connections) == 0
}

// nobody tells whether there is neither a tmux server nor a client.
func nobody(m state.Status, s mcp.Status) bool {
	return !m.Attached && len(s.Connections) == 0
}
