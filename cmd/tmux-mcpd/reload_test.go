package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// connected is a client of a socket that stays connected.
func connected(t *testing.T, path string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	conn, err := dial(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := newClient(ctx, conn, &config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.close() })
	return cl
}

// offered are the names of the tools of a connection.
func offered(t *testing.T, cl *client) string {
	t.Helper()
	raw, err := cl.request(t.Context(), "tools/list", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// A reload changes what can change under connections that stay, says what
// cannot, and a faulty file changes nothing.
func TestServeReload(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.dir, "c.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(p.dir, "one.sock"), filepath.Join(p.dir, "two.sock")
	write("[[listen]]\npath = \"one.sock\"\ntools = [\"list_panes\"]\ntoolsets = []\nmode = \"0660\"\n")
	s := p.serve("--config", file)
	reload := func(text, said string) {
		t.Helper()
		write(text)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for line := ""; !strings.Contains(line, said); {
			line = s.line("{")
		}
	}
	mode := func(path string, want fs.FileMode) {
		t.Helper()
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %v", path, fi, err, want)
		}
	}
	own, further := connected(t, p.socket()), connected(t, one)
	if got := offered(t, further); got != "list_panes" {
		t.Errorf("the further socket offers %q", got)
	}
	if got := offered(t, own); !strings.Contains(got, "list_windows") {
		t.Errorf("the daemon's own socket offers %q", got)
	}
	mode(one, 0o660)

	reload("nonsense = 1\n", "configuration not reloaded")
	if got := offered(t, further); got != "list_panes" {
		t.Errorf("after a faulty file it offers %q", got)
	}
	reload("watch = \"all\"\nexclude = [\"list_windows\"]\n[[listen]]\npath = \"one.sock\"\ntools = [\"list_sessions\"]\ntoolsets = []\n"+
		"[[listen]]\npath = \"two.sock\"\n", `"this takes a restart to change"`)
	for line := ""; !strings.Contains(line, `"configuration reloaded"`); {
		line = s.line("{")
	}
	if got := offered(t, further); got != "list_sessions" {
		t.Errorf("after the reload it offers %q", got)
	}
	if got := offered(t, own); strings.Contains(got, "list_windows") || !strings.Contains(got, "list_panes") {
		t.Errorf("after the reload the daemon's own socket offers %q", got)
	}
	mode(one, 0o600)
	if got := offered(t, connected(t, two)); strings.Contains(got, "list_windows") || !strings.Contains(got, "list_panes") {
		t.Errorf("the new socket, which inherits, offers %q", got)
	}

	reload("", "configuration reloaded")
	if _, err := further.request(t.Context(), "tools/list", map[string]any{}); err == nil {
		t.Error("a connection through a socket that is gone is served")
	}
	if _, err := os.Lstat(one); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a socket that is not listed any more: %v", err)
	}
	if got := offered(t, own); !strings.Contains(got, "list_windows") {
		t.Errorf("back without a file it offers %q", got)
	}
}

// A daemon that runs in a terminal ends with it; a background one has no
// terminal that could close, and reloads.
func TestServeTerminalCloses(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("tmux-mcpd", "serve")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := terminal.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Log(err) // a terminal without deadlines: the test's own will do
	}
	var seen strings.Builder
	b := make([]byte, 4096)
	for !strings.Contains(seen.String(), "tmux-mcpd: ready on ") {
		n, err := terminal.Read(b)
		seen.Write(b[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
	}
	go io.Copy(io.Discard, terminal)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
