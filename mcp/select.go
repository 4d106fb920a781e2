package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Variables that select tools and limits (contract 1.7).
const (
	envToolsets   = "LIBTMUX_TOOLSETS"
	envTools      = "LIBTMUX_TOOLS"
	envExclude    = "LIBTMUX_EXCLUDE_TOOLS"
	envMaxLines   = "LIBTMUX_MCP_MAX_RESULT_LINES"
	envWaitMax    = "LIBTMUX_MCP_WAIT_MAX_MS"
	envSocket     = "LIBTMUX_SOCKET"
	envSocketPath = "LIBTMUX_SOCKET_PATH"
)

// retired variables fail the start: they promised something else once.
var retired = []string{"LIBTMUX_SAFETY", "LIBTMUX_MCP_TOOLS", "LIBTMUX_SOCKET_NAME"}

// membership lists the tools of each toolset, those that are still to come
// included: a selection may name them.
var membership = map[toolset][]string{
	inspect: {
		"call_read_tools_batch", "capture_pane", "capture_since", "find_pane_by_position", "get_pane_info",
		"get_command_output", "get_run", "get_server_info", "get_session_info", "get_tmux_variables", "get_window_info",
		"list_commands", "list_panes", "list_runs", "list_sessions",
		"list_windows", "search_panes", "show_environment", "show_hooks", "show_option", "snapshot_pane",
		"wait_for", "wait_for_text", "what_changed",
	},
	manage: {
		"move_window", "rename_session", "rename_window", "resize_pane", "resize_window", "select_layout",
		"select_pane", "select_window", "set_history_limit", "set_mouse_enabled", "set_pane_title", "signal_channel",
		"swap_pane", "wait_for_channel",
	},
	execute: {
		"create_session", "create_window", "interrupt_run", "paste_text", "respawn_pane", "run_shell_command", "send_keys",
		"send_keys_batch", "set_synchronize_panes", "split_window",
	},
	teardown: {"clear_pane_scrollback", "kill_pane", "kill_session", "kill_window"},
}

var toolsets = []toolset{inspect, manage, execute, teardown}

// Bounds of what a policy can set for lines and waits.
const (
	MaxLines = 10_000
	MinWait  = 1 * time.Second
	MaxWait  = 120 * time.Second
)

const (
	defaultLines = 200
	// A client gives up after 60 s by default; waits end below that.
	defaultWaitMax = 55 * time.Second
	// defaultWait is for calls that do not say how long.
	defaultWait = 25 * time.Second
	// longWait is for calls whose client is told of their progress.
	longWait = 10 * time.Minute
)

// limits bound the answers of one connection.
type limits struct {
	lines int           // rows and lines of one result
	wait  time.Duration // longest wait
	long  time.Duration // the same while the client is told of progress
}

// names is a set of tool names.
type names map[string]bool

// choice is what a set of variables selects.
type choice struct {
	toolsets []toolset
	tools    names
	exclude  names
}

// CheckToolsets tells whether all of these are toolsets.
func CheckToolsets(list []string) error {
	for _, name := range list {
		if membership[toolset(name)] == nil {
			return fmt.Errorf("%s is no toolset; there are %v", quote(name), toolsets)
		}
	}
	return nil
}

// CheckTools tells whether all of these are tools, and that there is one.
func CheckTools(list []string) error {
	if len(list) == 0 {
		return errors.New("it names no tool")
	}
	for _, name := range list {
		if !knownTool(name) {
			return fmt.Errorf("%s is no tool", quote(name))
		}
	}
	return nil
}

// CheckSelection tells whether the selection variables are fit to start with.
// A bridge calls it before it connects.
func CheckSelection(env map[string]string) error {
	_, err := choose(env, choice{})
	return err
}

// choose applies the rules of contract 1.7: toolsets, then added tools, then
// excluded ones. The toolsets and tools of base stand for an unset
// LIBTMUX_TOOLSETS.
func choose(env map[string]string, base choice) (choice, error) {
	for _, name := range retired {
		if _, ok := env[name]; ok {
			return choice{}, fmt.Errorf("%s is not supported any more; use %s, %s and %s",
				name, envToolsets, envTools, envExclude)
		}
	}
	if env[envSocket] != "" && env[envSocketPath] != "" {
		return choice{}, fmt.Errorf("%s and %s are both set; set one", envSocket, envSocketPath)
	}
	c := choice{toolsets: base.toolsets, tools: names{}, exclude: names{}}
	if text, ok := env[envToolsets]; ok {
		selected, err := toolsetList(text)
		if err != nil {
			return choice{}, err
		}
		c.toolsets, c.tools = selected, members(selected)
	} else {
		maps.Copy(c.tools, base.tools)
	}
	if err := toolList(env, envTools, c.tools); err != nil {
		return choice{}, err
	}
	return c, toolList(env, envExclude, c.exclude)
}

// members are the tools of toolsets.
func members(selected []toolset) names {
	all := names{}
	for _, s := range selected {
		for _, name := range membership[s] {
			all[name] = true
		}
	}
	return all
}

