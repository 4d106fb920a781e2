package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// rig is a private tmux server, ended through its own socket, and the tools on
// it.
type rig struct {
	testing.TB
	sock   string
	bin    string
	table  *table
	logs   *observer.ObservedLogs // of the mirror
	caller *Caller
	daemon *daemon // of asks
}

// newRig starts the tools on a socket where no tmux runs yet.
func newRig(t testing.TB, env map[string]string) *rig {
	t.Helper()
	return newRigOn(t, os.Getenv("TMUX_MCPD_TEST_TMUX"), env)
}

// newRigOn is newRig with a tmux binary, "" for tmux from PATH.
func newRigOn(t testing.TB, bin string, env map[string]string, change ...func(*state.Config)) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "mt") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, sock: filepath.Join(dir, "s"), bin: bin, caller: &Caller{}}
	if r.bin == "" {
		r.bin = "tmux"
	}
	t.Cleanup(func() {
		r.command("kill-server").Run()
		os.RemoveAll(dir)
	})
	socket := controlmode.Socket{Path: r.sock}
	core, logs := observer.New(zapcore.DebugLevel)
	r.logs = logs
	log := zaptest.NewLogger(t, zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) })))
	cfg := state.Config{
		Bin: r.bin, Socket: socket, Log: log, Server: state.ServerConfig{File: os.DevNull},
		RunDir: filepath.Join(dir, "runs"),
	}
	for _, f := range change {
		f(&cfg)
	}
	m := state.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if r.table, err = newTable(m, ToolConfig{Socket: socket, Policy: policyIn(env)}); err != nil {
		t.Fatal(err)
	}
	return r
}

// start starts tmux with one session "main" whose pane %0 runs cat.
func (r *rig) start() *rig {
	r.Helper()
	r.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "-n", "w", "cat")
	return r
}

func (r *rig) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.bin, append([]string{"-u", "-S", r.sock, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "TERM=xterm", "HISTFILE=/dev/null", "fish_history=")
	return cmd
}

