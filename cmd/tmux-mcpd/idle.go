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
	look := time.NewTicker(min(max(limit/10, 10*time.Millisecond), 30*time.Second))
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

// Deadlines of one tmux command (contract 1.5).
const (
	defaultCommandTimeout = 30 * time.Second
	maxCommandTimeout     = 2_147_483_647 * time.Millisecond
	envCommandTimeout     = "LIBTMUX_MCP_COMMAND_TIMEOUT_MS"
)
