package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tmuxTimeout bounds every tmux process started here. They answer within
// milliseconds; a stopped server makes a client wait for ever.
const tmuxTimeout = 10 * time.Second

// checkTmux makes sure that the tmux binary runs and is new enough, 3.2a: the
// first release whose control mode has what the daemon stands on (pause-after,
// %extended-output, client flags that work). It returns the version's text.
func checkTmux(ctx context.Context, bin string) (string, error) {
	path, err := exec.LookPath(bin)
	if err != nil {
		return "", coded(exitNoTmux, "no tmux binary: %w; install tmux 3.2a or newer, or name it with --tmux-bin", err)
	}
	ctx, cancel := context.WithTimeout(ctx, tmuxTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-V")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", coded(exitNoTmux, "the tmux binary %s cannot be run: %w", path, err)
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "tmux ")
	if !ok {
		return "", coded(exitNoTmux, "%s is not tmux: -V printed %.80q", path, out)
	}
	if !newEnough(text) {
		return "", coded(exitOldTmux, "tmux %s is too old; 3.2a or newer is needed (%s)", text, path)
	}
	return text, nil
}

var versionRE = regexp.MustCompile(`^(?:next-)?(\d+)\.(\d+)([a-z]?)(-rc\d*)?$`)

// newEnough compares with 3.2a. Versions that are no numbers ("master",
// "openbsd-7.6") are builds of a development tree newer than that.
func newEnough(version string) bool {
	m := versionRE.FindStringSubmatch(version)
	if m == nil {
		return true
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err := errors.Join(err1, err2); err != nil {
		return true // longer than any number: not one of the old ones
	}
	switch {
	case major != 3:
		return major > 3
	case minor != 2:
		return minor > 2
	}
	return m[3] != "" && m[4] == ""
}

// dedicatedMark is a server option that only startDedicated sets. It proves to
// a later daemon that the server holds nothing but what agents made.
const dedicatedMark = "@tmux-mcpd-dedicated"

// startDedicated makes sure that a tmux server of our own runs, with a first
// session "main" and a configuration that is ours alone, and tells whether it
// is one that we started, now or earlier. A server that somebody else started
// on that socket is served but not touched.
func startDedicated(ctx context.Context, c *config) (ours bool, err error) {
	if mark, err := tmux(ctx, c, nil, "-N", "show-options", "-sqv", dedicatedMark); err == nil {
		return strings.TrimSpace(mark) == "1", nil
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
		if _, err = tmux(ctx, c, scope, start...); err == nil {
			return true, nil
		}
		// No systemd that would answer, a bus that is not there: without a
		// scope the server still runs.
	}
	_, err = tmux(ctx, c, nil, start...)
	if err != nil {
		// Another daemon may have been first.
		if mark, again := tmux(ctx, c, nil, "-N", "show-options", "-sqv", dedicatedMark); again == nil {
			return strings.TrimSpace(mark) == "1", nil
		}
		return false, coded(exitStartTmux, "starting the dedicated tmux server: %w", err)
	}
	return true, nil
}

// tmux runs one tmux process on the configured server. prefix is a program
// with arguments that starts it.
func tmux(ctx context.Context, c *config, prefix []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tmuxTimeout)
	defer cancel()
	words := append(append(prefix[:len(prefix):len(prefix)], c.bin(), "-u"), selectArgs(c)...)
	words = append(words, args...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	// TMUX would make tmux refuse to nest or pick another server; TMUX_PANE
	// would be inherited by every pane of a server started here.
	cmd.Env = withoutTmux(os.Environ())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			err = fmt.Errorf("%s (%w)", text, err)
		}
		return "", err
	}
	return stdout.String(), nil
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
