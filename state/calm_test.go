package state

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tmux-mcpd/controlmode"
)

// A stream client does not attach in the middle of a burst of what can crash
// the server, nor wait for the end of one that does not end.
func TestAwaitCalm(t *testing.T) {
	burst := func(events int, every time.Duration, e controlmode.Event) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			m := New(Config{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m.structureEvent(e)
			go func() {
				for range events {
					if !pause(ctx, every) {
						return
					}
					m.structureEvent(e)
				}
			}()
			begin := time.Now()
			m.awaitCalm(ctx)
			took = time.Since(begin)
		})
		return took
	}
	for _, c := range []struct {
		name   string
		events int
		e      controlmode.Event
		want   time.Duration
	}{
		{"one", 0, controlmode.SessionsChanged{}, calmFor},
		{"ten", 10, controlmode.ClientDetached{}, 10*7*time.Millisecond + calmFor},
		{"without end", 1000, controlmode.SessionRenamed{}, calmMost},
		{"harmless", 10, controlmode.WindowAdd{}, 0},
	} {
		if took := burst(c.events, 7*time.Millisecond, c.e); took != c.want {
			t.Errorf("%s: waited %v, want %v", c.name, took, c.want)
		}
	}
	for version, want := range map[string]bool{"3.3a": true, "3.5a": true, "3.6": true, "3.7": false, "3.7c": false, "3.8": false, "?": true} {
		if fragile(version) != want {
			t.Errorf("fragile(%q)", version)
		}
	}
}

// What the daemon itself does to a fragile server never meets an attachment of
// its own: sessions are renamed and buffers set without a pause while a stream
// client attaches to each of many sessions.
func TestOwnCommandsKeepOutOfOwnAttaching(t *testing.T) {
	t.Parallel()
	const sessions = 10
	x := newTmux(t).start()
	for i := range sessions {
		x.run("new-session", "-d", "-s", "s"+strconv.Itoa(i), "exec cat")
	}
	m := x.mirror()
	before := full(t, m)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(within(t))
	for _, args := range [][]string{{"rename-session", "-t", "$0"}, {"set-buffer", "-b", "own"}} {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				cmd := controlmode.Cmd(args[0], append(args[1:], "n"+strconv.Itoa(n))...)
				if _, err := m.Do(within(t), controlmode.Request{Commands: []controlmode.Command{cmd}}); err != nil {
					t.Errorf("%s %d: %v", args[0], n, err)
					return
				}
			}
		})
	}
	for _, p := range before.Panes {
		if _, _, err := m.StartWatch(within(t), p.ID, CaptureRange{}); err != nil {
			t.Errorf("watch %s: %v", p.ID, err)
			break
		}
	}
	cancel()
	wg.Wait()
	if m.Status().StreamsOpen != sessions+1 || full(t, m).Server.ID != before.Server.ID {
		t.Errorf("status %+v", m.Status())
	}
}
