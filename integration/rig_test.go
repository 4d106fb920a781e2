package integration

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPrivateServer(t *testing.T) {
	var inner *tmux
	t.Run("life", func(t *testing.T) {
		x := startTmux(t)
		inner = x
		if len(x.sock) > 100 {
			t.Errorf("socket path of %d bytes: %s", len(x.sock), x.sock)
		}
		want, err := exec.Command(x.bin, "-V").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := "tmux " + x.run("display-message", "-p", "#{version}") + "\n"; got != string(want) {
			t.Errorf("server says %q, binary says %q", got, want)
		}
		if got := x.run("list-sessions", "-F", "#{session_name} #{socket_path}"); got != "main "+x.sock {
			t.Errorf("sessions: %q", got)
		}
		if _, err := x.try("no-such-command"); err == nil || !strings.Contains(err.Error(), "no-such-command") {
			t.Errorf("a failing command gave %v", err)
		}
		select {
		case <-x.gone:
			t.Error("the server is said to have ended, and it answers")
		default:
		}
	})
	select {
	case <-inner.gone:
	default:
		t.Error("the server outlives its test")
	}
	if _, err := os.Stat(inner.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder outlives its test: %v", err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("child processes left: %v", left)
	}
}

// TestServerGone: the end of a server is noticed, whoever ended it, and another
// can be started in its place.
func TestServerGone(t *testing.T) {
	x := startTmux(t)
	first := x.pid()
	p, err := os.FindProcess(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	x.waitGone()
	if _, err := x.try("list-sessions"); err == nil {
		t.Error("a killed server answers")
	}
	x.start("cat")
	if second := x.pid(); second == first {
		t.Errorf("two servers with pid %d", first)
	}
}

func TestControl(t *testing.T) {
	x := startTmux(t)
	c := x.control("main")
	if got := c.run("display-message -p 'a b' ; display-message -p c"); !slices.Equal(got, []string{"a b", "c"}) {
		t.Errorf("got %q", got)
	}
	for _, line := range []string{"no-such", "display-message -p x ; kill-pane -t %77 ; display-message -p never", "split-window -Q"} {
		got, err := c.try(line)
		if err == nil {
			t.Errorf("%s: no error, %q", line, got)
		}
		if slices.Contains(got, "never") {
			t.Errorf("%s: went on after an error", line)
		}
	}
	// What a pane shows is no answer: the screen holds a closing guard.
	c.run("respawn-pane -k -t %0 \"printf '%%end 1 2 1\\nfence-9\\n'; exec cat\"")
	until(t, "the text", func() bool {
		return slices.Equal(c.run("capture-pane -p -t %0 -S 0 -E 1"), []string{"%end 1 2 1", "fence-9"})
	})
	if got := c.run("display-message -p still-in-step"); !slices.Equal(got, []string{"still-in-step"}) {
		t.Errorf("got %q", got)
	}
	c.close()
	if got := x.run("list-clients"); got != "" {
		t.Errorf("clients after close: %s", got)
	}
}

func TestPerson(t *testing.T) {
	x := startTmux(t)
	p := x.person("main", 100, 30)
	if got := x.run("list-clients", "-F", "#{client_control_mode} #{client_width}x#{client_height} #{client_name}"); got != "0 100x30 "+p.name {
		t.Errorf("client: %q", got)
	}
	p.types("hello\r")
	until(t, "the keys in the pane", func() bool {
		return strings.HasPrefix(x.run("capture-pane", "-p", "-t", "%0"), "hello\nhello")
	})
	if got := x.run("display-message", "-p", "-t", "%0", "#{window_width}x#{window_height}"); got != "100x29" {
		t.Errorf("window: %s", got)
	}
	p.leave()
	until(t, "nobody attached", func() bool { return x.run("list-clients") == "" })
}

// TestChildren shows that the leak check can fail.
func TestChildren(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("children are found through /proc only:", err)
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	has := func(line string) bool { return strings.HasPrefix(line, pid+" ") }
	if left := children(); !slices.ContainsFunc(left, has) {
		t.Errorf("child %s not in %q", pid, left)
	}
	in.Close()
	cmd.Wait()
	if left := children(); slices.ContainsFunc(left, has) {
		t.Errorf("child %s has ended and is in %q", pid, left)
	}
}
