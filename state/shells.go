package state

import (
	"path"
	"strings"
)

// Shell is a shell that commands can be run in.
type Shell string

// The known shells.
const (
	ShellBash Shell = "bash"
	ShellZsh  Shell = "zsh"
	ShellDash Shell = "dash"
	ShellAsh  Shell = "ash" // BusyBox
	ShellKsh  Shell = "ksh93"
	ShellMksh Shell = "mksh"
	ShellFish Shell = "fish"
)

// prompts are the terminal settings while a shell's line editor reads, as
// measured with bash 5.2, zsh 5.9, BusyBox 1.35, ksh93u+m, mksh R59 and fish
// 3.6. dash has no line editor.
var prompts = map[Shell]termios{
	ShellBash: {signals: true},
	ShellZsh:  {signals: true, newline: true},
	ShellDash: {canonical: true, echo: true, signals: true, newline: true, quoteKey: true},
	ShellAsh:  {newline: true, quoteKey: true},
	ShellKsh:  {},
	ShellMksh: {},
	ShellFish: {signals: true, quoteKey: true},
}

// termios are the settings of a terminal that tell what reads it.
type termios struct {
	canonical bool // ICANON: whole lines, edited by the kernel
	echo      bool // ECHO
	signals   bool // ISIG: C-c interrupts
	newline   bool // ICRNL: Enter reads as a newline
	quoteKey  bool // VLNEXT is set; readline and less clear it
	output    bool // OPOST: output is processed; off in front of another terminal
}

// editing tells whether these are the settings of that shell's prompt. What a
// program before has done to the output does not matter: bash leaves it.
func (t termios) editing(s Shell) bool {
	row, ok := prompts[s]
	t.output = row.output
	return ok && t == row
}

// shellOf tells which shell a process is, "" for another program, by its
// executable: arguments and tmux's own name for it can say anything.
func shellOf(p *process) Shell {
	switch name := programName(p); name {
	case "bash", "rbash":
		return ShellBash
	case "zsh":
		return ShellZsh
	case "dash":
		return ShellDash
	case "ksh", "ksh93", "rksh", "rksh93":
		return ShellKsh
	case "mksh", "lksh":
		return ShellMksh
	case "fish":
		return ShellFish
	case "ash", "sh":
		return ShellAsh // an applet; elsewhere sh is a link to one of the others
	}
	return ""
}

// programName is the name of a program without what an upgrade (" (deleted)")
// and a version put behind it; an applet's of BusyBox.
func programName(p *process) string {
	name := p.comm
	if p.exe != "" {
		name = strings.TrimSuffix(path.Base(p.exe), " (deleted)")
	}
	if strings.HasPrefix(name, "busybox") && len(p.args) > 0 {
		name = strings.TrimPrefix(path.Base(p.args[0]), "-")
		if strings.HasPrefix(name, "busybox") && len(p.args) > 1 {
			name = p.args[1]
		}
		return name
	}
	if short := strings.TrimRight(name, "0123456789.-"); len(short) >= 3 && name != "ksh93" && name != "rksh93" {
		if _, known := prompts[Shell(short)]; known || short == "ksh" {
			return short
		}
	}
	return name
}

// interactive tells whether a shell was started to read commands from its
// terminal, and not to run a script or a -c text. Unreadable arguments count as
// yes. args are those of the process, its name first.
func interactive(s Shell, args []string) bool {
	if len(args) > 1 && strings.HasPrefix(path.Base(args[0]), "busybox") {
		args = args[1:]
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--" || a == "-":
			return i+1 >= len(args)
		case strings.HasPrefix(a, "--"):
			switch name, _, joined := strings.Cut(a, "="); {
			case name == "--command":
				return false
			case !joined && (name == "--rcfile" || name == "--init-file" || name == "--init-command" || name == "--emulate"):
				i++
			}
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			letters := a[1:]
			if strings.Contains(letters, "c") && a[0] == '-' {
				return false
			}
			if strings.Contains(letters, "s") && s != ShellFish && a[0] == '-' {
				return true // what follows are its arguments
			}
			if last := letters[len(letters)-1]; last == 'o' || last == 'O' && s == ShellBash || last == 'C' && s == ShellFish {
				i++
			}
		default:
			return false
		}
	}
	return true
}
