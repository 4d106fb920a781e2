package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// runShells are the shells that runs are tested in. rc is how each is started
// with a file of commands that a user might have.
var runShells = []struct {
	shell          Shell
	plain          string
	rc             func(dir string) string // the command, its file is dir/rc or dir/.zshrc
	hostile, hooks string
}{
	{
		ShellBash, "bash --norc -i", func(dir string) string { return "bash --rcfile " + dir + "/rc -i" },
		posixHostile + `
shopt -s expand_aliases
alias trap='echo T' set='echo S' exit='echo X' eval='echo V' command='echo C' builtin='echo B'
function printf { echo P; }
function test { echo t; }
set -o vi; set -o noclobber; set -T
trap ': debug' DEBUG; trap ': err' ERR; trap 'echo bye' EXIT; trap 'echo int' INT
PROMPT_COMMAND=': prompt'; PS0=''
`,
		`PS0='\e]133;C\a'
PROMPT_COMMAND='builtin printf "\e]133;D;%s\a\e]133;A\a" "$?"'
PS1='$ \[\e]133;B\a\]'
`,
	},
	{
		ShellZsh, "zsh -f -i", func(dir string) string { return "ZDOTDIR=" + dir + " zsh -d -i" },
		`alias printf='echo P' trap='echo T' set='echo S' exit='echo X' eval='echo V' command='echo C' builtin='echo B' .='echo D'
function printf { echo P; }
setopt rc_quotes ksh_arrays no_clobber vi no_unset
TRAPEXIT() { : }
TRAPZERR() { : }
precmd() { : }
`,
		`precmd() { builtin printf '\e]133;D;%s\a\e]133;A\a' "$?" }
preexec() { builtin printf '\e]133;C\a' }
PS1='%% %{'$'\e]133;B\a''%}'
`,
	},
	{ShellDash, "dash -i", func(dir string) string { return "ENV=" + dir + "/rc dash -i" }, posixHostile + "set -u; set -C\n", posixHooks},
	{ShellAsh, "busybox ash -i", func(dir string) string { return "ENV=" + dir + "/rc busybox ash -i" }, posixHostile + "set -u; set -C\n", posixHooks},
	{ShellKsh, "ksh93 -i", func(dir string) string { return "ENV=" + dir + "/rc ksh93 -i" }, posixHostile + "set -u; set -C; set -o vi\n", posixHooks},
	{ShellMksh, "mksh -i", func(dir string) string { return "ENV=" + dir + "/rc mksh -i" }, posixHostile + "set -u; set -C\n", posixHooks},
	{
		ShellFish, "fish --no-config", func(dir string) string { return "fish --no-config -C 'source " + dir + "/rc'" },
		`function printf; echo P; end
function trap; echo T; end
alias eval 'echo V'
function fish_greeting; end
`,
		`function fish_prompt; builtin printf '\e]133;A\a$ \e]133;B\a'; end
function pre --on-event fish_preexec; builtin printf '\e]133;C\a'; end
function post --on-event fish_postexec; builtin printf '\e]133;D;%s\a' $status; end
`,
	},
}

const (
	posixHostile = `alias printf='echo P' trap='echo T' set='echo S' exit='echo X' eval='echo V' command='echo C' .='echo D'
IFS=0123456789
_t=readonly; readonly _t
`
	posixHooks = "PS1=$(printf '\\033]133;D;0\\007\\033]133;A\\007$ \\033]133;B\\007')\n"
)

// eachShell calls f for every shell and configuration, with a pane at its prompt.
func eachShell(t *testing.T, f func(t *testing.T, x *testTmux, m *Mirror, s Shell, kind string, id controlmode.PaneID)) {
	onLinux(t)
	x := newTmux(t).start()
	m := x.runMirror()
	for _, s := range runShells {
		for _, kind := range []string{"plain", "hostile", "hooks"} {
			t.Run(string(s.shell)+"/"+kind, func(t *testing.T) {
				need(t, s.plain)
				command := s.plain
				if kind != "plain" {
					dir := t.TempDir()
					text := s.hostile
					if kind == "hooks" {
						text = s.hooks
					}
					write(t, filepath.Join(dir, "rc"), text)
					write(t, filepath.Join(dir, ".zshrc"), text)
					command = s.rc(dir)
				}
				x := &testTmux{t: t, bin: x.bin, sock: x.sock, m: x.m}
				id := x.window(command)
				f(t, x, m, s.shell, kind, id)
				x.run("kill-pane", "-t", id.String())
			})
		}
	}
}

