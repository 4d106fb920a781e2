package mcp

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
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

// newCutRig is a rig whose control clients can be cut, and what is to be changed in
// it. timeout is tmux's.
func newCutRig(t *testing.T, timeout time.Duration) *cutPlace {
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
	// The race detector would sleep for a second at the end of what stands between.
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' -C '*) GORACE=atexit_sleep_ms=0 %s=%s TMUX_REAL=%s exec %s \"$@\";; esac\nexec %s \"$@\"\n", cutEnv, dir, tmux, self, tmux)
	bin := filepath.Join(dir, "tmux")
	if err := os.WriteFile(bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &cut{rig: newRigOn(t, bin, nil, func(c *state.Config) { c.Timeout = timeout }), dir: dir}
	c.bin = tmux // what the test itself asks goes straight to it
	c.caller = everyTool()
	// All at once: nobody of ours attaches in between.
	w := strings.Fields(c.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat", ";",
		"new-session", "-d", "-P", "-F", "#{pane_id} #{window_id} #{session_id}", "-s", "other", "-x", "80", "-y", "24", "cat", ";",
		"split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "%1", "cat"))
	return &cutPlace{cut: c, pane: w[0], window: w[1], session: w[2], other: w[3], file: filepath.Join(dir, "ran")}
}

// cutPlace is what one call changes: a pane beside another in a session of its own.
type cutPlace struct {
	*cut
	pane, other, window, session string
	run, file                    string // of the tools that run commands
}

// shell makes the place's pane one that runs a shell.
func (p *cutPlace) shell() { p.pane = p.shellPane(plainBash) }

// sleeps makes it one with a run that sleeps.
func (p *cutPlace) sleeps() {
	p.Helper()
	p.shell()
	p.run = p.ok("run_shell_command", args{"paneId": p.pane, "command": "sleep 1000", "timeoutMs": 1})["runId"].(string)
	id, _ := controlmode.ParsePaneID(p.pane)
	asleep := func(w state.Waiting) bool { return w.Program == "sleep" }
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if w, err := p.table.mirror.AwaitWaiting(ctx, id, patience, asleep); err != nil || !asleep(w) {
		p.Fatalf("%+v, %v", w, err)
	}
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
// that changes it.
var cutCalls = []struct {
	tool, command string
	of            func(p *cutPlace) args
	each          bool // one of each kind: it is also cut by tmux's end
}{
	{"send_keys", "send-keys", func(p *cutPlace) args { return args{"paneId": p.pane, "keys": "once"} }, true},
	{"rename_session", "rename-session", func(p *cutPlace) args { return args{"session": p.session, "name": "once"} }, false},
	{"kill_session", "kill-session", func(p *cutPlace) args { return args{"session": p.session} }, false},
	{"paste_text", "paste-buffer", func(p *cutPlace) args { return args{"paneId": p.pane, "text": "once"} }, true},
	{sendBatchName, "send-keys", func(p *cutPlace) args {
		return args{"operations": []args{{"pane_id": p.pane, "keys": "once"}, {"pane_id": p.pane, "keys": "never"}}}
	}, true},
	{"run_shell_command", "send-keys", func(p *cutPlace) args {
		p.shell()
		return args{"paneId": p.pane, "command": "echo once >>" + p.file + "; exit 7"}
	}, true},
	{"interrupt_run", "send-keys", func(p *cutPlace) args { p.sleeps(); return args{"runId": p.run} }, true},
	{"rename_window", "rename-window", func(p *cutPlace) args { return args{"windowId": p.window, "name": "once"} }, true},
	{"select_pane", "select-pane", func(p *cutPlace) args { return args{"paneId": p.pane} }, false},
	{"select_window", "select-window", func(p *cutPlace) args { return args{"windowId": p.window} }, false},
	{"select_layout", "select-layout", func(p *cutPlace) args { return args{"windowId": p.window, "layout": "tiled"} }, false},
	{"set_pane_title", "select-pane", func(p *cutPlace) args { return args{"paneId": p.pane, "title": "once"} }, false},
	{"set_synchronize_panes", "set-option", func(p *cutPlace) args { return args{"windowId": p.window, "enabled": true} }, false},
	{"set_history_limit", "set-option", func(*cutPlace) args { return args{"lines": 2000} }, false},
	{"set_mouse_enabled", "set-option", func(*cutPlace) args { return args{"enabled": true} }, false},
	{"resize_pane", "resize-pane", func(p *cutPlace) args { return args{"paneId": p.pane, "width": 20} }, false},
	{"resize_window", "resize-window", func(p *cutPlace) args { return args{"windowId": p.window, "width": 90} }, false},
	{"swap_pane", "swap-pane", func(p *cutPlace) args { return args{"paneId": p.pane, "otherPaneId": p.other} }, false},
	{"move_window", "move-window", func(p *cutPlace) args { return args{"windowId": p.window, "index": 33} }, false},
	{"clear_pane_scrollback", "clear-history", func(p *cutPlace) args { return args{"paneId": p.pane} }, false},
	{"split_window", "split-window", func(p *cutPlace) args { return args{"paneId": p.pane} }, false},
	{"create_window", "new-window", func(p *cutPlace) args { return args{"session": p.session, "name": "once"} }, true},
	{"create_session", "new-session", func(*cutPlace) args { return args{"name": "new"} }, false},
	{"respawn_pane", "respawn-pane", func(p *cutPlace) args { return args{"paneId": p.pane, "killFirst": true} }, false},
	{"kill_pane", "kill-pane", func(p *cutPlace) args { return args{"paneId": p.pane} }, true},
	{"kill_window", "kill-window", func(p *cutPlace) args { return args{"windowId": p.window} }, false},
}

// TestD08NoChangeIsRepeated: whatever is lost between a change and its answer (the
// connection, tmux, or tmux's attention), the answer says that nobody knows, with
// the place in the output of the pane from before, and the change has been sent
// once.
func TestD08NoChangeIsRepeated(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"connection", "tmux", "stop"} {
		for _, tt := range cutCalls {
			if how == "tmux" && !tt.each || how == "stop" && !slices.Contains([]string{"send_keys", "run_shell_command", "rename_window"}, tt.tool) {
				continue // they share the way to tmux with those
			}
			t.Run(how+"/"+tt.tool, func(t *testing.T) {
				timeout := 30 * time.Second
				if how == "stop" {
					timeout = 3 * time.Second
					t.Parallel() // most of it is waiting
				}
				p := newCutRig(t, timeout)
				a := tt.of(p)
				p.ok("capture_since", args{"paneId": p.pane})
				before := p.sent(tt.command)
				p.arm(tt.command, how)
				res := p.call(tt.tool, a)
				if how == "stop" {
					p.goOn()
				}
				p.unknown(res, a)
				if how != "tmux" { // attached again: what was to be sent again has been
					p.until(func() bool { return !p.call("list_panes", nil).IsError })
				}
				if n := p.sent(tt.command) - before; n != 1 {
					t.Errorf("sent %d times", n)
				}
				if tt.tool == "run_shell_command" {
					p.collected(res)
				}
			})
		}
	}
}

// goOn lets a stopped tmux go on.
func (c *cut) goOn() {
	c.Helper()
	pid, err := strconv.Atoi(strings.Fields(readAll(c.TB, filepath.Join(c.dir, "armed")))[2])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGCONT)
	}
	if err != nil {
		c.Error(err)
	}
}

