package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
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
	if c.tmux.Name == "" {
		// tmux makes the directory for -L only.
		if err := os.MkdirAll(filepath.Dir(c.tmuxSocket), 0o700); err != nil {
			return false, coded(exitStartTmux, "directory for the dedicated tmux server: %w", err)
		}
	}
	// One command line, so that options hold before the first pane exists and
	// exit-empty cannot end the server in between.
	start := []string{
		"-f", os.DevNull,
		"start-server", ";",
		"set-option", "-s", "exit-empty", "off", ";",
		"set-option", "-s", dedicatedMark, "1", ";",
		"set-option", "-g", "history-limit", "20000", ";",
		"new-session", "-d", "-s", "main", "-x", "120", "-y", "40",
	}
	if scope := ownScope(); scope != nil {
		if err = startTmux(ctx, c, scope, start); err == nil {
			return true, nil
		}
		// No systemd that would answer, a bus that is not there: without a
		// scope the server still runs.
	}
	err = startTmux(ctx, c, nil, start)
	if err != nil {
		// Another daemon may have been first.
		if ours, running := askMark(ctx, c); running {
			return ours, nil
		}
		return false, coded(exitStartTmux, "starting the dedicated tmux server: %w", err)
	}
	return true, nil
}

// askMark asks the server, if it runs, whether it is ours.
func askMark(ctx context.Context, c *config) (ours, running bool) {
	out, err := controlmode.Binary{
		Path: c.tmuxBin, Socket: controlmode.Socket{Path: c.tmuxSocket}, Timeout: tmuxTimeout,
	}.Output(ctx, controlmode.Cmd("show-options", "-sqv", dedicatedMark))
	return strings.TrimSpace(string(out)) == "1", err == nil
}

// startTmux runs tmux so that it may start the configured server. prefix is a
// program with arguments that runs it.
func startTmux(ctx context.Context, c *config, prefix, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, tmuxTimeout)
	defer cancel()
	words := append(slices.Clone(prefix), c.bin(), "-u")
	words = append(append(words, selectArgs(c)...), args...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	// TMUX would choose another server, and both would be in the environment
	// of every pane of the new one.
	cmd.Env = withoutTmux(os.Environ())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		return fmt.Errorf("%s (%w)", text, err)
	}
	return err
}

func selectArgs(c *config) []string {
	if c.tmux.Name != "" {
		return []string{"-L", c.tmux.Name}
	}
	return []string{"-S", c.tmuxSocket}
}

func withoutTmux(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if name != "TMUX" && name != "TMUX_PANE" {
			out = append(out, kv)
		}
	}
	return out
}

// ownScope is what to put before a tmux command that starts a server, so that
// the server is not in our service's control group and outlives a restart of
// the daemon (systemd ends everything in the group). tmux leaves our session
// and process group by itself. Nil where there is no systemd to ask.
func ownScope() []string {
	if _, inService := os.LookupEnv("INVOCATION_ID"); !inService {
		return nil // not a systemd service: nothing ends with us
	}
	run, err := exec.LookPath("systemd-run")
	if err != nil {
		return nil
	}
	args := []string{run, "--scope", "--quiet", "--collect"}
	if os.Getuid() != 0 {
		args = append(args, "--user")
	}
	return append(args, "--")
}
