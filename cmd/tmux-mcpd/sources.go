package main

import (
	"slices"
)

// value is what a setting was given, and where.
type value struct {
	items []string // one, unless the setting is a list
	from  string
}

// sources are the places where settings stand.
type sources struct {
	given  map[string]string // flags
	lookup env
	file   *configFile
}

// value finds a setting's strongest value. An empty variable counts as unset:
// that is how a wrapper script clears one. Not so the family's lists, whose
// empty value is one.
func (src *sources) value(s *setting) (value, bool) {
	word := func(v, from string) (value, bool) {
		if s.kind == texts || s.kind == numbers {
			return value{split(v), from}, true
		}
		return value{[]string{v}, from}, true
	}
	if v, ok := src.given[s.flag]; ok {
		return word(v, "--"+s.flag)
	}
	for _, name := range s.env {
		if v, ok := src.lookup(name); ok && v != "" {
			return word(v, name)
		}
	}
	if v, ok := src.lookup(s.family); ok && s.family != "" {
		if v, ok := s.adapt(v); ok {
			return word(v, s.family)
		}
	}
	v, ok := src.file.top[s.key]
	return v, ok && s.key != ""
}

// Flags that rules below are about.
const (
	configFlag     = "config"
	socketPathFlag = "tmux-socket-path"
	socketNameFlag = "tmux-socket-name"
)

// layer tells how strongly a setting was given: 0 a flag, 1 and up the
// variables in order and then the file, -1 not at all.
func (src *sources) layer(flagName string) int {
	if _, ok := src.given[flagName]; ok {
		return 0
	}
	s := &settings[slices.IndexFunc(settings, func(s setting) bool { return s.flag == flagName })]
	for n, name := range s.env {
		if v, ok := src.lookup(name); ok && v != "" {
			return n + 1
		}
	}
	if _, ok := src.file.top[s.key]; ok {
		return len(s.env) + 1
	}
	return -1
}

// tmuxChoice refuses a name and a path given equally strongly: serving either
// would be a guess about whose panes an agent may touch.
func (src *sources) tmuxChoice(cmd string) error {
	p, n := src.layer(socketPathFlag), src.layer(socketNameFlag)
	if p < 0 || p != n {
		return nil
	}
	names := [][2]string{
		{"--" + socketPathFlag, "--" + socketNameFlag},
		{"TMUX_MCPD_TMUX_SOCKET_PATH", "TMUX_MCPD_TMUX_SOCKET_NAME"},
		{"LIBTMUX_SOCKET_PATH", "LIBTMUX_SOCKET"},
		{src.file.top["tmux_socket_path"].from + ": tmux_socket_path", "tmux_socket_name"},
	}[p]
	return coded(exitUsage, "%s and %s are both given; only one can choose the tmux server (see tmux-mcpd help %s)", names[0], names[1], cmd)
}

// shadowed tells whether the other way of naming the tmux server was given more
// strongly, so that this one does not count.
func (src *sources) shadowed(flagName string) bool {
	other := map[string]string{socketPathFlag: socketNameFlag, socketNameFlag: socketPathFlag}[flagName]
	if other == "" {
		return false
	}
	mine, theirs := src.layer(flagName), src.layer(other)
	return theirs >= 0 && theirs < mine
}
