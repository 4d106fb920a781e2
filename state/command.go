package state

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/state/transcript"
)

// Bounds of what is remembered of the commands in a pane, while it is watched.
const (
	maxCommands     = 256      // the oldest are forgotten
	maxCommandLines = 64 << 10 // bytes of all their command lines
	maxOwnStarts    = 64
	// Started and ended commands are told in the journal at most so many at once
	// and so many a second for each pane, so that a program that prints marks
	// pushes nothing else out.
	commandBurst, commandRate = 64, 4
)

// CommandState is where a command that was typed at a shell stands, by the marks
// of the shell (OSC 133).
type CommandState string

// The states of a command.
const (
	CommandRunning   CommandState = "running"
	CommandCompleted CommandState = "completed" // its end was told
	CommandPaneDied  CommandState = "pane_died"
	// CommandUnknown: another prompt came before its end was told: it may be a
	// shell that shows prompts of its own, or the end was not told.
	CommandUnknown CommandState = "unknown"
)

// Command is what the marks in a pane's output told of one command. They are the
// word of whatever prints there: a program can print any.
type Command struct {
	ID    string
	State CommandState
	// Line is the command line, "" if it is not known: as the shell told it, or
	// as the screen showed it. At most 4 KiB.
	Line       string
	ExitStatus *int      // nil if it was not told
	StartedAt  time.Time // zero if its start was not seen
	EndedAt    time.Time // zero while it has not ended, and if that is not known
	EndAtMost  bool      // EndedAt is the latest that it can be: output is missing
	// OutputComplete tells that the command has ended, and all it printed is kept.
	OutputComplete bool
	// Run is the id of our own run that it is, "" for a command of somebody else.
	Run    string
	Cursor *Cursor // where its output begins, nil if unknown
}

// Ended tells whether nothing more will happen, as far as is known.
func (c *Command) Ended() bool { return c.State != CommandRunning }

// command is a Command as the log of its pane remembers it.
type command struct {
	n             int
	state         CommandState
	line          string
	above         string // may hold the line, behind the prompt that the next B will tell
	status        int    // -1 if it was not told
	start, end    int64
	began, ended  time.Time
	run           string
	lost          bool // output is missing between start and end
	ours          bool // a run's line had been typed: this is its, unless a run's mark never comes
	told          bool // in the journal
	width, height int
}

// exit is the exit status, nil if it was not told.
func (c *command) exit() *int {
	if c.status < 0 {
		return nil
	}
	status := c.status
	return &status
}

// commandLog makes commands of the marks in one pane's output. The mutex of the
// pane's Output guards it.
type commandLog struct {
	name  string    // random: tells the commands of one log from another's
	since time.Time // what began before is not known
	all   []*command
	lines int // bytes of their command lines
	next  int
	open  *command // the newest, while it runs

	marks  bool   // of a shell were seen, of this process
	starts bool   // C among them
	line   string // told by 633;E, for the next start
	busy   bool   // a command ran when the log began
	gap    *Gap   // the newest place where marks may be missing

	own []ownStart // of runs

	news   []commandNews
	tokens float64
	filled time.Time
	tell   chan<- struct{} // nudged when there is news; nil for nobody
}

// ownStart is where the start mark of a run ended, and from where on it was
// waited for.
type ownStart struct {
	run       string
	first, at int64
}

// commandNews is something for the journal.
type commandNews struct {
	*command
	start bool
	at    time.Time
}

// begin starts the log.
func (l *commandLog) begin(now time.Time) {
	if l.name != "" {
		return
	}
	var b [4]byte
	rand.Read(b[:])
	l.name, l.since, l.tokens, l.filled = hex.EncodeToString(b[:]), now, commandBurst, now
}

func (l *commandLog) id(c *command) string { return fmt.Sprintf("c%s-%d", l.name, c.n) }

// mark takes a mark of a pane that is so many cells in size. awaited tells that
// the line of a run had been typed whose start mark came later, if at all.
func (l *commandLog) mark(k transcript.Mark, width, height int, awaited bool, now time.Time) {
	switch k.Kind {
	case 'A', 'B', 'N':
		if !k.Secondary() {
			l.marks = true
			l.prompt(k, now)
			if k.Kind == 'B' {
				l.learn(k.Line)
			}
		}
	case 'C':
		l.started(k, width, height, awaited, now)
	case 'D':
		l.ended(k, now)
	case 'E':
		l.line = lineOfCode(k.Text)
	}
}

// prompt notes that a shell is about to read a command line.
func (l *commandLog) prompt(k transcript.Mark, now time.Time) {
	l.busy, l.line = false, ""
	if l.open != nil {
		l.close(CommandUnknown, -1, k.Start, time.Time{}, now)
	}
}

// learn takes a prompt from the line above the newest command, the prompt of
// which was shown before the log began.
func (l *commandLog) learn(prompt string) {
	if len(l.all) == 0 {
		return
	}
	c := l.all[len(l.all)-1]
	if line, ok := strings.CutPrefix(c.above, prompt); ok && prompt != "" && c.line == "" {
		c.line = strings.TrimSpace(line)
		l.lines += len(c.line)
	}
	c.above = ""
}

