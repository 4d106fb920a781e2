package state

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// signalsBack is how long a shell may take, from the start mark on, to start the
// command's first program. While it starts one, or waits for one of the wrapper's,
// it can take C-c for nothing (zsh, bash, mksh), which no mark and nothing in /proc
// tells; and before the mark C-c would clear the line that is about to run.
const signalsBack = 100 * time.Millisecond

// AwaitSignals waits until a signal to a run would reach its command, or it has
// ended; not longer than a command may take to start. ErrNoRun.
func (m *Mirror) AwaitSignals(ctx context.Context, id string) (Run, error) {
	for {
		v, changed, err := m.RunNow(id)
		if err != nil || !v.Active() {
			return v, err
		}
		most := startLimit // StartedAt is when it was typed
		if v.Began {
			most = signalsBack
		}
		wait := time.Until(v.StartedAt.Add(most))
		if wait <= 0 {
			return v, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
	}
}

// Interrupting notes that a run is about to be interrupted. It answers false if
// it is not running any more: then nothing must be sent, as it would reach the
// shell or what runs after it.
func (m *Mirror) Interrupting(id string) bool {
	j, err := m.runs.find(id)
	if err != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.now.State != RunRunning {
		return false
	}
	j.now.Interrupted = true
	return true
}

// SignalRun sends TERM or KILL to the processes of a run: its process group,
// which must have the pane's terminal at this moment unless the run is stopped,
// and is never the shell's own. It answers false if the run has ended. After
// KILL nobody tells the exit status. ErrNoRun.
func (m *Mirror) SignalRun(_ context.Context, id, name string) (sent bool, err error) {
	j, err := m.runs.find(id)
	if err != nil {
		return false, err
	}
	sig, ok := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[name]
	if !ok {
		return false, fmt.Errorf("signal %q is not sent to runs", name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.now.Ended() {
		return false, nil
	}
	group := j.group
	fg, own, ok := foregroundOf(j.shell)
	switch {
	case !ok:
		return false, fmt.Errorf("the processes of run %s cannot be found; press C-c instead (signal INT)", id)
	case j.now.State == RunStopped && group != 0:
	case fg == own:
		return false, fmt.Errorf("run %s has no process group of its own: the shell runs it itself; press C-c instead (signal INT)", id)
	case group != 0 && fg != group:
		return false, fmt.Errorf("another program has the foreground of the pane; nothing was sent to run %s", id)
	default:
		group = fg
	}
	j.now.Interrupted = true
	err = syscall.Kill(-group, sig)
	if err == nil && j.now.State == RunStopped {
		err = syscall.Kill(-group, syscall.SIGCONT)
	}
	if err != nil {
		return false, fmt.Errorf("signal the processes of run %s: %w", id, err)
	}
	return true, nil
}
