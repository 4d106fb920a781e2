package state

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// controlClient starts a bare control client with that in its environment. left
// is closed when its process has ended.
func (x *testTmux) controlClient(session string, env ...string) (pid int, left <-chan struct{}) {
	x.t.Helper()
	cmd := x.command("-C", "attach-session", "-t", session)
	cmd.Env = append(cmd.Env, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "%session-changed "); {
		if line, err = r.ReadString('\n'); err != nil {
			x.t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, r)
		cmd.Wait()
	}()
	x.t.Cleanup(func() {
		in.Close()
		<-ended
	})
	return cmd.Process.Pid, ended
}

// Control clients that a daemon left behind are detached by the next one;
// everybody else's stay.
func TestStaleClientsAreDetached(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whose a client is can be read on Linux only")
	}
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "other", "cat")
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	stale := markName + "=" + strconv.Itoa(gone.Process.Pid)
	_, left := x.controlClient("main", stale)
	_, alsoLeft := x.controlClient("other", stale)
	keep := map[string]string{}
	for name, env := range map[string]string{
		"no mark":               "X=" + stale,
		"of a daemon that runs": markName + "=" + strconv.Itoa(os.Getppid()),
		"no pid":                markName + "=",
		"no process":            markName + "=-1",
		"a group of processes":  markName + "=0",
	} {
		pid, _ := x.controlClient("main", env)
		keep[strconv.Itoa(pid)] = name
	}
	defer x.person("main")()
	m := x.mirror()
	full(t, m)
	<-left
	<-alsoLeft
	full(t, m) // the look at attaching is over: it asked before this did
	for line := range strings.Lines(x.run("list-clients", "-F", "#{client_pid}")) {
		delete(keep, strings.TrimSpace(line))
	}
	if len(keep) > 0 {
		t.Errorf("detached: %v", keep)
	}
	if others := full(t, m).People(0); others != 6 {
		t.Errorf("%d clients are left, want 5 and the person", others)
	}
}
