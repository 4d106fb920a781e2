package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts are scripts of their shells, and bash's completes.
func TestCompletion(t *testing.T) {
	p := newPlace(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip("no such shell here: ", err)
			}
			script, err := p.command("tmux-mcpd", "completion", shell).Output()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(shell, "-n")
			cmd.Stdin = strings.NewReader(string(script))
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	script := filepath.Join(p.dir, "complete.bash")
	if out, err := p.command("sh", "-c", "tmux-mcpd completion bash >"+script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"tmux-mcpd st":              "status stdio stop",
		"tmux-mcpd serve --watch ":  "all auto demand",
		"tmux-mcpd setup c":         "claude codex cursor",
		"tmux-mcpd status --js":     "--json",
		"tmux-mcpd help doc":        "doctor",
		"tmux-mcpd call --timeout ": "",
	} {
		words := strings.Split(line, " ")
		ask := "source " + script + "; COMP_WORDS=(" + strings.Join(quoteAll(words), " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _tmux_mcpd; printf '%s\\n' \"${COMPREPLY[@]}\" | sort | xargs"
		out, err := exec.Command("bash", "-c", ask).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q completes to %q (%v), want %q", line, got, err, want)
		}
	}
}

func quoteAll(words []string) []string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+w+"'")
	}
	return quoted
}
