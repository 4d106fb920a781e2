package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/mcp"
)

// vars is an environment given as words NAME=VALUE.
func vars(words ...string) env {
	m := map[string]string{}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestParsePrecedence(t *testing.T) {
	all := []string{
		"TMUX_MCPD_TMUX_SOCKET_PATH=/mcpd", "LIBTMUX_SOCKET_PATH=/lib", "TMUX_MCPD_TMUX_BIN=b2", "LIBTMUX_TMUX_BIN=b3",
		"TMUX_MCPD_WATCH=all", "TMUX_MCPD_LOG_LEVEL=debug", "TMUX_MCPD_LISTEN=/l2",
	}
	type result struct {
		Path, Name, Bin, Watch, Level, Listen string
		Words                                 []string
	}
	tests := []struct {
		name string
		args []string
		env  []string
		want result
	}{
		{"nothing", nil, nil, result{Watch: "auto", Level: "info"}},
		{"own variables win over the family's", nil, all, result{"/mcpd", "", "b2", "all", "debug", "/l2", nil}},
		{
			"flags win over all",
			[]string{"--tmux-socket-path", "/f", "--tmux-bin=b1", "--watch", "demand", "--log-level", "warn", "-listen", "/l1"},
			all,
			result{"/f", "", "b1", "demand", "warn", "/l1", nil},
		},
		{"the family's variables", nil, []string{"LIBTMUX_SOCKET=n", "LIBTMUX_TMUX_BIN=b3"}, result{"", "n", "b3", "auto", "info", "", nil}},
		{"a name over a weaker path", []string{"--tmux-socket-name", "n"}, all, result{"", "n", "b2", "all", "debug", "/l2", nil}},
		{"a path over a weaker name", nil, []string{"TMUX_MCPD_TMUX_SOCKET_PATH=/p", "LIBTMUX_SOCKET=n"}, result{"/p", "", "", "auto", "info", "", nil}},
		{"empty is unset", nil, []string{"TMUX_MCPD_WATCH=", "TMUX_MCPD_TMUX_SOCKET_PATH=", "LIBTMUX_SOCKET=n"}, result{"", "n", "", "auto", "info", "", nil}},
		{"words between flags", []string{"a", "--watch", "all", "b", "--", "--watch"}, nil, result{"", "", "", "all", "info", "", []string{"a", "b", "--watch"}}},
		{"a dash is a word", []string{"a", "-", "--watch=all"}, nil, result{"", "", "", "all", "info", "", []string{"a", "-"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, words, err := parse("call", tt.args, vars(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			got := result{c.tmux.Path, c.tmux.Name, c.tmuxBin, c.watch, c.logLevel, c.main.path, words}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  []string
		word string
	}{
		{"two flags", []string{"--tmux-socket-path", "/a", "--tmux-socket-name", "b"}, nil, "only one"},
		{"two variables", nil, []string{"TMUX_MCPD_TMUX_SOCKET_PATH=/a", "TMUX_MCPD_TMUX_SOCKET_NAME=b"}, "TMUX_MCPD_TMUX_SOCKET_NAME"},
		{"the family's two", nil, []string{"LIBTMUX_SOCKET_PATH=/a", "LIBTMUX_SOCKET=b"}, "LIBTMUX_SOCKET"},
		{"retired", nil, []string{"LIBTMUX_SAFETY="}, "LIBTMUX_SAFETY"},
		{"unknown flag", []string{"--wat"}, nil, "wat"},
		{"flag of another command", []string{"--json"}, nil, "json"},
		{"missing value", []string{"--watch"}, nil, "watch"},
		{"bad word", []string{"--watch", "some"}, nil, "auto, all, demand"},
		{"bad variable", nil, []string{"TMUX_MCPD_LOG_LEVEL=loud"}, "TMUX_MCPD_LOG_LEVEL"},
		{"control character", []string{"--listen", "/a\nb"}, nil, "control character"},
		{"empty", []string{"--listen", ""}, nil, "empty"},
		{"slash in a name", []string{"--tmux-socket-name", "a/b"}, nil, "slash"},
		{"duration", []string{"--idle-exit", "10"}, nil, "duration"},
		{"negative duration", []string{"--idle-exit", "-1s"}, nil, "duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := parse("serve", tt.args, vars(tt.env...))
			if exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.word) {
				t.Errorf("got %v, code %d", err, exitCode(err))
			}
		})
	}
}

// Every setting and command is whole: a table with a hole would show in help.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings {
		names := slices.Clone(s.env)
		for _, cmd := range s.on { // a flag may mean another thing to another command
			names = append(names, cmd+" --"+s.flag)
		}
		for _, name := range names {
			if seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
		if (s.set == nil) == (s.of == nil) || s.usage == "" || len(s.on) == 0 || s.key != "" && s.show == nil || s.family != "" && s.adapt == nil {
			t.Errorf("--%s is incomplete", s.flag)
		}
		for _, name := range s.on {
			if _, ok := find(name); !ok {
				t.Errorf("--%s is for %s, which is no command", s.flag, name)
			}
		}
		want := "TMUX_MCPD_" + strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
		if len(s.env) > 0 && s.env[0] != want {
			t.Errorf("--%s is %s, want %s", s.flag, s.env[0], want)
		}
	}
	for i, e := range exitTexts {
		if e.code != i {
			t.Errorf("exit code %d stands in place %d", e.code, i)
		}
	}
	// What serve is started with by a bridge must be understood by serve.
	c, _, err := parse("stdio", []string{"--tmux-bin", "/b", "--watch", "all", "--transport", "pipe", "--annotations", "precise"}, vars("TMUX_MCPD_LOG_LEVEL=warn"))
	if err != nil {
		t.Fatal(err)
	}
	c.main.path, c.tmuxSocket = "/l", "/t"
	got, words, err := parse("serve", c.detachedArgs()[1:], vars())
	if err != nil || len(words) > 0 {
		t.Fatalf("%v, words %q", err, words)
	}
	if got.main.path != "/l" || got.tmux.Path != "/t" || got.tmuxBin != "/b" || got.watch != "all" || got.transport != "pipe" || !got.main.policy.Precise ||
		got.logLevel != "warn" || got.idleExit != idleExitOnDemand {
		t.Errorf("arrived as %+v", got)
	}
}

func TestResolve(t *testing.T) {
	run := t.TempDir()
	tmp := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tmp, link); err != nil {
		t.Fatal(err)
	}
	uid := os.Getuid()
	tmuxDir := filepath.Join(tmp, "tmux-"+strconv.Itoa(uid))
	file := func(tmuxSocket string) string { // the rule's file, by the other package
		path, err := mcp.DefaultSocketPath(func(string) string { return run }, uid, tmuxSocket, false)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	base := []string{"XDG_RUNTIME_DIR=" + run, "TMUX_TMPDIR=" + link}
	byDefault := filepath.Join(run, "tmux-mcpd", "default.sock")
	tests := []struct {
		name         string
		args         []string
		env          []string
		tmux, listen string
	}{
		{"default", nil, nil, filepath.Join(tmuxDir, "default"), byDefault},
		{"TMUX does not choose", nil, []string{"TMUX=/elsewhere/s,1,2"}, filepath.Join(tmuxDir, "default"), byDefault},
		{"default by name", []string{"--tmux-socket-name", "default"}, nil, filepath.Join(tmuxDir, "default"), byDefault},
		{"default by path", []string{"--tmux-socket-path", filepath.Join(tmuxDir, "default")}, nil, filepath.Join(tmuxDir, "default"), byDefault},
		{"name", []string{"--tmux-socket-name", "n"}, nil, filepath.Join(tmuxDir, "n"), file(filepath.Join(tmuxDir, "n"))},
		{"same by path", []string{"--tmux-socket-path", filepath.Join(tmuxDir, "n")}, nil, filepath.Join(tmuxDir, "n"), file(filepath.Join(tmuxDir, "n"))},
		{"dedicated", []string{"--start", "dedicated"}, nil, filepath.Join(tmuxDir, dedicatedName), file(filepath.Join(tmuxDir, dedicatedName))},
		{"dedicated elsewhere", []string{"--start", "dedicated", "--tmux-socket-path", "/x/s"}, nil, "/x/s", file("/x/s")},
		{"listen", []string{"--listen", "/l/../l/s"}, nil, filepath.Join(tmuxDir, "default"), "/l/s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lookup := vars(append(slices.Clone(base), tt.env...)...)
			c, _, err := parse("stdio", tt.args, lookup)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.resolve(lookup, uid); err != nil {
				t.Fatal(err)
			}
			if c.tmuxSocket != tt.tmux || c.main.path != tt.listen {
				t.Errorf("tmux socket %s, want %s; socket %s, want %s", c.tmuxSocket, tt.tmux, c.main.path, tt.listen)
			}
		})
	}
}

// The tmux binary itself is asked where its socket is.
func TestTmuxLabelPathAgreesWithTmux(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcpd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"default", "a b.c"} {
		tmux := func(args ...string) string {
			cmd := exec.Command("tmux", append([]string{"-L", label, "-f", os.DevNull}, args...)...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMUX_TMPDIR=" + link, "TERM=xterm"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("tmux %q: %v: %s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		tmux("new-session", "-d", "cat")
		got := tmux("display-message", "-p", "#{socket_path}")
		tmux("kill-server")
		if want := tmuxLabelPath(label, vars("TMUX_TMPDIR="+link), os.Getuid()); got != want {
			t.Errorf("tmux says %s, we %s", got, want)
		}
	}
	if got, want := tmuxLabelPath("x", vars("TMUX_TMPDIR="+dir+"/missing"), 7), "/tmp/tmux-7/x"; got != want {
		t.Errorf("missing directory: %s, want %s", got, want)
	}
}

func TestDaemonEnv(t *testing.T) {
	in := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LANG=C", "LC_ALL=C", "XDG_RUNTIME_DIR=/r", "XDG_STATE_HOME=/s", "TMUX_TMPDIR=/t",
		"TMUX_MCPD_WATCH=all", "LIBTMUX_SOCKET=n", "LIBTMUX_MCP_COMMAND_TIMEOUT_MS=5", "SHELL=/bin/sh",
		"TMUX=/s,1,2", "TMUX_PANE=%1", "LIBTMUX_TOOLSETS=inspect", "LIBTMUX_TOOLS=x", "LIBTMUX_EXCLUDE_TOOLS=y",
		"LIBTMUX_MCP_MAX_RESULT_LINES=5",
		"API_TOKEN=secret", "SSH_AUTH_SOCK=/a", "PATHOLOGICAL=1", "LIBTMUX_SAFETY=1",
	}
	if d := cmp.Diff(in[:12], daemonEnv(in)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailure},
		{errors.Join(errors.New("x"), coded(exitOldTmux, "y")), exitOldTmux},
		{mcp.ErrPathTooLong, exitPathTooLong},
		{mcp.ErrForeignDirectory, exitDirectory},
		{mcp.ErrOpenDirectory, exitDirectory},
		{mcp.ErrNotSocket, exitNotSocket},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestChosen(t *testing.T) {
	named := &config{tmux: controlmode.Socket{Name: "n"}, tmuxSocket: "/t/n"}
	if got := named.chosen(); got != (controlmode.Socket{Name: "n"}) {
		t.Errorf("by name: %+v", got)
	}
	if got := (&config{tmuxSocket: "/t/default"}).chosen(); got != (controlmode.Socket{Path: "/t/default"}) {
		t.Errorf("default: %+v", got)
	}
}

// The README's tables say what the code's do.
func TestReadmeAgrees(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for _, s := range settings {
		for _, name := range append([]string{"--" + s.flag, s.key, s.family}, s.env...) {
			if !strings.Contains(readme, name) {
				t.Errorf("the README does not mention %s", name)
			}
		}
	}
	for _, name := range passed {
		if !strings.Contains(readme, name) {
			t.Errorf("the README does not mention %s", name)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(readme, "`"+c.name) {
			t.Errorf("the README does not mention %s", c.name)
		}
	}
	for _, e := range exitTexts {
		if !strings.Contains(readme, "\n| "+strconv.Itoa(e.code)+" | ") {
			t.Errorf("the README has no exit code %d", e.code)
		}
	}
}
