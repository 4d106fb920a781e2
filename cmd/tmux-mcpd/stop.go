package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"
)

// endLimit is how long a daemon may take to end: it promises stopTimeout.
const endLimit = stopTimeout + 2*time.Second

// stop ends the daemon and waits until it has ended.
func stop(ctx context.Context, in *invocation) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	pid, err := daemonPID(ctx, in.cfg)
	if absentDaemon(err) {
		fmt.Fprintln(in.stdout, "no daemon serves", in.cfg.main.path)
		return nil
	}
	if err == nil {
		err = endProcess(ctx, pid)
	}
	if err == nil {
		fmt.Fprintf(in.stdout, "ended (pid %d)\n", pid)
	}
	return err
}

func absentDaemon(err error) bool { return err != nil && absent(err) }

// daemonPID asks a daemon for its process id. It starts none.
func daemonPID(ctx context.Context, c *config) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	r, err := askDaemon(ctx, c)
	if err == nil && r.PID <= 0 {
		err = errors.New("the daemon does not tell its process id")
	}
	if err != nil {
		return 0, err
	}
	return r.PID, nil
}

// endProcess ends a daemon in order, by the process id it told, and waits for its
// end.
func endProcess(ctx context.Context, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending the daemon, pid %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		err := syscall.Kill(pid, 0)
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if !pause(ctx, dialPause) {
			return coded(exitFailure, "the daemon, pid %d, has not ended within %v", pid, endLimit)
		}
	}
}
