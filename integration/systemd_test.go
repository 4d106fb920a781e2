package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestSystemdInstall: nothing runs until the first connection; then systemd knows
// the daemon as started, the log is in the journal, and everything is said to be well.
func TestSystemdInstall(t *testing.T) {
	s := newService(t)
	// A log of the time before the service misleads nobody.
	s.run("tmux-mcpd", "serve", "--detach")
	s.run("tmux-mcpd", "stop")
	out := s.install()
	for _, suffix := range []string{".socket", ".service"} {
		if path := filepath.Join(s.home, ".config/systemd/user", s.unit+suffix); !strings.Contains(out, "wrote "+path) {
			t.Errorf("%s is not told of in %s", path, out)
		}
	}
	if strings.Contains(out, "linger") {
		t.Errorf("a user who lingers is told to: %s", out)
	}
	if active, socket := s.property(".service", "ActiveState"), s.property(".socket", "SubState"); active != "inactive" || socket != "listening" {
		t.Errorf("the service is %s, the socket %s", active, socket)
	}
	if got := s.property(".socket", "UnitFileState"); got != "enabled" {
		t.Errorf("the socket is %s", got)
	}
	if out := s.run("tmux-mcpd", "status"); !strings.Contains(out, fmt.Sprintf("pid %d,", s.mainPID())) {
		t.Errorf("pid %d, status: %s", s.mainPID(), out)
	}
	for name, want := range map[string]string{"ActiveState": "active", "SubState": "running", "Type": "notify", "NRestarts": "0", "WatchdogUSec": "30s"} {
		if got := s.property(".service", name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if out := s.run("tmux-mcpd", "call", "list_sessions"); !strings.Contains(out, "No tmux server is running") {
		t.Errorf("list_sessions: %s", out)
	}
	s.finds("service", "ok", "active")
	s.finds("tmux server", "warn", "none runs")
	for _, out := range []string{s.run("tmux-mcpd", "logs"), s.run("journalctl", "--user", "-u", s.unit)} {
		if !strings.Contains(out, fmt.Sprint(s.mainPID())) || !strings.Contains(out, "ready") {
			t.Errorf("the log: %s", out)
		}
	}
}

// TestSystemdInstallFromSu: su and sudo leave no runtime directory in the
// environment; the manager is found all the same.
func TestSystemdInstallFromSu(t *testing.T) {
	s := newService(t)
	s.run("env", "-u", "XDG_RUNTIME_DIR", "-u", "DBUS_SESSION_BUS_ADDRESS", "tmux-mcpd", "install")
	if got := s.property(".socket", "ActiveState"); got != "active" {
		t.Errorf("the socket is %s", got)
	}
	s.run("env", "-u", "XDG_RUNTIME_DIR", "-u", "DBUS_SESSION_BUS_ADDRESS", "tmux-mcpd", "call", "list_sessions")
	s.run("env", "-u", "XDG_RUNTIME_DIR", "-u", "DBUS_SESSION_BUS_ADDRESS", "tmux-mcpd", "uninstall")
	if got := s.property(".socket", "LoadState"); got != "not-found" {
		t.Errorf("the socket is %s", got)
	}
}

// outlived is a tmux session that the service has made, with a program in it.
type outlived struct {
	*service
	session, pane, cursor string
	server, program       string // process ids
}

// makeSession has the service start tmux.
func (s *service) makeSession() *outlived {
	s.t.Helper()
	c := s.bridge()
	defer c.leave()
	var made struct{ Session struct{ ID string } }
	c.ok(&made, "create_session", args{"name": "main"})
	o := &outlived{service: s, session: made.Session.ID, pane: "%0"}
	c.waitsFor(o.pane, "prompt")
	c.ok(nil, "send_keys", args{"paneId": o.pane, "keys": "exec cat", "enter": true})
	until(s.t, "the program", func() bool { return s.tmux("display-message", "-p", "-t", o.pane, "#{pane_current_command}") == "cat" })
	var got since
	c.ok(&got, "capture_since", args{"paneId": o.pane})
	o.cursor = got.Cursor
	o.server, o.program = s.tmux("display-message", "-p", "#{pid}"), s.tmux("display-message", "-p", "-t", o.pane, "#{pane_pid}")
	return o
}

// goesOn says that the cursor is as good as before.
func (o *outlived) goesOn() {
	o.t.Helper()
	c := o.bridge()
	defer c.leave()
	var got since
	c.ok(&got, "capture_since", args{"paneId": o.pane, "cursor": o.cursor})
	if got.Gap != nil || got.Text != "" {
		o.t.Errorf("nothing was printed, and the cursor gives %+v", got)
	}
	o.cursor = got.Cursor
}

// lives says that the session is as it was, and that its ids and the cursor work.
func (o *outlived) lives(when string) {
	o.t.Helper()
	if pid := o.tmux("display-message", "-p", "#{pid}"); pid != o.server {
		o.t.Fatalf("%s: the tmux server was pid %s, is %s", when, o.server, pid)
	}
	if pid := o.tmux("display-message", "-p", "-t", o.pane, "#{pane_pid}"); pid != o.program {
		o.t.Errorf("%s: the program was pid %s, is %s", when, o.program, pid)
	}
	c := o.bridge()
	defer c.leave()
	c.ok(nil, "send_keys", args{"paneId": o.pane, "keys": when, "enter": true})
	var got since
	seen := ""
	until(o.t, "what was typed", func() bool {
		c.ok(&got, "capture_since", args{"paneId": o.pane, "cursor": o.cursor, "waitMs": 1000})
		o.cursor = got.Cursor
		seen += got.Text
		return strings.Count(seen, when) >= 2 || got.Gap != nil && strings.Contains(seen, when)
	})
}

// TestSystemdD10TmuxOutlivesTheService: tmux is outside of the service's control
// group and ends with none of the daemon's ends; what is in it does not take itself
// for the service.
func TestSystemdD10TmuxOutlivesTheService(t *testing.T) {
	s := newService(t)
	s.dropIn("[Service]\nWatchdogSec=2s\n")
	s.install()
	o := s.makeSession()
	for what, pid := range map[string]string{"the server": o.server, "the program": o.program} {
		if g := s.groupOf(pid); !strings.HasSuffix(g, ".scope") || strings.Contains(g, s.unit) {
			t.Errorf("%s is in %s", what, g)
		}
	}
	// From 253 on one program that the kernel kills for want of memory would end all.
	scope := filepath.Base(s.groupOf(o.server))
	if got := s.run("systemctl", "--user", "show", "--value", "--property=OOMPolicy", scope); got != "" && got != "continue" {
		t.Errorf("%s has OOMPolicy=%s", scope, got)
	}
	if env := s.tmux("show-environment", "-g"); strings.Contains(env, "INVOCATION_ID") || strings.Contains(env, "NOTIFY_SOCKET") {
		t.Errorf("the environment of tmux: %s", env)
	}
	s.finds("control group", "ok", ".scope")
	s.finds("exact read", "ok", "1 panes")
	pid := s.mainPID()
	// The next daemon can tell that nothing was printed if that is a second ago.
	until(t, "the next second", func() bool {
		return s.tmux("display-message", "-p", "-t", o.pane, "#{window_activity}") < strconv.FormatInt(time.Now().Unix(), 10)
	})
	s.systemctl("restart")
	o.goesOn()
	if next := s.mainPID(); next == pid || next == 0 {
		t.Errorf("pid %d after %d", next, pid)
	}
	o.lives("restart")
	s.systemctl("stop")
	if got := s.property(".service", "ActiveState"); got != "inactive" {
		t.Errorf("stopped, the service is %s", got)
	}
	o.lives("stop")
	for _, end := range []struct {
		name   string
		signal syscall.Signal
	}{{"killed", syscall.SIGKILL}, {"hung", syscall.SIGSTOP}} { // the watchdog ends the latter
		s.run("systemctl", "--user", "reset-failed", s.unit+".service") // and counts starts anew
		pid := s.mainPID()
		if err := syscall.Kill(pid, end.signal); err != nil {
			t.Fatal(err)
		}
		until(t, "the next daemon", func() bool { next := s.mainPID(); return next != pid && next != 0 })
		o.lives(end.name)
		if got := daemonsOn(s.socket); len(got) != 1 || got[0] != s.mainPID() {
			t.Errorf("%s: daemons %v, want %d", end.name, got, s.mainPID())
		}
	}
	s.run("tmux-mcpd", "uninstall")
	if got := s.tmux("display-message", "-p", "-t", o.pane, "#{pid} #{pane_pid}"); got != o.server+" "+o.program {
		t.Errorf("uninstalled: %s", got)
	}
}

// TestSystemdD10Groups: doctor knows who would end the tmux server.
func TestSystemdD10Groups(t *testing.T) {
	s := newService(t)
	// Without systemd-run the daemon can only start tmux in its own group.
	bin := t.TempDir()
	if err := os.Symlink("/usr/bin/tmux", filepath.Join(bin, "tmux")); err != nil {
		t.Fatal(err)
	}
	s.dropIn("[Service]\nEnvironment=PATH=" + bin + "\n")
	s.install()
	s.tmux("new-session", "-d", "-s", "by-hand", "cat")
	if g := s.groupOf(s.tmux("display-message", "-p", "#{pid}")); !strings.Contains(g, "/session-") {
		t.Errorf("started by hand, tmux is in %s", g)
	}
	s.finds("control group", "ok", "login session session-")
	s.finds("exact read", "ok", "1 panes")
	s.endTmux()
	s.run("systemd-run", "--user", "--quiet", "--unit=other", "--property=Type=forking", "tmux", "new-session", "-d", "cat")
	s.finds("control group", "warn", "ends with the service other.service")
	s.endTmux()
	o := s.makeSession()
	if g := s.groupOf(o.server); !strings.HasSuffix(g, "/"+s.unit+".service") {
		t.Errorf("tmux is in %s", g)
	}
	s.finds("control group", "FAIL", "own service (tmux-mcpd.service)")
	s.systemctl("restart") // KillMode=process
	o.lives("restart")
	// tmux 3.8 gives each pane a scope that is PartOf the unit of its server: a stop
	// of that ends the panes.
	pane := filepath.Base(s.groupOf(o.program))
	if strings.Contains(s.run("systemctl", "--user", "show", "--value", "--property=PartOf", pane), s.unit) {
		return
	}
	s.systemctl("stop")
	o.lives("stop")
}

// TestSystemdD02OneDaemon: however clients come, and whoever was there before,
// there is one daemon, the service's.
func TestSystemdD02OneDaemon(t *testing.T) {
	s := newService(t)
	one := func(when string, bridges []*bridge) {
		t.Helper()
		until(t, "one daemon "+when, func() bool { pids := daemonsOn(s.socket); return len(pids) == 1 && pids[0] == s.mainPID() })
		for _, b := range bridges {
			if pid := b.servedBy(); pid != s.mainPID() {
				t.Errorf("%s: served by pid %d, want %d", when, pid, s.mainPID())
			}
		}
	}
	// Bridges have a daemon of their own when the service is installed.
	all := make([]*bridge, 20)
	for i := range all[:8] {
		all[i] = s.bridge()
	}
	before := all[0].servedBy()
	s.install()
	if slices.Contains(daemonsOn(s.socket), before) {
		t.Error("the daemon from before lives")
	}
	one("after the installation", all[:8])
	for _, b := range all[:8] {
		b.leave()
	}
	// The service is installed and does not run: 20 at once.
	s.systemctl("stop")
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = s.bridge() })
	}
	wg.Wait()
	one("under 20 bridges", all)
	// So many failures that systemd gives up: the bridges help themselves.
	until(t, "the end of systemd's patience", func() bool {
		if pid := s.mainPID(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		return s.property(".socket", "ActiveState") == "failed"
	})
	if pid := all[0].servedBy(); pid == 0 || pid == s.mainPID() {
		t.Errorf("served by %d, the service has %d", pid, s.mainPID())
	}
	s.finds("service", "warn", "failed")
	s.run("systemctl", "--user", "reset-failed", s.unit+".socket", s.unit+".service")
	s.run("systemctl", "--user", "start", s.unit+".socket")
	s.dial() // the first who comes by the new socket
	one("after the repair", all)
}
