package transcript

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the feeder: the rig starts this test binary in tmux panes.
func TestMain(m *testing.M) {
	if addr := os.Getenv(feederEnv); addr != "" {
		if err := feed(addr); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
