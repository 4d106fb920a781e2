package mcp

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	checkResults = true
	goleak.VerifyTestMain(m)
}
