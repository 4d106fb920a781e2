package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// foreignChecks are the checks of foreign/talk.mjs, all of which must have run.
var foreignChecks = []string{"version", "list", "call", "resource", "subscribe", "error", "cancel", "progress", "large", "parallel", "complaints"}

// foreignLines is how many lines the pane of the large answer has printed. A
// capture has the newest 390 of them.
const foreignLines = 1_000

// TestForeignClients lets MCP clients of other people talk to a daemon: list,
// call, error, cancel, large result. It is skipped where there is no node, or
// where npm cannot be reached and its packages are not in .cache yet.
func TestForeignClients(t *testing.T) {
	modules := foreignModules(t)
	x := startTmux(t)
	bin, env := foreignDaemon(x)
	x.run("set-option", "-g", "history-limit", fmt.Sprint(foreignLines+100))
	long := x.run("new-window", "-d", "-P", "-F", "#{pane_id}", "-n", "long",
		fmt.Sprintf("seq -f %%079.0f 1 %d; %s -S %s wait-for -S printed; exec cat", foreignLines, x.bin, x.sock))
	x.run("wait-for", "printed")
	env = append(env, "LONG_PANE="+long, fmt.Sprint("LINES=", foreignLines))
	t.Run("inspector/cancel", func(t *testing.T) { inspectCancelled(t, modules, bin, env) })

	// With one pane for all, the typing of one would end the wait of another.
	for _, kind := range []string{"sdk1", "sdk2-2025", "sdk2-2026"} {
		for _, way := range []string{"stdio", "socket"} {
			pane := x.run("new-window", "-d", "-P", "-F", "#{pane_id}", "cat")
			shell := x.run("new-window", "-d", "-P", "-F", "#{pane_id}", "HISTFILE= exec bash --norc -i")
			t.Run(kind+"/"+way, func(t *testing.T) {
				t.Parallel()
				out, err := node(t, modules, append(slices.Clone(env), "CAT_PANE="+pane, "SHELL_PANE="+shell), "talk.mjs", kind, way)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for _, check := range foreignChecks {
					if !strings.Contains(out, "ok "+check+"\n") {
						t.Errorf("%s was not checked:\n%s", check, out)
					}
				}
			})
		}
	}
	t.Run("inspector", func(t *testing.T) {
		t.Parallel()
		inspect(t, modules, bin, env, long)
	})
}

// inspectorCLI is what the Inspector runs for its --cli mode. The rest of the
// Inspector, a web application, is three times as large and not installed.
const inspectorCLI = "node_modules/@modelcontextprotocol/inspector-cli/build/index.js"

