package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// parentPoll is how often the parent is asked for where no descriptor tells.
const parentPoll = 500 * time.Millisecond

// clientWatch tells when the process at the other end of the standard streams
// is gone, although nothing is read or written at the time.
type clientWatch struct {
	gone <-chan struct{} // closed once, at the end of the client

	wake *os.File // closing it ends the goroutine
	once sync.Once
	done chan struct{}
}

// watchClient watches the parent process and the reader of stdout. It starts
// one goroutine, which close ends; it sleeps in the kernel, without a timer
// where the kernel can tell of the parent's end.
func watchClient(stdout *os.File) *clientWatch {
	gone := make(chan struct{})
	w := &clientWatch{gone: gone, done: make(chan struct{})}
	parent := os.Getppid()
	r, wake, err := os.Pipe()
	if err != nil {
		// No descriptors left: without a watch the streams still end us.
		close(w.done)
		return w
	}
	w.wake = wake
	out := descriptor(stdout)
	go func() {
		defer close(w.done)
		defer r.Close()
		if awaitGone(out, descriptor(r), parent) {
			close(gone)
		}
	}()
	return w
}

// descriptor is f's number. Fd would put the file into blocking mode, and with
// it every process that shares it. It is -1 for a closed file.
func descriptor(f *os.File) int {
	n := -1
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n
}

// close ends the watch and waits for its goroutine.
func (w *clientWatch) close() {
	w.once.Do(func() {
		if w.wake != nil {
			w.wake.Close()
		}
	})
	<-w.done
}

// awaitGone blocks until the client is gone (true) or wake has ended (false).
func awaitGone(stdout, wake, parent int) bool {
	handle := parentHandle(parent)
	timeout := -1
	if handle < 0 {
		timeout = int(parentPoll.Milliseconds())
	} else {
		defer unix.Close(handle)
	}
	fds := []unix.PollFd{
		{Fd: int32(wake), Events: unix.POLLIN},
		// Asked for nothing, poll still reports the end: POLLERR for a pipe
		// without reader, POLLHUP for a closed socket or terminal.
		{Fd: int32(stdout)},
		{Fd: int32(handle), Events: unix.POLLIN}, // ignored if negative
	}
	for {
		_, err := unix.Poll(fds, timeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		switch {
		case err != nil:
			continue
		case fds[0].Revents != 0:
			return false
		case fds[1].Revents != 0, fds[2].Revents != 0, os.Getppid() != parent:
			return true
		}
	}
}
