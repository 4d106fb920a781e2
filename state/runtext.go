package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tmux-mcpd/state/transcript"
)

// RunTextOptions say how much of a run's output is wanted.
type RunTextOptions struct {
	// From is where to go on; nil for the newest part of the whole output. With
	// it the oldest lines come first, so that calls with the returned cursors
	// page through everything.
	From *Cursor
	// MaxLines and MaxBytes bound the text; 0 is no limit.
	MaxLines, MaxBytes int
	// Around is how many bytes of the output before and after the text are wanted
	// as well; 0 for none. It is for who has to know what the text is a part of.
	Around int
}

// RunText is output of a run, as a reader of the screen would see it.
type RunText struct {
	Text         string
	Lines        int
	DroppedLines int   // cut from the front by MaxLines
	OmittedBytes int   // cut from the front by MaxBytes
	Missed       int64 // bytes that are not kept any more, or never came
	More         bool  // there is more after Cursor already
	Cursor       *Cursor

	// ContinuesLine: the first line goes on with the last one of Before. Only told,
	// as Before and After are, where something around was wanted.
	ContinuesLine bool
	Before, After string
}

// RunText answers output of a run, also while it runs. It asks tmux nothing. The
// text is rendered from the bytes between the run's marks alone, so it does not
// matter what else the screen showed. ErrNoRun, ErrOtherPane.
func (m *Mirror) RunText(id string, opt RunTextOptions) (Run, RunText, error) {
	j, err := m.runs.find(id)
	if err != nil {
		return Run{}, RunText{}, err
	}
	if opt.From != nil && opt.From.Stream.Pane() != j.now.Pane {
		return Run{}, RunText{}, fmt.Errorf("%w: it names %s, and run %s is in %s", ErrOtherPane, opt.From.Stream.Pane(), id, j.now.Pane)
	}
	v, kept := j.output()
	if !v.Began {
		return v, RunText{Cursor: v.Cursor}, nil
	}
	return v, kept.read(v.Cursor, v.StartedAt, opt), nil
}

// read renders output of a run or a command. cursor is where it begins.
func (k *outputOf) read(cursor *Cursor, began time.Time, opt RunTextOptions) RunText {
	t := RunText{Cursor: cursor}
	if len(k.epochs) == 0 {
		return t
	}
	raw, from, lost := k.raw, k.from, k.lost
	start := from - lost
	at := from
	if opt.From != nil {
		at = min(max(opt.From.Offset, start), from+int64(len(raw)))
	} else {
		t.Missed = lost
	}
	if at < from {
		t.Missed, at = from-at, from
	}
	if lost > 0 { // begin with a whole line
		skip := bytes.IndexByte(raw, '\n') + 1
		if at < from+int64(skip) {
			t.Missed += int64(skip) - (at - from)
			at = from + int64(skip)
		}
		raw, from = raw[skip:], from+int64(skip)
	}
	text := k.blank(textBudget * runOutput)
	text.Write(raw, began)
	if to := from + text.LostTo(); to > at { // more rows than can be held
		t.Missed, at = t.Missed+to-at, to
	}
	d := text.Since(at-from, transcript.SinceOptions{MaxLines: opt.MaxLines, MaxBytes: opt.MaxBytes, Oldest: opt.From != nil})
	t.Text, t.Lines, t.DroppedLines, t.OmittedBytes, t.More = d.Text, d.Lines, d.DroppedLines, d.OmittedBytes, d.More
	if opt.Around > 0 {
		t.ContinuesLine = d.ContinuesLine
		t.After = text.Since(d.Offset, transcript.SinceOptions{MaxBytes: opt.Around, Oldest: true}).Text
		before := k.blank(textBudget * runOutput)
		before.Write(raw[:at-from], began)
		t.Before = before.Since(0, transcript.SinceOptions{MaxBytes: opt.Around}).Text
	}
	next := placeIn(k.epochs, from+d.Offset)
	t.Cursor = &next
	return t
}

// outputOf is what there is of a run's output, and what it takes to read it.
type outputOf struct {
	raw           []byte
	from          int64 // offset of raw
	lost          int64 // bytes of the output before it
	epochs        []epoch
	width, height int
	version       string
}

// blank is an empty screen to read the output on.
func (k *outputOf) blank(keep int) *transcript.Transcript {
	const history = 1 << 12 // more is within keep
	t := transcript.New(max(k.width, 1), max(k.height, 1), history, transcript.ProfileFor(k.version))
	t.Keep(keep)
	return t
}

