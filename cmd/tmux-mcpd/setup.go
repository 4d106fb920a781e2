package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entryName is what the daemon is called in clients' configurations.
const entryName = "tmux"

// mcpClient is an MCP client whose configuration we can write.
type mcpClient struct {
	name  string
	title string
	path  func(lookup env) string // "" if there is no home
	// edit puts the entry into the text, or with a nil entry takes it out. It
	// answers the same text if there is nothing to do.
	edit func(text []byte, e *entry) ([]byte, error)
	typ  string // "type" of the entry, "" for none
}

// entry is how a client starts the bridge.
type entry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func mcpClients() []mcpClient {
	below := func(elem ...string) func(env) string {
		return func(lookup env) string {
			home, _ := lookup("HOME")
			if !filepath.IsAbs(home) {
				return ""
			}
			return filepath.Join(append([]string{home}, elem...)...)
		}
	}
	return []mcpClient{
		{name: "claude", title: "Claude Code", path: below(".claude.json"), edit: editJSON, typ: "stdio"},
		{name: "codex", title: "Codex", path: codexPath, edit: editTOML},
		{name: "gemini", title: "Gemini CLI", path: below(".gemini", "settings.json"), edit: editJSON},
		{name: "cursor", title: "Cursor", path: below(".cursor", "mcp.json"), edit: editJSON},
	}
}

func codexPath(lookup env) string {
	if home, _ := lookup("CODEX_HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, "config.toml")
	}
	home, _ := lookup("HOME")
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".codex", "config.toml")
}

// setup writes, shows or removes the daemon in a client's configuration.
func setup(_ context.Context, in *invocation) error {
	e, err := bridgeEntry(in.cfg)
	if err != nil {
		return err
	}
	names := make([]string, 0, 4)
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	if len(in.args) != 1 {
		return coded(exitUsage, "setup takes one client: %s; or any other name, for a text to paste", strings.Join(names, ", "))
	}
	i := slices.Index(names, in.args[0])
	if i < 0 {
		return printSnippet(in, e)
	}
	c := mcpClients()[i]
	path := c.path(os.LookupEnv)
	if path == "" {
		return coded(exitUsage, "HOME names no directory, and %s keeps its configuration there", c.title)
	}
	e.Type = c.typ
	return c.write(in, path, e)
}

// bridgeEntry is the command line that reaches the daemon of c. The program is
// named in full: clients start it with a PATH of their own.
func bridgeEntry(c *config) (*entry, error) {
	prog, err := self()
	if err != nil {
		return nil, err
	}
	e := &entry{Command: prog, Args: []string{"stdio"}}
	add := func(flag, value string) { e.Args = append(e.Args, "--"+flag, value) }
	if c.listenGiven {
		add("listen", c.main.path)
	}
	switch {
	case c.tmux.Name != "":
		add(socketNameFlag, c.tmux.Name)
	case c.tmux.Path != "":
		add(socketPathFlag, c.tmux.Path)
	}
	if strings.HasPrefix(c.origins[configFlag], "--") {
		add(configFlag, c.configPath)
	}
	return e, nil
}

// printSnippet is for clients whose files we do not know.
func printSnippet(in *invocation, e *entry) error {
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{entryName: e}}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "%s is none of the clients whose configuration setup can write. Most take:\n\n%s\n", in.args[0], text)
	return nil
}

// write edits the client's file, after a copy of it has been made.
func (c mcpClient) write(in *invocation, path string, e *entry) error {
	old, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	if in.cfg.remove {
		e = nil
	}
	text, err := c.edit(old, e)
	if err != nil {
		return coded(exitFailure, "%s: %w; nothing was changed", path, err)
	}
	switch {
	case missing && e == nil, bytes.Equal(old, text):
		fmt.Fprintf(in.stdout, "%s is as wanted\n", path)
		return nil
	case in.cfg.dryRun:
		fmt.Fprintf(in.stdout, "%s would be:\n%s", path, text)
		return nil
	}
	mode := fs.FileMode(0o600)
	if missing {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	} else {
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = fi.Mode().Perm()
		kept, err := keepCopy(path, old, mode)
		if err != nil {
			return fmt.Errorf("keeping a copy: %w", err)
		}
		fmt.Fprintf(in.stdout, "kept a copy in %s\n", kept)
	}
	if now, err := os.ReadFile(path); !missing && (err != nil || !bytes.Equal(now, old)) {
		return coded(exitFailure, "%s changed meanwhile; nothing was changed by us", path)
	}
	if err := replaceFile(path, text, mode); err != nil {
		return err
	}
	what := "wrote"
	if e == nil {
		what = "removed " + entryName + " from"
	}
	fmt.Fprintf(in.stdout, "%s %s; %s reads it when it starts\n", what, path, c.title)
	return nil
}

// keepCopy writes a copy beside a file, over no earlier one.
func keepCopy(path string, text []byte, mode fs.FileMode) (string, error) {
	for n := 0; ; n++ {
		name := path + "." + time.Now().Format("20060102-150405")
		if n > 0 {
			name += fmt.Sprintf("-%d", n)
		}
		name += ".bak"
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Close())
	}
}