// ranAs is a command of run-framing 2.3 and group R, with what must come of it.
type ranAs struct {
	command string
	status  int
	output  string // "*" for anything that is not empty
	not     []Shell
}

func commandList(s Shell) []ranAs {
	pick := func(other int, of map[Shell]int) int {
		if n, ok := of[s]; ok {
			return n
		}
		return other
	}
	syntax := pick(2, map[Shell]int{ShellZsh: 1, ShellMksh: 1, ShellKsh: 3, ShellFish: 1})
	long := strings.Repeat("0123456789abcdef", 6400)
	return []ranAs{
		{"exit 7", 7, "", nil},
		{"return 3", 3, "", nil},
		{"exec sh -c 'exit 5'", 5, "", nil},
		{"false", 1, "", nil},
		{"no-such-command-here", 127, "*", nil},
		{"echo one; )", syntax, "*", nil},
		{"sh -c 'kill -9 $$'", 137, "*", nil}, // some shells say so
		{"command printf 'no newline'", 0, "no newline", nil},
		{"echo fg; sleep 2 >/dev/null 2>&1 &\necho on", 0, "fg\non\n", nil},
		{"cd / && pwd", 0, "/\n", nil},
		{"pwd | grep -x /", 1, "", nil}, // the cd was not kept
		{"echo a # comment", 0, "a\n", nil},
		{"cat <<'END'\nfirst 'line'\n  second\nEND\n", 0, "first 'line'\n  second\n", []Shell{ShellFish}},
		{"echo hi!there 'x!y'", 0, "hi!there x!y\n", nil}, // S11
		{"echo 'ünï ☃ 漢字'", 0, "ünï ☃ 漢字\n", nil},
		{"echo \"it's\" 'a \"b\"' c\\ d", 0, "it's a \"b\" c d\n", nil},
		{"seq 1 3 | sed 's/2/two/'", 0, "1\ntwo\n3\n", nil},
		{"sh -c 'echo err >&2; exit 9'", 9, "err\n", nil},
		{"echo " + long + " | wc -c | tr -d ' '", 0, strconv.Itoa(len(long)+1) + "\n", nil},
		{strings.Repeat(":\n", 4000) + "echo done\n", 0, "done\n", nil},
		{"printf '\\033]133;D;0;aid=deadbeefdeadbeef\\007'; exit 6", 6, "*", nil}, // another's mark
	}
}

// ownWords keep the aliases of the hostile configurations from the words of a
// command.
var ownWords = strings.NewReplacer("command printf ", `\command printf `, "exit ", `\exit `, "command ", `\command `, "printf ", `\command printf `, "return ", `\return `, "exec ", `\exec `)

// TestRunCommandList: exit status and output of the listed commands are exact,
// in every shell and configuration.
func TestRunCommandList(t *testing.T) {
	eachShell(t, func(t *testing.T, x *testTmux, m *Mirror, s Shell, kind string, id controlmode.PaneID) {
		for _, c := range commandList(s) {
			if contains(c.not, s) {
				continue
			}
			if kind == "hostile" && s != ShellFish { // the user's aliases are for the user's commands, too
				c.command = ownWords.Replace(c.command)
			}
			status, output := x.does(m, id, c.command)
			loose := c.output == "*" && (output != "" || strings.Contains(c.command, "aid=") || strings.Contains(c.command, "kill"))
			if kind != "plain" && strings.Contains(c.command, "printf") && !strings.Contains(c.command, "command") {
				loose = true // the user's own printf
			}
			if status != c.status || output != c.output && !loose {
				t.Errorf("%.60q: status %d, output %.200q; want %d, %.200q", c.command, status, output, c.status, c.output)
			}
		}
		entries, _ := os.ReadDir(m.RunDir())
		if len(entries) > 0 {
			t.Errorf("files left: %v", entries)
		}
	})
}

func contains(all []Shell, s Shell) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// randomRuns is how many random commands each shell runs in a configuration:
// TMUX_MCPD_TEST_RUNS, or few.
func randomRuns(kind string) int {
	if n, err := strconv.Atoi(os.Getenv("TMUX_MCPD_TEST_RUNS")); err == nil && n > 0 {
		return n
	}
	if kind != "plain" {
		return 3
	}
	return 8
}

