package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/term"

	"tmux-mcpd/mcp"
)

// stopTimeout is how long an orderly end may take, all of it.
const stopTimeout = 5 * time.Second

// serve runs the daemon, here or with --detach in the background.
func serve(ctx context.Context, in *invocation) error {
	c := in.cfg
	if c.detach {
		return detach(ctx, c)
	}
	sparing(50)
	version, err := checkTmux(ctx, c)
	if err != nil {
		return err
	}
	log, err := openLog(c, in.stderr)
	if err != nil {
		return err
	}
	defer log.close()
	reload := make(chan struct{}, 1)
	hup := func() bool {
		if f, ok := in.stderr.(*os.File); ok && c.logFile == "" && term.IsTerminal(int(f.Fd())) {
			return false
		}
		log.reopen()
		select {
		case reload <- struct{}{}:
		default: // one that has not begun will do for both
		}
		return true
	}
	ctx, stop := endBySignal(ctx, log, hup)
	defer stop()
	ready := func(path string) {
		fmt.Fprintf(in.stderr, "tmux-mcpd: ready on %s for the tmux server %s\n", path, c.tmuxSocket)
		log.Info("ready", zap.String("socket", path), zap.String("tmuxSocket", c.tmuxSocket),
			zap.String("tmux", version), zap.String("version", versionText()), zap.Int("pid", os.Getpid()))
	}
	err = run(ctx, c, log, ready, reloading{reload, in.reread})
	var inUse *mcp.InUseError
	if errors.As(err, &inUse) {
		return said(in.stderr, inUse)
	}
	if err != nil {
		log.Error("ended", zap.Error(err))
		return err
	}
	log.Info("ended")
	return nil
}

// sparing has garbage collected when the heap has grown by so many percent, not
// by Go's 100: there is one process of us for each client, and most of what they
// do is wait. GOGC decides if it is set.
func sparing(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// said reports that there was nothing to do.
func said(w io.Writer, what error) error {
	_, err := fmt.Fprintln(w, what)
	return err
}

// endBySignal ends the context at the first SIGTERM or SIGINT, and the process
// at the second, or when the end takes too long: nothing that hangs may keep a
// service manager waiting. SIGHUP is hup's; where that says false, it is a
// terminal that closed, and as SIGTERM.
func endBySignal(ctx context.Context, log *logger, hup func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var late <-chan time.Time
		for {
			select {
			case <-done:
				return
			case <-late:
				log.Error("not ended in time, exiting", zap.Duration("limit", stopTimeout))
				os.Exit(exitFailure)
			case s := <-signals:
				if s == syscall.SIGHUP && hup() {
					continue
				}
				if late != nil {
					os.Exit(exitFailure)
				}
				log.Info("ending", zap.Stringer("signal", s))
				late = time.After(stopTimeout)
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel()
	}
}
