package mcp

import (
	"os"
	"path/filepath"
	"testing"
)

// eachRelease runs a test on the tmux under test and on each other release that
// is in .cache/tmux. One that is not there is skipped by name.
func eachRelease(t *testing.T, f func(t *testing.T, bin string)) {
	t.Run("tmux", func(t *testing.T) { f(t, os.Getenv("TMUX_MCPD_TEST_TMUX")) })
	if os.Getenv("TMUX_MCPD_TEST_TMUX") != "" {
		return
	}
	for _, release := range []string{"3.5a", "3.7c", "3.8"} {
		t.Run(release, func(t *testing.T) {
			bin, err := filepath.Abs(filepath.Join("..", ".cache", "tmux", release, "tmux"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(bin); err != nil {
				t.Skipf("no tmux %s here (.ci/tools/tmuxes %s gets it)", release, release)
			}
			f(t, bin)
		})
	}
}
