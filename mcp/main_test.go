package mcp

import (
	"testing"

	"go.uber.org/goleak"
)

// between is what this binary does instead of testing, where it stands between the
// daemon and tmux; nil where it cannot. It returns when it is to test.
var between func()

func TestMain(m *testing.M) {
	if between != nil {
		between()
	}
	checkResults = true
	goleak.VerifyTestMain(m)
}
