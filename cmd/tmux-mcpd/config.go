package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/mcp"
)

// dedicatedName is the tmux socket name of the server that --start dedicated
// owns. It is nobody's default, so nothing of the user's is ever on it.
const dedicatedName = "tmux-mcpd"

// config is what flags and environment ask for. resolve completes it.
type config struct {
	listen    string
	tmux      controlmode.Socket // as given; at most one field is set
	tmuxBin   string
	watch     string
	start     string
	transport string
	logLevel  string
	logFile   string
	timeout   time.Duration

	annotations string

	idleExit    time.Duration
	idleExitSet bool
	detach      bool
	noStart     bool
	json        bool

	// Set by resolve.
	tmuxSocket string // absolute path of the tmux server's socket
	tmuxIsUser bool   // it is the user's default server
	// listenGiven tells a socket that was chosen from the one by the rule.
	listenGiven bool
}

// env looks up a variable, as os.LookupEnv.
type env func(name string) (string, bool)

// errHelp is returned by parse when help was asked for.
var errHelp = errors.New("help requested")

// parse reads the arguments of a command and the environment. Per setting a
// flag wins over TMUX_MCPD_*, that over LIBTMUX_*, that over the default. It
// returns the words that are not flags; flags may stand between them.
func parse(cmd string, args []string, lookup env) (*config, []string, error) {
	c := &config{watch: "auto", start: "never", transport: "pty", annotations: "contract", logLevel: "info", timeout: 2 * time.Minute}
	for _, name := range retired {
		if _, ok := lookup(name); ok {
			return nil, nil, coded(exitUsage, "%s is no longer understood; unset it (see tmux-mcpd help serve)", name)
		}
	}
	given := map[string]string{} // values of flags
	words, err := splitFlags(cmd, args, given)
	if err != nil {
		return nil, nil, err
	}
	if err := tmuxChoice(cmd, given, lookup); err != nil {
		return nil, nil, err
	}
	for _, s := range settings {
		if !slices.Contains(s.on, cmd) {
			continue
		}
		from, v, ok := s.source(given, lookup)
		if !ok || shadowed(s.flag, given, lookup) {
			continue
		}
		if err := s.set(c, v); err != nil {
			return nil, nil, coded(exitUsage, "%s: %w", from, err)
		}
	}
	return c, words, nil
}

