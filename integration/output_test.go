package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tmux-mcpd/state"
)

// C05: a daemon that does not read (here its client is stopped, as a stopped
// daemon's would fill up) freezes no program: tmux pauses the pane for it, and
// the reader is told of the gap afterwards.
func TestC05StoppedReaderFreezesNothing(t *testing.T) {
	x := startTmux(t)
	count, enough := filepath.Join(x.dir, "count"), filepath.Join(x.dir, "enough")
	x.run("respawn-pane", "-k", "-t", "%0",
		"line=$(printf %01000d 7); printf . >"+count+"; while [ ! -e "+enough+" ]; do echo $line; printf . >>"+count+"; done; exec cat")
	// Room for all that tmux has kept for the client by then.
	m := x.mirror(func(c *state.Config) { c.PaneBytes = 256 << 20 })
	_, at, err := m.StartWatch(within(t), 0, state.CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	stream := 0
	for _, c := range read(t, m).Clients {
		if c.Own && strings.Contains(c.Flags, "pause-after") {
			stream = c.PID
		}
	}
	if stream == 0 {
		t.Fatal("no client receives output")
	}
	counted := func() int64 {
		s, err := os.Stat(count)
		if err != nil {
			t.Fatal(err)
		}
		return s.Size()
	}
	x.signal(stream, syscall.SIGSTOP)
	goOn := func() { x.signal(stream, syscall.SIGCONT) }
	defer func() { goOn() }()
	// 2 MB are more than the buffers on the way hold, several times over; and
	// after 3 s (pause-after) tmux stops keeping output for who does not take it.
	from, begin := counted(), time.Now()
	until(t, "the program going on", func() bool {
		x.run("display-message", "-p", "") // structure is answered throughout
		return counted() > from+2000 && time.Since(begin) > 5*time.Second
	})
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	goOn()
	goOn = func() {}
	for gap := (*state.Gap)(nil); gap == nil; {
		s, err := m.Since(within(t), 0, at, raw)
		if err != nil {
			t.Fatal(err)
		}
		at, gap = s.Cursor, s.Gap
		// Attached: tmux 3.3a never answers a client again that it pauses with an
		// answer queued, here the fence of this very read, and it is replaced.
		if gap != nil && (gap.Reason != state.GapPaused && gap.Reason != state.GapAttached || gap.Bytes != nil) {
			t.Errorf("gap %+v", gap)
		}
	}
	until(t, "output once more", func() bool {
		s := x.say(m, 0, at, "again.")
		at = s.Cursor
		return s.Gap == nil && string(s.Raw) == "again."
	})
	if n := len(read(t, m).Panes); n != 1 {
		t.Errorf("%d panes afterwards", n)
	}
}

// C08: a program prints characters byte by byte, and tmux passes each byte on
// by itself. What is read are characters, wherever a read falls.
func TestC08CharactersByteByByte(t *testing.T) {
	const text = "é中🔨ä\u0301€ e\x1b[1mü\x1b[0m."
	x := startTmux(t)
	fifo := filepath.Join(x.dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	x.run("respawn-pane", "-k", "-t", "%0", "cat "+fifo+"; exec cat")
	m := x.mirror()
	_, start, err := m.StartWatch(within(t), 0, state.CaptureRange{})
	if err != nil {
		t.Fatal(err)
	}
	// For reading, too, so that opening does not wait for the pane's cat.
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at, joined := start, ""
	rawAt := start
	for i := range len(text) {
		if _, err := w.Write([]byte{text[i]}); err != nil {
			t.Fatal(err)
		}
		// Each byte has come through before the next is written.
		s, err := m.Since(within(t), 0, rawAt, state.SinceOptions{Raw: true, Wait: patience})
		if err != nil || string(s.Raw) != text[i:i+1] {
			t.Fatalf("byte %d: %+v, %v", i, s, err)
		}
		rawAt = s.Cursor
		s, err = m.Since(within(t), 0, at, state.SinceOptions{})
		if err != nil || s.Gap != nil {
			t.Fatalf("byte %d: %+v, %v", i, s, err)
		}
		if strings.ContainsRune(s.Text, '\ufffd') {
			t.Errorf("byte %d: half a character: %q", i, s.Text)
		}
		joined += fmt.Sprintf("[%s]", s.Text)
		at = s.Cursor
	}
	s, err := m.Since(within(t), 0, start, state.SinceOptions{})
	if want := "é中🔨ä\u0301€ eü."; err != nil || strings.TrimRight(s.Text, "\n") != want {
		t.Errorf("read %q, %v, want %q (in pieces: %s)", s.Text, err, want, joined)
	}
}
