//go:build !linux

package state

import "time"

// sleeper cannot tell here whether a tmux server sleeps.
type sleeper struct{}

func watchSleep(pid int, terminal string) *sleeper { return &sleeper{} }

func (*sleeper) asleep() bool { return false }

func (*sleeper) await(time.Duration) bool { return false }

func (*sleeper) close() {}

func processRuns(pid int) bool { return false }