// TestRunRandomCommands: random words in random quoting come back as they are,
// with the status that was chosen, in every shell and configuration. A failure
// names its seed.
func TestRunRandomCommands(t *testing.T) {
	eachShell(t, func(t *testing.T, x *testTmux, m *Mirror, s Shell, kind string, id controlmode.PaneID) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		for n := range randomRuns(kind) {
			command, want, exit := randomCommand(r, s)
			if kind == "hostile" && s != ShellFish {
				command = strings.ReplaceAll(strings.ReplaceAll(command, "command printf", `\command printf`), "\nexit ", "\n\\exit ")
			}
			status, output := x.does(m, id, command)
			if status != exit || output != want {
				t.Fatalf("seed %d, command %d: %q: status %d, output %q; want %d, %q", seed, n, command, status, output, exit, want)
			}
		}
	})
}

// randomCommand makes a command and tells its output and status.
func randomCommand(r *rand.Rand, s Shell) (command, output string, status int) {
	var c, o strings.Builder
	for range 1 + r.IntN(4) {
		switch r.IntN(4) {
		case 0:
			n := r.IntN(30)
			fmt.Fprintf(&c, "seq 1 %d", n)
			o.WriteString(lines(1, n))
		case 1:
			w := randomWord(r)
			fmt.Fprintf(&c, "cat %s", hereFile(s, w))
			o.WriteString(w + "\n")
		default:
			for range 1 + r.IntN(3) {
				w := randomWord(r)
				fmt.Fprintf(&c, "command printf '%%s\\n' %s", quoteFor(s, w))
				o.WriteString(w + "\n")
				if r.IntN(2) == 0 {
					c.WriteString(" # " + strings.ReplaceAll(randomWord(r), "\n", " ") + "\n")
				} else {
					c.WriteString("\n")
				}
			}
		}
		if s := c.String(); s[len(s)-1] != '\n' {
			c.WriteString([]string{"\n", ";", "\n\n", " ;  "}[r.IntN(4)])
		}
	}
	if status = r.IntN(256); r.IntN(2) == 0 {
		status = 0
	}
	fmt.Fprintf(&c, "\nexit %d", status)
	return c.String(), o.String(), status
}

// hereFile passes a word to cat without quoting it twice.
func hereFile(s Shell, w string) string {
	if s == ShellFish {
		return "(echo " + quoteFor(s, w) + " | psub)"
	}
	return "<<'END-OF-WORD'\n" + w + "\nEND-OF-WORD\n"
}

const wordBytes = "abcXYZ019 \t'\"\\$`!#&|;<>(){}[]*?~%^-_=+,.:/@éß漢☃"

func randomWord(r *rand.Rand) string {
	all := []rune(wordBytes)
	n := 1 + r.IntN(30)
	var b strings.Builder
	for range n {
		c := all[r.IntN(len(all))]
		if c == '\t' {
			c = ' ' // a tab is shown as the blanks up to the next stop
		}
		b.WriteRune(c)
	}
	return strings.TrimRight(b.String(), " ") + "."
}

func quoteFor(s Shell, w string) string {
	if s == ShellFish {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(w) + "'"
	}
	return "'" + singleQuoted(w) + "'"
}

// TestRunLeavesOnlyItsLine: the screen after a run shows the typed line behind the
// prompt, the output, and the next prompt; nothing else, in every configuration of
// every shell.
func TestRunLeavesOnlyItsLine(t *testing.T) {
	eachShell(t, func(t *testing.T, x *testTmux, m *Mirror, _ Shell, _ string, id controlmode.PaneID) {
		screen := func() []string {
			return strings.Split(strings.TrimRight(x.run("capture-pane", "-p", "-J", "-t", id.String()), " \n"), "\n")
		}
		m.awaitFor(t, id, WaitsPrompt)
		x.does(m, id, "true") // what a shell says at its start has been said
		for range 2 {
			m.awaitFor(t, id, WaitsPrompt)
			var before []string
			until(t, "the prompt", func() bool { // it may be drawn more than once
				last := before
				before = screen()
				return strings.Join(last, "\n") == strings.Join(before, "\n") && !strings.Contains(before[len(before)-1], m.RunDir())
			})
			v, _ := x.finish(m, x.begin(m, id, RunOptions{Command: "echo one; echo two"}))
			prompt := before[len(before)-1]
			typed := prompt + "  (\\. " + filepath.Join(m.RunDir(), v.ID) + ")"
			if v.Shell == ShellFish {
				typed = prompt + "  begin;sh " + filepath.Join(m.RunDir(), v.ID) + ";end"
			}
			want := strings.Join(append(before[:len(before)-1:len(before)-1], typed, "one", "two", prompt), "\n")
			until(t, "the next prompt", func() bool { s := screen(); return s[len(s)-1] == prompt })
			if got := strings.Join(screen(), "\n"); got != want {
				t.Errorf("the screen is\n%s\nwant\n%s", got, want)
			}
		}
	})
}
