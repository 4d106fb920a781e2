package integration

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// service is the daemon as a service of the user who runs the test, under the
// systemd of that user.
type service struct {
	t      *testing.T
	unit   string // without suffix
	socket string
	home   string
}

// newService is for a test that has an account to itself: it uses the default
// tmux server, installs units and leaves nothing.
func newService(t *testing.T) *service {
	t.Helper()
	if os.Getenv("TMUX_MCPD_TEST_SYSTEMD") == "" {
		t.Skip("needs an account of its own under systemd: make systemd")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, unit: "tmux-mcpd", home: home, socket: filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "tmux-mcpd", "default.sock")}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("journalctl", "--user", "--no-pager", "--lines", "40", "--output", "cat").CombinedOutput()
			t.Logf("the journal:\n%s", out)
		}
		_, _ = s.try("tmux-mcpd", "uninstall")
		_, _ = s.try("systemctl", "--user", "reset-failed")
		s.endTmux()
		if _, err := os.Lstat(s.socket); err == nil {
			s.run("tmux-mcpd", "stop")
		}
		until(t, "no daemon", func() bool { return len(daemonsOn(s.socket)) == 0 })
	})
	return s
}

// try runs a command of this user.
func (s *service) try(words ...string) (string, error) {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run is try for what must succeed.
func (s *service) run(words ...string) string {
	s.t.Helper()
	out, err := s.try(words...)
	if err != nil {
		s.t.Fatalf("%q: %v: %s", words, err, out)
	}
	return out
}

func (s *service) tmux(args ...string) string {
	s.t.Helper()
	return s.run(append([]string{"tmux", "-u"}, args...)...)
}

// endTmux ends the tmux server, if one runs, and waits until it has: who comes
// while it ends gets "server exited unexpectedly" (3.3a).
func (s *service) endTmux() {
	s.t.Helper()
	out, err := s.try("tmux", "display-message", "-p", "#{pid}")
	if err != nil {
		return
	}
	_, _ = s.try("tmux", "kill-server")
	until(s.t, "the end of tmux", func() bool {
		_, err := os.Stat(filepath.Join("/proc", out))
		return err != nil
	})
}

// systemctl says something to the service.
func (s *service) systemctl(word string) string {
	s.t.Helper()
	return s.run("systemctl", "--user", word, s.unit+".service")
}

// property is what systemd says of one of the two units.
func (s *service) property(suffix, name string) string {
	s.t.Helper()
	return s.run("systemctl", "--user", "show", "--value", "--property", name, s.unit+suffix)
}

// mainPID is the service's process, 0 for none.
func (s *service) mainPID() int {
	s.t.Helper()
	pid, err := strconv.Atoi(s.property(".service", "MainPID"))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// dropIn adds to the service's unit, before it is installed or with a reload.
func (s *service) dropIn(text string) {
	s.t.Helper()
	dir := filepath.Join(s.home, ".config", "systemd", "user", s.unit+".service.d")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "test.conf"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// install installs the service, and is what the user sees.
func (s *service) install(flags ...string) string {
	s.t.Helper()
	return s.run(append([]string{"tmux-mcpd", "install"}, flags...)...)
}

func (s *service) bridge() *bridge {
	s.t.Helper()
	return startBridge(s.t, os.Environ(), "tmux-mcpd", "stdio")
}

// dial is a client without a bridge, which does not dial again.
func (s *service) dial() *caller {
	s.t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return newCaller(s.t, "socket", conn, conn.SetDeadline)
}

// groupOf is the control group of a process.
func (s *service) groupOf(pid string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, group, ok := strings.Cut("\n"+string(b), "\n0::")
	if !ok {
		s.t.Fatalf("no unified hierarchy: %s", b)
	}
	return strings.TrimSpace(group)
}

// finding is what doctor says of one thing.
type finding struct{ Check, Outcome, Text, Remedy string }

// doctor examines the chain.
func (s *service) doctor() map[string]finding {
	s.t.Helper()
	out, err := exec.Command("tmux-mcpd", "doctor", "--json").Output() // an exit status that is not 0 is a finding, too
	var list []finding
	if jsonErr := json.Unmarshal(out, &list); jsonErr != nil {
		s.t.Fatalf("%v, %v: %s", jsonErr, err, out)
	}
	all := map[string]finding{}
	for _, f := range list {
		all[f.Check] = f
	}
	return all
}

// finds wants an outcome of doctor's.
func (s *service) finds(check, outcome, text string) {
	s.t.Helper()
	if f := s.doctor()[check]; f.Outcome != outcome || !strings.Contains(f.Text, text) {
		s.t.Errorf("doctor: %+v, want %s: %s", f, outcome, text)
	}
}