func (r *rig) tmux(args ...string) string {
	r.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// printed makes a pane print text with printf and waits until it has.
func (r *rig) printed(name, format string, args ...string) string {
	r.Helper()
	// The tmux under test: a client of another version is not let in by all.
	script := fmt.Sprintf("stty -echo; printf %s; %s -S %s wait-for -S %s; exec cat", format, r.bin, r.sock, name)
	args = append([]string{"new-window", "-d", "-P", "-F", "#{pane_id}", "-n", name}, args...)
	id := r.tmux(append(args, script)...)
	r.tmux("wait-for", name)
	return id
}

// call calls a tool and checks its answer against the contract.
func (r *rig) call(name string, args any) *toolResult {
	r.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res, err := r.table.call(ctx, r.caller, name, raw, func(string) {})
	if err != nil {
		r.Fatalf("%s %s: %v", name, raw, err)
	}
	checkAnswer(r, r.table, name, res)
	return res
}

// ok calls a tool that must succeed and gives its structured half.
func (r *rig) ok(name string, args any) map[string]any {
	r.Helper()
	res := r.call(name, args)
	if res.IsError {
		r.Fatalf("%s: %s", name, res.Text)
	}
	return checkAnswer(r, r.table, name, res)
}

// refused calls a tool that must fail, and checks what the error says.
func (r *rig) refused(name string, args any, want ...string) {
	r.Helper()
	res := r.call(name, args)
	for _, w := range want {
		if !res.IsError || !strings.Contains(res.Text, w) {
			r.Errorf("%s %v: %s\nlacks %q", name, args, res.Text, w)
		}
	}
}

type args = map[string]any

func TestToolsWithoutServer(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"list_sessions", "list_windows", "list_panes"} {
		v := r.ok(name, nil)
		rows := v[strings.TrimPrefix(name, "list_")].([]any)
		if len(rows) != 0 || v["complete"] != true {
			t.Errorf("%s: %v", name, v)
		}
		if text := r.call(name, nil).Text; !strings.Contains(text, "No tmux server is running on socket "+r.sock) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if v := r.ok("get_server_info", nil); v["pid"] != nil || v["panes"] != 0.0 {
		t.Errorf("%v", v)
	}
	for name, a := range map[string]args{
		"get_pane_info": {"paneId": "%0"}, "get_window_info": {"windowId": "@0"}, "get_session_info": {"session": "x"},
		"list_panes": {"session": "x"}, "capture_pane": {"paneId": "%0"}, "capture_since": {"paneId": "%0"},
		"snapshot_pane": {"paneId": "%0"}, "find_pane_by_position": {"windowId": "@0", "corner": "top-left"},
		"show_environment": {}, "show_option": {"name": "status"}, "get_tmux_variables": {"names": []string{"pid"}},
	} {
		r.refused(name, a, "no tmux server is running on socket "+r.sock, "operator")
	}
}

func TestListsAndInfos(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "-h", "cat")
	r.tmux("new-session", "-d", "-s", "second", "-x", "80", "-y", "24", "cat")
	r.tmux("link-window", "-d", "-s", "@0", "-t", "second:5")

	ids := func(rows any) (all []string) {
		for _, row := range rows.([]any) {
			all = append(all, row.(map[string]any)["id"].(string))
		}
		return all
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	same("sessions", ids(r.ok("list_sessions", nil)["sessions"]), []string{"$0", "$1"})
	same("windows", ids(r.ok("list_windows", nil)["windows"]), []string{"@0", "@1"})
	same("windows of second", ids(r.ok("list_windows", args{"session": "second"})["windows"]), []string{"@1", "@0"})
	same("panes", ids(r.ok("list_panes", nil)["panes"]), []string{"%0", "%1", "%2"})
	same("panes of $0", ids(r.ok("list_panes", args{"session": "$0"})["panes"]), []string{"%0", "%1"})
	same("panes of second", ids(r.ok("list_panes", args{"session_name": "second"})["panes"]), []string{"%2", "%0", "%1"})
	same("panes of second in @0", ids(r.ok("list_panes", args{"session": "second", "window": "@0"})["panes"]), []string{"%0", "%1"})
	same("panes of an unknown window", ids(r.ok("list_panes", args{"window": "@99"})["panes"]), nil)
	same("panes of no possible window", ids(r.ok("list_panes", args{"window": "@99999999999"})["panes"]), nil)

	pane := r.ok("get_pane_info", args{"paneId": "%1"})["pane"].(map[string]any)
	if len(pane["placements"].([]any)) != 2 || pane["command"] != "cat" || pane["index"] != 1.0 {
		t.Errorf("%v", pane)
	}
	same("pane at", []string{r.ok("find_pane_by_position", args{"windowId": "@0", "position": "bottom-right"})["pane"].(map[string]any)["id"].(string)}, []string{"%1"})
	if w := r.ok("get_window_info", args{"windowId": "@0"})["window"].(map[string]any); w["panes"] != 2.0 || w["name"] != "w" {
		t.Errorf("%v", w)
	}
	if s := r.ok("get_session_info", args{"session_id": "$1"})["session"].(map[string]any); s["name"] != "second" || s["windows"] != 2.0 {
		t.Errorf("%v", s)
	}
	info := r.ok("get_server_info", nil)
	if info["panes"] != 3.0 || info["sessions"] != 2.0 || info["windows"] != 2.0 || info["socketPath"] != r.sock ||
		info["pid"] != r.tmux("display-message", "-p", "#{pid}") {
		t.Errorf("%v", info)
	}

	r.refused("get_pane_info", args{"paneId": "%9"}, "pane %9 does not exist", "%2 (second:", "cat)")
	r.refused("get_pane_info", args{"paneId": "%99999999999"}, "does not exist", "%0 (main:w cat)")
	r.refused("get_window_info", args{"windowId": "@7"}, "window @7 does not exist", "@0 (main:w)")
	r.refused("list_panes", args{"session": "mai"}, `session "mai" does not exist`, "$0 (main), $1 (second)")
	r.refused("list_windows", args{"session": "sec*"}, "does not exist")
	r.refused("capture_pane", args{"paneId": "%9"}, "pane %9 does not exist", "Panes: %2")
	r.refused("capture_since", args{"paneId": "%9"}, "pane %9 does not exist")
	r.refused("snapshot_pane", args{"paneId": "%9"}, "pane %9 does not exist")
}

// TestM08NamesThatLookLikeIDs: an id is an id first; a name that looks like one
// is reached where no such id exists, or as sessionName.
func TestM08NamesThatLookLikeIDs(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-session", "-d", "-s", "$0", "-x", "80", "-y", "24", "cat")
	r.tmux("new-session", "-d", "-s", "$7", "-x", "80", "-y", "24", "cat")
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"session": "$0"}, "$0"},
		{args{"sessionName": "$0"}, "$1"},
		{args{"session": "$7"}, "$2"},
		{args{"session": "main"}, "$0"},
		{args{"sessionId": "$1"}, "$1"},
	} {
		if s := r.ok("get_session_info", c.args)["session"].(map[string]any); s["id"] != c.want {
			t.Errorf("%v: %v, want %s", c.args, s["id"], c.want)
		}
	}
	r.refused("get_session_info", args{"sessionId": "$7"}, "does not exist")
}

