package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// command is one row of the command table, from which dispatch and the help
// texts are made.
type command struct {
	name    string
	args    string // what follows the flags in the usage line
	summary string
	detail  string
	run     func(ctx context.Context, in *invocation) error
}

// invocation is everything a command may look at and write to.
type invocation struct {
	cfg    *config
	args   []string
	stdin  *os.File
	stdout *os.File
	stderr io.Writer
	// reread reads the same command line, environment and configuration file
	// again.
	reread func() (*config, error)
}

// commands is a function because help, which is in the table, prints it.
func commands() []command {
	return []command{
		{
			name: "serve", summary: "run the daemon in the foreground", run: serve,
			detail: `Listens on the socket, attaches to the tmux server, stays attached, and serves.
It prints one line on stderr when it is ready; JSON log lines follow there. The
tmux server need not run: the daemon attaches when it appears. SIGTERM or SIGINT
ends it in order, within 5 seconds; a second one at once. SIGHUP starts a new log
file and reads the configuration again, without dropping connections; what cannot
change in a running daemon is named in the log. On a terminal, without a log file,
it is SIGTERM. If a daemon serves the socket already, serve says so and exits 0.`,
		},
		{
			name: "stdio", summary: "connect an MCP client to the daemon", run: stdio,
			detail: `What MCP clients launch. Forwards MCP messages between standard input and output
and the daemon, which it starts if none runs. Standard output carries nothing but
protocol. It ends when its client ends, closes either stream, or dies.
LIBTMUX_TOOLSETS, LIBTMUX_TOOLS and LIBTMUX_EXCLUDE_TOOLS select the tools of this
connection.`,
		},
		{
			name: "call", args: "TOOL [JSON|-] [KEY=VALUE ...]", summary: "call one tool from the shell", run: call,
			detail: `Arguments are a JSON object, or - to read one from standard input, or words
KEY=VALUE whose value is a number, true, false, null, a JSON array, object or
string, or else plain text. Prints the readable answer, with --json the structured
one. A tool's error goes to stderr.`,
		},
		{
			name: "status", summary: "what the daemon is attached to, since when, for whom", run: status,
			detail: `Asks the daemon on the socket and never starts one.`,
		},
		{
			name: "config", summary: "the settings in effect, and where each one stood", run: showConfig,
			detail: `Reads flags, environment and configuration file as serve would, and prints the
outcome as a configuration file. A running daemon has what it had when it started
or got its last SIGHUP.`,
		},
		{
			name: "stop", summary: "end the daemon", run: stop,
			detail: `Ends the daemon on the socket in order and waits until it has ended. tmux goes on.`,
		},
		{
			name: "logs", summary: "what the daemon has logged", run: logs,
			detail: `Reads the daemon's log file, or the journal where a service manager keeps it,
and prints it for a person.`,
		},
		{
			name: "setup", args: "claude|codex|gemini|cursor", summary: "put the daemon into an MCP client's configuration", run: setup,
			detail: `Keeps a copy of the client's file, and everything in it that is not ours, comments
included. For any other name it prints what most clients take.`,
		},
		{
			name: "install", summary: "run the daemon as a service of yours", run: install,
			detail: `On Linux a systemd user unit, started by the first client that connects; on macOS
a launchd agent. Flags and TMUX_MCPD_ variables given here become the service's.
Files that install did not write are never touched.`,
		},
		{name: "uninstall", summary: "take that service away again", run: uninstall},
		{
			name: "doctor", summary: "prove that everything works, or say what does not", run: doctor,
			detail: `Checks the chain from tmux to the clients' configurations, one line each, with what
to do about it. Nothing of your tmux is changed: typing is tried on a tmux server
of its own.`,
		},
		{
			name: "completion", args: "bash|zsh|fish", summary: "print the completion script of a shell", run: completion,
			detail: `For example, in ~/.bashrc: source <(tmux-mcpd completion bash)`,
		},
		{name: "version", summary: "print the version", run: printVersion},
		{name: "help", args: "[COMMAND]", summary: "this text, or that of a command", run: help},
	}
}

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func main() {
	os.Exit(dispatch(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// dispatch runs one command line and returns the exit code. Errors are printed
// here and nowhere else.
func dispatch(ctx context.Context, args []string, lookup env, stdin, stdout *os.File, stderr io.Writer) int {
	err := execute(ctx, args, lookup, &invocation{stdin: stdin, stdout: stdout, stderr: stderr})
	if err != nil {
		fmt.Fprintf(stderr, "tmux-mcpd: %v\n", err)
	}
	return exitCode(err)
}

func execute(ctx context.Context, args []string, lookup env, in *invocation) error {
	if len(args) == 0 {
		writeHelp(in.stderr)
		return coded(exitUsage, "a command is wanted")
	}
	name := args[0]
	switch name { // what people type by habit
	case "-h", "-help", "--help":
		name = "help"
	case "-v", "-version", "--version":
		name = "version"
	}
	cmd, ok := find(name)
	if !ok {
		return coded(exitUsage, "unknown command %q (see tmux-mcpd help)", name)
	}
	in.reread = func() (*config, error) {
		cfg, _, err := parse(cmd.name, args[1:], lookup)
		if err != nil {
			return nil, err
		}
		return cfg, cfg.resolve(lookup, os.Getuid())
	}
	cfg, words, err := parse(cmd.name, args[1:], lookup)
	if errors.Is(err, errHelp) {
		return writeCommandHelp(in.stdout, cmd)
	}
	if err != nil {
		return err
	}
	if cmd.args == "" && len(words) > 0 {
		return coded(exitUsage, "%s takes no argument, got %q (see tmux-mcpd help %s)", name, words[0], name)
	}
	if takesSettings(cmd.name) {
		if err := cfg.resolve(lookup, os.Getuid()); err != nil {
			return err
		}
	}
	in.cfg, in.args = cfg, words
	return cmd.run(ctx, in)
}

func takesSettings(cmd string) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return slices.Contains(s.on, cmd) })
}

