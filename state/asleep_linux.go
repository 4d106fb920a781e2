package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper looks whether a tmux server sleeps: it then has handled all that had
// come to it, and has written all that it had to say.
type sleeper struct {
	mu    sync.Mutex
	wchan *os.File // nil if it cannot be looked at
}

// watchSleep opens the server's process. It answers one that never sleeps if what
// has that number here is not the server that a client of ours is attached to, as
// when tmux runs in another process namespace: the server has the client's
// terminal open.
func watchSleep(pid int, terminal string) *sleeper {
	s := &sleeper{}
	if want, err := os.Stat(terminal); err != nil || !hasOpen(pid, want) {
		return s
	}
	if f, err := os.Open(fmt.Sprintf("/proc/%d/wchan", pid)); err == nil {
		s.wchan = f
	}
	return s
}

func hasOpen(pid int, want os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, n := range names {
		if at := filepath.Join(dir, n.Name()); strings.HasPrefix(target(at), "/dev/pts/") {
			if got, err := os.Stat(at); err == nil && os.SameFile(got, want) {
				return true
			}
		}
	}
	return false
}

func target(link string) string {
	t, _ := os.Readlink(link)
	return t
}

// eventLoops are where in the kernel a process stands that waits for events
// (Linux 4.5 to 6.18; libevent uses poll or epoll). One that has been woken, or
// runs, stands nowhere: the kernel then says 0.
var eventLoops = [][]byte{[]byte("ep_poll"), []byte("do_epoll_wait"), []byte("poll_schedule_timeout"), []byte("do_poll"), []byte("do_sys_poll")}

// asleep tells whether the server waits for events and none has come. A process
// that has ended does not sleep.
func (s *sleeper) asleep() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wchan == nil {
		return false
	}
	var b [64]byte
	n, err := s.wchan.ReadAt(b[:], 0)
	if n == 0 && err != nil {
		return false
	}
	for _, name := range eventLoops {
		if bytes.HasPrefix(b[:n], name) {
			return true
		}
	}
	return false
}

// await waits for the server to sleep, at most so long. Others get the processor
// meanwhile, the server among them.
func (s *sleeper) await(most time.Duration) bool {
	for begin := time.Now(); !s.asleep(); {
		if s == nil || time.Since(begin) > most {
			return false
		}
		unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return true
}

func (s *sleeper) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wchan != nil {
		s.wchan.Close()
		s.wchan = nil
	}
}

// processRuns tells whether a process is there and has not ended. false may also
// mean that it cannot be told.
func processRuns(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}
