package main

import (
	"context"
	"time"
)

// awaitIdle blocks until idle has held for limit without a break (true), or
// until ctx ends (false). It looks a few times per limit, so that a short visit
// between two looks can go unseen; nothing is lost by that. A limit of 0 never
// passes.
func awaitIdle(ctx context.Context, limit time.Duration, idle func() bool) bool {
	if limit <= 0 {
		<-ctx.Done()
		return false
	}
	look := time.NewTicker(lookEvery(limit))
	defer look.Stop()
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-look.C:
			if !idle() {
				since = now
			} else if now.Sub(since) >= limit {
				return true
			}
		}
	}
}

// lookEvery is how often a daemon that ends after so long looks whether to.
func lookEvery(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 30 * time.Second
	}
	return min(max(limit/10, 10*time.Millisecond), 30*time.Second)
}

// awaitLost blocks until lost (true), which it looks for that often, or until ctx
// ends (false).
func awaitLost(ctx context.Context, every time.Duration, lost func() bool) bool {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
			if lost() {
				return true
			}
		}
	}
}

// Deadlines of one tmux command (contract 1.5).
const (
	defaultCommandTimeout = 30 * time.Second
	maxCommandTimeout     = 2_147_483_647 * time.Millisecond
	envCommandTimeout     = "LIBTMUX_MCP_COMMAND_TIMEOUT_MS"
)
