package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// parentHandle is a descriptor that becomes readable when the parent process
// ends, or -1 where the kernel gives none (before 5.3, or forbidden). The
// parent-death signal would not do: it is sent when the *thread* that started
// us ends, which a living client's thread pool does at any time.
func parentHandle(parent int) int {
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return -1
	}
	if os.Getppid() != parent {
		// It ended before the descriptor was made, which may then be of a
		// stranger. The caller compares again.
		_ = syscall.Close(fd)
		return -1
	}
	return fd
}
