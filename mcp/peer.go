package mcp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection, as the kernel knew it
// when the connection was made.
type peer struct{ uid, pid int }

// maxAncestors bounds the walk up the process tree: a pid reused during the
// walk could otherwise close a circle.
const maxAncestors = 64

// ancestorsOf lists pid and its parents, nearest first, without pid 1 and 0.
func ancestorsOf(pid int, parent func(int) int) []int {
	var pids []int
	for pid > 1 && len(pids) < maxAncestors {
		pids = append(pids, pid)
		pid = parent(pid)
	}
	return pids
}

// hungUp reports whether the peer has closed its end for good, as against
// having shut down only its sending half (a piped stdin that ended).
//
// POLLHUP is reported when nothing can be sent any more. POLLOUT is asked for
// because macOS reports the end of the receiving half as POLLHUP too when
// POLLIN is.
func hungUp(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return true // only sockets can be half-closed
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	var gone bool
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		for {
			_, err := unix.Poll(fds, 0)
			if err == unix.EINTR {
				continue
			}
			gone = err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
			return
		}
	})
	return err != nil || gone
}