func TestCallerPane(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	callers := func() (all []string) {
		for _, row := range r.ok("list_panes", nil)["panes"].([]any) {
			if p := row.(map[string]any); p["isCallerPane"] == true {
				all = append(all, p["id"].(string))
			}
		}
		return all
	}
	if got := callers(); got != nil {
		t.Errorf("nobody's pane: %v", got)
	}
	var pid int
	fmt.Sscan(r.tmux("display-message", "-p", "-t", "%1", "#{pane_pid}"), &pid)
	r.caller = &Caller{Ancestors: []int{99999999, pid, 1}}
	if got := callers(); !slices.Equal(got, []string{"%1"}) {
		t.Errorf("by ancestry: %v", got)
	}
	server := r.tmux("display-message", "-p", "#{pid}")
	r.caller = &Caller{Hello: Hello{TMUX: r.sock + "," + server + ",0", TMUXPane: "%0"}}
	if got := callers(); !slices.Equal(got, []string{"%0"}) {
		t.Errorf("by its environment: %v", got)
	}
	r.caller = &Caller{Hello: Hello{TMUX: r.sock + ",1,0", TMUXPane: "%0"}}
	if got := callers(); got != nil {
		t.Errorf("by another server's environment: %v", got)
	}
}

// TestAttended: the daemon's own clients are no people, others are.
func TestAttended(t *testing.T) {
	r := newRig(t, nil).start()
	view := func() (attended, people any) {
		s := r.ok("get_session_info", args{"session": "main"})["session"].(map[string]any)
		p := r.ok("snapshot_pane", args{"paneId": "%0"})["pane"].(map[string]any)
		return p["isAttended"], s["attachedClients"]
	}
	r.ok("capture_since", args{"paneId": "%0"}) // a stream client is attached now
	if attended, people := view(); attended != false || people != 0.0 {
		t.Errorf("attended %v, people %v", attended, people)
	}
	person := r.command("-C", "attach-session", "-t", "main")
	in, err := person.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := person.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := person.Start(); err != nil {
		t.Fatal(err)
	}
	defer person.Wait()
	defer in.Close()
	buf, seen := make([]byte, 4096), ""
	for !strings.Contains(seen, "%session-changed") {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(buf[:n])
	}
	if attended, people := view(); attended != true || people != 1.0 {
		t.Errorf("attended %v, people %v", attended, people)
	}
}

func TestCapturePane(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "history-limit", "50")
	id := r.printed("numbers", `'line %d   \n' $(seq 1 40)`, "-t", "main:")
	v := r.ok("capture_pane", args{"paneId": id})
	text := v["text"].(string)
	if !strings.HasPrefix(text, "line 18\nline 19\n") || !strings.HasSuffix(text, "\nline 40\n") || v["totalLines"] != 24.0 ||
		v["effectiveStart"] != nil || v["effectiveEnd"] != nil || v["returnedBytes"] != float64(len(text)) {
		t.Errorf("%v", v)
	}
	v = r.ok("capture_pane", args{"paneId": id, "start": -3, "end": -2})
	if v["text"] != "line 15\nline 16" || v["effectiveStart"] != -3.0 || v["effectiveEnd"] != -2.0 || v["rangeClamped"] != false {
		t.Errorf("%v", v)
	}
	v = r.ok("capture_pane", args{"paneId": id, "start": -10, "maxLines": 3})
	if v["text"] != "line 39\nline 40\n" || v["rangeClamped"] != true || v["effectiveStart"] != 21.0 || v["droppedLines"] != 0.0 ||
		v["totalLines"] != 3.0 || v["byteClamped"] != false {
		t.Errorf("%v", v)
	}
	v = r.ok("capture_pane", args{"pane_id": id, "history": true})
	if text := v["text"].(string); !strings.HasPrefix(text, "line 1\n") || v["totalLines"] != 41.0 {
		t.Errorf("%v", v)
	}
	// Reversed ends are swapped by tmux, and the limit then cuts lines.
	v = r.ok("capture_pane", args{"paneId": id, "start": 5, "end": 1, "maxLines": 2})
	if v["text"] != "line 22\nline 23" || v["droppedLines"] != 3.0 || v["totalLines"] != 5.0 || v["rangeClamped"] != false {
		t.Errorf("%v", v)
	}
	// An end far below the screen means its end.
	v = r.ok("capture_pane", args{"paneId": id, "end": 9007199254740991})
	if v["totalLines"] != 24.0 || v["effectiveEnd"] != 23.0 {
		t.Errorf("%v", v)
	}
}