// unknown checks the answer of a call that was cut.
func (p *cutPlace) unknown(res *toolResult, a args) {
	p.Helper()
	if a["operations"] != nil { // the rows tell
		at, _ := res.Meta[metaCursor].(map[string]any)[p.pane].(string)
		if res.IsError || !strings.Contains(res.Text, "unknown") || !strings.Contains(res.Text, "not sent again") || at == "" {
			p.Errorf("%v %s", res.Meta, res.Text)
		}
		return
	}
	if a["paneId"] != nil || a["runId"] != nil {
		unknown(p.TB, res)
	} else if !res.IsError || !strings.HasPrefix(res.Text, "unknown: ") || !strings.Contains(res.Text, "not sent again") {
		p.Errorf("%s", res.Text)
	}
	if p.run != "" && !strings.Contains(res.Text, p.run) {
		p.Errorf("no run in %s", res.Text)
	}
}

// collected checks that the run of an answer that was lost is known, and says
// whether its command ran, which it did not do twice.
func (p *cutPlace) collected(res *toolResult) {
	p.Helper()
	id := regexp.MustCompile(`run ([0-9a-f]{16}) `).FindStringSubmatch(res.Text)
	if id == nil {
		p.Fatalf("no run in %s", res.Text)
	}
	var v state.Run
	p.until(func() (ended bool) {
		var err error
		if v, err = p.table.mirror.AwaitRun(context.Background(), id[1], patience); err != nil {
			p.Fatal(err)
		}
		return v.Ended()
	})
	got := p.ok("get_run", args{"runId": id[1]})["run"].(map[string]any)
	ran, _ := os.ReadFile(p.file)
	switch {
	case got["state"] == "completed" && got["exitStatus"] == 7.0 && string(ran) == "once\n":
	case got["state"] == "unknown" && string(ran) == "":
	case got["state"] == "pane_died" && strings.Count(string(ran), "once") <= 1: // tmux was killed, and all in it
	default:
		p.Errorf("%v, ran %q", got, ran)
	}
}
