package state

import (
	"context"
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