// TestO16CaptureOutsideTheGrid: a range without rows gives none.
func TestO16CaptureOutsideTheGrid(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "history-limit", "50")
	id := r.printed("numbers", `'line %d\n' $(seq 1 200)`, "-t", "main:")
	for _, a := range []args{
		{"start": -100, "end": -90}, {"start": -9007199254740991, "end": -9007199254740991}, {"start": 24, "end": 30}, {"start": 100},
	} {
		a["paneId"] = id
		v := r.ok("capture_pane", a)
		if v["text"] != "" || v["totalLines"] != 0.0 || v["returnedBytes"] != 0.0 {
			t.Errorf("%v: %v", a, v)
		}
		if text := r.call("capture_pane", a).Text; !strings.Contains(text, "[no rows: the range") {
			t.Errorf("%v: %s", a, text)
		}
	}
	v := r.ok("capture_pane", args{"paneId": id, "start": -100, "end": -30})
	if text := v["text"].(string); strings.Count(text, "line") < 1 || v["totalLines"] == 71.0 {
		t.Errorf("%v", v)
	}
}

func TestCaptureJoinsWrappedRows(t *testing.T) {
	r := newRig(t, nil).start()
	id := r.printed("wrapped", `'%0100d end\n' 7`, "-t", "main:")
	if v := r.ok("capture_pane", args{"paneId": id, "end": 1}); strings.Count(v["text"].(string), "\n") != 1 {
		t.Errorf("%v", v)
	}
	want := strings.Repeat("0", 99) + "7 end"
	if v := r.ok("capture_pane", args{"paneId": id, "end": 1, "joinWrapped": true}); v["text"] != want {
		t.Errorf("%v", v)
	}
	if v := r.ok("snapshot_pane", args{"paneId": id}); v["content"] != want+"\n" || v["cursorY"] != 2.0 || v["cursorX"] != 0.0 {
		t.Errorf("%v", v)
	}
}

// TestSnapshotGoesOnWithItsCursor: what a snapshot shows and what follows its
// cursor are one text.
func TestSnapshotGoesOnWithItsCursor(t *testing.T) {
	r := newRig(t, nil).start()
	meta := func(res *toolResult) any {
		v, ok := res.Meta[metaCursor]
		if !ok {
			t.Fatal("no cursor in the metadata")
		}
		return v
	}
	if c := meta(r.call("snapshot_pane", args{"paneId": "%0"})); c != nil {
		t.Errorf("a snapshot of an unwatched pane has a cursor %v", c)
	}
	r.ok("capture_since", args{"paneId": "%0"})
	r.say("%0", "one")
	snap := r.call("snapshot_pane", args{"paneId": "%0"})
	r.say("%0", "two")
	v := r.ok("capture_since", args{"paneId": "%0", "cursor": meta(snap)})
	if v["text"] != "two\ntwo\n" {
		t.Errorf("%q", v["text"])
	}
	if v := r.ok("snapshot_pane", args{"paneId": "%0", "maxLines": 2}); v["content"] != "two\ntwo\n" || v["droppedLines"] != 2.0 {
		t.Errorf("%v", v)
	}
}

// say types a line into a pane that runs cat, and waits until cat has repeated
// it.
func (r *rig) say(pane, line string) {
	r.Helper()
	r.tmux("send-keys", "-t", pane, "-l", line)
	r.tmux("send-keys", "-t", pane, "Enter")
	r.until(func() bool {
		return strings.Contains(r.tmux("capture-pane", "-p", "-t", pane), line+"\n"+line+"\n")
	})
}

// until asks again and again, each time with a round trip to tmux.
func (r *rig) until(ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			r.Fatal("it never happened")
		}
	}
}

// exits makes the program of a pane that is kept exit with a status that tmux
// knows of. It knows first that the pane is dead, and a moment later of what; of
// one in a hundred or so 3.3a never does (seen with nothing but tmux), so it is
// tried again.
func (r *rig) exits(pane string, status int) {
	r.Helper()
	for range 10 {
		r.tmux("respawn-pane", "-k", "-t", pane, fmt.Sprint("exit ", status))
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			if r.tmux("display-message", "-p", "-t", pane, "#{pane_dead}#{pane_dead_status}") == fmt.Sprintf("1%d", status) {
				return
			}
		}
	}
	r.Fatalf("tmux tells no status: %s", r.tmux("list-panes", "-a", "-F", "#{pane_id} dead=#{pane_dead} status=#{pane_dead_status} signal=#{pane_dead_signal} pid=#{pane_pid} #{pane_dead_time}"))
}

