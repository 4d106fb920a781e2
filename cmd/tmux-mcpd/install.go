package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/mcp"
)

// serviceName names the units. A daemon for another tmux server gets a name of
// its own, see serviceNameFor.
const serviceName = "tmux-mcpd"

// ours is in every file that install writes, so that nothing else is ever
// overwritten or removed.
const ours = "written by tmux-mcpd install"

// managerTimeout bounds each word with the service manager.
const managerTimeout = 20 * time.Second

// unit is one file of a service.
type unit struct {
	path string
	text string
}

// service is the daemon as a service manager keeps it.
type service struct {
	name  string
	units []unit
	// load and unload are commands of the service manager, to be run in order.
	load, unload [][]string
	// state is a command that succeeds if the service waits for clients, and says
	// how it is; nil if there is none.
	state []string
	// replaces: the manager binds the socket over one that is in use. So there is
	// never a moment at which a client finds none and starts a daemon.
	replaces bool
}

// serviceNameFor is serviceName for the user's own tmux server, and else one that
// is told from the socket.
func serviceNameFor(c *config) string {
	name := strings.TrimSuffix(filepath.Base(c.main.path), ".sock")
	if name == "default" && !c.listenGiven {
		return serviceName
	}
	return serviceName + "-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
}

// serviceOf describes the service for a configuration.
func serviceOf(c *config, system string, prog string, lookup env) (*service, error) {
	home, ok := lookup("HOME")
	if !ok || !filepath.IsAbs(home) {
		return nil, coded(exitUsage, "HOME names no directory, and services are installed below it")
	}
	name := serviceNameFor(c)
	args := append([]string{prog}, c.serveArgs()...)
	if system == "darwin" {
		path := filepath.Join(home, "Library", "LaunchAgents", name+".plist")
		domain := fmt.Sprintf("gui/%d", os.Getuid())
		return &service{
			name:   name,
			units:  []unit{{path, plist(name, args, logOf(c))}},
			load:   [][]string{{"launchctl", "bootstrap", domain, path}},
			unload: [][]string{{"launchctl", "bootout", domain + "/" + name}},
		}, nil
	}
	if strings.ContainsAny(prog, "\"'\\") {
		// However it is written there (systemd 252, config_parse_exec).
		return nil, coded(exitUsage, "systemd starts no program whose path holds quotes or backslashes, as %s does", printable(prog))
	}
	base, ok := lookup("XDG_CONFIG_HOME")
	if !ok || !filepath.IsAbs(base) {
		base = filepath.Join(home, ".config")
	}
	dir := filepath.Join(base, "systemd", "user")
	user := []string{"systemctl", "--user", "--no-ask-password"}
	does := func(words ...string) []string { return append(append([]string(nil), user...), words...) }
	return &service{
		name: name, replaces: true,
		state: does("is-active", name+".socket"),
		units: []unit{
			{filepath.Join(dir, name+".socket"), socketUnit(c.main.path)},
			{filepath.Join(dir, name+".service"), serviceUnit(name, args)},
		},
		load:   [][]string{does("daemon-reload"), does("enable", "--now", name+".socket")},
		unload: [][]string{does("disable", "--now", name+".socket", name+".service"), does("daemon-reload")},
	}, nil
}

// ownService is the service that runs this very program.
func ownService(c *config) (*service, error) {
	prog, err := self()
	if err != nil {
		return nil, err
	}
	return serviceOf(withTmux(c, runtime.GOOS), runtime.GOOS, prog, os.LookupEnv)
}

