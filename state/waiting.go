package state

import (
	"fmt"
	"strings"
)

// WaitingFor is what the program in a pane's foreground is waiting for.
type WaitingFor string

// The words of the tool contract, section 11.
const (
	WaitsPrompt     WaitingFor = "prompt"     // a known shell reads a command line
	WaitsLine       WaitingFor = "line"       // a program reads a line, or a key that answers a question
	WaitsPassword   WaitingFor = "password"   // a program reads a line without echo
	WaitsFullscreen WaitingFor = "fullscreen" // a program reads keys: an editor, a pager
	WaitsBusy       WaitingFor = "busy"       // nothing is read: a program runs
	WaitsDead       WaitingFor = "dead"       // the pane's process has ended
	WaitsMode       WaitingFor = "mode"       // tmux itself takes the keys: copy mode and the like
	WaitsUnknown    WaitingFor = "unknown"    // cannot be told, Evidence says why
)

// Waiting is what a pane waited for at one moment, and why we think so.
type Waiting struct {
	For WaitingFor
	// Evidence is one line in plain words, made from names of programs and
	// terminal settings. It holds text of programs: their names.
	Evidence string
	// Program is the name of the youngest program in the foreground, "" if
	// unknown.
	Program string
	// Shell is the shell whose prompt it is; "" unless For is WaitsPrompt.
	Shell Shell
	// Relayed tells that the pane's own program passes keys on to another
	// terminal (script, sudo), and that this is what waits behind it.
	Relayed bool
	// Settled tells that two looks, 20 to 50 ms or more apart, were equal. What
	// is not settled may be a moment between two programs.
	Settled bool

	pid    int    // of the process that leads the foreground group, 0 if unknown
	group  int    // the foreground group
	tty    string // the terminal it reads, which is not the pane's behind a relay
	screen bool   // the alternate screen is on
	keys   bool   // it reads single keys: the screen decides what it is
}

// same tells whether two looks saw the same.
func (w Waiting) same(v Waiting) bool {
	return w.For == v.For && w.Program == v.Program && w.Shell == v.Shell && w.Relayed == v.Relayed &&
		w.pid == v.pid && w.group == v.group && w.tty == v.tty
}

// process is what is known of a process without rights over it.
type process struct {
	pid, parent, group int
	terminal           uint64 // device number, 0 for none
	foreground         int    // the foreground group of that terminal
	state              byte   // as ps shows it
	started            uint64 // clock ticks since boot
	comm               string
	exe                string   // "" if it may not be read
	args               []string // nil if they may not be read
	// blocked names the kernel function the process sleeps in; "" or "0" while
	// it runs, and where it may not be read.
	blocked string
	copied  bool // it looks like a subshell: its parent is the same program with the same arguments
}

// sample is one look at the terminal of a pane. It holds everything that
// classify decides by.
type sample struct {
	problem   string // why there is nothing to decide by, "" if there is
	gone      bool   // no process has the terminal
	starting  bool   // the process has not got the terminal yet
	tty       string
	term      termios
	group     []process // the foreground group, without zombies
	leader    int       // its number
	alternate bool
	paste     byte // the last of ESC[?2004h and l in the stream, 0 if unknown
	relayed   bool
}

// readsTerminal is the kernel function that a read of a terminal sleeps in. It
// is a hint only: reads of sockets sleep there, too.
const readsTerminal = "wait_woken"

// polls is the one that poll and select sleep in. BusyBox ash polls for its read
// builtin (1.35); other shells just read.
const polls = "poll_schedule_timeout"

// youngest is the process of the group that was started last and has no child in
// it: what runs now, as tmux would name it.
func (s *sample) youngest() *process {
	var best *process
	for i := range s.group {
		p := &s.group[i]
		leaf := true
		for j := range s.group {
			leaf = leaf && s.group[j].parent != p.pid
		}
		if leaf && (best == nil || p.started > best.started || p.started == best.started && p.pid > best.pid) {
			best = p
		}
	}
	return best
}

// blockedIn tells whether a process of the group sleeps in a kernel function.
func (s *sample) blockedIn(name string) bool {
	for i := range s.group {
		if s.group[i].blocked == name {
			return true
		}
	}
	return false
}

