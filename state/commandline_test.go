package state

import (
	"os"
	"strings"
	"testing"
)

// TestIntegrationIsInTheReadme: people find there what the tools hint at.
func TestIntegrationIsInTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Shell{ShellBash, ShellZsh, ShellFish} {
		if !strings.Contains(string(readme), Integration(s)+"\n```") {
			t.Errorf("%s: not in the README:\n%s", s, Integration(s))
		}
	}
}

func FuzzLineOf(f *testing.F) {
	for _, s := range []string{"", "cmdline=$'a\\x", "cmdline=a\\", "cmdline='", "cmdline_url=%4", "k=v;cmdline=$'\\303\\244'", "\\x4", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, line := range []string{lineOf(s), lineOfCode(s)} {
			if len(line) > MaxCommandLine || line != strings.ToValidUTF8(line, "") {
				t.Errorf("%q", line)
			}
		}
	})
}
