package mcp

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lineMode tells whether a terminal hands lines to its program, not characters:
// such a line has a limit. False if nobody knows.
func lineMode(tty string) bool {
	if !strings.HasPrefix(tty, "/dev/") {
		return false
	}
	f, err := os.OpenFile(tty, os.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	mode, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil && mode.Lflag&unix.ICANON != 0
}
