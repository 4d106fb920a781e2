package mcp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestListenModes(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir := filepath.Join(shortDir(t), "a", "b")
	l, err := Listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]os.FileMode{
		dir:                          os.ModeDir | 0o700,
		l.Path():                     os.ModeSocket | 0o600,
		filepath.Join(dir, "s.lock"): 0o600,
	} {
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, fi.Mode(), want)
		}
	}
	if got := unix.Umask(0); got != 0 {
		t.Errorf("umask left at %04o", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(l.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket after Close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestListenDirectory(t *testing.T) {
	dir := shortDir(t)
	for mode, want := range map[os.FileMode]error{
		0o700: nil, 0o755: nil, 0o500: nil, 0o720: ErrOpenDirectory, 0o702: ErrOpenDirectory, 0o777: ErrOpenDirectory, 0o777 | os.ModeSticky: ErrOpenDirectory,
	} {
		if mode == 0o500 && os.Geteuid() != 0 {
			continue // only root may create files there
		}
		d := filepath.Join(dir, strconv.FormatUint(uint64(mode), 8))
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(filepath.Join(d, "s"))
		if !errors.Is(err, want) {
			t.Errorf("mode %v: %v, want %v", mode, err, want)
		}
		if l != nil {
			l.Close()
		}
		if want != nil {
			nothingIn(t, d)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(file, "s")); err == nil {
		t.Error("listening below a plain file worked")
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if es, err := os.ReadDir(dir); err != nil || len(es) > 0 {
		t.Errorf("left in %s: %v, %v", dir, es, err)
	}
}

func TestListenForeignDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := shortDir(t)
	foreign, link, linkToOurs := filepath.Join(dir, "f"), filepath.Join(dir, "l"), filepath.Join(dir, "o")
	if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 12345, 12345), os.Symlink(foreign, link),
		os.Symlink(dir, linkToOurs), os.Lchown(linkToOurs, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]string{"foreign": foreign, "our link to foreign": link, "foreign link to ours": linkToOurs} {
		if _, err := Listen(filepath.Join(d, "s")); !errors.Is(err, ErrForeignDirectory) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nothingIn(t, foreign)
}

// D01: a socket left by a crash is replaced; nothing else is touched.
func TestD01Stale(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	crashed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	crashed.SetUnlinkOnClose(false)
	crashed.Close()
	if err := os.WriteFile(path+".lock", []byte("999999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	}
	l.Close()

	put := map[string]func(string) error{
		"plain file":    func(p string) error { return os.WriteFile(p, []byte("dear"), 0o600) },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"symbolic link": func(p string) error { return os.Symlink("/nowhere", p) },
		"special file":  func(p string) error { return unix.Mkfifo(p, 0o600) },
	}
	for kind, f := range put {
		p := filepath.Join(dir, kind[:2])
		if err := f(p); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(p)
		if _, err := Listen(p); !errors.Is(err, ErrNotSocket) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v", kind, err)
		}
		if after, err := os.Lstat(p); err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
			t.Errorf("%s: not left alone", kind)
		}
	}
	// A symbolic link to a live socket is not followed either.
	target := filepath.Join(dir, "t")
	l, err = Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink(target, filepath.Join(dir, "k")); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(dir, "k")); !errors.Is(err, ErrNotSocket) {
		t.Errorf("link to a live socket: %v", err)
	}
}

// D02: of many that start at once one serves, and the others know which.
func TestD02OneDaemon(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	for round := range 20 {
		if round%2 == 1 { // on odd rounds a crashed one was there before
			stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			stale.SetUnlinkOnClose(false)
			stale.Close()
		}
		var wg sync.WaitGroup
		won := make(chan *Listener, 20)
		for range 20 {
			wg.Go(func() {
				l, err := Listen(path)
				if err == nil {
					won <- l
					return
				}
				var in *InUseError
				if !errors.As(err, &in) || in.PID != os.Getpid() || in.Path != path {
					t.Errorf("a loser: %v", err)
				}
			})
		}
		wg.Wait()
		close(won)
		if len(won) != 1 {
			t.Fatalf("%d daemons listen", len(won))
		}
		l := <-won
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatalf("the winner's socket: %v", err)
		}
		c.Close()
		l.Close()
	}
}

// A socket somebody serves without our lock is left to him.
func TestListenLiveWithoutLock(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = Listen(path)
	var in *InUseError
	if !errors.As(err, &in) || in.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the other's socket: %v", err)
	} else {
		c.Close()
	}
}

// A daemon too busy to take another connection is no stale socket. Connecting
// to a full backlog fails with EAGAIN on Linux.
func TestListenBusy(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 16 {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			break // full
		}
		defer c.Close()
	}
	before, _ := os.Lstat(path)
	if l, err := Listen(path); err == nil {
		l.Close()
		t.Error("listening worked")
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the busy daemon's socket: %v", err)
	}
}

