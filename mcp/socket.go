package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What can be wrong with a socket path, for callers that exit with a code of
// their own. The wrapping error names the path.
var (
	// ErrPathTooLong: the path does not fit a socket address.
	ErrPathTooLong = errors.New("socket path too long")
	// ErrForeignDirectory: the socket's directory belongs to somebody else.
	ErrForeignDirectory = errors.New("socket directory belongs to another user")
	// ErrOpenDirectory: group or others may write to the socket's directory.
	ErrOpenDirectory = errors.New("socket directory is writable by others")
	// ErrNotSocket: something that is no socket is at the path.
	ErrNotSocket = errors.New("not a socket")
)

// InUseError says that a daemon serves the socket already: the caller of a
// second daemon has what it wanted.
type InUseError struct {
	Path string
	PID  int // the serving process, 0 if it could not be told
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another tmux-mcpd serves %s already", e.Path)
	}
	return fmt.Sprintf("tmux-mcpd (pid %d) serves %s already", e.PID, e.Path)
}

// Listener is a listening socket and the lock that makes its daemon the only
// one, which one of FromListener has from Lock on. Close may be called by any
// goroutine, more than once; it does not block.
type Listener struct {
	path string
	ln   *net.UnixListener
	lock *os.File // nil for FromListener before Lock
	// policy is what clients may see and do; nil for the daemon's own. Set before Serve.
	policy *Policy
	made   fs.FileInfo // the socket we bound, nil for FromListener

	stopOnce, closeOnce sync.Once
	err                 error
}

// Path is where clients connect.
func (l *Listener) Path() string { return l.path }

// Under makes a policy hold for all connections through the listener. It must be
// called before Serve.
func (l *Listener) Under(p *Policy) { l.policy = p }

// SetMode changes the mode of the socket, which decides whose processes may
// connect at all; which of those are served is the policy's.
func (l *Listener) SetMode(mode fs.FileMode) error { return os.Chmod(l.path, mode) }

// bindMu serialises changes of the umask, which belongs to the whole process.
var bindMu sync.Mutex

// Listen makes path a listening socket that only this user can reach: its
// directory is created with mode 0700 if missing and checked, the socket has
// mode 0600.
//
// The lock file path+".lock" is taken first and held until Close, so of any
// number of daemons started at once one binds and the rest get *InUseError;
// it is never removed, because a lock on a removed file excludes nobody. A
// socket left behind by a crash is removed, once it refuses connections;
// anything else at path is left alone. Listen blocks at most about a second.
func Listen(path string) (*Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("socket path %s: %w", path, err)
	}
	if len(path) > maxSocketPath {
		return nil, tooLong(path)
	}
	if err := privateDirectory(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		releaseLock(lock)
		return nil, err
	}
	l.lock = lock
	return l, nil
}

// FromListener serves a socket that the service manager opened: it is the
// manager's to remove.
func FromListener(ln *net.UnixListener) *Listener {
	ln.SetUnlinkOnClose(false)
	return &Listener{path: ln.Addr().String(), ln: ln}
}

// Lock takes the lock of a socket from FromListener. A manager puts its socket in
// the place of any other, so a daemon may be left that nobody finds any more: it
// holds the lock, and is the *InUseError. Lock must be called before Serve; it
// blocks at most about a tenth of a second.
func (l *Listener) Lock() (err error) {
	l.lock, err = takeLock(l.path)
	return err
}

// stop ends the listening and removes the socket, if it is still the one we
// bound. The lock stays.
func (l *Listener) stop() {
	l.stopOnce.Do(func() {
		l.err = l.ln.Close()
		// Still under the lock: nobody following these rules can have put
		// another socket there, and whoever did otherwise keeps his.
		if l.made == nil {
			return
		}
		if fi, err := os.Lstat(l.path); err == nil && os.SameFile(fi, l.made) {
			l.err = errors.Join(l.err, os.Remove(l.path))
		}
	})
}

// Lost tells whether clients cannot find the socket any more, and whether they
// find something else (other) in its place. A manager's is never lost.
func (l *Listener) Lost() (lost, other bool) {
	if l.made == nil {
		return false, false
	}
	fi, err := os.Lstat(l.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), false
	}
	same := os.SameFile(fi, l.made)
	return !same, !same
}

