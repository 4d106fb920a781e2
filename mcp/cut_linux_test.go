package mcp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tmux-mcpd/state"
)

// cutEnv names the folder of a cut to this test binary when it stands between the
// daemon and its control clients.
const cutEnv = "TMUX_MCPD_TEST_CUT"

// cut is what stands between the daemon and tmux in all control clients of a rig:
// it keeps every line that goes to tmux, and cuts once, at the line that holds a
// command.
type cut struct {
	*rig
	dir string
}

// newCutRig is a rig whose control clients can be cut. timeout is tmux's.
func newCutRig(t *testing.T, timeout time.Duration) *cut {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmux := os.Getenv("TMUX_MCPD_TEST_TMUX")
	if tmux == "" {
		if tmux, err = exec.LookPath("tmux"); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' -C '*) %s=%s TMUX_REAL=%s exec %s \"$@\";; esac\nexec %s \"$@\"\n", cutEnv, dir, tmux, self, tmux)
	bin := filepath.Join(dir, "tmux")
	if err := os.WriteFile(bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRigOn(t, bin, nil, func(c *state.Config) { c.Timeout = timeout })
	r.bin = tmux // what the test itself asks goes straight to it
	r.caller = everyTool()
	return &cut{rig: r.start(), dir: dir}
}

// arm sets the command that is cut at next, and how.
func (c *cut) arm(command, how string) {
	c.Helper()
	os.Remove(filepath.Join(c.dir, "done"))
	server := c.tmux("display-message", "-p", "#{pid}")
	if err := os.WriteFile(filepath.Join(c.dir, "armed"), []byte(command+" "+how+" "+server), 0o600); err != nil {
		c.Fatal(err)
	}
}

// sent is how many lines with the command have gone to tmux.
func (c *cut) sent(command string) int {
	lines, err := os.ReadFile(filepath.Join(c.dir, "lines"))
	if err != nil {
		c.Fatal(err)
	}
	return len(withCommand(command).FindAll(lines, -1))
}

