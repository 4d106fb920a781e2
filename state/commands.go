package state

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state/transcript"
)

// ErrNoCommand: no such command is remembered.
var ErrNoCommand = errors.New("no such command")

// CommandList is what is known of the commands in a pane.
type CommandList struct {
	Commands []Command // oldest first
	// Since is the time before which nothing is known: the pane was not watched,
	// or what began earlier has been forgotten.
	Since time.Time
	// Marked tells that the shell has printed marks since, Starts that it marks
	// the start of commands, too. A shell with integration that has shown no
	// prompt since has printed none yet.
	Marked, Starts bool
	Gap            *Gap // the newest place where marks may be missing, nil for nowhere
}

// Last is the newest command whose end was told, or if there is none the newest
// that is known not to run; nil for none.
func (l *CommandList) Last() *Command {
	var last *Command
	for i := range l.Commands {
		switch c := &l.Commands[i]; {
		case c.State == CommandCompleted, c.State == CommandPaneDied:
			last = c
		case c.State == CommandUnknown && (last == nil || last.State == CommandUnknown):
			last = c
		}
	}
	return last
}

// Find is the command with an id, nil for none.
func (l *CommandList) Find(id string) *Command {
	for i := range l.Commands {
		if l.Commands[i].ID == id {
			return &l.Commands[i]
		}
	}
	return nil
}

// Commands lists the commands in a pane, which it has watched. All that tmux had
// received from the pane when the call was made has been looked at. ErrNotFound,
// ErrNoServer, ErrDetached.
func (m *Mirror) Commands(ctx context.Context, id controlmode.PaneID) (CommandList, error) {
	out, err := m.caughtUp(ctx, id, GapNotWatched)
	if err == nil {
		err = out.awaitScreen(ctx, m.cfg.Timeout)
	}
	if err != nil {
		return CommandList{}, err
	}
	if out.unmarked() {
		m.notePresent(ctx, id, out)
	}
	list := out.commandList()
	for i := range list.Commands {
		m.ofRun(&list.Commands[i])
	}
	return list, nil
}

// notePresent finds out whether a command runs in a pane of which no mark has
// been seen: then the end that will be told is its.
func (m *Mirror) notePresent(ctx context.Context, id controlmode.PaneID, out *Output) {
	if _, ours := m.ActiveRun(id); ours {
		return
	}
	w, err := m.Waiting(ctx, id)
	if err != nil {
		return // the list is the same without it
	}
	switch w.For {
	case WaitsBusy, WaitsLine, WaitsPassword, WaitsFullscreen:
	default:
		return
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if w.pid == 0 || w.pid == out.pid {
		return // a shell that reads its configuration, or no shell
	}
	l := &out.commands
	l.busy = !l.marks && l.gap == nil && len(l.all) == 0
}

func (o *Output) unmarked() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.commands.marks && o.open
}

// ofRun makes a command that is a run of ours what the run is: marks decide
// nothing there.
func (m *Mirror) ofRun(c *Command) {
	if c.Run == "" {
		return
	}
	v, _, err := m.RunNow(c.Run)
	if err != nil {
		return // forgotten: what its marks said is all there is
	}
	switch v.State {
	case RunRunning, RunStopped:
		c.State = CommandRunning
	case RunCompleted:
		c.State = CommandCompleted
	case RunPaneDied:
		c.State = CommandPaneDied
	default:
		c.State = CommandUnknown
	}
	c.ExitStatus, c.StartedAt, c.EndedAt, c.Cursor = v.ExitStatus, v.StartedAt, v.EndedAt, v.Cursor
	c.OutputComplete, c.EndAtMost = v.Ended() && v.OutputComplete, false
}

// marked takes a mark that is being rendered. The caller holds the lock.
func (o *Output) marked(k transcript.Mark) {
	width, height := o.text.Size()
	o.commands.mark(k, width, height, o.awaitsRun(k.Start), time.Now())
}

// awaitsRun tells whether the line of a run had been typed at an offset, and its
// start mark had not come. The caller holds the lock.
func (o *Output) awaitsRun(at int64) bool {
	for _, t := range o.taps {
		if t.from < 0 && t.first <= at {
			return true
		}
	}
	for _, s := range o.commands.own {
		if s.first <= at && at < s.at {
			return true
		}
	}
	return false
}

func (o *Output) commandList() CommandList {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.commands
	list := CommandList{Since: l.since, Marked: l.marks, Starts: l.starts, Gap: l.gap, Commands: make([]Command, 0, len(l.all))}
	for _, c := range l.all {
		list.Commands = append(list.Commands, o.commandLocked(c))
	}
	return list
}