func TestCaptureSince(t *testing.T) {
	r := newRig(t, nil).start()
	r.say("%0", "before")
	v := r.ok("capture_since", args{"paneId": "%0"})
	if v["text"] != "before\nbefore\n" || v["seeded"] != true || v["streaming"] != true || v["effectiveTimeoutMs"] != 0.0 {
		t.Errorf("%v", v)
	}
	cursor := v["cursor"].(string)
	nothing := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})
	if nothing["text"] != "" || nothing["cursor"] != cursor || nothing["seeded"] != false || nothing["missedBytes"] != 0.0 {
		t.Errorf("%v", nothing)
	}
	r.say("%0", "first")
	r.say("%0", "second")
	v = r.ok("capture_since", args{"paneId": "%0", "cursor": cursor, "maxLines": 3})
	if v["text"] != "first\nsecond\nsecond\n" || v["droppedLines"] != 1.0 {
		t.Errorf("%v", v)
	}
	// Reading does not consume.
	v = r.ok("capture_since", args{"pane_id": "%0", "cursor": cursor})
	if v["text"] != "first\nfirst\nsecond\nsecond\n" || v["droppedLines"] != 0.0 {
		t.Errorf("%v", v)
	}
	text := r.call("capture_since", args{"paneId": "%0", "cursor": cursor}).Text
	if !strings.HasSuffix(text, "second\n[cursor "+v["cursor"].(string)+"]") {
		t.Errorf("%q", text)
	}

	stream := cursor[:strings.LastIndexByte(cursor, '.')+1]
	r.refused("capture_since", args{"paneId": "%0", "cursor": stream + "9999999"}, "beyond the end", "Leave the cursor out")
	r.refused("capture_since", args{"paneId": "%0", "cursor": stream + "99999999999999999999"}, "not issued by this server")
	other := r.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "%0", "cat")
	r.refused("capture_since", args{"paneId": other, "cursor": cursor}, "belongs to pane %0, not to "+other)
}

// TestCaptureSinceWaits: for the first text, not for the first byte, and a wait
// without output is an answer.
func TestCaptureSinceWaits(t *testing.T) {
	r := newRig(t, nil).start()
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	v := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor, "waitMs": 50})
	if v["text"] != "" || v["cursor"] != cursor || v["effectiveTimeoutMs"] != 50.0 {
		t.Errorf("%v", v)
	}
	answer := make(chan map[string]any, 1)
	go func() {
		raw, _ := json.Marshal(args{"paneId": "%0", "cursor": cursor, "waitMs": 9007199254740991})
		res, err := r.table.call(context.Background(), r.caller, "capture_since", raw, nil)
		var v map[string]any
		if err == nil {
			err = json.Unmarshal(res.Structured, &v)
		}
		if err != nil {
			v = args{"err": err.Error()}
		}
		answer <- v
	}()
	// Only sequences at first: the tty writes them to the pane for cat.
	tty := r.tmux("display-message", "-p", "-t", "%0", "#{pane_tty}")
	f, err := os.OpenFile(tty, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range []string{"\x1b[31m", "\x1b]0;title", "\x07\xe6", "\x1b[0m\xbc\xa2\n"} {
		select {
		case v := <-answer:
			t.Fatalf("answered before there was text: %v", v)
		default:
		}
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
		r.tmux("display-message", "-p", "") // a fence: tmux goes on reading
	}
	v = <-answer
	if text, _ := v["text"].(string); !strings.HasPrefix(text, "漢") || v["effectiveTimeoutMs"] != 55000.0 {
		t.Errorf("%v", v)
	}
}

// TestCursorStopsBeforeTheUnfinished: a character or sequence that has arrived
// in part is delivered whole by the next read.
func TestCursorStopsBeforeTheUnfinished(t *testing.T) {
	r := newRig(t, nil).start()
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	f, err := os.OpenFile(r.tmux("display-message", "-p", "-t", "%0", "#{pane_tty}"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct{ print, want string }{
		{"a\xe6", "a"}, {"\xbc\xa2\x1b[3", "漢"}, {"1mb\x1b]0;title", "b"}, {"\x07c\r", "c"}, {"\nd", "d"},
	} {
		if _, err := f.WriteString(c.print); err != nil {
			t.Fatal(err)
		}
		v := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor, "waitMs": 30_000})
		if v["text"] != c.want || v["missedBytes"] != 0.0 {
			t.Errorf("%q: %q, want %q", c.print, v["text"], c.want)
		}
		cursor = v["cursor"]
	}
}

