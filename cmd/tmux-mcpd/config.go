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

// config is what flags, environment and the configuration file ask for. resolve
// completes it.
type config struct {
	configPath     string             // of the file, "" for none
	tmux           controlmode.Socket // as given; at most one field is set
	tmuxBin        string
	tmuxConfig     string // of a server that we start
	watch          string
	start          string
	transport      string
	logLevel       string
	logFile        string
	audit          string // off, log or a path
	timeout        time.Duration
	commandTimeout time.Duration

	idleExit    time.Duration
	idleExitSet bool
	detach      bool
	noStart     bool
	json        bool
	check       bool
	watchStatus bool
	debugSocket string
	dryRun      bool
	remove      bool
	follow      bool
	lines       int

	main    listener          // the daemon's own socket
	further []*listener       // the [[listen]] tables of the file
	origins map[string]string // setting to where its value stood; a listener's are its own

	// Set by resolve.
	tmuxSocket string // absolute path of the tmux server's socket
	tmuxIsUser bool   // it is the user's default server
	// listenGiven tells a socket that was chosen from the one by the rule.
	listenGiven bool
}

// defaults is the configuration of somebody who says nothing.
func defaults() *config {
	return &config{
		watch: "auto", start: "never", transport: "pty", logLevel: "info", audit: "off", timeout: 2 * time.Minute, lines: 50,
		commandTimeout: defaultCommandTimeout, origins: map[string]string{},
		main: listener{mode: socketMode, origins: map[string]string{}},
	}
}

// env looks up a variable, as os.LookupEnv.
type env func(name string) (string, bool)

// errHelp is returned by parse when help was asked for.
var errHelp = errors.New("help requested")

// parse reads the arguments of a command, the environment and the configuration
// file. Per setting a flag wins over TMUX_MCPD_*, that over LIBTMUX_*, that over
// the file, that over the default. It returns the words that are not flags;
// flags may stand between them.
func parse(cmd string, args []string, lookup env) (*config, []string, error) {
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
	src := &sources{given: given, lookup: lookup, file: &configFile{}}
	c := defaults()
	if takesSettings(cmd) {
		if src.file, err = findConfig(src); err != nil {
			return nil, nil, err
		}
		c.configPath, c.origins[configFlag] = src.file.path, src.file.from
	}
	if err := src.tmuxChoice(cmd); err != nil {
		return nil, nil, err
	}
	for i := range settings {
		s := &settings[i]
		if s.flag == configFlag || !slices.Contains(s.on, cmd) || src.shadowed(s.flag) {
			continue
		}
		v, ok := src.value(s)
		if !ok {
			continue
		}
		if err := s.apply(c, &c.main, v); err != nil {
			return nil, nil, coded(exitUsage, "%s: %w", v.from, err)
		}
	}
	if err := c.readListeners(src.file); err != nil {
		return nil, nil, err
	}
	return c, words, nil
}

// apply stores a value where it belongs.
func (s *setting) apply(c *config, l *listener, v value) error {
	if s.of != nil {
		l.origins[s.flag] = v.from
		return s.of(l, v.items)
	}
	c.origins[s.flag] = v.from
	return s.set(c, v.items[0])
}

// readListeners adds the [[listen]] tables. What a table does not say is as at
// the top level, the flags and variables there included.
func (c *config) readListeners(f *configFile) error {
	paths := map[string]bool{}
	for _, table := range f.listen {
		l := c.main.further()
		for i := range settings {
			if v, ok := table.values[settings[i].key]; ok {
				if err := settings[i].apply(c, l, v); err != nil {
					return coded(exitUsage, "%s: %s: %w", v.from, settings[i].key, err)
				}
			}
		}
		if l.path == "" {
			return coded(exitUsage, "%s: [[listen]] has no path; the socket by the rule is set up at the top level", table.from)
		}
		if paths[l.path] {
			return coded(exitUsage, "%s: two [[listen]] tables have the path %s", table.from, l.path)
		}
		paths[l.path] = true
		c.further = append(c.further, l)
	}
	return nil
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
	if strings.Contains(c.audit, "/") {
		abs, err := filepath.Abs(c.audit)
		if err != nil {
			return fmt.Errorf("audit file: %w", err)
		}
		c.audit = abs
	} else if c.audit != "off" && c.audit != "log" {
		return coded(exitUsage, "audit: %q is neither off nor log, and no path: a path has a slash", c.audit)
	}
	if c.tmuxConfig != "" {
		abs, err := filepath.Abs(c.tmuxConfig)
		if err != nil {
			return fmt.Errorf("tmux configuration: %w", err)
		}
		c.tmuxConfig = abs
	}
	value := func(name string) string { v, _ := lookup(name); return v }
	byRule, err := mcp.DefaultSocketPath(value, uid, c.tmuxSocket, c.tmuxIsUser)
	if c.main.path == "" {
		c.main.path = byRule
	} else {
		c.main.path, err = filepath.Abs(c.main.path)
		c.listenGiven = c.main.path != byRule
	}
	for _, l := range c.further {
		if l.path == c.main.path {
			return coded(exitUsage, "%s: a [[listen]] table has the path of the daemon's own socket, %s; its settings belong at the top level",
				l.origins["listen"], l.path)
		}
	}
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

// serveArgs are the arguments that make another process serve exactly this. What
// stood in the configuration file stays there, where a reload finds it.
func (c *config) serveArgs() []string {
	args := []string{"serve", "--listen", c.main.path}
	if c.tmux.Name != "" {
		args = append(args, "--"+socketNameFlag, c.tmux.Name)
	} else {
		args = append(args, "--"+socketPathFlag, c.tmuxSocket)
	}
	if c.configPath != "" {
		args = append(args, "--"+configFlag, c.configPath)
	}
	for i := range settings {
		s := &settings[i]
		from := c.origins[s.flag] + c.main.origins[s.flag] // one of them
		given := strings.HasPrefix(from, "--") || strings.HasPrefix(from, "TMUX_MCPD_") || slices.Contains(s.env, from)
		if given && s.show != nil && !slices.Contains(apart, s.flag) && slices.Contains(s.on, "serve") {
			args = append(args, "--"+s.flag, flagText(s.show(c, &c.main)))
		}
	}
	return args
}

// apart are the settings that whoever starts a daemon passes on in a way of its own.
var apart = []string{configFlag, "listen", socketPathFlag, socketNameFlag, "idle-exit", "log-file"}

// flagText is a shown value as a flag takes it.
func flagText(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ",")
	case []int:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
	}
	return fmt.Sprint(v)
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
