package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one thing that can be set by a flag or by the environment. The
// table below is the only place that knows them: parsing and help read it.
type setting struct {
	flag  string
	value string   // what stands for the value in help; "" for a switch
	env   []string // strongest first
	def   string   // shown in help
	usage string
	on    []string // commands that take it
	set   func(c *config, v string) error
}

var (
	everywhere = []string{"serve", "stdio", "call", "status"}
	starters   = []string{"serve", "stdio", "call"}
)

// settings in the order of help. Whether they conflict is config.go's business.
var settings = []setting{
	{
		flag: "listen", value: "PATH", env: []string{"TMUX_MCPD_LISTEN"}, on: everywhere,
		def:   "by the socket rule",
		usage: "the daemon's socket",
		set:   func(c *config, v string) error { c.listen = v; return cleanText(v) },
	},
	{
		flag: "tmux-socket-path", value: "PATH", env: []string{"TMUX_MCPD_TMUX_SOCKET_PATH", "LIBTMUX_SOCKET_PATH"}, on: everywhere,
		usage: "the tmux server, as tmux -S",
		set:   func(c *config, v string) error { c.tmux.Path = v; return cleanText(v) },
	},
	{
		flag: "tmux-socket-name", value: "NAME", env: []string{"TMUX_MCPD_TMUX_SOCKET_NAME", "LIBTMUX_SOCKET"}, on: everywhere,
		def:   "default",
		usage: "the tmux server, as tmux -L",
		set: func(c *config, v string) error {
			if strings.Contains(v, "/") {
				return fmt.Errorf("%q holds a slash; use --tmux-socket-path for a path", v)
			}
			c.tmux.Name = v
			return cleanText(v)
		},
	},
	{
		flag: "tmux-bin", value: "PATH", env: []string{"TMUX_MCPD_TMUX_BIN", "LIBTMUX_TMUX_BIN"}, on: starters,
		def:   "tmux from PATH",
		usage: "the tmux binary",
		set:   func(c *config, v string) error { c.tmuxBin = v; return cleanText(v) },
	},
	{
		flag: "watch", value: "auto|all|demand", env: []string{"TMUX_MCPD_WATCH"}, on: starters,
		def:   "auto",
		usage: "whose output is received: panes somebody reads, all panes, or only while somebody reads",
		set:   oneOf(func(c *config) *string { return &c.watch }, "auto", "all", "demand"),
	},
	{
		flag: "start", value: "never|dedicated", env: []string{"TMUX_MCPD_START"}, on: everywhere,
		def:   "never",
		usage: "dedicated: serve a tmux server of our own, started if it is not running (socket name " + dedicatedName + ")",
		set:   oneOf(func(c *config) *string { return &c.start }, "never", "dedicated"),
	},
	{
		flag: "transport", value: "pty|pipe", env: []string{"TMUX_MCPD_TRANSPORT"}, on: starters,
		def:   "pty",
		usage: "how tmux clients are connected",
		set:   oneOf(func(c *config) *string { return &c.transport }, "pty", "pipe"),
	},
	{
		flag: "annotations", value: "contract|precise", env: []string{"TMUX_MCPD_ANNOTATIONS"}, on: starters,
		def:   "contract",
		usage: "hints on tools: cautious on every tool as the contract has them, or what each tool really does",
		set:   oneOf(func(c *config) *string { return &c.annotations }, "contract", "precise"),
	},
	{
		flag: "log-level", value: "LEVEL", env: []string{"TMUX_MCPD_LOG_LEVEL"}, on: starters,
		def:   "info",
		usage: "debug, info, warn or error",
		set:   oneOf(func(c *config) *string { return &c.logLevel }, "debug", "info", "warn", "error"),
	},
	{
		flag: "log-file", value: "PATH", env: []string{"TMUX_MCPD_LOG_FILE"}, on: []string{"serve"},
		def:   "stderr",
		usage: "write the log there instead, rotated at 10 MiB, three old ones kept",
		set:   func(c *config, v string) error { c.logFile = v; return cleanText(v) },
	},
	{
		flag: "idle-exit", value: "DURATION", env: []string{"TMUX_MCPD_IDLE_EXIT"}, on: starters,
		def:   "0 (never); 10m for a daemon started on demand",
		usage: "end when the tmux server and all clients have been gone that long",
		set: func(c *config, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return fmt.Errorf("%q is not a duration such as 10m", v)
			}
			c.idleExit, c.idleExitSet = d, true
			return nil
		},
	},
	{
		flag: "detach", on: []string{"serve"},
		usage: "start in the background, as stdio does; return when the daemon is ready",
		set:   toggle(func(c *config) *bool { return &c.detach }),
	},
	{
		flag: "no-start", env: []string{"TMUX_MCPD_NO_START"}, on: []string{"stdio", "call"},
		usage: "never start a daemon",
		set:   toggle(func(c *config) *bool { return &c.noStart }),
	},
	{
		flag: "timeout", value: "DURATION", on: []string{"call"},
		def:   "2m",
		usage: "give up after that long",
		set: func(c *config, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("%q is not a duration such as 30s", v)
			}
			c.timeout = d
			return nil
		},
	},
	{
		flag: "json", on: []string{"call", "status"},
		usage: "print the structured result as one line of JSON",
		set:   toggle(func(c *config) *bool { return &c.json }),
	},
}

// passed are the variables that serve hands to the tools unread, with what help
// says of them. A bridge sends the same of its own, for its connection alone.
var passed = []struct{ name, usage string }{
	{"LIBTMUX_TOOLSETS", "toolsets offered: inspect, manage, execute, teardown"},
	{"LIBTMUX_TOOLS", "tools added to those"},
	{"LIBTMUX_EXCLUDE_TOOLS", "tools removed, last"},
	{"LIBTMUX_MCP_MAX_RESULT_LINES", "lines of a result at most (200)"},
	{"LIBTMUX_MCP_WAIT_MAX_MS", "longest wait (30000)"},
	{"LIBTMUX_MCP_COMMAND_TIMEOUT_MS", "deadline of a tmux command (30000)"},
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