// splitFlags separates flags from words. The flag package stops at the first
// word; "call list_panes --json" should work too.
func splitFlags(cmd string, args []string, given map[string]string) ([]string, error) {
	fs := flag.NewFlagSet(cmd, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, s := range settings {
		if !slices.Contains(s.on, cmd) {
			continue
		}
		keep := func(v string) error { given[s.flag] = v; return nil }
		if s.value == "" {
			fs.BoolFunc(s.flag, "", keep)
		} else {
			fs.Func(s.flag, "", keep)
		}
	}
	var words []string
	for {
		rest := len(args)
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, errHelp
			}
			return nil, coded(exitUsage, "%w (see tmux-mcpd help %s)", err, cmd)
		}
		rest -= fs.NArg()
		if fs.NArg() == 0 {
			return words, nil
		}
		if rest > 0 && args[rest-1] == "--" {
			return append(words, fs.Args()...), nil
		}
		words = append(words, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// source finds a setting's strongest value and says where it stood. An empty
// variable counts as unset: that is how a wrapper script clears one.
func (s *setting) source(given map[string]string, lookup env) (from, v string, ok bool) {
	if v, ok := given[s.flag]; ok {
		return "--" + s.flag, v, true
	}
	for _, name := range s.env {
		if v, ok := lookup(name); ok && v != "" {
			return name, v, true
		}
	}
	return "", "", false
}

// The two ways to name a tmux server, for the rules between them.
const (
	socketPathFlag = "tmux-socket-path"
	socketNameFlag = "tmux-socket-name"
)

// layer tells how strongly a setting was given: 0 a flag, 1 and up the
// variables in order, -1 not at all.
func layer(flagName string, given map[string]string, lookup env) int {
	if _, ok := given[flagName]; ok {
		return 0
	}
	i := slices.IndexFunc(settings, func(s setting) bool { return s.flag == flagName })
	for n, name := range settings[i].env {
		if v, ok := lookup(name); ok && v != "" {
			return n + 1
		}
	}
	return -1
}

// tmuxChoice refuses a name and a path given equally strongly: serving either
// would be a guess about whose panes an agent may touch.
func tmuxChoice(cmd string, given map[string]string, lookup env) error {
	p, n := layer(socketPathFlag, given, lookup), layer(socketNameFlag, given, lookup)
	if p < 0 || p != n {
		return nil
	}
	names := [][2]string{
		{"--" + socketPathFlag, "--" + socketNameFlag},
		{"TMUX_MCPD_TMUX_SOCKET_PATH", "TMUX_MCPD_TMUX_SOCKET_NAME"},
		{"LIBTMUX_SOCKET_PATH", "LIBTMUX_SOCKET"},
	}[p]
	return coded(exitUsage, "%s and %s are both given; only one can choose the tmux server (see tmux-mcpd help %s)", names[0], names[1], cmd)
}

// shadowed tells whether the other way of naming the tmux server was given more
// strongly, so that this one does not count.
func shadowed(flagName string, given map[string]string, lookup env) bool {
	other := map[string]string{socketPathFlag: socketNameFlag, socketNameFlag: socketPathFlag}[flagName]
	if other == "" {
		return false
	}
	mine, theirs := layer(flagName, given, lookup), layer(other, given, lookup)
	return theirs >= 0 && theirs < mine
}

// resolve turns what was given into absolute paths: a daemon runs in another
// working directory, and both sides must come to the same socket.
func (c *config) resolve(lookup env, uid int) error {
	if c.start == "dedicated" && c.tmux == (controlmode.Socket{}) {
		c.tmux.Name = dedicatedName
	}
	user := tmuxLabelPath("default", lookup, uid)
	switch {
	case c.tmux.Path != "":
		abs, err := filepath.Abs(c.tmux.Path)
		if err != nil {
			return fmt.Errorf("tmux socket path: %w", err)
		}
		c.tmux.Path, c.tmuxSocket = abs, abs
	case c.tmux.Name != "":
		c.tmuxSocket = tmuxLabelPath(c.tmux.Name, lookup, uid)
	default:
		c.tmuxSocket = user
	}
	c.tmuxIsUser = c.tmuxSocket == user
	if strings.Contains(c.tmuxBin, "/") {
		abs, err := filepath.Abs(c.tmuxBin)
		if err != nil {
			return fmt.Errorf("tmux binary: %w", err)
		}
		c.tmuxBin = abs
	}
	value := func(name string) string { v, _ := lookup(name); return v }
	byRule, err := mcp.DefaultSocketPath(value, uid, c.tmuxSocket, c.tmuxIsUser)
	if c.listen == "" {
		c.listen = byRule
		return err
	}
	c.listen, err = filepath.Abs(c.listen)
	c.listenGiven = c.listen != byRule
	return err
}

// tmuxLabelPath is where tmux -L LABEL puts its socket: tmux-UID/LABEL in the
// first of $TMUX_TMPDIR and /tmp that exists, links resolved (tmux 3.2a to 3.8,
// tmux.c make_label). TMUX is not looked at: it names the server of the pane a
// command was typed in, which need not be the one an agent is meant to serve.
func tmuxLabelPath(label string, lookup env, uid int) string {
	base := "/tmp"
	dirs := []string{"/tmp"}
	if dir, _ := lookup("TMUX_TMPDIR"); dir != "" {
		dirs = []string{dir, "/tmp"}
	}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if abs, err := filepath.Abs(real); err == nil {
				base = abs
				break
			}
		}
	}
	return filepath.Join(base, "tmux-"+strconv.Itoa(uid), label)
}

// bin is the tmux binary to run.
func (c *config) bin() string {
	if c.tmuxBin == "" {
		return "tmux"
	}
	return c.tmuxBin
}

// serveArgs are the arguments that make another process serve exactly this.
func (c *config) serveArgs() []string {
	args := []string{
		"serve", "--listen", c.listen, "--watch", c.watch, "--start", c.start,
		"--transport", c.transport, "--annotations", c.annotations, "--log-level", c.logLevel,
	}
	if c.tmux.Name != "" {
		args = append(args, "--"+socketNameFlag, c.tmux.Name)
	} else {
		args = append(args, "--"+socketPathFlag, c.tmuxSocket)
	}
	if c.tmuxBin != "" {
		args = append(args, "--tmux-bin", c.tmuxBin)
	}
	return args
}

// self is the path of this program, for starting it again.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	// An upgrade may have replaced the file; the path then names the new one,
	// which is the one to start. Without any file, PATH is the last resort.
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return exec.LookPath("tmux-mcpd")
}
