package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/mcp"
)

// setting is one thing that can be set by a flag, by the environment or in the
// configuration file. The table below is the only place that knows them:
// parsing, the file, help and the config command read it.
type setting struct {
	flag  string
	value string   // what stands for the value in help; "" for a switch
	env   []string // strongest first
	// family is a LIBTMUX_ variable of the same meaning whose form is the
	// contract's: adapt makes a value of it, or tells that it counts as unset.
	family string
	adapt  func(v string) (string, bool)
	def    string // shown in help
	usage  string
	on     []string // commands that take it

	key  string // in the configuration file, "" for none
	kind kind   // of its value there
	path bool   // relative ones in the file are relative to the file
	// live tells that a reload changes it in a running daemon.
	live bool
	// own tells that a further [[listen]] does not take it from the top level.
	own bool

	// One of these: of the whole program, or of one listener.
	set func(c *config, v string) error
	of  func(l *listener, v []string) error
	// show gives the value in effect as a TOML value, nil if there is none.
	show func(c *config, l *listener) any
}

// kind is the type of a value in the configuration file.
type kind string

const (
	text    kind = "a string"
	number  kind = "a whole number"
	boolean kind = "true or false"
	texts   kind = "an array of strings"
	numbers kind = "an array of whole numbers"
)

var (
	everywhere = []string{"serve", "stdio", "call", "status", "config", "stop", "logs", "install", "uninstall", "setup", "doctor"}
	starters   = []string{"serve", "stdio", "call", "config", "install", "uninstall", "doctor"}
	daemonOnly = []string{"serve", "config"}
)

