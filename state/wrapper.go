package state

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A run's command never crosses the shell's line editor: it is staged in a
// private file, and what is typed only names that file. The texts here are those
// of run-framing, section 2, measured in every shell; each part is there for a
// case that broke without it.

// staged is what one run puts into its files and on the line.
type staged struct {
	line string // typed, without Enter
	file string // at path
	more string // at path+".c"; "" for no such file
}

// errNUL: no shell can hold a NUL in a command.
var errNUL = errors.New("the command holds a NUL byte, which no shell can take; write the bytes to a file instead")

// plainPath are paths that no shell needs to quote.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./+-]+$`)

// wrap makes the texts of a run. id is 8 or more hex digits, path is plainPath;
// the status is also written to path+".s". same runs the command in the shell
// itself, so that cd and export last, and is weaker: see run-framing, section 3.
func wrap(s Shell, id, path, command string, same bool) (staged, error) {
	switch {
	case strings.IndexByte(command, 0) >= 0:
		return staged{}, errNUL
	case !plainPath.MatchString(path):
		return staged{}, fmt.Errorf("the directory of runs needs a path without spaces and special characters, not %s", path)
	}
	switch {
	case same:
		return wrapSame(s, id, path, command), nil
	case s == ShellFish:
		return wrapFish(id, path, command), nil
	}
	return wrapSubshell(s, id, path, command), nil
}

// singleQuoted is a text inside single quotes of a shell like sh.
func singleQuoted(text string) string { return strings.ReplaceAll(text, "'", `'\''`) }

// The marks, as printf formats.
func startMark(id string) string { return `\033]133;C;aid=` + id + `\007` }
func endMark(id string) string   { return `\033]133;D;%s;aid=` + id + `\007` }

// record writes the status where it is found if the mark is lost; what it says
// of a full disk is nobody's.
func record(printf, variable, path string) string {
	return `{ ` + printf + ` '%s\n' "$` + variable + `" >|` + path + `.s;} 2>/dev/null;`
}

// wrapSubshell is the form for shells like sh. The outer shell remembers $? and
// the options, outlives signals, and prints the end mark; the subshell in
// it gives the command the signals, $? and options that it would have had if
// typed. It prints the start mark once the signals are back: what is sent after
// that does not meet the traps of the outer one. Everything is one
// logical line: set -v prints it before the first mark.
func wrapSubshell(s Shell, id, path, command string) staged {
	printf, outer, inner := `\command printf`, ``, `\trap - 2 3 15;`
	switch s {
	case ShellBash:
		printf, outer = `\builtin printf`, `\trap - DEBUG;`
	case ShellZsh:
		// A builtin loop under eval would end with 2 for an interrupt.
		printf, outer, inner = `\builtin printf`, `\trap - DEBUG ZERR;`, `\trap '\exit 130' 2;\trap - 3 15;`
	}
	v := "_t" + id
	var b strings.Builder
	b.WriteString(`{ ` + v + `="$? $-";\set +ex;} 2>/dev/null;` + outer + `\trap : 2 3 15;`)
	b.WriteString(`(` + inner + printf + ` '` + startMark(id) + `';`)
	b.WriteString(`case "$` + v + `" in *' '*x*) \set -x;;esac;`)
	b.WriteString(`case "$` + v + `" in *' '*e*) \set -e;;*) (\exit "${` + v + `%% *}");;esac;`)
	b.WriteString(`\eval '` + singleQuoted(command) + "\n" + `');` + v + `=$?;`)
	b.WriteString(record(printf, v, path))
	b.WriteString(printf + ` '` + endMark(id) + `' "$` + v + `";\exit "$` + v + "\"\n")
	return staged{line: ` (\. ` + path + `)`, file: b.String()}
}

// wrapFish runs the command in a new fish: fish has no subshell. It prints the
// start mark itself, as it takes no signal for its own while it starts.
func wrapFish(id, path, command string) staged {
	return staged{
		line: ` begin;sh ` + path + `;end`,
		file: `trap : 2 3 15;(trap - 2 3 15;exec fish -c 'builtin printf "` + startMark(id) + `";source ` + path + `.c');s=$?;` +
			record("printf", "s", path) + `printf '` + endMark(id) + `' "$s";exit "$s"` + "\n",
		more: command + "\n",
	}
}

// wrapSame is the form for the shell itself. An interrupt keeps the second mark
// from being printed in those shells that have nothing to print it from.
func wrapSame(s Shell, id, path, command string) staged {
	st := staged{line: ` . ` + path, more: command + "\n"}
	v := "_t" + id
	start, end := ` '`+startMark(id)+`'`, ` '`+endMark(id)+`' "$`+v+`"`
	switch s {
	case ShellZsh:
		st.file = `{ \builtin printf` + start + `;\builtin . ` + path + `.c } always { ` + v + `=$?;` +
			record(`\builtin printf`, v, path) + `\builtin printf` + end + `;unset ` + v + " }\n"
	case ShellFish:
		st.line = ` source ` + path
		st.file = `function _` + v + ` --on-event fish_postexec; set -l ` + v + ` $status; functions -e _` + v +
			`; builtin printf '%s\n' "$` + v + `" >` + path + `.s 2>/dev/null; builtin printf` + end + "; end\n" +
			`builtin printf` + start + "\nsource " + path + ".c\n"
	case ShellBash:
		// bash 5.1 and later run an array of PROMPT_COMMANDs; the first sees $?.
		st.file = `if [[ ${BASH_VERSINFO[0]} -gt 5 || ${BASH_VERSINFO[0]} -eq 5 && ${BASH_VERSINFO[1]} -gt 0 ]]; then
_` + v + `() { local ` + v + `=$? i; ` + record(`\builtin printf`, v, path) + `\builtin printf` + end + `
for i in "${!PROMPT_COMMAND[@]}"; do [[ ${PROMPT_COMMAND[i]} == _` + v + ` ]] && \builtin unset "PROMPT_COMMAND[i]"; done
\builtin unset -f _` + v + `; return "$` + v + `"; }
PROMPT_COMMAND=(_` + v + ` "${PROMPT_COMMAND[@]}"); \builtin printf` + start + `; \builtin . ` + path + `.c
else \builtin printf` + start + `; \builtin . ` + path + `.c; ` + v + `=$?; ` + record(`\builtin printf`, v, path) +
			`\builtin printf` + end + `; \builtin unset ` + v + "; fi\n"
	default:
		st.file = `\command printf` + start + `;\command . ` + path + `.c;` + v + `=$?;` + record(`\command printf`, v, path) +
			`\command printf` + end + `;unset ` + v + "\n"
	}
	return st
}

// statusOf turns a status as a shell reports it into one of a process: ksh93
// says 256+N for a child that signal N ended.
func statusOf(n int) int {
	if n > 256 {
		return n - 128
	}
	return n
}