// inspect runs the Inspector's command line. It makes one request per run.
func inspect(t *testing.T, modules, bin string, env []string, long string) {
	run := func(into any, args ...string) (string, error) {
		out, err := node(t, modules, env, append([]string{inspectorCLI, bin, "stdio", "--method"}, args...)...)
		if err == nil && into != nil {
			if err := json.Unmarshal([]byte(out), into); err != nil {
				t.Fatalf("%q printed %.300q: %v", args, out, err)
			}
		}
		return out, err
	}
	call := func(t *testing.T, tool string, args ...string) (r struct {
		Content           []struct{ Text string }
		IsError           bool
		StructuredContent map[string]any
	},
	) {
		line := []string{"tools/call", "--tool-name", tool}
		for _, a := range args {
			line = append(line, "--tool-arg", a)
		}
		if out, err := run(&r, line...); err != nil || len(r.Content) != 1 {
			t.Fatalf("%s: %v\n%s", tool, err, out)
		}
		return r
	}
	t.Run("list", func(t *testing.T) {
		t.Parallel()
		var list struct{ Tools []struct{ Name string } }
		if out, err := run(&list, "tools/list"); err != nil || len(list.Tools) < 17 {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("call", func(t *testing.T) {
		t.Parallel()
		if r := call(t, "get_pane_info", "paneId=%0"); r.IsError || r.StructuredContent["pane"].(map[string]any)["id"] != "%0" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("error", func(t *testing.T) {
		t.Parallel()
		if r := call(t, "get_pane_info", "paneId=%999"); !r.IsError || !strings.Contains(r.Content[0].Text, "does not exist") {
			t.Errorf("%+v", r)
		}
		if out, err := run(nil, "tools/call", "--tool-name", "no_such_tool"); err == nil || !strings.Contains(out, "unknown tool") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		capture := fmt.Sprintf(`{"tool":"capture_pane","arguments":{"paneId":%q,"start":-9999,"maxLines":9999}}`, long)
		operations := "[" + strings.TrimSuffix(strings.Repeat(capture+",", 15), ",") + "]"
		r := call(t, "call_read_tools_batch", "operations="+operations)
		if size := len(fmt.Sprint(r.StructuredContent)); size < 800_000 || r.StructuredContent["succeeded"] != 15.0 {
			t.Errorf("%d bytes: %.300v", size, r.StructuredContent)
		}
	})
	t.Run("resource", func(t *testing.T) {
		t.Parallel()
		if out, err := run(nil, "resources/read", "--uri", "tmux://capabilities"); err != nil || !strings.Contains(out, "effectiveTools") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// inspectCancelled: the only way to cancel what the Inspector's command line
// has asked for is to interrupt it. The daemon then gives the call up.
func inspectCancelled(t *testing.T, modules, bin string, env []string) {
	inFlight := func() int {
		cmd := exec.Command(bin, "status", "--json")
		cmd.Env = env
		out, err := cmd.Output()
		var s struct{ Clients struct{ InFlight int } }
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		if err != nil {
			t.Fatalf("status: %v: %s", err, out)
		}
		return s.Clients.InFlight
	}
	idle := inFlight() // the question itself may count
	first := exec.Command(bin, "call", "--json", "capture_since", "paneId=%0")
	first.Env = env
	out, err := first.Output()
	var seed struct{ Cursor string }
	if err != nil || json.Unmarshal(out, &seed) != nil {
		t.Fatalf("capture_since: %v: %s", err, out)
	}
	cmd := exec.Command("node", inspectorCLI, bin, "stdio", "--method", "tools/call", "--tool-name", "capture_since",
		"--tool-arg", "paneId=%0", "--tool-arg", "cursor="+seed.Cursor, "--tool-arg", "waitMs=50000")
	cmd.Dir, cmd.Env = modules, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the call in flight", func() bool { return inFlight() > idle })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as Ctrl-C does
		t.Error(err)
	}
	cmd.Wait() // how it says that it was interrupted is its own affair
	until(t, "the call given up", func() bool { return inFlight() == idle })
}

// foreignModules is the folder in .cache with the scripts of foreign/ and their
// installed packages. It is kept for the next run.
func foreignModules(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("foreign clients need node and npm: ", err)
		}
	}
	dir, err := filepath.Abs(filepath.Join("..", ".cache", "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile(filepath.Join("foreign", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	// The stamp is the lock file that was installed in full.
	stamp := filepath.Join(dir, "installed")
	old, _ := os.ReadFile(stamp)
	files, err := filepath.Glob(filepath.Join("foreign", "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("files of foreign: %v, %v", files, err)
	}
	for _, f := range files {
		copyFile(t, f, filepath.Join(dir, filepath.Base(f)))
	}
	if bytes.Equal(old, lock) {
		return dir
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if unreachable(string(out)) || ctx.Err() != nil {
			t.Skipf("foreign clients need npm, which cannot be reached: %v\n%s", err, out)
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(stamp, lock, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unreachable tells npm's words for a registry that it does not get to.
func unreachable(out string) bool {
	for _, code := range []string{
		"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT",
		"EHOSTUNREACH",
	} {
		if strings.Contains(out, code) {
			return true
		}
	}
	return false
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// node runs node in a folder and gives what it printed.
func node(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = dir
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// foreignDaemon serves the tools of a private tmux that are selected by default, with answers as large
// as can be. The environment is that in which the program finds the daemon.
func foreignDaemon(x *tmux) (bin string, env []string) {
	x.t.Helper()
	d := x.daemon("LIBTMUX_MCP_MAX_RESULT_LINES=10000")
	return d.cmd.Path, append(slices.Clone(d.env), "TMUX_MCPD="+d.cmd.Path)
}

// TestX01BadLinesThroughTheBridge: a line that is no message costs an error, not
// the session, and the bridge passes it on like any other.
func TestX01BadLinesThroughTheBridge(t *testing.T) {
	x := startTmux(t)
	bin, env := foreignDaemon(x)
	cmd := exec.Command(bin, "stdio", "--no-start")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewReader(out)
	for _, c := range []struct{ send, want string }{
		{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":`,
		},
		{`{bad`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"},`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{``, ``},
		{"\xff\xff\xff\xff", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","id":3,"result":{}}`},
	} {
		if _, err := io.WriteString(in, c.send+"\n"); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			continue // no answer is due; one would be read in place of the next
		}
		if got, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(got, c.want) {
			t.Fatalf("after %q: %q, %v, want %q", c.send, got, err, c.want)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the bridge: %v", err)
	}
}
