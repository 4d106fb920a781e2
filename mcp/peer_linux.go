package mcp

import (
	"bytes"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest socket path in bytes: sun_path is 108 bytes on
// Linux, one of them for the final NUL.
const maxSocketPath = 107

// peerOf asks the kernel who is at the other end. The pid is the one of the
// process that called connect; it can have ended and been reused since, so it
// is good for logs and for finding a pane, never for permission.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return peer{}, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return peer{uid: int(cred.Uid), pid: int(cred.Pid)}, nil
}

// parentOf reads the parent of a process from /proc/PID/stat, 0 if unknown.
func parentOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parentFromStat(b)
}

// parentFromStat finds the fourth field of /proc/PID/stat. The second is the
// command name in parentheses, which may itself hold spaces and parentheses.
func parentFromStat(b []byte) int {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return 0
	}
	return ppid
}
