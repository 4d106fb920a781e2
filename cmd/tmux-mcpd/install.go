package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
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
	units []unit
	// load and unload are commands of the service manager, to be run in order.
	load, unload [][]string
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
	return serviceOf(c, runtime.GOOS, prog, os.LookupEnv)
}

func logOf(c *config) string {
	if path := c.stateFile(".log"); path != "" {
		return path
	}
	return os.DevNull
}

// socketUnit has systemd open the socket, so that clients can connect before the
// daemon runs, and while it is being restarted.
func socketUnit(path string) string {
	return `# ` + ours + `
[Unit]
Description=Socket of tmux-mcpd

[Socket]
ListenStream=` + escapePercent(path) + `
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`
}

// serviceUnit is the daemon. KillMode=process: a tmux server that the daemon has
// started lives on when the daemon ends, should it ever be in the same control
// group. Only what binds the control group is set: anything a child inherits
// (NoNewPrivileges, system call filters, private mounts, resource limits, umask)
// would be inherited by such a tmux server too, and make sudo fail in its panes.
func serviceUnit(name string, args []string) string {
	return `# ` + ours + `
[Unit]
Description=tmux for MCP clients
Requires=` + name + `.socket
After=` + name + `.socket
# Not more than 5 starts in 30 s.
StartLimitIntervalSec=30
StartLimitBurst=5

[Service]
Type=notify
ExecStart=` + execLine(args) + `
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
TimeoutStopSec=7
Restart=on-failure
RestartSec=500ms
WatchdogSec=30
MemoryHigh=512M
MemoryMax=1G
TasksMax=256
IPAddressDeny=any

[Install]
WantedBy=default.target
`
}

func escapePercent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// execLine quotes words for ExecStart (systemd.service(5)).
func execLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(w)
		if i > 0 { // the program's path is not searched for variables, nor for $$
			w = strings.ReplaceAll(w, "$", "$$")
		}
		if w == "" || strings.ContainsAny(w, " \t'\";") {
			w = `"` + w + `"`
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// plist is a launchd agent that runs whenever the user is logged in.
func plist(label string, args []string, log string) string {
	var b strings.Builder
	text := func(s string) string {
		var e bytes.Buffer
		_ = xml.EscapeText(&e, []byte(s)) // a Buffer takes everything
		return "<string>" + e.String() + "</string>"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ` + ours + ` -->
<plist version="1.0">
<dict>
	<key>Label</key>
	` + text(label) + `
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range args {
		b.WriteString("\t\t" + text(a) + "\n")
	}
	b.WriteString(`	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>AbandonProcessGroup</key>
	<true/>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>StandardErrorPath</key>
	` + text(log) + `
</dict>
</plist>
`)
	return b.String()
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
	// One that was started on demand holds the socket. Its bridges dial again.
	if err := endServing(ctx, in.cfg); err != nil {
		return err
	}
	if err := s.tell(ctx, in.stdout, s.load); err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "clients find the daemon on %s; tmux-mcpd doctor checks the rest\n", in.cfg.main.path)
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
		ctx, cancel := context.WithTimeout(ctx, managerTimeout)
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		cancel()
		if err == nil {
			continue
		}
		said := strings.TrimSpace(string(out))
		fmt.Fprintf(w, "%s: %v: %s\nwhere the service manager can be reached, run:\n", strings.Join(words, " "), err, said)
		for _, rest := range commands[i:] {
			fmt.Fprintf(w, "  %s\n", strings.Join(rest, " "))
		}
		return coded(exitManager, "the service manager cannot be reached or refuses")
	}
	return nil
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