func withCommand(command string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(^|; )` + command + ` .*$`)
}

func init() { instead = append(instead, standBetween) }

// standBetween becomes a control client, with another process in between. tmux and
// the daemon know the client by its process.
func standBetween() {
	dir := os.Getenv(cutEnv)
	if dir == "" {
		return
	}
	if client, err := strconv.Atoi(os.Getenv("TMUX_CLIENT")); err == nil {
		forward(dir, client)
		os.Exit(0)
	}
	var in, out [2]int
	must(syscall.Pipe2(in[:], syscall.O_CLOEXEC))
	must(syscall.Pipe2(out[:], syscall.O_CLOEXEC))
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), fmt.Sprintf("TMUX_CLIENT=%d", os.Getpid()))
	other.Stdin, other.Stdout = os.Stdin, os.Stdout
	other.ExtraFiles = []*os.File{os.NewFile(uintptr(in[1]), "in"), os.NewFile(uintptr(out[0]), "out")}
	must(other.Start())
	must(syscall.Dup3(in[0], 0, 0))
	must(syscall.Dup3(out[1], 1, 0))
	must(syscall.Exec(os.Getenv("TMUX_REAL"), append([]string{"tmux"}, os.Args[1:]...), os.Environ()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// forward passes everything on, until it cuts.
func forward(dir string, client int) {
	toTmux, fromTmux := os.NewFile(3, "in"), os.NewFile(4, "out")
	lines, err := os.OpenFile(filepath.Join(dir, "lines"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	var mu sync.Mutex
	deaf := false // no answer is passed on any more
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := fromTmux.Read(buf)
			mu.Lock()
			if err != nil {
				os.Exit(0)
			}
			if !deaf {
				os.Stdout.Write(buf[:n])
			}
			mu.Unlock()
		}
	}()
	for r := bufio.NewReader(os.Stdin); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		_, err = lines.Write(line)
		must(err)
		how, server := armed(dir, line)
		mu.Lock()
		deaf = deaf || how != "" && how != "stop"
		mu.Unlock()
		if how == "stop" {
			must(syscall.Kill(server, syscall.SIGSTOP))
		}
		if _, err := toTmux.Write(line); err != nil {
			return
		}
		switch how {
		case "connection":
			must(syscall.Kill(client, syscall.SIGKILL))
			return
		case "tmux":
			must(syscall.Kill(server, syscall.SIGKILL))
		}
	}
}

// armed tells whether, and how, to cut at a line. Only one line is cut at.
func armed(dir string, line []byte) (how string, server int) {
	spec, err := os.ReadFile(filepath.Join(dir, "armed"))
	words := strings.Fields(string(spec))
	if err != nil || len(words) != 3 || !withCommand(words[0]).Match(line) {
		return "", 0
	}
	f, err := os.OpenFile(filepath.Join(dir, "done"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0
	}
	f.Close()
	server, err = strconv.Atoi(words[2])
	must(err)
	return words[1], server
}

// cutCalls are calls of the tools that change something, each with the command
// that changes it. The pane runs a shell when the tool is to run a command.
var cutCalls = []struct {
	tool, command string
	of            func(pane, window, session string) args
	cursor        bool // the answer has one
}{
	{"send_keys", "send-keys", func(p, _, _ string) args { return args{"paneId": p, "keys": "once"} }, true},
	{"paste_text", "paste-buffer", func(p, _, _ string) args { return args{"paneId": p, "text": "once"} }, true},
	{sendBatchName, "send-keys", func(p, _, _ string) args {
		return args{"operations": []args{{"pane_id": p, "keys": "once"}, {"pane_id": p, "keys": "never"}}}
	}, false},
	{"rename_window", "rename-window", func(_, w, _ string) args { return args{"windowId": w, "name": "once"} }, false},
	{"rename_session", "rename-session", func(_, _, s string) args { return args{"session": s, "name": "once"} }, false},
	{"select_pane", "select-pane", func(p, _, _ string) args { return args{"paneId": p} }, false},
	{"select_window", "select-window", func(_, w, _ string) args { return args{"windowId": w} }, false},
	{"select_layout", "select-layout", func(_, w, _ string) args { return args{"windowId": w, "layout": "tiled"} }, false},
	{"set_pane_title", "select-pane", func(p, _, _ string) args { return args{"paneId": p, "title": "once"} }, false},
	{"set_synchronize_panes", "set-option", func(_, w, _ string) args { return args{"windowId": w, "enabled": true} }, false},
	{"set_history_limit", "set-option", func(_, _, _ string) args { return args{"lines": 2000} }, false},
	{"set_mouse_enabled", "set-option", func(_, _, _ string) args { return args{"enabled": true} }, false},
	{"resize_pane", "resize-pane", func(p, _, _ string) args { return args{"paneId": p, "width": 20} }, false},
	{"resize_window", "resize-window", func(_, w, _ string) args { return args{"windowId": w, "width": 90} }, false},
	{"swap_pane", "swap-pane", func(p, _, _ string) args { return args{"paneId": p, "otherPaneId": "%3"} }, false},
	{"move_window", "move-window", func(_, w, _ string) args { return args{"windowId": w, "index": 33} }, false},
	{"clear_pane_scrollback", "clear-history", func(p, _, _ string) args { return args{"paneId": p} }, false},
	{"split_window", "split-window", func(p, _, _ string) args { return args{"paneId": p} }, false},
	{"create_window", "new-window", func(_, _, s string) args { return args{"session": s, "name": "once"} }, false},
	{"create_session", "new-session", func(_, _, _ string) args { return args{"name": "once"} }, false},
	{"respawn_pane", "respawn-pane", func(p, _, _ string) args { return args{"paneId": p, "killFirst": true} }, false},
	{"kill_pane", "kill-pane", func(p, _, _ string) args { return args{"paneId": p} }, false},
	{"kill_window", "kill-window", func(_, w, _ string) args { return args{"windowId": w} }, false},
	{"kill_session", "kill-session", func(_, _, s string) args { return args{"session": s} }, false},
}

// TestD08NoChangeIsRepeated: whatever is lost between a change and its answer (the
// connection, tmux, or tmux's attention), the answer says that nobody knows, and
// the change has been sent once.
func TestD08NoChangeIsRepeated(t *testing.T) {
	few := map[string]bool{"send_keys": true, "paste_text": true, "create_window": true, "kill_pane": true, "rename_window": true}
	for _, how := range []string{"connection", "tmux", "stop"} {
		for _, tt := range cutCalls {
			if how != "connection" && !few[tt.tool] {
				continue // they share the way to tmux with those
			}
			t.Run(how+"/"+tt.tool, func(t *testing.T) {
				timeout := 30 * time.Second
				if how == "stop" {
					timeout = 3 * time.Second
				}
				c := newCutRig(t, timeout)
				c.tmux("new-session", "-d", "-s", "other", "cat")
				out := c.tmux("new-window", "-d", "-P", "-F", "#{pane_id} #{window_id} #{session_id}", "-t", "other:", "cat")
				c.tmux("split-window", "-d", "-t", strings.Fields(out)[0], "cat")
				c.ok("list_panes", nil)
				before := 0
				if tt.cursor { // the pane is watched, so that the input goes the short way
					c.ok("send_keys", args{"paneId": strings.Fields(out)[0], "keys": "before"})
					before = c.sent(tt.command)
				}
				c.arm(tt.command, how)
				ids := strings.Fields(out)
				res := c.call(tt.tool, tt.of(ids[0], ids[1], ids[2]))
				if how == "stop" {
					pid := strings.Fields(readAll(t, filepath.Join(c.dir, "armed")))[2]
					if err := exec.Command("kill", "-CONT", pid).Run(); err != nil {
						t.Error(err)
					}
				}
				if res.IsError == (tt.tool == sendBatchName) || !strings.Contains(res.Text, "unknown") || !strings.Contains(res.Text, "not sent again") {
					t.Errorf("%s", res.Text)
				}
				if tt.cursor {
					unknown(t, res)
				}
				if how != "tmux" { // attached again: what was to be sent again has been
					c.until(func() bool { return !c.call("list_panes", nil).IsError })
				}
				if n := c.sent(tt.command) - before; n != 1 {
					t.Errorf("sent %d times", n)
				}
			})
		}
	}
}