func toolsetList(text string) ([]toolset, error) {
	var list []toolset
	if text == "" {
		return list, nil // the empty list selects none
	}
	for item := range strings.SplitSeq(text, ",") {
		s := toolset(strings.TrimSpace(item))
		switch {
		case s == "":
			return nil, fmt.Errorf("%s has an empty item", envToolsets)
		case membership[s] == nil:
			return nil, fmt.Errorf("%s names an unknown toolset %s; there are %v", envToolsets, quote(string(s)), toolsets)
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}

func toolList(env map[string]string, variable string, into names) error {
	text, ok := env[variable]
	if !ok {
		return nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(item)
		if name == "" {
			return fmt.Errorf("%s has an empty item", variable)
		}
		if !knownTool(name) {
			return fmt.Errorf("%s names an unknown tool %s", variable, quote(name))
		}
		into[name] = true
	}
	return nil
}

func knownTool(name string) bool {
	for _, list := range membership {
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}

// lenient reads a positive decimal of a variable; anything else counts as
// unset (contract 1.7).
func lenient(env map[string]string, variable string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(env[variable]), 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return n, true // the largest int64: clamped by the caller
	}
	return n, err == nil && n > 0
}

func linesOf(env map[string]string) (int, bool) {
	n, ok := lenient(env, envMaxLines)
	return int(min(n, MaxLines)), ok
}

func waitOf(env map[string]string) (time.Duration, bool) {
	n, ok := lenient(env, envWaitMax)
	n = max(MinWait.Milliseconds(), min(n, MaxWait.Milliseconds()))
	return time.Duration(n) * time.Millisecond, ok
}

// selection is what one connection sees and may call.
type selection struct {
	toolsets   []toolset
	tools      map[string]*tool
	advertised []*sdk.Tool       // sorted by name
	listings   []json.RawMessage // the same, encoded
	excluded   names
	limits     limits
}

// maxPicks bounds the cache of selections; equal environments share one.
const maxPicks = 64

// selections makes and keeps the selections of connections. Safe for any
// goroutine.
type selections struct {
	table   *table
	precise bool
	ceiling names  // a connection may select within it
	own     choice // of the socket: what a connection gets that says nothing
	normal  limits // the same for limits
	top     limits // the most a connection may ask for

	mu    sync.Mutex
	known map[string]*selection
}

// start applies what a socket offers: it is the ceiling of every connection, and
// the selection of one that says nothing. Where the socket's policy says
// nothing, the ceiling is all there is, and the selection the contract's.
func (s *selections) start(t *table, cfg *PolicyConfig) error {
	s.table, s.known, s.precise = t, map[string]*selection{}, cfg.Precise
	base := []toolset{inspect, manage, execute}
	if t.cfg.Dedicated {
		base = toolsets
	}
	s.ceiling = members(toolsets)
	if cfg.Toolsets != nil {
		if err := CheckToolsets(cfg.Toolsets); err != nil {
			return err
		}
		base = make([]toolset, len(cfg.Toolsets))
		for i, name := range cfg.Toolsets {
			base[i] = toolset(name)
		}
		s.ceiling = members(base)
	}
	s.own = choice{toolsets: base, tools: members(base), exclude: names{}}
	for _, list := range []struct {
		names []string
		into  []names
	}{{cfg.Tools, []names{s.own.tools, s.ceiling}}, {cfg.Exclude, []names{s.own.exclude}}} {
		if list.names == nil {
			continue
		}
		if err := CheckTools(list.names); err != nil {
			return err
		}
		for _, set := range list.into {
			for _, name := range list.names {
				set[name] = true
			}
		}
	}
	s.normal = limits{lines: defaultLines, wait: defaultWaitMax, long: longWait}
	s.top = limits{lines: MaxLines, wait: defaultWaitMax, long: longWait}
	if n := cfg.MaxLines; n > 0 {
		s.normal.lines, s.top.lines = min(n, MaxLines), min(n, MaxLines)
	}
	if d := cfg.MaxWait; d > 0 {
		s.normal.wait = max(MinWait, min(d, MaxWait))
		s.top.wait = s.normal.wait
		s.normal.long, s.top.long = s.normal.wait, s.normal.wait
	}
	return nil
}

// of gives the selection of a caller.
func (s *selections) of(c *Caller) (*selection, error) {
	key := selectionKey(c.Hello.Env)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sel := s.known[key]; sel != nil {
		return sel, nil
	}
	sel, err := s.pick(c.Hello.Env)
	if err != nil {
		return nil, err
	}
	if len(s.known) >= maxPicks {
		clear(s.known)
	}
	s.known[key] = sel
	return sel, nil
}

// selectionKey is what of an environment decides a selection.
func selectionKey(env map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Concat([]string{
		envToolsets, envTools, envExclude, envMaxLines, envWaitMax,
		envSocket, envSocketPath,
	}, retired) {
		if v, ok := env[name]; ok {
			fmt.Fprintf(&b, "%s=%q\n", name, v)
		}
	}
	return b.String()
}

// pick makes a selection: what the variables choose, within the ceiling.
func (s *selections) pick(env map[string]string) (*selection, error) {
	chosen, err := choose(env, s.own)
	if err != nil {
		return nil, err
	}
	sel := &selection{toolsets: chosen.toolsets, tools: map[string]*tool{}, excluded: maps.Clone(s.own.exclude), limits: s.normal}
	maps.Copy(sel.excluded, chosen.exclude)
	for name := range chosen.tools {
		if row := s.table.byName[name]; row != nil && s.ceiling[name] && !sel.excluded[name] {
			sel.tools[name] = row.advertisedAs(s.precise)
		}
	}
	if sel.tools[batchName] != nil && len(sel.excluded) > 0 {
		sel.tools[batchName] = batchTool(s.table.byName, sel.excluded).advertisedAs(s.precise)
	}
	for _, name := range slices.Sorted(maps.Keys(sel.tools)) {
		sel.advertised = append(sel.advertised, sel.tools[name].advertised())
		sel.listings = append(sel.listings, sel.tools[name].listing)
	}
	if n, ok := linesOf(env); ok {
		sel.limits.lines = min(n, s.top.lines)
	}
	if d, ok := waitOf(env); ok {
		sel.limits.wait, sel.limits.long = min(d, s.top.wait), min(d, s.top.long)
	}
	return sel, nil
}