// stopped tells whether all of the group is stopped.
func (s *sample) stopped() bool {
	for i := range s.group {
		if c := s.group[i].state; c != 'T' && c != 't' {
			return false
		}
	}
	return len(s.group) > 0
}

// classify decides what a terminal waits for. It is the decision of
// run-framing, section 4.3: the settings of the terminal tell how it is read,
// the foreground group who reads it.
func classify(s *sample) Waiting {
	w := Waiting{tty: s.tty, group: s.leader, Relayed: s.relayed, screen: s.alternate}
	switch {
	case s.problem != "":
		w.For, w.Evidence = WaitsUnknown, s.problem
		return w
	case s.starting:
		w.For, w.Evidence = WaitsBusy, "the program is being started"
		return w
	}
	p := s.youngest()
	if s.gone || p == nil {
		w.For, w.Evidence = WaitsDead, "no process holds the terminal"
		if !s.gone {
			w.For, w.Evidence = WaitsBusy, "the foreground program has just ended"
		}
		return w
	}
	w.Program, w.pid = programName(p), s.leader
	shell := shellOf(p)
	// ksh93 uses its line editor for read, too, where a subshell gives that away.
	alone := len(s.group) == 1 && shell != "" && interactive(shell, p.args) && (shell != ShellKsh || !p.copied)
	switch t := s.term; {
	case s.stopped():
		w.For = WaitsBusy
		w.Evidence = w.Program + " is stopped"
	case alone && t.editing(shell) && (shell != ShellDash || reads(p)):
		w.For, w.Shell, w.pid = WaitsPrompt, shell, p.pid
		w.Evidence = string(shell) + " reads a command line"
	case !t.canonical && !t.output:
		w.For = WaitsUnknown
		w.Evidence = w.Program + " passes keys on to another terminal that cannot be seen from here"
	case t.canonical && !t.echo:
		w.For = WaitsPassword
		w.Evidence = w.Program + " reads a line without echo"
	case !t.canonical:
		w.For, w.Evidence = keys(s, w.Program, shell)
		w.keys = true
	case s.blockedIn(readsTerminal), shell == ShellAsh && strings.HasPrefix(p.blocked, polls):
		w.For = WaitsLine
		w.Evidence = w.Program + " reads a line"
	default:
		w.For = WaitsBusy
		w.Evidence = w.Program + " runs and reads nothing"
	}
	w.Evidence += s.details()
	return w
}

// keys tells what a program wants that reads single keys.
func keys(s *sample, program string, shell Shell) (WaitingFor, string) {
	switch {
	case s.alternate:
		return WaitsFullscreen, program + " draws a full screen and reads keys"
	case !s.term.echo && !s.term.quoteKey:
		return WaitsLine, program + " has a line editor of its own"
	case shell != "" || s.term.echo:
		return WaitsLine, program + " reads a single key"
	}
	return WaitsFullscreen, program + " reads keys without echo"
}

// reads tells whether a process sleeps in a read of its terminal, as far as that
// may be known.
func reads(p *process) bool {
	return p.blocked == readsTerminal || p.blocked == "" && p.state == 'S'
}

// details are the settings that the decision was made by.
func (s *sample) details() string {
	var b strings.Builder
	set := func(on bool, name string) {
		b.WriteByte(' ')
		if !on {
			b.WriteByte('-')
		}
		b.WriteString(name)
	}
	b.WriteString(" (")
	fmt.Fprintf(&b, "terminal")
	set(s.term.canonical, "icanon")
	set(s.term.echo, "echo")
	set(s.term.signals, "isig")
	fmt.Fprintf(&b, ", foreground group %d", s.leader)
	if n := len(s.group); n != 1 {
		fmt.Fprintf(&b, " of %d processes", n)
	}
	if s.alternate {
		b.WriteString(", alternate screen")
	}
	if s.paste != 0 {
		fmt.Fprintf(&b, ", bracketed paste last set to %c", s.paste)
	}
	if s.relayed {
		b.WriteString(", behind another terminal")
	}
	b.WriteByte(')')
	return b.String()
}
