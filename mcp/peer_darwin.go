package mcp

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest socket path in bytes: sun_path is 104 bytes on
// macOS, one of them for the final NUL.
const maxSocketPath = 103

// peerOf asks the kernel who is at the other end. The pid is good for logs and
// for finding a pane, never for permission.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var p peer
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			credErr = err
			return
		}
		p.uid = int(cred.Uid)
		// Without the pid only the caller's own pane stays unknown.
		p.pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return peer{}, os.NewSyscallError("getsockopt LOCAL_PEERCRED", err)
	}
	return p, nil
}

// parentOf asks the kernel for the parent of a process, 0 if unknown.
func parentOf(pid int) int {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || kp == nil {
		return 0
	}
	return int(kp.Eproc.Ppid)
}
