package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"tmux-mcpd/controlmode"
)

// bridgeClient starts a bridge and shakes hands through it. end waits for its
// end, which closing the client brings about.
func bridgeClient(ctx context.Context, prog string, args, environ []string) (cl *client, end func() error, err error) {
	cmd := exec.CommandContext(ctx, prog, args...)
	cmd.Env = environ
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, childIn.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	err = cmd.Start()
	childIn.Close()
	childOut.Close()
	p := pipes{in, out}
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	if cl, err = newClient(ctx, p, nil); err != nil {
		return nil, nil, errors.Join(err, cmd.Wait())
	}
	return cl, cmd.Wait, nil
}

// tryInput proves input and its echo on a tmux server, a daemon and a bridge that
// are made for it and ended again.
func tryInput(ctx context.Context, c *config) (f finding, err error) {
	dir, err := os.MkdirTemp("", "mcpd")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	tmux := controlmode.Socket{Path: filepath.Join(dir, "s")}
	socket := filepath.Join(dir, "m")
	run := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, c.bin(), append([]string{"-u", "-S", tmux.Path, "-f", os.DevNull}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
		}
		return nil
	}
	if err := run(ctx, "new-session", "-d", "-x", "80", "-y", "24", "exec cat"); err != nil {
		return f, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tmuxTimeout)
		defer cancel()
		err = errors.Join(err, run(ctx, "kill-server"))
	}()
	prog, err := self()
	if err != nil {
		return f, err
	}
	none := filepath.Join(dir, configName) // the user's configuration is not what is tried
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		return f, err
	}
	mine := []string{"--listen", socket, "--" + socketPathFlag, tmux.Path, "--" + configFlag, none}
	daemon := exec.CommandContext(ctx, prog, append([]string{"serve", "--log-level", "error", "--tmux-bin", c.bin()}, mine...)...)
	environ := withoutSettings(os.Environ())
	daemon.Env = environ
	var said bytes.Buffer
	daemon.Stderr = &said
	if err := daemon.Start(); err != nil {
		return f, err
	}
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGTERM) // it may have ended
		if derr := daemon.Wait(); derr != nil {
			err = errors.Join(err, fmt.Errorf("its daemon: %w: %s", derr, bytes.TrimSpace(said.Bytes())))
		}
	}()
	bridge := append([]string{"stdio", "--no-start"}, mine...)
	cl, end, err := bridgeClient(ctx, prog, bridge, environ)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, cl.close(), end()) }()
	return echo(ctx, cl)
}

// echo types a word into pane %0 and waits until the pane shows it.
func echo(ctx context.Context, cl *client) (f finding, err error) {
	const word = "tmux-mcpd é #{pane_id} ;"
	var at struct {
		Cursor string `json:"cursor"`
		Text   string `json:"text"`
	}
	if err := cl.tool(ctx, &at, "capture_since", map[string]any{"paneId": "%0"}); err != nil {
		return f, err
	}
	begin := time.Now()
	var sent struct{}
	err = cl.tool(ctx, &sent, "send_keys", map[string]any{"paneId": "%0", "keys": word, "literal": true, "enter": false})
	if err != nil {
		return f, err
	}
	seen := ""
	for !strings.Contains(seen, word) {
		err := cl.tool(ctx, &at, "capture_since", map[string]any{"paneId": "%0", "cursor": at.Cursor, "waitMs": 5000})
		if err != nil {
			return f, err
		}
		if at.Text == "" {
			return f, fmt.Errorf("typed %q, the pane shows %q", word, seen)
		}
		seen += at.Text
	}
	return finding{Outcome: fine, Text: fmt.Sprintf("typed and read back byte for byte in %v, on a tmux server of its own",
		time.Since(begin).Round(10*time.Microsecond))}, nil
}

// withoutSettings is an environment that says nothing about a daemon.
func withoutSettings(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "TMUX_MCPD_") && !strings.HasPrefix(kv, "LIBTMUX_") && !strings.HasPrefix(kv, "TMUX=") && !strings.HasPrefix(kv, "TMUX_PANE=") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// readEntry finds the daemon in a client's configuration, nil if it is not there.
func readEntry(path string, text []byte) (*entry, error) {
	var doc struct {
		JSON map[string]entry `json:"mcpServers" toml:"-"`
		TOML map[string]entry `json:"-" toml:"mcp_servers"`
	}
	if strings.HasSuffix(path, ".toml") {
		if err := toml.Unmarshal(text, &doc); err != nil {
			return nil, err
		}
		doc.JSON = doc.TOML
	} else {
		plain, err := hujson.Standardize(text)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(plain, &doc); err != nil {
			return nil, err
		}
	}
	if e, ok := doc.JSON[entryName]; ok {
		return &e, nil
	}
	for _, e := range doc.JSON { // under a name of the user's choice
		if filepath.Base(e.Command) == "tmux-mcpd" {
			return &e, nil
		}
	}
	return nil, nil
}