// Close leaves a socket alone that has taken the place of ours.
func TestCloseForeignSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other's socket: %v", err)
	}
}

// stop, which Serve calls, frees the path but not the lock.
func TestLockOutlivesListening(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.stop()
	var in *InUseError
	if _, err := Listen(path); !errors.As(err, &in) {
		t.Errorf("before Close: %v", err)
	}
	l.Close()
	l, err = Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// The lock file is not ours to overwrite when it holds something else.
func TestLockFileForeign(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	precious := strings.Repeat("precious ", 10)
	if err := os.WriteFile(path+".lock", []byte(precious), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil {
		t.Error("listening worked")
	}
	if b, _ := os.ReadFile(path + ".lock"); string(b) != precious {
		t.Errorf("it now holds %q", b)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, make := range []func(string) error{
		func(p string) error { return os.Mkdir(p, 0o700) },
		func(p string) error { return os.Symlink(empty, p) },
		func(p string) error { return os.Symlink(empty+"2", p) },
		func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		p := filepath.Join(dir, strconv.Itoa(i))
		if err := make(p + ".lock"); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(p); err == nil {
			t.Errorf("kind %d worked", i)
		}
	}
	if _, err := os.Lstat(empty + "2"); err == nil {
		t.Error("a dangling link was followed")
	}
}

// D04: the limit is checked before use, in bytes.
func TestD04PathLength(t *testing.T) {
	dir := shortDir(t)
	of := func(n int, fill string) string {
		name := strings.Repeat(fill, n)
		return filepath.Join(dir, name[:n-len(dir)-1])
	}
	for _, tt := range []struct {
		path string
		want error
	}{
		{of(maxSocketPath, "x"), nil},
		{of(maxSocketPath+1, "x"), ErrPathTooLong},
		{filepath.Join(dir, strings.Repeat("\u00e9", 60)), ErrPathTooLong}, // 60 characters, 120 bytes
		{filepath.Join(dir, strings.Repeat("\u00e9", 40)), nil},
	} {
		l, err := Listen(tt.path)
		if !errors.Is(err, tt.want) {
			t.Errorf("%d bytes: %v, want %v", len(tt.path), err, tt.want)
		}
		if err != nil {
			if !strings.Contains(err.Error(), strconv.Itoa(maxSocketPath)) {
				t.Errorf("the limit is not told: %v", err)
			}
			continue
		}
		c, err := net.Dial("unix", tt.path)
		if err != nil {
			t.Errorf("%d bytes: %v", len(tt.path), err)
		} else {
			c.Close()
		}
		l.Close()
	}
}

func TestFromListener(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	before, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if lost, other := before.Lost(); lost || other {
		t.Errorf("lost %v, other %v", lost, other)
	}
	if err := os.Remove(path); err != nil { // as systemd does it
		t.Fatal(err)
	}
	if lost, other := before.Lost(); !lost || other {
		t.Errorf("removed: lost %v, other %v", lost, other)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if lost, other := before.Lost(); !lost || !other {
		t.Errorf("replaced: lost %v, other %v", lost, other)
	}
	l := FromListener(ln)
	if l.Path() != path {
		t.Errorf("path %s", l.Path())
	}
	var in *InUseError
	if err := l.Lock(); !errors.As(err, &in) || in.PID != os.Getpid() {
		t.Errorf("locked beside the one before: %v", err)
	}
	before.Close()
	if err := l.Lock(); err != nil {
		t.Error(err)
	}
	if _, err := Listen(path); !errors.As(err, &in) {
		t.Errorf("a second one: %v", err)
	}
	if lost, other := l.Lost(); lost || other {
		t.Errorf("lost %v, other %v", lost, other)
	}
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the manager's socket was removed: %v", err)
	}
}

// D05: one rule, the same answer in every context.
func TestD05DefaultSocketPath(t *testing.T) {
	owner := map[string]int{
		"/run/user/1000": 1000, "/run/user/0": 0, "/run/user/1001": 0, "/srv/me/run": 1000,
		"/" + strings.Repeat("r", 119): 1000,
	}
	owned := func(dir string, uid int) bool { o, ok := owner[dir]; return ok && o == uid }
	const other = "/tmp/tmux-1000/work"
	for _, tt := range []struct {
		name, xdg string
		uid       int
		tmux      string
		want      string
		err       error
	}{
		{"desktop", "/run/user/1000", 1000, "", "/run/user/1000/tmux-mcpd/default.sock", nil},
		{"ssh or cron", "", 1000, "", "/run/user/1000/tmux-mcpd/default.sock", nil},
		{"su from root", "/run/user/0", 1000, "", "/run/user/1000/tmux-mcpd/default.sock", nil},
		{"su to root", "/run/user/1000", 0, "", "/run/user/0/tmux-mcpd/default.sock", nil},
		{"own directory", "/srv/me/run", 1000, "", "/srv/me/run/tmux-mcpd/default.sock", nil},
		{"missing directory", "/no/such", 1000, "", "/run/user/1000/tmux-mcpd/default.sock", nil},
		{"relative", "run", 1000, "", "/run/user/1000/tmux-mcpd/default.sock", nil},
		{"container", "", 5, "", "/tmp/tmux-mcpd-5/default.sock", nil},
		{"container, other's variable", "/run/user/1000", 5, "", "/tmp/tmux-mcpd-5/default.sock", nil},
		{"run directory not ours", "", 1001, "", "/tmp/tmux-mcpd-1001/default.sock", nil},
		// printf %s /tmp/tmux-1000/work | sha256sum | cut -c1-12
		{"another tmux server", "", 1000, other, "/run/user/1000/tmux-mcpd/4b80121f4441.sock", nil},
		{"long tmux socket name", "", 5, "/tmp/tmux-5/" + strings.Repeat("n", 100), "", nil},
		{"long directory", "/" + strings.Repeat("r", 119), 1000, "", "", ErrPathTooLong},
	} {
		env := func(k string) string {
			if k == "XDG_RUNTIME_DIR" {
				return tt.xdg
			}
			return ""
		}
		got, err := socketPath(env, tt.uid, tt.tmux, tt.tmux == "", owned)
		if !errors.Is(err, tt.err) || tt.want != "" && got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
		if err == nil && len(got) > maxSocketPath {
			t.Errorf("%s: %d bytes", tt.name, len(got))
		}
	}
	if _, err := DefaultSocketPath(os.Getenv, 1, "relative", false); err == nil {
		t.Error("a relative tmux socket path was taken")
	}
}

func TestOwnedDirectory(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	uid := os.Getuid()
	for _, tt := range []struct {
		dir  string
		uid  int
		want bool
	}{{dir, uid, true}, {dir, uid + 1, false}, {file, uid, false}, {dir + "/none", uid, false}} {
		if got := ownedDirectory(tt.dir, tt.uid); got != tt.want {
			t.Errorf("%v: %t", tt, got)
		}
	}
}

func TestInUseError(t *testing.T) {
	for want, e := range map[string]*InUseError{
		"tmux-mcpd (pid 7) serves /s already": {"/s", 7},
		"another tmux-mcpd serves /s already": {"/s", 0},
	} {
		if got := fmt.Sprint(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