// managersPath are the directories in which a service finds programs.
var managersPath = map[string][]string{
	"linux":  {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
	"darwin": {"/usr/bin", "/bin", "/usr/sbin", "/sbin"},
}

// withTmux is c with the path of the tmux binary as a flag, if the service would
// not find the one that is found here: it does not have the PATH of a shell.
func withTmux(c *config, system string) *config {
	if strings.Contains(c.tmuxBin, "/") {
		return c
	}
	path, err := exec.LookPath(c.bin())
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || slices.Contains(managersPath[system], filepath.Dir(path)) {
		return c
	}
	with := *c
	with.tmuxBin, with.origins = path, maps.Clone(c.origins)
	with.origins["tmux-bin"] = "--tmux-bin"
	return &with
}

func logOf(c *config) string {
	if path := c.stateFile(".log"); path != "" {
		return path
	}
	return os.DevNull
}

// install writes the service's files and has the service manager take them up.
func install(ctx context.Context, in *invocation) error {
	s, err := ownService(in.cfg)
	if err != nil {
		return err
	}
	if in.cfg.dryRun {
		return s.show(in.stdout)
	}
	if _, err := checkTmux(ctx, in.cfg); err != nil {
		return err
	}
	for _, u := range s.units {
		if err := u.write(); err != nil {
			return err
		}
		fmt.Fprintln(in.stdout, "wrote", u.path)
	}
	// One that was started on demand, or with other settings. Its bridges dial again.
	old, err := daemonPID(ctx, in.cfg)
	if err != nil && !absentDaemon(err) {
		return err
	}
	end := func() error {
		if old == 0 {
			return nil
		}
		return endProcess(ctx, old)
	}
	load := func() error { return s.tell(ctx, in.stdout, s.load) }
	steps := []func() error{load, end} // systemd's socket takes the place of any other
	if !s.replaces {
		steps = []func() error{end, load}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Fprintf(in.stdout, "clients find the daemon on %s; tmux-mcpd doctor checks the rest\n", in.cfg.main.path)
	if s.replaces && !lingers() {
		fmt.Fprintln(in.stdout, "with your last login it ends, and so does a tmux that it has started, unless: loginctl enable-linger")
	}
	return nil
}

// uninstall takes the service away again. The daemon ends, tmux does not.
func uninstall(ctx context.Context, in *invocation) error {
	s, err := ownService(in.cfg)
	if err != nil {
		return err
	}
	there := 0
	for _, u := range s.units {
		switch mine, err := u.mine(); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !mine:
			return coded(exitFailure, "%s was not %s; it stays", u.path, ours)
		default:
			there++
		}
	}
	if there == 0 {
		fmt.Fprintln(in.stdout, "not installed")
		return nil
	}
	if in.cfg.dryRun {
		for _, u := range s.units {
			fmt.Fprintln(in.stdout, "would remove", u.path)
		}
		return nil
	}
	failed := s.tell(ctx, in.stdout, s.unload[:1])
	for _, u := range s.units {
		switch err := os.Remove(u.path); {
		case err == nil:
			fmt.Fprintln(in.stdout, "removed", u.path)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return errors.Join(failed, s.tell(ctx, in.stdout, s.unload[1:]))
}

// installed tells whether install has written any of the files.
func (s *service) installed() bool {
	return slices.ContainsFunc(s.units, func(u unit) bool {
		mine, err := u.mine()
		return mine && err == nil
	})
}

// show prints what install would write and run.
func (s *service) show(w io.Writer) error {
	var b strings.Builder
	for _, u := range s.units {
		fmt.Fprintf(&b, "# %s\n%s\n", u.path, u.text)
	}
	for _, words := range s.load {
		fmt.Fprintf(&b, "$ %s\n", strings.Join(words, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tell runs commands of the service manager. Where it cannot be reached (in a
// container, over some remote shells) the files are in place all the same, and
// the commands are printed.
func (s *service) tell(ctx context.Context, w io.Writer, commands [][]string) error {
	for i, words := range commands {
		out, err := askManager(ctx, words...)
		if err == nil {
			continue
		}
		fmt.Fprintf(w, "%s: %v: %s\nwhere the service manager can be reached, run:\n", strings.Join(words, " "), err, out)
		for _, rest := range commands[i:] {
			fmt.Fprintf(w, "  %s\n", strings.Join(rest, " "))
		}
		return coded(exitManager, "the service manager cannot be reached or refuses")
	}
	return nil
}

// askManager runs a command of the service manager and returns what it says. su
// and sudo leave no XDG_RUNTIME_DIR, or another user's: the manager is found by
// the rule that finds the daemon.
func askManager(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if dir := mcp.RuntimeDirectory(os.Getenv, os.Getuid()); dir != "" && dir != os.Getenv("XDG_RUNTIME_DIR") {
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(dir, "bus"))
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// mine tells whether install has written the file.
func (u *unit) mine() (bool, error) {
	old, err := os.ReadFile(u.path)
	return err == nil && bytes.Contains(old, []byte(ours)), err
}

// write puts the file in its place, over nothing but one of our own.
func (u *unit) write() error {
	if mine, err := u.mine(); err == nil && !mine {
		return coded(exitFailure, "%s was not %s; move it away first", u.path, ours)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.path), 0o755); err != nil {
		return err
	}
	return replaceFile(u.path, []byte(u.text), 0o644)
}

// replaceFile writes a file so that readers find the old or the new one, whole.
// A symbolic link stays: what it names is replaced.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
