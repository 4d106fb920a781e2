package controlmode

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Start runs commands in one tmux process that starts the server if none runs,
// and returns what they print. config is the configuration file of a new server,
// "" for tmux's usual ones. Everything else is as in Output.
//
// The environment of this process becomes that of a new server, but for what is
// about this process alone: the tmux it may run in, our own settings, and what a
// service manager told it. A new server is put outside of our service's control
// group, where there is one: a restart of the service must not end the sessions.
// (tmux leaves our session and process group by itself.)
func (b Binary) Start(ctx context.Context, config string, cmds ...Command) ([]byte, error) {
	words, err := commandArgs(cmds)
	if err != nil {
		return nil, err
	}
	if b.Socket.Path != "" { // tmux makes the directory for a name only
		if err := os.MkdirAll(filepath.Dir(b.Socket.Path), 0o700); err != nil {
			return nil, err
		}
	}
	args := append([]string{"-u"}, b.Socket.Args()...)
	if config != "" {
		args = append(args, "-f", config)
	}
	return b.run(ctx, launch{
		words: cmds[0].words, args: append(args, words...), env: ServerEnvironment(os.Environ()), prefix: ownScope(ctx),
	})
}

// ServerEnvironment is what of an environment a new tmux server gets.
func ServerEnvironment(from []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "TMUX", "TMUX_PANE", "TMUX_PROGRAM",
			"INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "MAINPID", "MANAGERPID", "MANAGERPIDFDID", "SYSTEMD_EXEC_PID",
			"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID", "WATCHDOG_PID", "WATCHDOG_USEC", "FDSTORE",
			"MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "CREDENTIALS_DIRECTORY", "RUNTIME_DIRECTORY", "STATE_DIRECTORY",
			"CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY":
			return true
		}
		return strings.HasPrefix(name, "TMUX_MCPD_") || strings.HasPrefix(name, "LIBTMUX_")
	})
}

// ownScope is what to put before a tmux command that may start a server, so that
// the server is not in our service's control group (systemd ends everything in
// it). nil where we are no service, or where no systemd answers: that is tried
// out, as a command that starts a server must not be run twice.
func ownScope(ctx context.Context) []string {
	if os.Getenv("INVOCATION_ID") == "" {
		return nil // not a systemd service: nothing ends with us
	}
	run, err := exec.LookPath("systemd-run")
	if err != nil {
		return nil
	}
	env, err := exec.LookPath("env")
	if err != nil {
		return nil
	}
	scope := []string{run, "--scope", "--quiet", "--collect", "--description=tmux server started by tmux-mcpd"}
	if os.Getuid() != 0 {
		scope = append(scope, "--user")
	}
	// systemd-run gives what it starts the INVOCATION_ID of the scope (252): what
	// runs in panes would take itself for a service.
	command := []string{"--", env, "-u", "INVOCATION_ID"}
	// Since 253 one process that the kernel kills for want of memory would end a
	// whole scope; before, a scope does not have that property.
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	for _, property := range [][]string{{"--property=OOMPolicy=continue"}, nil} {
		prefix := slices.Concat(scope, property, command)
		if exec.CommandContext(ctx, prefix[0], append(prefix[1:len(prefix):len(prefix)], "true")...).Run() == nil {
			return prefix
		}
	}
	return nil
}
