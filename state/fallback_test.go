package state

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// While attaching keeps failing though tmux answers, reads are answered by
// processes and the state says so, until control mode works again.
func TestReadsByProcessWhileAttachingFails(t *testing.T) {
	x := newTmux(t).start()
	dir := filepath.Dir(x.sock)
	real, err := exec.LookPath(x.bin)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "no-control-mode")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(dir, "tmux")
	script := "#!/bin/sh\nif [ -e " + broken + " ]; then case \" $* \" in *' -C '*) exit 1;; esac; fi\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	m := x.mirror(func(c *Config) { c.Bin = wrapper })
	if x.command("rename-window", "-t", "main:0", "a|b\n").Run() != nil {
		x.run("rename-window", "-t", "main:0", "a|b") // 3.7c takes no control characters
	}
	for range 2 {
		mod := full(t, m)
		if len(mod.Panes) != 1 || mod.Server.ID.PID == 0 || len(mod.Clients) != 0 {
			t.Fatalf("%+v", mod)
		}
		x.run("split-window", "-d", "-t", "main:0", "cat")
		if mod = full(t, m); len(mod.Panes) != 2 { // P1 holds here, too
			t.Fatalf("%d panes", len(mod.Panes))
		}
		x.run("kill-pane", "-t", "main:0.1")
	}
	if s := m.Status(); s.Attached || !s.Degraded {
		t.Errorf("status %+v", s)
	}
	x.run("send-keys", "-t", "%0", "hello", "Enter")
	awaitText(t, m, 0, "hello")
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	m.awaitStatus(t, func(s Status) bool { return s.Attached })
	if s := m.Status(); s.Degraded {
		t.Errorf("status %+v", s)
	}
}

func TestSplitAt(t *testing.T) {
	for in, want := range map[string][]string{
		"":                     nil,
		"M\n":                  {""},
		"a\nM\n":               {"a"},
		"a\nb\nM\nM\nc\nM\n":   {"a\nb", "", "c"},
		"xM\nM\nMx\n\nM\nrest": {"xM", "Mx\n"},
	} {
		var got []string
		for _, b := range splitAt([]byte(in), "M") {
			got = append(got, string(b))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// person attaches a real client on a terminal; the answer ends it.
func (x *testTmux) person(session string) (leave func()) {
	x.t.Helper()
	cmd := x.command("attach-session", "-t", session)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		x.t.Fatal(err)
	}
	// its first bytes come when it is attached
	r := bufio.NewReader(f)
	if _, err := r.ReadByte(); err != nil {
		x.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.WriteTo(&bytes.Buffer{}) }()
	return func() {
		cmd.Process.Signal(unix.SIGHUP)
		cmd.Wait()
		f.Close()
		<-done
	}
}

// Our clients never keep alive what would end with the last person.
func TestUnattachedEndsThoughWeAreThere(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
		ends func(*Model) bool
	}{
		{"destroy-unattached", []string{"set-option", "-t", "gone", "destroy-unattached", "on"}, func(m *Model) bool {
			_, ok := m.SessionNamed("gone")
			return !ok && m.Server.ID != (ServerID{})
		}},
		{"exit-unattached", []string{"set-option", "-s", "exit-unattached", "on"}, func(m *Model) bool {
			return m.Server.ID == (ServerID{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTmux(t)
			x.run("new-session", "-d", "-s", "gone", "-x", "80", "-y", "24", "cat")
			x.run("new-session", "-d", "-s", "stays", "-x", "80", "-y", "24", "cat")
			leave := x.person("gone")
			x.run(c.set...)
			m := x.mirror()
			if _, _, err := m.StartWatch(within(t), 0, CaptureRange{}); err != nil {
				t.Fatal(err)
			}
			if mod := full(t, m); len(mod.Sessions) != 2 || mod.People(0) != 1 {
				t.Fatalf("%+v %+v", mod.Sessions, mod.Clients)
			}
			leave()
			ctx := within(t)
			for mod := full(t, m); !c.ends(mod); mod = full(t, m) {
				if ctx.Err() != nil {
					t.Fatalf("still there: %+v %+v", mod.Sessions, mod.Clients)
				}
			}
		})
	}
}