// TestCaptureSinceCancelled: a wait ends with its call.
func TestCaptureSinceCancelled(t *testing.T) {
	r := newRig(t, nil).start()
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	raw, _ := json.Marshal(args{"paneId": "%0", "cursor": cursor, "waitMs": 50_000})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if res, err := r.table.call(ctx, r.caller, "capture_since", raw, nil); err != context.DeadlineExceeded {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestDeltasJoin: a counter that is printed while it is read arrives whole.
func TestDeltasJoin(t *testing.T) {
	r := newRig(t, map[string]string{envMaxLines: "10000"}).start()
	id := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "read go; seq 1 9000; exec cat")
	v := r.ok("capture_since", args{"paneId": id})
	joined := v["text"].(string)
	r.tmux("send-keys", "-t", id, "go", "Enter")
	for !strings.Contains(joined, "\n9000\n") {
		v = r.ok("capture_since", args{"paneId": id, "cursor": v["cursor"], "waitMs": 20_000})
		if v["missedBytes"] != 0.0 || v["droppedLines"] != 0.0 || v["text"] == "" {
			t.Fatalf("%.300v", v)
		}
		joined = join(joined, v["text"].(string), v["continuesLine"] == true)
	}
	_, joined, _ = strings.Cut(joined, "go\n")
	for i, line := range strings.Split(strings.TrimSuffix(joined, "\n"), "\n") {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

// join puts a delta behind what was read before, as continuesLine says: a line
// that had no newline yet goes on, has ended, or is told again, whole.
func join(before, text string, continues bool) string {
	last := before[strings.LastIndexByte(before, '\n')+1:]
	switch {
	case continues || last == "":
		return before + text
	case strings.HasPrefix(text, last):
		return strings.TrimSuffix(before, last) + text
	}
	return before + "\n" + text
}

func TestRestartedServer(t *testing.T) {
	r := newRig(t, nil).start()
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	r.tmux("kill-server")
	r.until(func() bool { // a dying server still takes connections
		return r.command("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "cat").Run() == nil
	})
	r.until(func() bool { return !r.call("get_pane_info", args{"paneId": "%0"}).IsError })
	r.refused("capture_since", args{"paneId": "%0", "cursor": cursor}, "the tmux server was restarted", "omit the cursor")
}

// TestHostileNames: whatever names and titles hold, every answer is clean.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	for _, hostile := range []string{"evil\x1b]0;x\x07", "a\x01b\x7f", "\xff\xfe", "#{pane_id}#(true)", `"quoted" \ back`, "漢\u202e\u200b", "$0", "=eq"} {
		r.tmux("set-option", "-g", "set-titles", "on")
		_ = r.command("rename-window", "-t", "@0", hostile).Run() // newer versions refuse some
		_ = r.command("select-pane", "-t", "%0", "-T", hostile).Run()
		_ = r.command("rename-session", "-t", "$0", hostile).Run()
		for name, a := range map[string]args{
			"list_sessions": nil, "list_windows": nil, "list_panes": nil, "get_pane_info": {"paneId": "%0"},
			"snapshot_pane": {"paneId": "%0"}, "get_session_info": {"session": "$0"}, "search_panes": {"pattern": "x"},
		} {
			r.ok(name, a)
		}
		r.call("get_pane_info", args{"paneId": "%77"})
		r.call("get_session_info", args{"session": hostile + "x"})
	}
}

func TestOptions(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "status-left", "global")
	r.tmux("set-option", "-t", "main", "@mine", "a\nb")
	r.tmux("set-option", "-t", "main", "status-right", "")
	r.tmux("set-option", "-w", "-t", "@0", "mode-keys", "vi")
	r.tmux("set-option", "-p", "-t", "%0", "remain-on-exit", "on")
	for _, c := range []struct {
		args args
		want any
	}{
		{args{"name": "buffer-limit"}, "50"},
		{args{"name": "command-alias[1]"}, "splitp=split-window"},
		{args{"name": "status-left", "scope": "session", "target": "main"}, nil},
		{args{"name": "status-left", "scope": "session", "target": "main", "effective": true}, "global"},
		{args{"name": "status-left", "scope": "global-session"}, "global"},
		{args{"name": "status-left", "scope": "global"}, "global"},
		{args{"name": "status-right", "scope": "session", "target": "$0"}, ""},
		{args{"name": "@mine", "scope": "session", "target": "main"}, "a\nb"},
		{args{"name": "@none", "scope": "session", "target": "main"}, nil},
		{args{"name": "mode-keys", "scope": "window", "target": "@0"}, "vi"},
		{args{"name": "mode-keys", "scope": "global-window"}, "emacs"},
		{args{"name": "remain-on-exit", "scope": "pane", "target": "%0"}, "on"},
		{args{"name": "remain-on-exit", "scope": "window", "target": "@0"}, nil},
	} {
		if v := r.ok("show_option", c.args); v["value"] != c.want || v["name"] != c.args["name"] {
			t.Errorf("%v: %v, want %v", c.args, v["value"], c.want)
		}
	}
	// tmux itself would answer these from another scope, or for a start of the name.
	r.refused("show_option", args{"name": "status-left"}, `no option "status-left" in scope server`)
	r.refused("show_option", args{"name": "mode-keys", "scope": "pane", "target": "%0"}, "in scope pane")
	r.refused("show_option", args{"name": "buffer-limi"}, "did you mean buffer-limit?")
	r.refused("show_option", args{"name": "nope"}, `no option "nope" in scope server`)
	r.refused("show_option", args{"name": "#{pid}"}, "no option")
	r.refused("show_option", args{"name": ""}, "no option")
	r.refused("show_option", args{"name": "status", "scope": "session"}, "target is missing")
	r.refused("show_option", args{"name": "status", "scope": "session", "target": "nobody"}, `session "nobody" does not exist`)
	r.refused("show_option", args{"name": "status", "scope": "pane", "target": "main"}, "pane main does not exist")
}

func TestHooks(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("set-hook", "-g", "after-new-window[1]", "display-message one")
	r.tmux("set-hook", "-g", "after-new-window[7]", "display-message two ; display-message three")
	r.tmux("set-hook", "-g", "-w", "pane-died", "display-message died")
	r.tmux("set-hook", "-t", "main", "session-renamed", "display-message mine")
	v := r.ok("show_hooks", nil)
	hooks := v["hooks"].(map[string]any)
	if hooks["after-new-window"] != "display-message one\ndisplay-message two ; display-message three" ||
		hooks["pane-died"] != "display-message died" || len(hooks) != 2 || v["unset"].(float64) < 30 {
		t.Errorf("%v", v)
	}
	if v := r.ok("show_hooks", args{"session": "main"}); len(v["hooks"].(map[string]any)) != 1 || v["unset"] != 0.0 {
		t.Errorf("%v", v)
	}
	if v := r.ok("show_hooks", args{"scope": "global", "name": "pane-died"}); len(v["hooks"].(map[string]any)) != 1 {
		t.Errorf("%v", v)
	}
	if v := r.ok("show_hooks", args{"scope": "pane", "target": "%0"}); len(v["hooks"].(map[string]any)) != 0 {
		t.Errorf("%v", v)
	}
	r.refused("show_hooks", args{"session": "x"}, "does not exist")
}

func TestEnvironment(t *testing.T) {
	r := newRig(t, nil).start()
	hostile := "a\"b\n$c`d\\e\nunset FAKE;\nX=\"1\"; export X; "
	r.tmux("set-environment", "-t", "main", "HOSTILE", hostile)
	r.tmux("set-environment", "-t", "main", "EMPTY", "")
	r.tmux("set-environment", "-t", "main", "-r", "GONE")
	v := r.ok("show_environment", args{"session": "main"})
	env := v["environment"].(map[string]any)
	gone, there := env["GONE"]
	if env["HOSTILE"] != hostile || env["EMPTY"] != "" || !there || gone != nil || env["FAKE"] != nil || env["X"] != nil {
		t.Errorf("%q", env)
	}
	if env := r.ok("show_environment", nil)["environment"].(map[string]any); env["PATH"] != os.Getenv("PATH") {
		t.Errorf("%v", env["PATH"])
	}
	few := newRig(t, map[string]string{envMaxLines: "2"}).start().ok("show_environment", nil)
	if len(few["environment"].(map[string]any)) != 2 || few["complete"] != false || few["omittedEntries"].(float64) < 1 {
		t.Errorf("%v", few)
	}
}

func TestVariables(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("split-window", "-d", "-t", "%0", "cat")
	v := r.ok("get_tmux_variables", args{"names": []string{"pane_id", "pane_index", "nothing", "pane_id"}, "paneId": "%1"})
	values := v["values"].(map[string]any)
	if values["pane_id"] != "%1" || values["pane_index"] != "1" || values["nothing"] != "" || len(values) != 3 {
		t.Errorf("%v", values)
	}
	if v := r.ok("get_tmux_variables", args{"names": "pid"})["values"].(map[string]any); v["pid"] != r.tmux("display-message", "-p", "#{pid}") {
		t.Errorf("%v", v)
	}
	r.refused("get_tmux_variables", args{"names": []string{"pid"}, "pane": "%9"}, "pane %9 does not exist")
}

func TestSearch(t *testing.T) {
	r := newRig(t, map[string]string{envMaxLines: "20"}).start()
	a := r.printed("a", `'needle %d\n' $(seq 1 30)`, "-t", "main:")
	r.tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
	b := r.printed("b", `'a needle here\nNEEDLE\n'`, "-t", "other:")
	found := func(v map[string]any) (all []string) {
		for _, m := range v["matches"].([]any) {
			m := m.(map[string]any)
			all = append(all, fmt.Sprintf("%v:%v %v", m["paneId"], m["lineNumber"], m["text"]))
		}
		return all
	}
	v := r.ok("search_panes", args{"pattern": "needle"})
	want := []string{a + ":1 needle 8", a + ":2 needle 9", a + ":3 needle 10", a + ":4 needle 11", a + ":5 needle 12", b + ":1 a needle here"}
	if got := found(v); !slices.Equal(got, want) || v["matchesTruncated"] != true || v["panesSearched"] != 4.0 || v["panesFailed"] != 0.0 {
		t.Errorf("%v: %v", got, v)
	}
	v = r.ok("search_panes", args{"pattern": "needle", "session": "other"})
	if got := found(v); len(got) != 1 || v["matchesTruncated"] != false || v["panesSearched"] != 2.0 {
		t.Errorf("%v: %v", got, v)
	}
	v = r.ok("search_panes", args{"pattern": `^(?i)needle\s*1?$`, "regex": true, "scrollbackLines": 500, "maxMatchesPerPane": 9})
	if got := found(v); !slices.Equal(got, []string{a + ":1 needle 1", b + ":2 NEEDLE"}) || v["scrollbackClamped"] != true ||
		v["effectiveScrollbackLines"] != 20.0 {
		t.Errorf("%v: %v", got, v)
	}
	v = r.ok("search_panes", args{"pattern": "needle", "maxMatchesPerPane": 1000, "max_lines": 3})
	if got := found(v); len(got) != 3 || v["matchesTruncated"] != true {
		t.Errorf("%v: %v", got, v)
	}
	if v := r.ok("search_panes", args{"pattern": "nowhere"}); len(v["matches"].([]any)) != 0 || v["matchesTruncated"] != false {
		t.Errorf("%v", v)
	}
	r.refused("search_panes", args{"pattern": `(?<=a)b`, "regex": true}, "not a regular expression", "RE2")
	r.refused("search_panes", args{"pattern": "x", "session": "zzz"}, "does not exist")
}

// TestBatchEqualsSingleCalls: each row of a batch is what the tool answers
// alone.
func TestBatchEqualsSingleCalls(t *testing.T) {
	r := newRig(t, nil).start()
	r.say("%0", "text")
	cursor := r.ok("capture_since", args{"paneId": "%0"})["cursor"]
	ops := []args{
		{"tool": "list_sessions"},
		{"tool": "list_windows", "arguments": args{"session": "main"}},
		{"tool": "list_panes", "arguments": args{"window": "@0"}},
		{"tool": "get_pane_info", "arguments": args{"pane_id": "%0"}},
		{"tool": "get_server_info", "arguments": nil},
		{"tool": "capture_pane", "arguments": args{"paneId": "%0", "maxLines": 5}},
		{"tool": "capture_since", "arguments": args{"paneId": "%0", "cursor": cursor, "waitMs": 1}},
		{"tool": "search_panes", "arguments": args{"pattern": "text"}},
		{"tool": "show_option", "arguments": args{"name": "buffer-limit"}},
		{"tool": "show_hooks"},
		{"tool": "show_environment", "arguments": args{"session_name": "main"}},
		{"tool": "get_session_info", "arguments": args{"session": "main"}},
		{"tool": "get_window_info", "arguments": args{"windowId": "@9"}},
		{"tool": "find_pane_by_position", "arguments": args{"windowId": "@0", "corner": "top-left"}},
		{"tool": "get_tmux_variables", "arguments": args{"names": []string{"pid"}}},
		{"tool": "snapshot_pane", "arguments": args{"paneId": "%0", "nope": 1}},
	}
	res := r.call(batchName, args{"operations": ops, "onError": "continue"})
	a := readAnswer(t, res.encode(json.RawMessage("1")))
	s := a.StructuredContent
	if len(s.Results) != 16 || s.Failed != 2 || s.Succeeded != 14 || s.StoppedAt != nil {
		t.Fatalf("%+v", s)
	}
	for i, row := range s.Results {
		alone := encodeNested(r.call(row.Tool, ops[i]["arguments"]))
		if string(row.Result) != string(alone) {
			t.Errorf("%s:\nin the batch %s\nalone        %s", row.Tool, row.Result, alone)
		}
	}
	a = readAnswer(t, r.call(batchName, args{"operations": ops}).encode(json.RawMessage("1")))
	if s := a.StructuredContent; len(s.Results) != 13 || *s.StoppedAt != 12 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}

// TestReadsAreCurrent: what the tmux binary changed before a call is in its
// answer (P1).
func TestReadsAreCurrent(t *testing.T) {
	r := newRig(t, nil).start()
	for i := range 40 {
		name := fmt.Sprintf("n%d", i)
		r.tmux("rename-window", "-t", "@0", name)
		if got := r.ok("get_window_info", args{"windowId": "@0"})["window"].(map[string]any)["name"]; got != name {
			t.Fatalf("stale: %v, want %s", got, name)
		}
		r.tmux("select-pane", "-t", "%0", "-T", name)
		raw, _ := json.Marshal(args{"operations": []args{{"tool": "list_panes"}, {"tool": "get_pane_info", "arguments": args{"paneId": "%0"}}}})
		res, err := r.table.call(context.Background(), r.caller, batchName, raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		titles := regexp.MustCompile(`"title":"([^"]*)"`).FindAllSubmatch(res.encode(json.RawMessage("1")), -1)
		if len(titles) != 2 || string(titles[0][1]) != name || string(titles[1][1]) != name {
			t.Fatalf("stale: %s, want %s", titles, name)
		}
	}
}
