package controlmode_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"tmux-mcpd/controlmode"
)

// helperSocket makes the test binary a program that attaches to the server on
// that socket and stays, without reading on once output comes, for tests that
// kill it.
const helperSocket = "CONTROLMODE_TEST_HELPER_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(helperSocket); path != "" {
		helper(path)
	}
	goleak.VerifyTestMain(m)
}

func helper(path string) {
	p, err := controlmode.Attach(controlmode.AttachConfig{
		Bin:       os.Getenv("TMUX_MCPD_TEST_TMUX"),
		Socket:    controlmode.Socket{Path: path},
		Transport: controlmode.Transport(os.Getenv("CONTROLMODE_TEST_HELPER_TRANSPORT")),
		Options: controlmode.Options{Event: func(ev controlmode.Event) {
			if _, ok := ev.(*controlmode.Output); ok {
				<-make(chan struct{})
			}
		}},
	})
	if err == nil {
		err = p.Run(context.Background())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}