// settings in the order of help. Whether they conflict is config.go's business.
var settings = []setting{
	{
		flag: configFlag, value: "PATH", env: []string{"TMUX_MCPD_CONFIG"}, on: everywhere,
		def:   "tmux-mcpd/tmux-mcpd.toml in $XDG_CONFIG_HOME or ~/.config, if it is there",
		usage: "the configuration file",
		set:   func(c *config, v string) error { c.configPath = v; return cleanText(v) },
	},
	{
		flag: "listen", value: "PATH", env: []string{"TMUX_MCPD_LISTEN"}, on: everywhere,
		def:   "by the socket rule",
		usage: "the daemon's socket",
		key:   "path", path: true, own: true,
		of:   func(l *listener, v []string) error { l.path = v[0]; return cleanText(v[0]) },
		show: func(_ *config, l *listener) any { return l.path },
	},
	{
		flag: socketPathFlag, value: "PATH", env: []string{"TMUX_MCPD_TMUX_SOCKET_PATH", "LIBTMUX_SOCKET_PATH"}, on: everywhere,
		usage: "the tmux server, as tmux -S",
		key:   "tmux_socket_path", path: true,
		set:  func(c *config, v string) error { c.tmux.Path = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return orNil(c.tmux.Path) },
	},
	{
		flag: socketNameFlag, value: "NAME", env: []string{"TMUX_MCPD_TMUX_SOCKET_NAME", "LIBTMUX_SOCKET"}, on: everywhere,
		def:   "default",
		usage: "the tmux server, as tmux -L",
		key:   "tmux_socket_name",
		set: func(c *config, v string) error {
			if strings.Contains(v, "/") {
				return fmt.Errorf("%q holds a slash; use --tmux-socket-path for a path", v)
			}
			c.tmux.Name = v
			return cleanText(v)
		},
		show: func(c *config, _ *listener) any { return orNil(c.tmux.Name) },
	},
	{
		flag: "tmux-bin", value: "PATH", env: []string{"TMUX_MCPD_TMUX_BIN", "LIBTMUX_TMUX_BIN"}, on: starters,
		def:   "tmux from PATH",
		usage: "the tmux binary",
		key:   "tmux_bin", path: true,
		set:  func(c *config, v string) error { c.tmuxBin = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return c.bin() },
	},
	{
		flag: "tmux-config", value: "PATH", env: []string{"TMUX_MCPD_TMUX_CONFIG", "LIBTMUX_TMUX_CONFIG"}, on: starters,
		def:   "tmux's own; none for a dedicated server",
		usage: "the configuration file of a tmux server that the daemon starts",
		key:   "tmux_config", path: true,
		set:  func(c *config, v string) error { c.tmuxConfig = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return orNil(c.tmuxConfig) },
	},
	{
		flag: "watch", value: "auto|all|demand", env: []string{"TMUX_MCPD_WATCH"}, on: starters,
		def:   "auto",
		usage: "whose output is received: panes somebody reads, all panes, or only while somebody reads",
		key:   "watch",
		set:   oneOf(func(c *config) *string { return &c.watch }, "auto", "all", "demand"),
		show:  func(c *config, _ *listener) any { return c.watch },
	},
	{
		flag: "start", value: "never|dedicated", env: []string{"TMUX_MCPD_START"}, on: everywhere,
		def:   "never",
		usage: "dedicated: serve a tmux server of our own, started if it is not running (socket name " + dedicatedName + ")",
		key:   "start",
		set:   oneOf(func(c *config) *string { return &c.start }, "never", "dedicated"),
		show:  func(c *config, _ *listener) any { return c.start },
	},
	{
		flag: "transport", value: "pty|pipe", env: []string{"TMUX_MCPD_TRANSPORT"}, on: starters,
		def:   "pty",
		usage: "how tmux clients are connected",
		key:   "transport",
		set:   oneOf(func(c *config) *string { return &c.transport }, "pty", "pipe"),
		show:  func(c *config, _ *listener) any { return c.transport },
	},
	{
		flag: "command-timeout", value: "DURATION", env: []string{"TMUX_MCPD_COMMAND_TIMEOUT"}, on: daemonOnly,
		family: envCommandTimeout, adapt: millis(1, maxCommandTimeout),
		def:   "30s",
		usage: "deadline of a tmux command",
		key:   "command_timeout",
		set:   duration(func(c *config) *time.Duration { return &c.commandTimeout }, time.Millisecond, maxCommandTimeout),
		show:  func(c *config, _ *listener) any { return c.commandTimeout.String() },
	},
	{
		flag: "log-level", value: "LEVEL", env: []string{"TMUX_MCPD_LOG_LEVEL"}, on: starters,
		def:   "info",
		usage: "debug, info, warn or error",
		key:   "log_level", live: true,
		set:  oneOf(func(c *config) *string { return &c.logLevel }, "debug", "info", "warn", "error"),
		show: func(c *config, _ *listener) any { return c.logLevel },
	},
	{
		flag: "log-file", value: "PATH", env: []string{"TMUX_MCPD_LOG_FILE"}, on: daemonOnly,
		def:   "stderr",
		usage: "write the log there instead, rotated at 10 MiB, three old ones kept",
		key:   "log_file", path: true,
		set:  func(c *config, v string) error { c.logFile = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return orNil(c.logFile) },
	},
	{
		flag: "audit", value: "off|log|PATH", env: []string{"TMUX_MCPD_AUDIT"}, on: daemonOnly,
		def:   "off",
		usage: "a JSON line for each call, without content: in the log, or in a file of its own",
		key:   "audit", path: true,
		set:  func(c *config, v string) error { c.audit = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return c.audit },
	},
	{
		flag: "idle-exit", value: "DURATION", env: []string{"TMUX_MCPD_IDLE_EXIT"}, on: starters,
		def:   "0 (never); 10m for a daemon started on demand",
		usage: "end when the tmux server and all clients have been gone that long",
		key:   "idle_exit",
		set: func(c *config, v string) error {
			c.idleExitSet = true
			return duration(func(c *config) *time.Duration { return &c.idleExit }, 0, 0)(c, v)
		},
		show: func(c *config, _ *listener) any { return c.idleExit.String() },
	},
	{
		flag: "debug-socket", value: "PATH", env: []string{"TMUX_MCPD_DEBUG_SOCKET"}, on: daemonOnly,
		def:   "none",
		usage: "serve pprof, the model and the last bytes to and from tmux there, over HTTP, to you alone",
		key:   "debug_socket", path: true,
		set:  func(c *config, v string) error { c.debugSocket = v; return cleanText(v) },
		show: func(c *config, _ *listener) any { return orNil(c.debugSocket) },
	},
	{
		flag: "check", on: []string{"status"},
		usage: "compare what the daemon knows of tmux with what tmux says, and check that it is consistent",
		set:   toggle(func(c *config) *bool { return &c.check }),
	},
	{
		flag: "watch", on: []string{"status"},
		usage: "show it again every second, until interrupted",
		set:   toggle(func(c *config) *bool { return &c.watchStatus }),
	},
	{
		flag: "dry-run", on: []string{"install", "uninstall", "setup"},
		usage: "show what would be done and change nothing",
		set:   toggle(func(c *config) *bool { return &c.dryRun }),
	},
	{
		flag: "remove", on: []string{"setup"},
		usage: "take the daemon out of the client's configuration again",
		set:   toggle(func(c *config) *bool { return &c.remove }),
	},
	{
		flag: "f", on: []string{"logs"},
		usage: "go on with what is written from now on, until interrupted",
		set:   toggle(func(c *config) *bool { return &c.follow }),
	},
	{
		flag: "n", value: "LINES", on: []string{"logs"},
		def:   "50",
		usage: "how many lines of the past",
		set: func(c *config, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number of lines", v)
			}
			c.lines = n
			return nil
		},
	},
	{
		flag: "detach", on: []string{"serve"},
		usage: "start in the background, as stdio does; return when the daemon is ready",
		set:   toggle(func(c *config) *bool { return &c.detach }),
	},
	{
		flag: "no-start", env: []string{"TMUX_MCPD_NO_START"}, on: []string{"stdio", "call", "config"},
		usage: "never start a daemon",
		key:   "no_start", kind: boolean,
		set:  toggle(func(c *config) *bool { return &c.noStart }),
		show: func(c *config, _ *listener) any { return c.noStart },
	},
	{
		flag: "timeout", value: "DURATION", on: []string{"call"},
		def:   "2m",
		usage: "give up after that long",
		set:   duration(func(c *config) *time.Duration { return &c.timeout }, time.Nanosecond, 0),
	},
	{
		flag: "json", on: []string{"call", "status", "logs", "doctor"},
		usage: "print the structured result as one line of JSON",
		set:   toggle(func(c *config) *bool { return &c.json }),
	},
	{
		flag: "mode", value: "OCTAL", env: []string{"TMUX_MCPD_MODE"}, on: daemonOnly,
		def:   "0600",
		usage: "mode of the socket",
		key:   "mode", live: true, own: true,
		of:   setMode,
		show: func(_ *config, l *listener) any { return fmt.Sprintf("%04o", l.mode) },
	},
	{
		flag: "allow-uids", value: "UID,...", env: []string{"TMUX_MCPD_ALLOW_UIDS"}, on: daemonOnly,
		usage: "users besides your own that may connect; the mode must let them in as well",
		key:   "allow_uids", kind: numbers, live: true, own: true,
		of:   setUIDs,
		show: func(_ *config, l *listener) any { return orNil(l.policy.AllowUIDs) },
	},
	{
		flag: "toolsets", value: "NAME,...", env: []string{"TMUX_MCPD_TOOLSETS"}, on: daemonOnly,
		family: "LIBTMUX_TOOLSETS", adapt: asItIs,
		def:   "all may be selected, inspect, manage and execute are",
		usage: "toolsets offered: inspect, manage, execute, teardown",
		key:   "toolsets", kind: texts, live: true,
		of: func(l *listener, v []string) error {
			l.policy.Toolsets = v
			return mcp.CheckToolsets(v)
		},
		show: func(_ *config, l *listener) any { return orNil(l.policy.Toolsets) },
	},
	{
		flag: "tools", value: "NAME,...", env: []string{"TMUX_MCPD_TOOLS"}, on: daemonOnly,
		family: "LIBTMUX_TOOLS", adapt: asItIs,
		usage: "tools added to those",
		key:   "tools", kind: texts, live: true,
		of:   func(l *listener, v []string) error { l.policy.Tools = v; return mcp.CheckTools(v) },
		show: func(_ *config, l *listener) any { return orNil(l.policy.Tools) },
	},
	{
		flag: "exclude", value: "NAME,...", env: []string{"TMUX_MCPD_EXCLUDE"}, on: daemonOnly,
		family: "LIBTMUX_EXCLUDE_TOOLS", adapt: asItIs,
		usage: "tools removed, last; also from batches",
		key:   "exclude", kind: texts, live: true,
		of:   func(l *listener, v []string) error { l.policy.Exclude = v; return mcp.CheckTools(v) },
		show: func(_ *config, l *listener) any { return orNil(l.policy.Exclude) },
	},
	{
		flag: "sessions", value: "NAME,...", env: []string{"TMUX_MCPD_SESSIONS"}, on: daemonOnly,
		def:   "all",
		usage: "sessions that exist for clients, with * and ? as wildcards; nothing else does",
		key:   "sessions", kind: texts, live: true,
		of:   setSessions,
		show: func(_ *config, l *listener) any { return orNil(l.policy.Sessions) },
	},
	{
		flag: "max-lines", value: "N", env: []string{"TMUX_MCPD_MAX_LINES"}, on: daemonOnly,
		family: "LIBTMUX_MCP_MAX_RESULT_LINES", adapt: clampedNumber(1, mcp.MaxLines),
		def:   "200, and 10000 if asked for",
		usage: "lines of a result at most",
		key:   "max_lines", kind: number, live: true,
		of:   whole(func(l *listener) *int { return &l.policy.MaxLines }, 1, mcp.MaxLines),
		show: func(_ *config, l *listener) any { return orNil(l.policy.MaxLines) },
	},
	{
		flag: "max-wait", value: "DURATION", env: []string{"TMUX_MCPD_MAX_WAIT"}, on: daemonOnly,
		family: "LIBTMUX_MCP_WAIT_MAX_MS", adapt: millis(mcp.MinWait, mcp.MaxWait),
		def:   "55s",
		usage: "longest wait of a call, 1s to 2m",
		key:   "max_wait", live: true,
		of: func(l *listener, v []string) error {
			return duration(func(*config) *time.Duration { return &l.policy.MaxWait }, mcp.MinWait, mcp.MaxWait)(nil, v[0])
		},
		show: func(_ *config, l *listener) any {
			if l.policy.MaxWait == 0 {
				return nil
			}
			return l.policy.MaxWait.String()
		},
	},
	{
		flag: "rate", value: "N", env: []string{"TMUX_MCPD_RATE"}, on: daemonOnly,
		def:   "no limit",
		usage: "calls a second through the socket at most, operations of batches counted",
		key:   "rate", kind: number, live: true,
		of:   whole(func(l *listener) *int { return &l.policy.Rate }, 1, 1_000_000),
		show: func(_ *config, l *listener) any { return orNil(l.policy.Rate) },
	},
	{
		flag: "concurrency", value: "N", env: []string{"TMUX_MCPD_CONCURRENCY"}, on: daemonOnly,
		def:   "64 for each connection",
		usage: "calls at once through the socket at most",
		key:   "concurrency", kind: number, live: true,
		of:   whole(func(l *listener) *int { return &l.policy.Concurrency }, 1, 1_000_000),
		show: func(_ *config, l *listener) any { return orNil(l.policy.Concurrency) },
	},
	{
		flag: "redact", env: []string{"TMUX_MCPD_REDACT"}, on: daemonOnly,
		def:   "false",
		usage: "take what looks like a credential or a private key out of answers",
		key:   "redact", kind: boolean, live: true,
		of: func(l *listener, v []string) error {
			return toggle(func(*config) *bool { return &l.policy.Redact })(nil, v[0])
		},
		show: func(_ *config, l *listener) any { return l.policy.Redact },
	},
	{
		flag: "redact-patterns", value: "RE2,...", env: []string{"TMUX_MCPD_REDACT_PATTERNS"}, on: daemonOnly,
		usage: "regular expressions (RE2) of further secrets, for redact",
		key:   "redact_patterns", kind: texts, live: true,
		of:   func(l *listener, v []string) error { l.policy.Patterns = v; return mcp.CheckPatterns(v) },
		show: func(_ *config, l *listener) any { return orNil(l.policy.Patterns) },
	},
	{
		flag: "annotations", value: "contract|precise", env: []string{"TMUX_MCPD_ANNOTATIONS"}, on: starters,
		def:   "contract",
		usage: "hints on tools: cautious on every tool as the contract has them, or what each tool really does",
		key:   "annotations", live: true,
		of: func(l *listener, v []string) error {
			l.policy.Precise = v[0] == "precise"
			return oneOf(func(*config) *string { return new(string) }, "contract", "precise")(nil, v[0])
		},
		show: func(_ *config, l *listener) any {
			if l.policy.Precise {
				return "precise"
			}
			return "contract"
		},
	},
}

