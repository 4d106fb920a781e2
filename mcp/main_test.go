package mcp

import (
	"testing"

	"go.uber.org/goleak"
)

// instead is what this binary may do instead of testing: stand between the daemon
// and tmux, or be many clients. Each returns when it is not asked to.
var instead []func()

func TestMain(m *testing.M) {
	for _, do := range instead {
		do()
	}
	checkResults = true
	goleak.VerifyTestMain(m)
}
