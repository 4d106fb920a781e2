package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"tmux-mcpd/mcp"
)

// ownListener is the daemon's own socket: the one that a service manager has
// opened for us (LISTEN_FDS), or one that we make. The manager's decides the
// path, since clients come by it whatever was configured.
func ownListener(ctx context.Context, c *config, log *zap.Logger) (*mcp.Listener, error) {
	given, err := activation.Listeners() // unsets the variables: no child is meant
	if err != nil {
		return nil, fmt.Errorf("sockets of the service manager: %w", err)
	}
	var own *net.UnixListener
	for _, ln := range given {
		unix, ok := ln.(*net.UnixListener)
		switch {
		case ln == nil: // a descriptor that is no listening socket
		case !ok || own != nil:
			ln.Close()
			return nil, coded(exitUsage, "the service manager passed %d sockets; one Unix socket is wanted", len(given))
		default:
			own = unix
		}
	}
	if own == nil {
		return mcp.Listen(c.main.path)
	}
	l := mcp.FromListener(own)
	c.main.path = l.Path()
	succeed(ctx, l, log)
	return l, nil
}

// succeed makes this daemon the only one on the manager's socket. One that a
// client started before the manager had it is out of reach for new clients, and
// keeps those it has until it ends: they dial again and find us. Whatever goes
// wrong with that, the socket is ours.
func succeed(ctx context.Context, l *mcp.Listener, log *zap.Logger) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	asked := 0
	for {
		err := l.Lock()
		var inUse *mcp.InUseError
		if err == nil {
			return
		}
		if errors.As(err, &inUse) && inUse.PID > 0 && inUse.PID != asked {
			asked = inUse.PID
			log.Info("ending the daemon that served before", zap.Int("pid", asked))
			if err = syscall.Kill(asked, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
				err = nil // its lock goes with the last process that has it
			}
		}
		if inUse == nil || err != nil && !errors.Is(err, inUse) || !pause(ctx, dialPause) {
			log.Warn("another daemon may be left on this socket", zap.Error(err))
			return
		}
	}
}

// tellManager sends the service manager a word (sd_notify(3)), where there is
// one that listens. What it makes of that is its own affair.
func tellManager(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("service manager", zap.Error(err))
	}
}

// keepWatchdog tells the service manager again and again that the daemon is
// alive, if it wants to know, until ctx ends. Alive is a daemon whose state can be
// asked for; tmux being stopped or gone is no fault of ours.
func keepWatchdog(ctx context.Context, log *zap.Logger, alive func()) {
	limit, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		log.Warn("service manager's watchdog", zap.Error(err))
	}
	if err != nil || limit <= 0 {
		return
	}
	tick := time.NewTicker(limit / 3)
	defer tick.Stop()
	for {
		alive() // hangs with the daemon
		tellManager(log, daemon.SdNotifyWatchdog)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
