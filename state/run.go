package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// Bounds of what is remembered of runs.
const (
	maxRuns      = 256 // the oldest ended ones are forgotten
	runAge       = 24 * time.Hour
	runOutput    = 4 << 20  // bytes of output kept per run, the newest
	allRunOutput = 64 << 20 // of all runs that have ended
	startLimit   = time.Second
	readyLimit   = 2 * time.Second        // for a shell that is just about to be ready
	busyLimit    = 500 * time.Millisecond // after which a busy pane counts as one
)

// RunState is where a run stands.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"
	RunCompleted RunState = "completed" // it has ended, and its status is known
	RunStopped   RunState = "stopped"   // by C-z; it ends after fg
	RunPaneDied  RunState = "pane_died"
	RunUnknown   RunState = "unknown" // it has ended, and nobody knows how
	// RunNotStarted: the line was typed and the shell did not run it. Tools show
	// such a run as an error.
	RunNotStarted RunState = "not_started"
)

// Run is what is known of a run at one moment.
type Run struct {
	ID         string
	Pane       controlmode.PaneID
	Shell      Shell
	State      RunState
	ExitStatus *int      // nil unless completed
	Began      bool      // the command has started
	StartedAt  time.Time // when its start was seen, or it was typed
	EndedAt    time.Time // zero while it has not
	// OutputComplete tells that all of the output between exact bounds was kept.
	OutputComplete bool
	Interrupted    bool // by InterruptRun
	// Foreign tells that end marks were seen that were not the run's own.
	Foreign bool
	// Restarted tells that the daemon was restarted since it began: output is
	// missing.
	Restarted bool
	NewPane   bool    // the pane was made for it
	Cursor    *Cursor // where its output begins, or the typed line; nil if unknown
}

// Active tells whether the command may still run: then the pane is taken.
func (r *Run) Active() bool { return r.State == RunRunning }

// Ended tells whether nothing more will happen.
func (r *Run) Ended() bool { return r.State != RunRunning && r.State != RunStopped }

// Errors of runs.
var (
	// ErrNoRun: no such run is remembered.
	ErrNoRun = errors.New("no such run")
	// ErrBusy: another run has the pane.
	ErrBusy = errors.New("another run has the pane")
	// ErrNotReady: the pane does not wait for a command line.
	ErrNotReady = errors.New("not at the prompt of a known shell")
)

// NotReadyError is ErrNotReady with what the pane waits for instead.
type NotReadyError struct {
	Pane    controlmode.PaneID
	Waiting Waiting
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("pane %s is %v: it waits for %s, %s", e.Pane, ErrNotReady, e.Waiting.For, e.Waiting.Evidence)
}

func (e *NotReadyError) Unwrap() error { return ErrNotReady }

// runs are the runs of a mirror.
type runs struct {
	m     *Mirror
	files *runFiles
	wg    sync.WaitGroup // the goroutines that follow runs

	reaping sync.Mutex // guards run.resting; taken before mu

	mu     sync.Mutex // guards the fields that follow
	byID   map[string]*run
	active map[controlmode.PaneID]*run // that have the pane
	ctx    context.Context             // of the followers; nil while Run does not run
}

// run is a run with what only the daemon needs.
type run struct {
	m       *Mirror
	files   *runFiles
	panePID int
	shell   int    // process id of the shell
	tty     string // it reads from
	server  Server
	width   int
	height  int
	same    bool
	out     *Output
	tap     *tap
	typed   time.Time
	resting restingPane // guarded by runs.reaping
	jobs    []int       // the shell's, before

	mu      sync.Mutex // guards the fields that follow
	now     Run
	changed chan struct{} // closed and replaced when now changes
	readers map[*RunFollow]struct{}
	group   int      // its process group, 0 if unknown
	early   []byte   // what came after the typed line, if it did not start
	kept    outputOf // once it has ended; until then its output is in the tap
}

// going counts the runs that have not ended.
func (r *runs) going() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active)
}

func (r *runs) init(m *Mirror, dir string) {
	if dir == "" {
		dir = RunDirectory(os.Getenv, os.Geteuid())
	}
	r.m, r.files = m, newRunFiles(dir, m.path)
	r.byID, r.active = map[string]*run{}, map[controlmode.PaneID]*run{}
}

// prune forgets runs that have ended, the oldest first, beyond the bounds. The
// caller holds the lock.
func (r *runs) prune() {
	var ended []*run
	for _, j := range r.byID {
		if v := j.view(); v.Ended() {
			ended = append(ended, j)
		}
	}
	slices.SortFunc(ended, func(a, b *run) int { return b.view().EndedAt.Compare(a.view().EndedAt) })
	kept, now := int64(0), time.Now()
	for i, j := range ended {
		kept += j.size()
		if v := j.view(); i >= maxRuns || now.Sub(v.EndedAt) > runAge {
			delete(r.byID, v.ID)
			if v.NewPane {
				r.files.remove(v.ID) // the pane is old enough to be somebody's
			}
		} else if kept > allRunOutput {
			kept -= j.drop()
		}
	}
}

