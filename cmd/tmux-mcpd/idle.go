package main

import (
	"context"
	"strconv"
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

// Bounds of LIBTMUX_MCP_COMMAND_TIMEOUT_MS, milliseconds (contract 1.5).
const (
	commandTimeoutMS    = 30_000
	maxCommandTimeoutMS = 2_147_483_647
)

// commandTimeout is the deadline of one tmux command. A value that is not a
// positive decimal counts as unset, as in the contract.
func commandTimeout(lookup env) time.Duration {
	text, _ := lookup("LIBTMUX_MCP_COMMAND_TIMEOUT_MS")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		ms = commandTimeoutMS
	}
	return time.Duration(min(ms, maxCommandTimeoutMS)) * time.Millisecond
}
