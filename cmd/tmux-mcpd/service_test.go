package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
)

// manager is a service manager's end of sd_notify.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

func newManager(t *testing.T, dir string) *manager {
	t.Helper()
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &manager{t, conn, path}
}

// hears reads until the word has come.
func (m *manager) hears(word string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 1024)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatalf("the service manager never heard %s: %v", word, err)
		}
		if string(buf[:n]) == word {
			return
		}
	}
}

// manages starts the daemon as systemd does, by the unit's command line and with
// a socket that is handed over.
func (m *manager) manages(p *place, ln *net.UnixListener) *process {
	m.t.Helper()
	ln.SetUnlinkOnClose(false)
	f, err := ln.File()
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	unit := serviceUnit(serviceName, []string{"tmux-mcpd", "serve", "--listen", p.socket()})
	line := ""
	for l := range strings.Lines(unit) {
		if words, ok := strings.CutPrefix(l, "ExecStart="); ok {
			line = strings.TrimSpace(words)
		}
	}
	// LISTEN_PID must be the daemon's own: a shell says its pid and becomes it.
	cmd := p.command("sh", "-c", "export LISTEN_PID=$$ LISTEN_FDS=1; WATCHDOG_PID=$$ exec "+line)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.path, "WATCHDOG_USEC=300000")
	return start(m.t, cmd)
}

