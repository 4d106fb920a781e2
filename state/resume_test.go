package state

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runUntil runs a Mirror and answers how to end it in order.
func (x *testTmux) runUntil(m *Mirror) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// awaitNextSecond lets the server's clock reach another second than that of the
// last activity: tmux tells activity in whole seconds.
func (x *testTmux) awaitNextSecond(t *testing.T) {
	t.Helper()
	last := x.run("display-message", "-p", "-t", "%0", "#{window_activity}")
	ctx := within(t)
	for time.Now().Unix() <= atoi(t, last) {
		select {
		case <-time.After(time.Until(time.Unix(atoi(t, last)+1, 0))):
		case <-ctx.Done():
			t.Fatal("the clock stands still")
		}
	}
}

// A cursor outlives the daemon: without a gap if the pane has printed nothing
// since, and otherwise with one that says so.
func TestCursorsOutliveTheDaemon(t *testing.T) {
	x := newTmux(t).start()
	file := filepath.Join(filepath.Dir(x.sock), "cursors")
	first := New(Config{Bin: x.bin, Socket: socketPath(x.sock), CursorFile: file})
	stop := x.runUntil(first)
	_, start, err := first.StartWatch(within(t), 0, CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	x.run("send-keys", "-t", "%0", "one", "Enter")
	at := start
	for seen := ""; !strings.Contains(seen, "one\none\n"); {
		s, err := first.Since(within(t), 0, at, SinceOptions{Wait: 5 * time.Second})
		if err != nil || s.Gap != nil {
			t.Fatalf("%+v %v", s, err)
		}
		seen, at = seen+s.Text, s.Cursor
	}
	x.awaitNextSecond(t)
	stop()

	second := New(Config{Bin: x.bin, Socket: socketPath(x.sock), CursorFile: file})
	stop = x.runUntil(second)
	s, err := second.Since(within(t), 0, at, SinceOptions{})
	if err != nil || s.Gap != nil || s.Missed != 0 || s.Text != "" || s.Cursor != at {
		t.Fatalf("nothing has happened: %+v, gap %+v, %v", s, s.Gap, err)
	}
	behind, err := second.Since(within(t), 0, start, SinceOptions{})
	if err != nil || behind.Missed != at.Offset-start.Offset || behind.Gap == nil || behind.Gap.Reason != GapRestarted || behind.Text != "" {
		t.Fatalf("a reader that was behind: %+v, gap %+v, %v", behind, behind.Gap, err)
	}
	x.run("send-keys", "-t", "%0", "-l", "two")
	if s, err = second.Since(within(t), 0, at, SinceOptions{Wait: 5 * time.Second}); err != nil || s.Gap != nil || s.Text == "" || !strings.HasPrefix("two", s.Text) {
		t.Fatalf("what followed: %+v, gap %+v, %v", s, s.Gap, err)
	}
	at = s.Cursor
	stop()

	x.run("send-keys", "-t", "%0", "-l", "unseen")
	third := New(Config{Bin: x.bin, Socket: socketPath(x.sock), CursorFile: file})
	stop = x.runUntil(third)
	defer stop()
	if s, err = third.Since(within(t), 0, at, SinceOptions{}); err != nil || s.Gap == nil || s.Gap.Reason != GapRestarted {
		t.Fatalf("it has printed meanwhile: %+v, gap %+v, %v", s, s.Gap, err)
	}
	if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), "one") {
		t.Errorf("the file holds text of the pane: %s %v", b, err)
	}
}

func TestLoadResumable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cursors")
	if r, err := loadResumable(file); err != nil || len(r.panes) != 0 {
		t.Errorf("no file: %v %v", r, err)
	}
	for _, bad := range []string{"", "{", `{"panes":7}`} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadResumable(file); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if err := os.WriteFile(file, []byte(`{"pid":1,"panes":[{"pane":1,"stream":"xx"},{"pane":2,"stream":"`+strings.Repeat("0a", 16)+`","from":3,"end":2}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := loadResumable(file); err != nil || len(r.panes) != 0 {
		t.Errorf("impossible places: %v %v", r, err)
	}
}