func (o *Output) commandLocked(c *command) Command {
	v := Command{
		ID: o.commands.id(c), State: c.state, Line: c.line, ExitStatus: c.exit(), StartedAt: c.began, EndedAt: c.ended, EndAtMost: c.lost, Run: c.run,
		OutputComplete: c.state != CommandRunning && !c.lost && c.start >= o.ring.start,
	}
	if at := max(c.start, o.resumed); len(o.epochs) > 0 {
		cursor := o.streamLocked(at)
		v.Cursor = &cursor
	}
	return v
}

// CommandText answers output of a command of a pane that Commands has listed, as
// RunText does for a run, also while it runs. It asks tmux nothing. ErrNoCommand,
// ErrOtherPane, ErrCursor.
func (m *Mirror) CommandText(id controlmode.PaneID, command string, opt RunTextOptions) (Command, RunText, error) {
	w := &m.watches
	w.mu.Lock()
	p := w.panes[id]
	life := w.life
	w.mu.Unlock()
	if p == nil {
		return Command{}, RunText{}, fmt.Errorf("command %q: %w", command, ErrNoCommand)
	}
	if opt.From != nil && (opt.From.Stream.Pane() != id || !opt.From.Stream.Of(life)) {
		return Command{}, RunText{}, fmt.Errorf("%w: it is not of %s", ErrOtherPane, id)
	}
	c, kept, err := p.out.commandOutput(command, opt.From)
	if err != nil {
		return Command{}, RunText{}, err
	}
	m.ofRun(&c)
	if c.Run != "" {
		if _, text, err := m.RunText(c.Run, opt); err == nil {
			return c, text, nil
		}
	}
	if att := m.attachedNow(); att != nil {
		kept.version = att.server.Version
	}
	return c, kept.read(c.Cursor, c.StartedAt, opt), nil
}

// commandOutput is a command and what there is of its output.
func (o *Output) commandOutput(id string, from *Cursor) (Command, outputOf, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = time.Now()
	for _, c := range o.commands.all {
		if o.commands.id(c) != id {
			continue
		}
		if from != nil {
			if known, err := o.placeLocked(*from); err != nil || !known {
				return Command{}, outputOf{}, fmt.Errorf("%w: it is not of command %s", ErrCursor, id)
			}
		}
		k := outputOf{width: c.width, height: c.height, epochs: append([]epoch(nil), o.epochs...)}
		if k.width == 0 && o.text != nil {
			k.width, k.height = o.text.Size()
		}
		start, end := max(c.start, o.resumed), c.end
		if c.state == CommandRunning {
			end = o.ring.end
		}
		k.from = min(max(start, o.ring.start), max(end, start))
		k.lost = k.from - start
		if end > k.from {
			k.raw = withoutPartialMark(o.ring.copy(k.from, end), c.width)
		}
		return o.commandLocked(c), k, nil
	}
	return Command{}, outputOf{}, fmt.Errorf("command %q: %w", id, ErrNoCommand)
}

// partialLine is what zsh shows after output without a final newline, before any of
// its hooks can print (option PROMPT_SP).
var partialLine = regexp.MustCompile(`(?:\x1b\[[0-9;]*m)+[%#](?:\x1b\[[0-9;]*m)*( +)\r \r$`)

// withoutPartialMark cuts zsh's mark from a command's output.
func withoutPartialMark(b []byte, width int) []byte {
	const attributes = 64
	if m := partialLine.FindSubmatchIndex(b[max(0, len(b)-width-attributes):]); m != nil && m[3]-m[2] >= width-2 {
		return b[:max(0, len(b)-width-attributes)+m[0]]
	}
	return b
}

// takeNews answers what is to be told of a pane's commands, once.
func (o *Output) takeNews() []Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Change
	for _, n := range o.commands.news {
		c := Change{Kind: CommandStarted, Time: n.at, After: n.line}
		if !n.start {
			c = Change{Kind: CommandEnded, Time: n.at, Before: n.line, After: outcome(string(n.state), n.exit())}
		}
		all = append(all, c)
	}
	o.commands.news = nil
	return all
}

// tellCommands puts what panes tell of commands into the journal until ctx is
// done: the readers that find it hold locks under which the journal may not be
// written.
func (w *watches) tellCommands(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.told:
		}
		w.mu.Lock()
		outs := make([]*Output, 0, len(w.panes))
		for _, p := range w.panes {
			outs = append(outs, p.out)
		}
		w.mu.Unlock()
		for _, out := range outs {
			for _, n := range out.takeNews() {
				w.m.note(n.Kind, out.pane, n.Time, n.Before, n.After)
			}
		}
	}
}
