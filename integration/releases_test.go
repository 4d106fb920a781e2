package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// releases are those that .ci/tools/tmuxes can put into .cache/tmux.
var releases = []string{"3.5a", "3.7c", "3.8"}

// compact is what is run on them: random operations against the oracle, reads
// that are current, what is watched and its cursors, and sessions and panes that
// go away under us.
const compact = "^(TestOracle|TestP1ReadsAreCurrent|TestC08CharactersByteByByte|TestC10EverySessionIsHeard|TestC11AttachedSessionKilled|TestC13PaneMoves)$"

// TestReleases runs a compact set of this package's tests on each other release
// of tmux that is there. One that is not is skipped by name; make tmuxes gets
// them all, and make test-tmux runs everything on each.
func TestReleases(t *testing.T) {
	if os.Getenv("TMUX_MCPD_TEST_TMUX") != "" {
		t.Skip("a run on one chosen tmux")
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel() // with each other; they mostly wait for tmux
			bin, err := filepath.Abs(filepath.Join("..", ".cache", "tmux", release, "tmux"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(bin); err != nil {
				t.Skipf("no tmux %s here (.ci/tools/tmuxes %s gets it)", release, release)
			}
			// A process of its own: the tests' way of finding their tmux, and the
			// check for what they leave behind, are per process.
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", compact, "-test.timeout", "4m", "-test.v")
			cmd.Env = append(os.Environ(), "TMUX_MCPD_TEST_TMUX="+bin, "TMUX_MCPD_ORACLE_OPS=100", "TMUX_MCPD_P1_ROUNDS=20")
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, name := range strings.Split(strings.Trim(compact, "^()$"), "|") {
				if !bytes.Contains(out, []byte("--- PASS: "+name)) {
					t.Errorf("%s did not run:\n%s", name, out)
				}
			}
		})
	}
}
