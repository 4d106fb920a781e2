package controlmode

import (
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// inlet is a file that tmux writes to, and that tells how much has been read from
// it and whether there is more. The file must be non-blocking. One goroutine
// reads; any goroutine may ask.
type inlet struct {
	*os.File
	raw syscall.RawConn

	// Of the Read that is under way.
	into []byte
	n    int
	err  error
	step func(fd uintptr) bool

	mu    sync.Mutex // held for the system calls, which do not block
	taken uint64     // bytes read
}

// newInlet takes the file over, also when it fails.
func newInlet(f *os.File) (*inlet, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	t := &inlet{File: f, raw: raw}
	t.step = t.read
	return t, nil
}

func (t *inlet) Read(b []byte) (int, error) {
	t.into = b
	if err := t.raw.Read(t.step); err != nil { // nothing but the end of the file's use
		return 0, os.ErrClosed
	}
	if t.n == 0 && t.err == nil {
		return 0, io.EOF
	}
	return t.n, t.err
}

// read reads once; false has it called again when there is something.
func (t *inlet) read(fd uintptr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), t.into)
		t.n, t.err = max(n, 0), err
		t.taken += uint64(t.n)
		if err != unix.EINTR {
			return err != unix.EAGAIN
		}
	}
}

// empty tells whether there is nothing to be read now, and how much has been. For
// a pty it waits for what the kernel has taken from the other end and is just
// passing on (n_tty_poll, since Linux 4.5).
func (t *inlet) empty() (taken uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ok = n == 0 && err == nil
	})
	return t.taken, ok && err == nil
}
