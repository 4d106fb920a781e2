package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a process has ended, or ctx has. It answers false where
// the process cannot be watched. No polling: the runtime waits for the pidfd.
func awaitExit(ctx context.Context, pid int) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return err == unix.ESRCH
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })()
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	c.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = n == 1 && err == nil
		return ended
	})
	return ended && ctx.Err() == nil
}

// markOf reads the mark of a process: the pid of the daemon that started it.
// Processes of other users cannot be read and so carry none.
func markOf(pid int) (daemon int, ok bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return 0, false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, found := bytes.CutPrefix(kv, []byte(markName+"=")); found {
			daemon, err = strconv.Atoi(string(value))
			return daemon, err == nil && daemon > 0
		}
	}
	return 0, false
}

func processExists(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
