package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tmux-mcpd/mcp"
)

// showConfig prints the effective settings.
func showConfig(_ context.Context, in *invocation) error {
	_, err := io.WriteString(in.stdout, in.cfg.text())
	return err
}

// text is the configuration as a file that says the same.
func (c *config) text() string {
	var b strings.Builder
	if c.configPath == "" {
		b.WriteString("# no configuration file\n")
	} else {
		b.WriteString("# configuration file " + c.configPath + "\n")
	}
	for i := range settings {
		s := &settings[i]
		if s.key != "" && s.set != nil {
			b.WriteString(s.line(c, &c.main, c.origins[s.flag]))
		}
	}
	b.WriteString("\n# the daemon's own socket\n")
	c.writeListener(&b, &c.main)
	for _, l := range c.further {
		b.WriteString("\n[[listen]]\n")
		c.writeListener(&b, l)
	}
	return b.String()
}

func (c *config) writeListener(b *strings.Builder, l *listener) {
	for i := range settings {
		if s := &settings[i]; s.of != nil {
			b.WriteString(s.line(c, l, l.origins[s.flag]))
		}
	}
	if l.policy.Sessions != nil {
		b.WriteString("# in tmux, the names of this socket's channels begin with " + mcp.ChannelPrefix(l.path) + "\n")
	}
}

// line is one setting. One without a value is a comment.
func (s *setting) line(c *config, l *listener, from string) string {
	v := s.show(c, l)
	if from == "" {
		from = "default"
	}
	if v == nil {
		if s.def != "" {
			from += ": " + s.def
		}
		return fmt.Sprintf("# %s is not set  # %s\n", s.key, from)
	}
	return fmt.Sprintf("%s = %s  # %s\n", s.key, tomlText(v), from)
}

// tomlText writes a value as TOML does. Settings hold no control characters,
// for which Go's quotes would not do.
func tomlText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []string:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = strconv.Quote(w)
		}
		return "[" + strings.Join(words, ", ") + "]"
	case []int:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	}
	return fmt.Sprint(v)
}
