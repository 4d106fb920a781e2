package mcp

import "golang.org/x/sys/unix"

// unreadBy is about how many bytes of memory the messages take that the peer of
// a socket has not read yet (unix(7), SIOCOUTQ).
func unreadBy(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}