// The service as systemd runs it: the socket is handed over, the manager hears
// READY, WATCHDOG and STOPPING, and the socket stays the manager's.
func TestServiceUnderManager(t *testing.T) {
	p := newPlace(t)
	m := newManager(t, p.dir)
	pr := m.manages(p, p.fakeDaemon())
	m.hears("READY=1")
	m.hears("WATCHDOG=1")
	r, err := askStatus(p.socket())
	if err != nil || r.PID != pr.cmd.Process.Pid {
		t.Fatalf("status of %+v, %v; want pid %d", r, err, pr.cmd.Process.Pid)
	}
	m.hears("WATCHDOG=1")
	if err := pr.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	m.hears("STOPPING=1")
	pr.wait(exitOK)
	if _, err := os.Lstat(p.socket()); err != nil {
		t.Errorf("the manager's socket: %v", err)
	}
	// The next client starts the next daemon: for now it waits in the queue.
	conn, err := net.Dial("unix", p.socket())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestD02ManagerTakesThePlace: systemd binds its socket over that of a daemon
// which a client has started. That daemon ends in order, and its bridges find the
// service's.
func TestD02ManagerTakesThePlace(t *testing.T) {
	p := newPlace(t)
	m := newManager(t, p.dir)
	old := p.serve()
	b := start(t, p.command("tmux-mcpd", "stdio", "--no-start"))
	ping := func(id string) {
		t.Helper()
		if _, err := io.WriteString(b.stdin, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+statusMethod+`"}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	answers := bufio.NewReader(b.stdout)
	if err := b.stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	served := func() int {
		t.Helper()
		line, err := answers.ReadString('\n')
		var a struct{ Result statusReport }
		if err == nil {
			err = json.Unmarshal([]byte(line), &a)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return a.Result.PID
	}
	if _, err := io.WriteString(b.stdin, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	served()
	if _, err := io.WriteString(b.stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	ping("1")
	if pid := served(); pid != old.cmd.Process.Pid {
		t.Fatalf("pid %d serves, want %d", pid, old.cmd.Process.Pid)
	}
	if err := os.Remove(p.socket()); err != nil {
		t.Fatal(err)
	}
	next := m.manages(p, p.fakeDaemon())
	if code := old.ended(); code != exitOK {
		t.Errorf("the first daemon: exit code %d", code)
	}
	m.hears("READY=1")
	ping("2")
	if pid := served(); pid != next.cmd.Process.Pid {
		t.Errorf("pid %d serves, want %d", pid, next.cmd.Process.Pid)
	}
	b.stdin.Close()
	b.wait(exitOK)
	// One that is started by hand finds it, though it has bound nothing.
	second := start(t, p.command("tmux-mcpd", "serve"))
	second.wait(exitOK)
	if want := fmt.Sprintf("(pid %d) serves", next.cmd.Process.Pid); !strings.Contains(second.stderr.String(), want) {
		t.Errorf("no %q in %s", want, second.stderr)
	}
	if err := next.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	next.wait(exitOK)
	if err := awaitUnlocked(p.socket() + ".lock"); err != nil {
		t.Error(err)
	}
	os.Remove(p.socket())
}

// TestUnits: systemd accepts the units, for paths with everything in them.
func TestUnits(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, `a b%n$x"y\z;é`)
	if err := os.MkdirAll(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "a b%n$x;é")
	if err := os.MkdirAll(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(plain, "tmux-mcpd")
	if err := os.WriteFile(prog, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return dir, name == "HOME" }
	c := defaults()
	c.main.path, c.tmux = filepath.Join(odd, "default.sock"), controlmode.Socket{Path: filepath.Join(odd, "s")}
	c.tmuxSocket = c.tmux.Path
	s, err := serviceOf(c, "linux", prog, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serviceOf(c, "linux", filepath.Join(odd, "tmux-mcpd"), lookup); err == nil || !strings.Contains(err.Error(), "quotes") {
		t.Errorf("a program that systemd cannot start: %v", err)
	}
	var paths []string
	for _, u := range s.units {
		if err := u.write(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, u.path)
	}
	if d := cmp.Diff([]string{"tmux-mcpd.socket", "tmux-mcpd.service"}, []string{filepath.Base(paths[0]), filepath.Base(paths[1])}); d != "" {
		t.Error(d)
	}
	for _, want := range []string{"KillMode=process", "Type=notify", "WatchdogSec=", "Requires=tmux-mcpd.socket"} {
		if !strings.Contains(s.units[1].text, want) {
			t.Errorf("no %s in\n%s", want, s.units[1].text)
		}
	}
	// What a tmux started by the daemon would inherit.
	for _, no := range []string{"NoNewPrivileges", "PrivateTmp", "ProtectHome", "SystemCallFilter", "Limit", "UMask"} {
		if strings.Contains(s.units[1].text, "\n"+no) {
			t.Errorf("%s reaches the panes", no)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze here (Debian: package systemd): ", err)
	}
	if said := verified(t, paths...); said != "" {
		t.Errorf("systemd-analyze:\n%s", said)
	}
	// It would say it.
	broken := filepath.Join(t.TempDir(), filepath.Base(paths[1]))
	if err := os.WriteFile(broken, []byte(strings.Replace(s.units[1].text, "KillMode=process", "KillMode=nonsense", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if said := verified(t, broken); !strings.Contains(said, "nonsense") {
		t.Errorf("a broken unit passes: %s", said)
	}
}

// A service has not the PATH of a shell: a tmux that only that finds (Homebrew's
// under launchd, one in ~/.local/bin) is named in the unit.
func TestInstallNamesTmux(t *testing.T) {
	dir := t.TempDir()
	tmux := filepath.Join(dir, "tmux")
	if err := os.WriteFile(tmux, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, system := range []string{"linux", "darwin"} {
		c := defaults()
		if got := strings.Join(withTmux(c, system).serveArgs(), " "); !strings.HasSuffix(got, " --tmux-bin "+tmux) {
			t.Errorf("%s: %s", system, got)
		}
		if len(c.origins) > 0 || c.tmuxBin != "" {
			t.Errorf("%s: changed: %+v", system, c)
		}
		c.tmuxBin = "/opt/tmux" // of the configuration file, where a reload finds it
		if got := withTmux(c, system); got != c {
			t.Errorf("%s: %+v", system, got)
		}
	}
	managersPath["linux"] = append(managersPath["linux"], dir)
	defer func() { managersPath["linux"] = managersPath["linux"][:len(managersPath["linux"])-1] }()
	if got := strings.Join(withTmux(defaults(), "linux").serveArgs(), " "); strings.Contains(got, "tmux-bin") {
		t.Errorf("%s", got)
	}
}

// verified is what systemd-analyze says of units of ours.
func verified(t *testing.T, paths ...string) (said string) {
	t.Helper()
	cmd := exec.Command("systemd-analyze", append([]string{"verify", "--user", "--man=no"}, paths...)...)
	// Without such a directory it ends before it reads a unit.
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+home, "HOME="+home)
	out, err := cmd.CombinedOutput()
	for l := range strings.Lines(string(out)) {
		if strings.Contains(l, serviceName) { // other units of the machine are not our affair
			said += l
		}
	}
	if err != nil && said == "" {
		t.Fatalf("systemd-analyze: %v: %s", err, out)
	}
	return said
}

// Files of others are neither overwritten nor removed.
func TestInstallKeepsWhatIsNotOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.service")
	if err := os.WriteFile(path, []byte("[Unit]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	u := unit{path, "# " + ours + "\n"}
	if err := u.write(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("overwritten: %v", err)
	}
	if mine, err := u.mine(); mine || err != nil {
		t.Errorf("mine %v, %v", mine, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := u.write(); err != nil {
			t.Error(err)
		}
	}
	if mine, err := u.mine(); !mine || err != nil {
		t.Errorf("mine %v, %v", mine, err)
	}
}

func TestPlist(t *testing.T) {
	text := plist("tmux-mcpd", []string{"/a <b>&/tmux-mcpd", "serve"}, "/log")
	for _, want := range []string{"<string>/a &lt;b&gt;&amp;/tmux-mcpd</string>", "<key>AbandonProcessGroup</key>", ours} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// D10: what doctor says of the control group that the tmux server runs in.
func TestD10JudgeGroup(t *testing.T) {
	const manager = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/"
	for _, tt := range []struct {
		group   string
		lingers bool
		want    string
		says    string
	}{
		{"", false, fine, "in no service's"},
		{"0::/\n", false, fine, "in no service's"},
		{"9:name=systemd:/\n1:cpu:/\n0::/\n", false, fine, "in no service's"},
		{manager + "tmux-mcpd.service\n", false, broken, "own service (tmux-mcpd.service)"},
		{manager + "tmux-mcpd-x.service\n", true, broken, "own service (tmux-mcpd-x.service)"},
		{manager + "run-r1.scope\n", true, fine, "in run-r1.scope"},
		{manager + "run-r1.scope\n", false, fine, "in run-r1.scope; it ends with your last login"},
		{"0::/user.slice/user-1000.slice/session-4.scope\n", false, fine, "login session session-4.scope"},
		{"0::/system.slice/sshd.service\n", false, unsure, "ends with the service sshd.service"},
		{"0::/system.slice/ci.service/job/7\n", false, unsure, "ends with the service ci.service"},
		{"0::/system.slice/box.scope/payload/user@1.service/app.slice/tmux.service", false, unsure, "tmux.service"},
		{"1:name=systemd:/user.slice/tmux-mcpd.service\n", false, broken, "own service"},
		{"1:name=systemd:/user.slice/tmux-mcpd.service\n0::/\n", false, broken, "own service"},
		{"12:pids:/x.service\n1:name=systemd:/system.slice/cron.service\n0::/system.slice/cron.service", false, unsure, "cron.service"},
		{"12:pids:/system.slice/x.service\n0::/init.scope\n", false, fine, "in init.scope"},
	} {
		got := judgeGroup(tt.group, tt.lingers)
		if got.Outcome != tt.want || !strings.Contains(got.Text, tt.says) || tt.lingers && strings.Contains(got.Text, "linger") {
			t.Errorf("%q: %+v, want %s: %s", tt.group, got, tt.want, tt.says)
		}
	}
}

func TestReadableLog(t *testing.T) {
	at := time.Date(2026, 11, 30, 19, 0, 1, 5e6, time.Local)
	line := fmt.Sprintf(`{"level":"info","time":%q,"logger":"mcp","msg":"call","tool":"x","took":0.5,"why":"a b\u001b[31m","n":12345678901234567890}`,
		at.Format(time.RFC3339Nano))
	want := `2026-11-30 19:00:01.005 INFO  mcp: call n=12345678901234567890 took=0.5 tool=x why="a b\x1b[31m"`
	if got := readable([]byte(line)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := readable([]byte("panic: \x1b[31m")); got != "panic: ?[31m" {
		t.Errorf("got %s", got)
	}
}
