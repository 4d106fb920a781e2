package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestD07RestartsUnderBusyClients: the daemon is ended again and again, in order
// and by SIGKILL.
//
// TMUX_MCPD_RESTARTS is how many times (6).
func TestD07RestartsUnderBusyClients(t *testing.T) {
	x := startTmux(t)
	prog, socket := program(t, raced), filepath.Join(x.dir, "m")
	env := append(slices.Clone(x.env), "GORACE=atexit_sleep_ms=0", "TMUX_MCPD_LISTEN="+socket,
		"TMUX_MCPD_TMUX_SOCKET_PATH="+x.sock, "TMUX_MCPD_TMUX_BIN="+x.bin, "XDG_STATE_HOME="+x.dir)
	t.Cleanup(func() { endDaemonOn(t, socket) }) // after the bridges, which would start another
	(&ending{
		t: t, tmux: x.run, socket: socket,
		bridge: func() *bridge { return startBridge(t, env, prog, "stdio") },
		end: func(n, pid int) error {
			return syscall.Kill(pid, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[n%2])
		},
	}).underBusyClients(int(number(t, "TMUX_MCPD_RESTARTS", 6)))
}

// ending is a daemon that is ended again and again.
type ending struct {
	t      *testing.T
	tmux   func(...string) string
	socket string
	bridge func() *bridge
	end    func(n, pid int) error
}

// underBusyClients ends the daemon so many times, under clients that read and
// write through bridges. At any time there is one daemon in the end; every call is
// answered, if only with an error; nothing is written twice, and what was answered
// as done was done.
func (e *ending) underBusyClients(restarts int) {
	t := e.t
	t.Helper()
	const busy = 8
	control := e.bridge()
	var done atomic.Bool
	var wg sync.WaitGroup
	var unknown, written atomic.Int64
	sure := make([][]string, busy) // the windows each client knows to have made
	for i := range busy {
		b := e.bridge()
		wg.Go(func() {
			for n := 0; !done.Load(); n++ {
				name := fmt.Sprintf("c%d-%d", i, n)
				made, err := b.try("create_window", args{"session": "main", "name": name})
				switch {
				case err != nil:
					t.Errorf("client %d: %v", i, err)
					return
				case !made.isError:
					written.Add(1)
					sure[i] = append(sure[i], name)
				default: // it says that nobody knows, or that there is no daemon
					unknown.Add(1)
				}
				for range 20 {
					_, err := b.try("list_panes", args{"session": "main"})
					// Asked again once; a second end in the middle is told.
					if err != nil && !strings.Contains(err.Error(), "ask again") {
						t.Errorf("client %d: %v", i, err)
						return
					}
				}
			}
		})
	}
	defer func() { // whatever happens, the clients end before their daemon
		done.Store(true)
		wg.Wait()
	}()
	last := 0
	for n := range restarts {
		pid := last
		until(t, "the next daemon", func() bool { // an ending one may still answer
			pid = control.servedBy()
			return pid != last
		})
		// Each bridge may have started one; all but one find the lock taken and end.
		until(t, "one daemon", func() bool { return len(daemonsOn(e.socket)) == 1 })
		before := written.Load()
		until(t, "the clients at work", func() bool {
			e.tmux("display-message", "-p", "")
			return written.Load() > before || done.Load()
		})
		if err := e.end(n, pid); err != nil {
			t.Fatalf("restart %d: %v", n, err)
		}
		last = pid
	}
	done.Store(true)
	wg.Wait()
	names := map[string]int{}
	for _, name := range strings.Fields(e.tmux("list-windows", "-t", "main", "-F", "#{window_name}")) {
		names[name]++
	}
	for name, n := range names {
		if n > 1 && strings.HasPrefix(name, "c") && strings.Contains(name, "-") {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	for i := range sure {
		for _, name := range sure[i] {
			if names[name] != 1 {
				t.Errorf("%s was said to be made and is there %d times", name, names[name])
			}
		}
	}
	t.Logf("%d windows made, %d calls of which nobody knows", written.Load(), unknown.Load())
}

// servedBy is the process id of the daemon that answers.
func (c *caller) servedBy() int {
	c.t.Helper()
	var s struct{ PID int }
	raw, err := c.request("tmux-mcpd/status", map[string]any{})
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil || s.PID == 0 {
		c.t.Fatalf("status: pid %d, %v", s.PID, err)
	}
	return s.PID
}

// daemonsOn are the processes that serve a socket.
func daemonsOn(socket string) (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, _ := os.ReadFile(path)
		words := strings.Split(string(bytes.TrimRight(b, "\x00")), "\x00")
		if len(words) < 2 || words[1] != "serve" || !slices.Contains(words, socket) || slices.Contains(words, "--detach") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endDaemonOn ends the daemons that bridges have started, and waits until the
// last one has let go of its lock.
func endDaemonOn(t *testing.T, socket string) {
	t.Helper()
	for _, pid := range daemonsOn(socket) {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Errorf("ending daemon %d: %v", pid, err)
		}
	}
	until(t, "the end of the daemon", func() bool { return len(daemonsOn(socket)) == 0 })
	f, err := os.Open(socket + ".lock")
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("the lock is held: %v", err)
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is left")
	}
}