// view is the run as it is now.
func (j *run) view() Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

// change changes the run, wakes those who wait for it, and has the journal told.
func (j *run) change(f func(*Run)) {
	j.mu.Lock()
	was := j.now
	f(&j.now)
	is := j.now
	close(j.changed)
	j.changed = make(chan struct{})
	for f := range j.readers {
		nudge(f.wake)
	}
	j.mu.Unlock()
	if is.Began && !was.Began && !is.Restarted {
		j.m.note(RunStarted, is.Pane, is.StartedAt, "", is.ID)
	}
	if is.Ended() && !was.Ended() && is.State != RunNotStarted {
		j.m.note(RunEnded, is.Pane, is.EndedAt, is.ID, outcome(string(is.State), is.ExitStatus))
	}
}

// outcome is how a command ended, for the journal.
func outcome(state string, status *int) string {
	if status == nil {
		return state
	}
	return "status " + strconv.Itoa(*status)
}

// Runs lists the runs that are remembered, oldest first; of one pane if pane is
// not nil.
func (m *Mirror) Runs(pane *controlmode.PaneID) []Run {
	r := &m.runs
	r.mu.Lock()
	r.prune()
	all := slices.Collect(maps.Values(r.byID))
	r.mu.Unlock()
	var out []Run
	for _, j := range all {
		if v := j.view(); pane == nil || v.Pane == *pane {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Run) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	return out
}

func (r *runs) find(id string) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.byID[id]
	if j == nil {
		return nil, fmt.Errorf("run %q: %w", id, ErrNoRun)
	}
	return j, nil
}

// RunNow is a run as it is now, and a channel that is closed when it changes: when
// its command starts, stops, goes on or ends. ErrNoRun.
func (m *Mirror) RunNow(id string) (Run, <-chan struct{}, error) {
	j, err := m.runs.find(id)
	if err != nil {
		return Run{}, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now, j.changed, nil
}

// RunFollow shows a run as it changes, also when it has been forgotten. Any
// goroutine may use it.
type RunFollow struct {
	run  *run
	wake chan struct{}
}

// FollowRun begins to follow a run. wake, which must have room for one, is nudged
// at every change. The caller must Close it. ErrNoRun.
func (m *Mirror) FollowRun(id string, wake chan struct{}) (*RunFollow, error) {
	j, err := m.runs.find(id)
	if err != nil {
		return nil, err
	}
	f := &RunFollow{run: j, wake: wake}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.readers == nil {
		j.readers = map[*RunFollow]struct{}{}
	}
	j.readers[f] = struct{}{}
	return f, nil
}

// Now is the run as it is now.
func (f *RunFollow) Now() Run { return f.run.view() }

// Close ends it. It may be called again.
func (f *RunFollow) Close() {
	f.run.mu.Lock()
	defer f.run.mu.Unlock()
	delete(f.run.readers, f)
}

// AwaitRun waits until a run does not run any more, or limit; that is no error.
// ErrNoRun.
func (m *Mirror) AwaitRun(ctx context.Context, id string, limit time.Duration) (Run, error) {
	late := time.NewTimer(max(limit, 0))
	defer late.Stop()
	for {
		v, changed, err := m.RunNow(id)
		if err != nil || !v.Active() {
			return v, err
		}
		select {
		case <-changed:
		case <-late.C:
			return v, nil
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// ActiveRun is the run that has a pane, if one has.
func (m *Mirror) ActiveRun(pane controlmode.PaneID) (Run, bool) {
	r := &m.runs
	r.mu.Lock()
	j := r.active[pane]
	r.mu.Unlock()
	if j == nil {
		return Run{}, false
	}
	return j.view(), true
}

// start lets runs be followed until ctx is done, those of an earlier daemon
// first; wait waits for the followers' ends.
func (r *runs) start(ctx context.Context) {
	left := r.files.leftovers()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx = ctx
	for id, rec := range left {
		r.recover(ctx, id, rec)
	}
	if len(left) > 0 {
		r.m.log.Info("runs of an earlier daemon", zap.Int("runs", len(left)))
	}
}

func (r *runs) wait() {
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.wg.Wait()
}

// RunDir is where commands are staged.
func (m *Mirror) RunDir() string { return m.runs.files.dir }

// SameProcess tells whether the pane of a run still is the one it was typed
// into, with the same program.
func (m *Mirror) SameProcess(ctx context.Context, id string) bool {
	j, err := m.runs.find(id)
	if err != nil {
		return false
	}
	mod, err := m.onePane(ctx, j.now.Pane)
	j.mu.Lock()
	defer j.mu.Unlock()
	return err == nil && mod.Server.ID == j.server.ID && (mod.Panes[0].PID == j.panePID || mod.Panes[0].PID == 0)
}
