package state

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"tmux-mcpd/controlmode"
)

// corrupter makes a tmux whose control clients with a flag have one line of
// their output replaced, once, by a closing guard that belongs to nothing.
func (x *testTmux) corrupter(flag, line string) string {
	x.t.Helper()
	dir := filepath.Dir(x.sock)
	real, err := exec.LookPath(x.bin)
	if err != nil {
		x.t.Fatal(err)
	}
	once := filepath.Join(dir, "once")
	if err := os.WriteFile(once, nil, 0o600); err != nil {
		x.t.Fatal(err)
	}
	// exec: the client keeps the process id that was started. The loop reads on
	// to the end, as tmux does not let go of a client that leaves data unread.
	script := `#!/bin/sh
case " $* " in *` + flag + `*) if [ -e ` + once + ` ]; then
	mkfifo ` + dir + `/out.$$
	while IFS= read -r line; do
		case $line in *"` + line + `"*) if rm ` + once + ` 2>/dev/null; then line='%end 1 2 1'; fi;; esac
		printf '%s\n' "$line" 2>/dev/null
	done <` + dir + `/out.$$ &
	exec ` + real + ` "$@" >` + dir + `/out.$$
fi;; esac
exec ` + real + ` "$@"
`
	wrapper := filepath.Join(dir, "tmux")
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		x.t.Fatal(err)
	}
	return wrapper
}

// observed is a log that a test can read.
func observed(c *Config) *observer.ObservedLogs {
	core, logs := observer.New(zapcore.DebugLevel)
	c.Log = zap.New(core)
	return logs
}

// wantDump demands one report of a broken protocol, with the conversation and
// without what names and panes hold.
func wantDump(t *testing.T, logs *observer.ObservedLogs, structure string, secrets ...string) {
	t.Helper()
	all := logs.FilterMessage("control client replaced").All()
	if len(all) != 1 {
		t.Fatalf("%d reports of a broken protocol, want 1", len(all))
	}
	dump, _ := all[0].ContextMap()["conversation"].(string)
	for _, want := range []string{"from tmux", "to tmux", "%end 1 2 1", structure} {
		if !strings.Contains(dump, want) {
			t.Errorf("no %q in the dump:\n%s", want, dump)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(dump, secret) {
			t.Errorf("%q in the dump", secret)
		}
	}
}

// The protocol of the structure client is violated once: the write in flight
// fails and is not repeated, the reads in flight are answered rightly all the
// same, and the log tells what was said, without what panes hold.
func TestViolatedProtocolReplacesStructureClient(t *testing.T) {
	x := newTmux(t).start()
	x.run("rename-session", "-t", "main", "secretname")
	bin := x.corrupter("no-output", "corruptnow")
	var logs *observer.ObservedLogs
	m := x.mirror(func(c *Config) { c.Bin = bin; logs = observed(c) })
	full(t, m)
	first := m.attachedNow().proc

	begun := make(chan struct{})
	write := make(chan error, 1)
	go func() {
		_, err := m.Do(within(t), controlmode.Request{
			Commands: []controlmode.Command{controlmode.Cmd("wait-for", "never"), controlmode.Cmd("set-buffer", "x")},
			Begin:    func(int) { close(begun) }, Timeout: 20 * time.Second,
		})
		write <- err
	}()
	<-begun // tmux has it, and answers nothing on this client until it is signalled
	var wg sync.WaitGroup
	asked := first.Stats().Requests
	for range 8 {
		wg.Go(func() {
			mod, err := m.Arrive(Full).Model(within(t), Full)
			if err != nil || len(mod.Windows) != 1 || mod.Windows[0].Name != "corruptnow" {
				t.Errorf("read in flight: %v, %+v", err, mod)
			}
		})
	}
	wg.Go(func() {
		if one, err := m.Arrive(0).Pane(within(t), 0); err != nil || one.Panes[0].WindowName != "corruptnow" {
			t.Errorf("pane in flight: %v, %+v", err, one)
		}
	})
	ctx := within(t)
	for first.Stats().Requests < asked+2 { // both refreshes are with tmux
		if x.run("display-message", "-p", "x"); ctx.Err() != nil {
			t.Fatal("the reads were never sent")
		}
	}
	x.run("rename-window", "-t", "secretname:0", "corruptnow")
	var broken *controlmode.ProtocolError
	if err := <-write; !errors.As(err, &broken) || !errors.Is(err, controlmode.ErrClosed) || errors.Is(err, controlmode.ErrNotSent) {
		t.Errorf("the write in flight: %v", err)
	}
	wg.Wait()
	if now := m.attachedNow(); now == nil || now.proc == first {
		t.Error("the client was not replaced")
	}
	wantDump(t, logs, "list-panes -a -F", "secretname", "corruptnow")
	x.run("rename-window", "-t", "secretname:0", "after")
	if mod := full(t, m); mod.Windows[0].Name != "after" {
		t.Errorf("afterwards: %+v", mod.Windows[0])
	}
}

// The protocol of a stream client is violated once: the reader of the pane is
// told of the gap, the pane is watched again, and output flows.
func TestViolatedProtocolReplacesStreamClient(t *testing.T) {
	x := newTmux(t).start()
	bin := x.corrupter("pause-after", "corruptnow")
	var logs *observer.ObservedLogs
	m := x.mirror(func(c *Config) { c.Bin = bin; logs = observed(c) })
	_, at, err := m.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.run("send-keys", "-t", "%0", "-l", "secrettext")
	ctx := within(t)
	for got := ""; !strings.Contains(got, "secrettext"); {
		s, err := m.Since(ctx, 0, at, SinceOptions{Wait: time.Second})
		if err != nil || s.Gap != nil {
			t.Fatalf("%+v %v", s, err)
		}
		got = s.Text
	}
	x.run("rename-window", "-t", "main:0", "corruptnow")
	// Until the pane is watched again a reader can be told twice: of the end of
	// the delivery and of its new beginning.
	gaps := 0
	for delivered := false; !delivered; {
		s, err := m.Since(ctx, 0, at, SinceOptions{Wait: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap == nil {
			delivered = gaps > 0
			continue
		}
		if gaps++; gaps > 2 || s.Gap.Reason != GapAttached {
			t.Errorf("gap %d: %+v", gaps, s.Gap)
		}
		at = s.Cursor
	}
	wantDump(t, logs, "%extended-output %0", "secrettext", "corruptnow")
	x.run("send-keys", "-t", "%0", "-l", "again")
	s, err := m.Since(ctx, 0, at, SinceOptions{Wait: 5 * time.Second})
	if err != nil || s.Gap != nil || !strings.HasPrefix(s.Text, "a") && !strings.Contains(s.Text, "secrettexta") {
		t.Errorf("afterwards: %+v %v", s, err)
	}
}
