package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// tmuxTimeout bounds every tmux process started here. They answer within
// milliseconds; a stopped server makes a client wait for ever.
const tmuxTimeout = 10 * time.Second

// oldestTmux is the first release whose control mode has what the daemon stands
// on: pause-after, %extended-output, client flags that work.
const oldestTmux = "3.2a"

// checkTmux makes sure that the tmux binary runs and is new enough. It returns
// the version's text.
func checkTmux(ctx context.Context, c *config) (string, error) {
	v, err := controlmode.Binary{Path: c.tmuxBin, Timeout: tmuxTimeout}.Version(ctx)
	switch {
	case errors.Is(err, controlmode.ErrNoBinary):
		return "", coded(exitNoTmux, "%w; install tmux %s or newer, or name it with --tmux-bin", err, oldestTmux)
	case err != nil:
		return "", coded(exitNoTmux, "%s cannot be used: %w", c.bin(), err)
	case !v.AtLeast(oldestTmux):
		return "", coded(exitOldTmux, "tmux %s is too old; %s or newer is needed (%s)", v, oldestTmux, c.bin())
	}
	return v.String(), nil
}

// dedicatedMark is a server option that only startDedicated sets. It proves to
// a later daemon that the server holds nothing but what agents made.
const dedicatedMark = "@tmux-mcpd-dedicated"

// startDedicated makes sure that a tmux server of our own runs, with a first
// session "main" and a configuration that is ours alone, and tells whether it
// is one that we started, now or earlier. A server that somebody else started
// on that socket is served but not touched.
func startDedicated(ctx context.Context, c *config) (ours bool, err error) {
	if ours, running := askMark(ctx, c); running {
		return ours, nil
	}
	server := serverConfig(c, true)
	words := []string{"-d", "-E", "-s", "main", "-x", "120", "-y", "40"}
	if home, homeErr := os.UserHomeDir(); homeErr == nil {
		words = append(words, "-c", controlmode.LiteralFormat(home)) // else it begins where tmux was started
	}
	first := controlmode.Cmd("new-session", words...)
	_, err = controlmode.Binary{Path: c.tmuxBin, Socket: c.chosen(), Timeout: tmuxTimeout}.Start(ctx, server.File, append(server.Commands, first)...)
	if err != nil {
		// Another daemon may have been first.
		if ours, running := askMark(ctx, c); running {
			return ours, nil
		}
		return false, coded(exitStartTmux, "starting the dedicated tmux server: %w", err)
	}
	return true, nil
}

// serverConfig is how we start a tmux server. One of our own is started on one
// command line with what makes the first session, so that options hold before
// the first pane exists and exit-empty cannot end the server in between.
func serverConfig(c *config, dedicated bool) state.ServerConfig {
	server := state.ServerConfig{File: c.tmuxConfig}
	if !dedicated {
		return server
	}
	if server.File == "" {
		server.File = os.DevNull
	}
	server.Commands = []controlmode.Command{
		controlmode.Cmd("start-server"),
		controlmode.Cmd("set-option", "-s", "exit-empty", "off"),
		controlmode.Cmd("set-option", "-s", dedicatedMark, "1"),
		controlmode.Cmd("set-option", "-g", "history-limit", "20000"),
	}
	return server
}

// chosen is the tmux server's socket as tmux is to be told of it. Without a choice,
// too, a path is given: tmux would follow TMUX otherwise.
func (c *config) chosen() controlmode.Socket {
	if c.tmux.Name != "" {
		return controlmode.Socket{Name: c.tmux.Name}
	}
	return controlmode.Socket{Path: c.tmuxSocket}
}

// askMark asks the server, if it runs, whether it is ours.
func askMark(ctx context.Context, c *config) (ours, running bool) {
	out, err := controlmode.Binary{
		Path: c.tmuxBin, Socket: controlmode.Socket{Path: c.tmuxSocket}, Timeout: tmuxTimeout,
	}.Output(ctx, controlmode.Cmd("show-options", "-sqv", dedicatedMark))
	return strings.TrimSpace(string(out)) == "1", err == nil
}
