package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// completion prints the script that completes command lines in a shell. It is
// made of the tables that parsing and help are made of.
func completion(_ context.Context, in *invocation) error {
	if len(in.args) != 1 {
		return coded(exitUsage, "completion takes one shell: bash, zsh or fish")
	}
	var text string
	switch in.args[0] {
	case "bash":
		text = bashCompletion()
	case "zsh":
		// zsh runs bash's completion functions, and one script is less to get wrong.
		text = "#compdef tmux-mcpd\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion()
	case "fish":
		text = fishCompletion()
	default:
		return coded(exitUsage, "no completion for %q; there is one for bash, zsh and fish", in.args[0])
	}
	_, err := io.WriteString(in.stdout, text)
	return err
}

// plainWords are choices such as auto|all|demand.
var plainWords = regexp.MustCompile(`^[a-z]+(\|[a-z]+)+$`)

// choices are the words that can follow a flag or a command, nil if any can.
func choices(text string) []string {
	if !plainWords.MatchString(text) {
		return nil
	}
	return strings.Split(text, "|")
}

// flagsOf are the flags of a command, with their dashes.
func flagsOf(command string) []string {
	var flags []string
	for i := range settings {
		if slices.Contains(settings[i].on, command) {
			flags = append(flags, "--"+settings[i].flag)
		}
	}
	return flags
}

// wordsOf are what can be completed as an argument of a command.
func wordsOf(c command) []string {
	if c.name == "help" {
		return commandNames()
	}
	return choices(c.args)
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func bashCompletion() string {
	var b strings.Builder
	b.WriteString(`_tmux_mcpd() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
	COMPREPLY=()
	case $prev in
`)
	seen := map[string]bool{}
	for i := range settings {
		s := &settings[i]
		words := choices(s.value)
		switch {
		case s.value == "" || seen[s.flag]:
		case words != nil:
			fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", s.flag, strings.Join(words, " "))
		case s.value == "PATH":
			fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", s.flag)
		default:
			fmt.Fprintf(&b, "\t--%s) return ;;\n", s.flag)
		}
		seen[s.flag] = true
	}
	fmt.Fprintf(&b, "\tesac\n\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\twords='%s'\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n",
		strings.Join(commandNames(), " "))
	for _, c := range commands() {
		if words := append(wordsOf(c), flagsOf(c.name)...); len(words) > 0 {
			fmt.Fprintf(&b, "\t\t%s) words='%s' ;;\n", c.name, strings.Join(words, " "))
		}
	}
	b.WriteString("\t\tesac\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -F _tmux_mcpd tmux-mcpd\n")
	return b.String()
}

func fishCompletion() string {
	var b strings.Builder
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	b.WriteString("complete -c tmux-mcpd -f\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c tmux-mcpd -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.summary))
		if words := wordsOf(c); len(words) > 0 {
			fmt.Fprintf(&b, "complete -c tmux-mcpd -n '__fish_seen_subcommand_from %s' -a %s\n", c.name, quote(strings.Join(words, " ")))
		}
	}
	for i := range settings {
		s := &settings[i]
		fmt.Fprintf(&b, "complete -c tmux-mcpd -n '__fish_seen_subcommand_from %s' -l %s -d %s", strings.Join(s.on, " "), s.flag, quote(s.usage))
		switch words := choices(s.value); {
		case s.value == "":
		case words != nil:
			fmt.Fprintf(&b, " -x -a %s", quote(strings.Join(words, " ")))
		case s.value == "PATH":
			b.WriteString(" -r -F")
		default:
			b.WriteString(" -x")
		}
		b.WriteString("\n")
	}
	return b.String()
}
