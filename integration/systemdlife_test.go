package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSystemdD07RestartsUnderBusyClients: the service is restarted, and killed,
// under clients that work.
func TestSystemdD07RestartsUnderBusyClients(t *testing.T) {
	s := newService(t)
	s.install()
	s.tmux("new-session", "-d", "-s", "main", "cat")
	(&ending{
		t: t, tmux: s.tmux, socket: s.socket, bridge: s.bridge,
		end: func(n, pid int) error {
			s.run("systemctl", "--user", "reset-failed", s.unit+".service") // starts are counted anew
			if n%2 == 1 {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
			s.systemctl("restart")
			return nil
		},
	}).underBusyClients(6)
}

// TestSystemdStopsInOrder: a stop answers what is in flight and is over before the
// daemon, after 5 s, or systemd, after 7 s, would make an end.
func TestSystemdStopsInOrder(t *testing.T) {
	s := newService(t)
	s.install()
	s.tmux("new-session", "-d", "-s", "main", "cat")
	c := s.dial()
	c.ok(nil, "list_panes", nil)
	said := make(chan error, 1)
	go func() {
		a, err := c.try("wait_for_text", args{"paneId": "%0", "patterns": []string{"never"}, "timeoutMs": 25000})
		if err == nil && a.text == "" {
			err = fmt.Errorf("answered %+v", a)
		}
		said <- err
	}()
	until(t, "the wait", func() bool { return strings.Contains(s.run("tmux-mcpd", "status"), "1 waits for output") })
	s.systemctl("stop")
	if err := <-said; err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"Result": "success", "ExecMainCode": "1", "ExecMainStatus": "0", "ActiveState": "inactive"} {
		if got := s.property(".service", name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if out := s.tmux("list-clients"); out != "" {
		t.Errorf("clients left on tmux: %s", out)
	}
}

// TestSystemdReload: systemctl reload reads the configuration, under connections
// that stay.
func TestSystemdReload(t *testing.T) {
	s := newService(t)
	dir := filepath.Join(s.home, ".config", "tmux-mcpd")
	file, more := filepath.Join(dir, "tmux-mcpd.toml"), filepath.Join(filepath.Dir(s.socket), "more.sock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log_level = \"debug\"\n")
	s.install()
	c := s.dial()
	pid := c.servedBy()
	write(fmt.Sprintf("[[listen]]\npath = %q\n", more))
	s.systemctl("reload")
	until(t, "the further socket", func() bool {
		conn, err := net.DialTimeout("unix", more, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if again := c.servedBy(); again != pid || again != s.mainPID() {
		t.Errorf("served by pid %d after %d, the service has %d", again, pid, s.mainPID())
	}
}

// TestSystemdPanes: nothing in the unit keeps the daemon from what it needs of the
// panes' processes, of tmux and of the file system.
func TestSystemdPanes(t *testing.T) {
	s := newService(t)
	s.install()
	c := s.bridge()
	c.ok(nil, "create_session", args{"name": "main"})
	c.waitsFor("%0", "prompt")
	var run runOf
	c.ok(&run, "run_shell_command", args{"paneId": "%0", "command": "echo out; read x; echo got $x; exit 3", "timeoutMs": 1})
	c.waitsFor("%0", "line")
	c.ok(nil, "send_keys", args{"paneId": "%0", "keys": "word", "enter": true})
	if got := c.ended(run.RunID); *got.Run.ExitStatus != 3 || !strings.Contains(got.Output, "got word") {
		t.Errorf("%+v", got)
	}
	// Panes have all that a login has: no private /tmp, no barred privileges.
	for command, want := range map[string]string{
		"grep NoNewPrivs /proc/self/status": "NoNewPrivs:\t0",
		"grep Seccomp: /proc/self/status":   s.run("grep", "Seccomp:", "/proc/self/status"),
		"readlink /proc/self/ns/mnt":        s.run("readlink", "/proc/self/ns/mnt"),
		"ulimit -n; umask":                  s.run("sh", "-c", "ulimit -n; umask"),
	} {
		c.ok(&run, "run_shell_command", args{"paneId": "%0", "command": command})
		if got := strings.TrimSpace(run.Output); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: %q, in the login session %q", command, got, want)
		}
	}
}

// TestSystemdDedicated: a service for a tmux server of its own starts that outside
// of itself, before any session is asked for.
func TestSystemdDedicated(t *testing.T) {
	s := newService(t)
	dedicated := []string{"--start", "dedicated"}
	out := s.install(dedicated...)
	path, _, _ := strings.Cut(out[strings.Index(out, "wrote ")+len("wrote "):], "\n")
	s.unit = strings.TrimSuffix(filepath.Base(path), ".socket")
	if s.unit == "tmux-mcpd" || !strings.HasPrefix(s.unit, "tmux-mcpd-") {
		t.Fatalf("unit %s: %s", s.unit, out)
	}
	list := func() string { return s.run(append([]string{"tmux-mcpd", "call", "list_sessions"}, dedicated...)...) }
	if got := list(); !strings.Contains(got, "main") {
		t.Errorf("sessions: %s", got)
	}
	pid := s.run("tmux", "-L", "tmux-mcpd", "display-message", "-p", "#{pid}")
	if g := s.groupOf(pid); !strings.HasSuffix(g, ".scope") || strings.Contains(g, s.unit) {
		t.Errorf("tmux is in %s", g)
	}
	s.systemctl("restart")
	if got := list(); !strings.Contains(got, "main") {
		t.Errorf("sessions: %s", got)
	}
	s.run(append([]string{"tmux-mcpd", "uninstall"}, dedicated...)...)
	if got := s.run("tmux", "-L", "tmux-mcpd", "display-message", "-p", "#{pid}"); got != pid {
		t.Errorf("tmux was pid %s, is %s", pid, got)
	}
	s.run("tmux", "-L", "tmux-mcpd", "kill-server")
}

// TestSystemdUninstall: what install has made goes, and nothing else.
func TestSystemdUninstall(t *testing.T) {
	s := newService(t)
	dir := filepath.Join(s.home, ".config", "systemd", "user")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "tmux-mcpd-of-mine.service")
	if err := os.WriteFile(other, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(other) })
	before := s.run("find", filepath.Join(s.home, ".config"))
	s.install()
	s.install() // an upgrade
	o := s.makeSession()
	s.run("tmux-mcpd", "uninstall")
	if after := s.run("find", filepath.Join(s.home, ".config")); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := os.Lstat(s.socket); err == nil {
		t.Error("the socket is left")
	}
	if pids := daemonsOn(s.socket); len(pids) > 0 {
		t.Errorf("daemons left: %v", pids)
	}
	for _, suffix := range []string{".socket", ".service"} {
		if got := s.property(suffix, "LoadState"); got != "not-found" {
			t.Errorf("%s is %s", suffix, got)
		}
	}
	if got := s.tmux("display-message", "-p", "#{pid}"); got != o.server {
		t.Errorf("tmux was pid %s, is %s", o.server, got)
	}
	if out := s.run("tmux-mcpd", "uninstall"); !strings.Contains(out, "not installed") {
		t.Errorf("again: %s", out)
	}
}