// AcceptOwn is for servers of something else on such a socket: it waits for the
// next connection of a process of this user, and closes those of others.
func (l *Listener) AcceptOwn() (net.Conn, error) {
	for {
		c, err := l.ln.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if p, err := peerOf(c); err == nil && p.uid == os.Geteuid() {
			return c, nil
		}
		c.Close()
	}
}

// Close stops listening, removes the socket if it is still the one we bound,
// and lets the next daemon in.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		l.stop()
		if l.lock != nil {
			releaseLock(l.lock)
		}
	})
	return l.err
}

func tooLong(path string) error {
	return fmt.Errorf("%w: %d bytes, at most %d: %s", ErrPathTooLong, len(path), maxSocketPath, path)
}

// CheckSocketPath applies Listen's rules for a path from the other side, before
// connecting: in a directory where others can put a socket, an answer proves
// nothing. It creates nothing; a missing directory is fs.ErrNotExist.
func CheckSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return tooLong(path)
	}
	return checkDirectory(filepath.Dir(path))
}

// privateDirectory creates dir if needed and checks it.
func privateDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("socket directory %s: %w", dir, err)
	}
	return checkDirectory(dir)
}

// checkDirectory refuses a directory in which others could replace our socket.
// Its ancestors are the operator's choice.
func checkDirectory(dir string) error {
	// In /tmp anybody can have put a symbolic link of that name first, so the
	// link itself must be ours too.
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		fi, err := stat(dir)
		if err != nil {
			return fmt.Errorf("socket directory %s: %w", dir, err)
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() {
			return fmt.Errorf("%w: %s", ErrForeignDirectory, dir)
		}
		if fi.IsDir() && fi.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%w: %s has mode %04o, needs 0700", ErrOpenDirectory, dir, fi.Mode().Perm())
		}
	}
	return nil
}

// bind binds path while its lock is held.
func bind(path string) (*Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	bindMu.Lock()
	old := unix.Umask(0o177)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	bindMu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	// Close decides by inode; the standard library would remove whatever is
	// at the path by then.
	ln.SetUnlinkOnClose(false)
	made, err := os.Lstat(path)
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &Listener{path: path, ln: ln, made: made}, nil
}

// removeStale clears path for a bind. Only a refused connection proves that
// nobody listens: a full backlog, for one, answers differently.
func removeStale(path string) error {
	before, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket path: %w", err)
	}
	if before.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%w: %s is a %s; remove it or choose another path", ErrNotSocket, path, fileKind(before.Mode()))
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		defer c.Close()
		p, _ := peerOf(c.(*net.UnixConn))
		return &InUseError{Path: path, PID: p.pid}
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("probing the socket: %w", err)
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) {
		return fmt.Errorf("socket path %s changed while it was probed", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing the stale socket: %w", err)
	}
	return nil
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "plain file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}

// takeLock locks path's lock file and writes our pid into it, or returns
// *InUseError with the pid of the holder.
func takeLock(path string) (*os.File, error) {
	name := path + ".lock"
	for range 10 {
		f, err := openLock(name)
		if err != nil {
			return nil, fmt.Errorf("lock file %s: %w", name, err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			defer f.Close()
			return nil, &InUseError{Path: path, PID: holder(f)}
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock file %s: %w", name, err)
		}
		if !stillThere(f, name) {
			f.Close() // somebody cleaned up between open and flock
			continue
		}
		if err := writePID(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock file %s: %w", name, err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("lock file %s: removed again and again by somebody else", name)
}

// openLock opens or creates the lock file, which must be a plain file that
// holds nothing but a pid: we are about to overwrite it.
func openLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > 32) {
		err = errors.New("not a lock file; remove it or choose another socket path")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func stillThere(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(name)
	return err == nil && os.SameFile(a, b)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the pid of the daemon that holds the lock. That daemon may be
// between taking the lock and writing its pid; a tenth of a second is enough.
func holder(f *os.File) int {
	for range 10 {
		b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
		if err == nil && bytes.HasSuffix(b, []byte("\n")) {
			pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0
}

// releaseLock empties the lock file, so that its pid is never that of a
// daemon that has ended in order, and lets go of it.
func releaseLock(f *os.File) {
	f.Truncate(0)
	f.Close()
}
