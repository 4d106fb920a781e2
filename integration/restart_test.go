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
// and by SIGKILL, under clients that read and write through bridges. At any time
// there is one daemon in the end; every call is answered, if only with an error;
// nothing is written twice, and what was answered as done was done.
//
// TMUX_MCPD_RESTARTS is how many times (6).
func TestD07RestartsUnderBusyClients(t *testing.T) {
	const busy = 8
	restarts := number(t, "TMUX_MCPD_RESTARTS", 6)
	x := startTmux(t)
	prog, socket := program(t, raced), filepath.Join(x.dir, "m")
	env := append(slices.Clone(x.env), "GORACE=atexit_sleep_ms=0", "TMUX_MCPD_LISTEN="+socket,
		"TMUX_MCPD_TMUX_SOCKET_PATH="+x.sock, "TMUX_MCPD_TMUX_BIN="+x.bin, "XDG_STATE_HOME="+x.dir)
	t.Cleanup(func() { endDaemonOn(t, socket) }) // after the bridges, which would start another
	control := startBridge(t, env, prog, "stdio")

	var done atomic.Bool
	var wg sync.WaitGroup
	var unknown, written atomic.Int64
	sure := make([][]string, busy) // the windows each client knows to have made
	for i := range busy {
		b := startBridge(t, env, prog, "stdio")
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
		var s struct{ PID int }
		until(t, "the next daemon", func() bool { // an ending one may still answer
			raw, err := control.request("tmux-mcpd/status", map[string]any{})
			if err == nil {
				err = json.Unmarshal(raw, &s)
			}
			if err != nil || s.PID == 0 {
				t.Fatalf("restart %d: pid %d after %d, %v", n, s.PID, last, err)
			}
			return s.PID != last
		})
		// Each bridge may have started one; all but one find the lock taken and end.
		until(t, "one daemon", func() bool { return len(daemonsOn(socket)) == 1 })
		before := written.Load()
		until(t, "the clients at work", func() bool {
			x.run("display-message", "-p", "")
			return written.Load() > before || done.Load()
		})
		sig := syscall.SIGTERM
		if n%2 == 1 {
			sig = syscall.SIGKILL
		}
		if err := syscall.Kill(s.PID, sig); err != nil {
			t.Fatalf("restart %d: %v", n, err)
		}
		last = s.PID
	}
	done.Store(true)
	wg.Wait()
	names := map[string]int{}
	for _, name := range strings.Fields(x.run("list-windows", "-t", "main", "-F", "#{window_name}")) {
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
