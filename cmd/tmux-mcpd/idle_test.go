package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		busyUntil := start.Add(7 * time.Minute)
		if !awaitIdle(ctx, 10*time.Minute, func() bool { return time.Now().After(busyUntil) }) {
			t.Fatal("ended without idling")
		}
		if d := time.Since(start); d < 17*time.Minute || d > 18*time.Minute {
			t.Errorf("idle for 10 min from minute 7 on was noticed after %v", d)
		}
		// A visit starts the time anew.
		visit := time.Now().Add(9 * time.Minute)
		start = time.Now()
		awaitIdle(ctx, 10*time.Minute, func() bool { d := time.Since(visit); return d < 0 || d > time.Minute })
		if d := time.Since(start); d < 19*time.Minute {
			t.Errorf("a visit in minute 9 did not count: ended after %v", d)
		}
		// Without a limit, never.
		time.AfterFunc(time.Hour, cancel)
		if awaitIdle(ctx, 0, func() bool { return true }) {
			t.Error("ended without a limit")
		}
	})
}

func TestServeIdleExit(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--idle-exit", "50ms")
	s.line(`{"level":"info"`)
	if code := s.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Lstat(p.socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A daemon whose socket was taken away ends once its clients have, though its
// tmux runs: nobody would find it, and the next one is another.
func TestServeSocketLost(t *testing.T) {
	p := newPlace(t)
	if out, err := p.tmux("default", "new-session", "-d", "cat"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := p.serve("--idle-exit", "10s") // looks every second
	conn, err := net.Dial("unix", p.socket())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(p.socket())); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	s.line(`{"level":"info"`)
	if code := s.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