func (j *run) output() (Run, outputOf) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.kept
	k.width, k.height, k.version = j.width, j.height, j.server.Version
	if !j.now.Ended() && j.out != nil {
		k.raw, k.from = j.out.taken(j.tap, math.MaxInt64)
		k.lost, k.epochs = k.from-max(j.out.heard(j.tap).from, 0), j.out.epochsCopy()
	}
	return j.now, k
}

// placeIn names an offset of a log that had these epochs.
func placeIn(epochs []epoch, at int64) Cursor {
	for i := len(epochs) - 1; i > 0; i-- {
		if epochs[i].from <= at {
			return Cursor{epochs[i].stream, at}
		}
	}
	return Cursor{epochs[0].stream, max(at, epochs[0].from)}
}

// EarlyText is what a pane printed after the line of a run that did not start:
// why.
func (m *Mirror) EarlyText(id string) string {
	j, err := m.runs.find(id)
	if err != nil {
		return ""
	}
	_, kept := j.output()
	text := kept.blank(maxEarly * textBudget)
	j.mu.Lock()
	text.Write(j.early, time.Time{})
	j.mu.Unlock()
	return text.Since(0, transcript.SinceOptions{MaxBytes: 2 << 10}).Text
}

// size is the bytes of output kept.
func (j *run) size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(len(j.kept.raw))
}

// drop forgets the output of a run that has ended, and tells how much that was.
func (j *run) drop() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := &j.kept
	n := int64(len(k.raw))
	k.lost, k.from, k.raw = k.lost+n, k.from+n, nil
	if n > 0 {
		j.now.OutputComplete = false
	}
	return n
}

// recover takes up a run of an earlier daemon. The caller holds the lock.
func (r *runs) recover(ctx context.Context, id string, rec runRecord) {
	status, when, ended := r.files.status(id)
	j := &run{
		m: r.m, files: r.files, panePID: rec.PanePID, shell: rec.ShellPID, tty: rec.TTY, server: Server{ID: rec.Server}, same: rec.Same,
		typed: rec.Typed, changed: make(chan struct{}),
		now: Run{
			ID: id, Pane: rec.Pane, Shell: rec.Shell, State: RunRunning, StartedAt: rec.Typed, Restarted: true, NewPane: rec.NewPane,
		},
	}
	if c, err := ParseCursor(rec.Cursor); err == nil {
		j.now.Cursor = &c
	}
	r.byID[id] = j
	switch {
	case !rec.Ended.IsZero():
		j.now.State, j.now.ExitStatus, j.now.EndedAt, j.now.Began, j.resting = rec.State, rec.Status, rec.Ended, rec.Began, rec.Rests
		j.rest()
	case ended:
		n := statusOf(status)
		j.now.State, j.now.ExitStatus, j.now.EndedAt, j.now.Began = RunCompleted, &n, when, true
		j.rest()
	case rec.Typed.IsZero() || r.ctx == nil: // its record is lost
		j.now.State, j.now.EndedAt = RunUnknown, time.Now()
		r.files.remove(id)
	default:
		if r.active[rec.Pane] == nil {
			r.active[rec.Pane] = j
		}
		r.wg.Go(func() { r.follow(ctx, j) })
	}
}

// rejoin finds the pane of a run of an earlier daemon again and watches it; ok
// is false if the run has ended by that.
func (r *runs) rejoin(ctx context.Context, j *run) (ok bool) {
	for {
		mod, err := r.m.onePane(ctx, j.now.Pane)
		if err == nil && mod.Server.ID == j.server.ID && !mod.Panes[0].Dead && mod.Panes[0].PID == j.panePID {
			if _, out, err := r.m.watch(ctx, j.now.Pane, GapRestarted); err == nil {
				t := newTap(j.now.ID, runOutput)
				out.tap(t)
				out.assume(t)
				j.mu.Lock()
				j.server, j.width, j.height = mod.Server, mod.Panes[0].Width, mod.Panes[0].Height
				j.out, j.tap = out, t
				j.mu.Unlock()
				return true
			}
		} else if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoServer) {
			r.endWithout(j)
			return false
		}
		if !pause(ctx, followSlow) {
			return false
		}
	}
}

// endWithout ends a run of an earlier daemon whose pane is not there any more.
func (r *runs) endWithout(j *run) {
	status, when, ok := r.files.status(j.now.ID)
	r.release(j)
	r.files.remove(j.now.ID) // nor is there anything to remove
	j.change(func(v *Run) {
		v.State, v.EndedAt = RunPaneDied, time.Now()
		if ok {
			n := statusOf(status)
			v.State, v.ExitStatus, v.EndedAt = RunCompleted, &n, when
		}
	})
}
