package controlmode

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// startPTY starts cmd on a raw pseudo terminal and returns the other end.
func startPTY(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	defer master.Close()
	// A size, because a terminal of 0x0 is odd; it never counts for windows, as we
	// never send refresh-client -C.
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return nil, err
	}
	// Raw before the child starts: a cooked line discipline would echo what we
	// send and cut it at 4,095 bytes.
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	file, err := wakeable(master)
	if err != nil {
		return nil, err
	}
	conn, err := newInlet(file)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	return terminal{conn, cmd.Process, slave.Name()}, nil
}

// wakeable duplicates a file into one on which Close wakes a blocked Read and
// Write. The ioctls of the pty library have put the original into blocking
// mode for good.
func wakeable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// On macOS non-blocking terminals are said to make readers spin, so there
	// the end of the child ends the Read.
	if runtime.GOOS != "darwin" {
		if err := unix.SetNonblock(fd, true); err != nil {
			unix.Close(fd)
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), "ptmx"), nil
}

// terminal is our end of a pty.
type terminal struct {
	*inlet
	child *os.Process
	name  string // of the child's end
}

// Read turns EIO, which is how Linux tells that the other end has been closed,
// into end of file.
func (t terminal) Read(b []byte) (int, error) {
	n, err := t.inlet.Read(b)
	if errors.Is(err, syscall.EIO) {
		err = io.EOF
	}
	return n, err
}

// Close ends the connection.
func (t terminal) Close() error {
	if runtime.GOOS == "darwin" {
		t.child.Signal(syscall.SIGTERM) // see wakeable
	}
	return t.inlet.Close()
}

// startPipe starts cmd on one end of a socket pair and returns the other. Only
// our end is non-blocking: a child that inherits a non-blocking one breaks.
func startPipe(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	leash, end, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		leash.Close()
		return nil, err
	}
	defer theirs.Close()
	in, err := newInlet(ours)
	if err != nil {
		leash.Close()
		return nil, err
	}
	conn := stream{in, leash}
	cmd.Stdin, cmd.Stdout = theirs, theirs
	// The leash is the child's controlling terminal, for nothing but to hang up
	// when this process ends, however it does. The end of the socket pair alone
	// is not enough: with output queued for the client, a server that is told to
	// exit waits for it for ever, and keeps the client process (tmux 3.3a to
	// 3.7c; 3.8 gives up). A parent-death signal would not do: on Linux it is
	// tied to the thread that forked, not to the process.
	cmd.ExtraFiles = []*os.File{end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3} // 3 is ExtraFiles[0] in the child
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// socketPair makes a connected pair of which the first is non-blocking. Both
// are close-on-exec.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no fork may see the pair before it is close-on-exec
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "tmux"), os.NewFile(uintptr(fds[1]), "tmux"), nil
}

// stream is our end of a socket pair.
type stream struct {
	*inlet
	leash *os.File
}

// Read turns ECONNRESET, which is how Linux tells that the other end was closed
// with something of ours unread, into end of file.
func (s stream) Read(b []byte) (int, error) {
	n, err := s.inlet.Read(b)
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// Close ends the connection and hangs up.
func (s stream) Close() error {
	err := s.inlet.Close()
	s.leash.Close()
	return err
}