// passed are the variables that a bridge sends of its own, for its connection
// alone; the daemon's own are in the table above.
var passed = []string{
	"LIBTMUX_TOOLSETS", "LIBTMUX_TOOLS", "LIBTMUX_EXCLUDE_TOOLS", "LIBTMUX_MCP_MAX_RESULT_LINES",
	"LIBTMUX_MCP_WAIT_MAX_MS", "LIBTMUX_MCP_COMMAND_TIMEOUT_MS",
}

// retired variables would be ignored silently by a reader who trusts them: to
// start in spite of one is worse than not to start.
var retired = []string{"LIBTMUX_SAFETY", "LIBTMUX_MCP_TOOLS", "LIBTMUX_SOCKET_NAME"}

func oneOf(field func(*config) *string, words ...string) func(*config, string) error {
	return func(c *config, v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(words, ", "))
		}
		*field(c) = v
		return nil
	}
}

func toggle(field func(*config) *bool) func(*config, string) error {
	return func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*field(c) = b
		return nil
	}
}

// duration reads a duration of at least low and, unless it is 0, at most high.
func duration(field func(*config) *time.Duration, low, high time.Duration) func(*config, string) error {
	return func(c *config, v string) error {
		d, err := time.ParseDuration(v)
		switch {
		case err != nil || d < 0:
			return fmt.Errorf("%q is not a duration such as 30s or 10m", v)
		case d < low && high == 0:
			return fmt.Errorf("%v is too short", d)
		case d < low || high > 0 && d > high:
			return fmt.Errorf("%v is not within %v and %v", d, low, high)
		}
		*field(c) = d
		return nil
	}
}

// orNil is nil for what was not set.
func orNil[T any](v T) any {
	if r := reflect.ValueOf(&v).Elem(); r.IsZero() {
		return nil
	}
	return v
}

// cleanText refuses what no path or name should hold: it would end up in logs,
// in tmux's arguments and on terminals.
func cleanText(v string) error {
	if v == "" {
		return fmt.Errorf("it is empty")
	}
	if i := strings.IndexFunc(v, func(r rune) bool { return r < 0x20 || r == 0x7f }); i >= 0 {
		return fmt.Errorf("%q holds a control character", v)
	}
	return nil
}