func (l *commandLog) started(k transcript.Mark, width, height int, awaited bool, now time.Time) {
	run := l.ownAt(k.End)
	line, told := lineOf(k.Text), l.line
	if l.line = ""; line == "" {
		line = told
	}
	if line == "" {
		line = k.Line
	}
	l.busy = false
	switch {
	case run != "" && l.open != nil && l.open.ours && l.open.run == "":
		// The shell's own mark came first, for the line that was typed for the run.
		l.lines -= len(l.open.line)
		l.open.run, l.open.line, l.open.above, l.open.start, l.open.began = run, "", "", k.Start, now
		return
	case run != "":
		if l.open != nil {
			l.close(CommandUnknown, -1, k.Start, time.Time{}, now)
		}
		line, k.Above = "", ""
	default:
		l.marks, l.starts = true, true
		if l.open != nil { // of two integrations, or printed by the command
			if l.open.line == "" && l.open.run == "" && k.Start-l.open.start < maxMarkLen {
				l.open.line = line
				l.lines += len(line)
			}
			return
		}
	}
	l.next++
	c := &command{
		n: l.next, state: CommandRunning, line: line, above: k.Above, status: -1, start: k.Start, end: -1, began: now,
		run: run, ours: awaited && run == "", width: width, height: height,
	}
	l.add(c)
	l.open = c
	if c.run == "" && !c.ours {
		l.tellStart(c, now)
	}
}

func (l *commandLog) ended(k transcript.Mark, now time.Time) {
	status, aid := endOf(k.Text)
	if l.isOwn(aid) && (l.open == nil || l.open.run != aid) {
		l.endedOwn(aid, status, k.Start, now)
		return
	}
	if c := l.open; c != nil {
		if c.run != "" && c.run != aid { // a shell's inside the run, or after it
			return
		}
		if c.lost && c.run == "" {
			status = -1 // it may be that of a later command
		}
		l.close(CommandCompleted, status, k.Start, now, now)
		return
	}
	l.marks = l.marks || aid == ""
	if l.busy {
		l.busy = false
		l.next++
		l.add(&command{n: l.next, state: CommandCompleted, status: status, start: -1, end: k.Start, ended: now})
	}
}

// endedOwn notes the end of a run that showed prompts meanwhile.
func (l *commandLog) endedOwn(run string, status int, end int64, now time.Time) {
	for _, c := range l.all {
		if c.run == run && c.state == CommandUnknown {
			c.state, c.status, c.end, c.ended = CommandCompleted, status, end, now
		}
	}
}

// close ends the command that runs. at is when it ended, zero if that is not
// known.
func (l *commandLog) close(s CommandState, status int, end int64, at, now time.Time) {
	c := l.open
	l.open = nil
	c.state, c.status, c.end, c.ended = s, status, end, at
	if c.run != "" {
		return
	}
	if !c.told && c.ours {
		l.tellStart(c, now)
	}
	if c.told {
		l.report(commandNews{c, false, now})
	}
}

// broken notes that bytes are missing from an offset on.
func (l *commandLog) broken(at int64, why GapReason, now time.Time) {
	if l.name == "" {
		return
	}
	l.gap, l.line, l.busy = &Gap{Reason: why}, "", false
	if why == GapPaneDied || why == GapRespawned {
		l.marks, l.starts = false, false
	}
	switch {
	case l.open == nil:
	case why == GapPaneDied, why == GapRespawned:
		l.open.lost = true
		l.close(CommandPaneDied, -1, at, now, now)
	default:
		l.open.lost = true
	}
}

// add remembers a command, and forgets the oldest beyond the bounds.
func (l *commandLog) add(c *command) {
	l.all = append(l.all, c)
	l.lines += len(c.line)
	for len(l.all) > maxCommands || l.lines > maxCommandLines {
		old := l.all[0]
		if l.since.Before(old.began) {
			l.since = old.began
		}
		l.lines -= len(old.line)
		l.all[0] = nil
		l.all = l.all[1:]
	}
}

// startedOwn notes where the start mark of a run ended: a mark with its id that
// ends elsewhere is not its own.
func (l *commandLog) startedOwn(s ownStart) {
	if len(l.own) == maxOwnStarts {
		l.own = append(l.own[:0], l.own[1:]...)
	}
	l.own = append(l.own, s)
}

func (l *commandLog) ownAt(end int64) string {
	for _, s := range l.own {
		if s.at == end {
			return s.run
		}
	}
	return ""
}

func (l *commandLog) isOwn(run string) bool {
	for _, s := range l.own {
		if run != "" && s.run == run {
			return true
		}
	}
	return false
}

// tellStart has the journal told that a command began, and so that it ended.
func (l *commandLog) tellStart(c *command, now time.Time) {
	l.tokens = min(commandBurst, l.tokens+now.Sub(l.filled).Seconds()*commandRate)
	l.filled = now
	if l.tokens < 1 {
		return
	}
	l.tokens--
	c.told = true
	l.report(commandNews{c, true, c.began})
}

func (l *commandLog) report(n commandNews) {
	if l.tell != nil {
		l.news = append(l.news, n)
		nudge(l.tell)
	}
}

// endOf reads the text of a D: the status, -1 for none, and the id of whose it is.
func endOf(text string) (status int, aid string) {
	status = -1
	for i := 0; ; i++ {
		option, rest, more := strings.Cut(text, ";")
		if i == 0 && len(option) < 6 {
			if n, err := strconv.ParseUint(option, 10, 31); err == nil {
				status = int(n)
			}
		}
		if id, ok := strings.CutPrefix(option, "aid="); ok {
			aid = id
		}
		if !more {
			return status, aid
		}
		text = rest
	}
}