func help(_ context.Context, in *invocation) error {
	switch len(in.args) {
	case 0:
		return writeHelp(in.stdout)
	case 1:
		if cmd, ok := find(in.args[0]); ok {
			return writeCommandHelp(in.stdout, cmd)
		}
		return coded(exitUsage, "unknown command %q (see tmux-mcpd help)", in.args[0])
	}
	return coded(exitUsage, "help takes one command")
}

func writeHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString("tmux-mcpd serves a tmux server's sessions, windows and panes as MCP tools.\n\nusage: tmux-mcpd COMMAND [FLAG ...]\n\ncommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.summary)
	}
	b.WriteString(`
The daemon's socket, unless --listen names it: default.sock for the default tmux
server, otherwise 12 hex digits of the SHA-256 of the tmux socket's path, in
$XDG_RUNTIME_DIR/tmux-mcpd, or /run/user/UID/tmux-mcpd, or /tmp/tmux-mcpd-UID,
whichever is the first that is the user's own. The default tmux server is
tmux-UID/default in $TMUX_TMPDIR or /tmp, whatever TMUX says.

exit codes:
`)
	for _, e := range exitTexts {
		fmt.Fprintf(&b, "  %2d  %s\n", e.code, e.text)
	}
	b.WriteString("\ntmux-mcpd help COMMAND tells a command's flags and environment.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCommandHelp(w io.Writer, c command) error {
	var b strings.Builder
	b.WriteString("usage: tmux-mcpd " + c.name)
	if takesSettings(c.name) {
		b.WriteString(" [FLAG ...]")
	}
	if c.args != "" {
		b.WriteString(" " + c.args)
	}
	fmt.Fprintf(&b, "\n\n%s\n", c.summary)
	if c.detail != "" {
		fmt.Fprintf(&b, "\n%s\n", c.detail)
	}
	if takesSettings(c.name) {
		b.WriteString("\nflags:\n")
	}
	for _, s := range settings {
		if slices.Contains(s.on, c.name) {
			b.WriteString(s.help())
		}
	}
	if takesSettings(c.name) {
		b.WriteString("\nA flag wins over TMUX_MCPD_ variables, those over LIBTMUX_ variables, those over\nthe configuration file.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *setting) help() string {
	var b strings.Builder
	b.WriteString("  --" + s.flag)
	if s.value != "" {
		b.WriteString(" " + s.value)
	}
	fmt.Fprintf(&b, "\n        %s", s.usage)
	if s.def != "" {
		fmt.Fprintf(&b, "; default %s", s.def)
	}
	b.WriteString("\n")
	names := slices.Clone(s.env)
	if s.family != "" {
		names = append(names, s.family)
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "        environment: %s\n", strings.Join(names, ", "))
	}
	if s.key != "" {
		fmt.Fprintf(&b, "        file: %s\n", s.key)
	}
	return b.String()
}
