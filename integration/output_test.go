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
	count := filepath.Join(x.dir, "count")
	x.run("respawn-pane", "-k", "-t", "%0",
		"line=$(printf %01000d 7); printf . >"+count+"; while :; do echo $line; printf . >>"+count+"; done")
	m := x.mirror()
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
	// 2 MB: more than the buffers on the way hold, several times over.
	from := counted()
	until(t, "the program going on", func() bool {
		x.run("display-message", "-p", "") // structure is answered throughout
		return counted() > from+2000
	})
	goOn()
	goOn = func() {}
	gap := false
	ctx := within(t)
	for delivered := false; !delivered; {
		s, err := m.Since(ctx, 0, at, state.SinceOptions{Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		at = s.Cursor
		gap = gap || s.Gap != nil && s.Gap.Reason == state.GapPaused && s.Gap.Bytes == nil
		delivered = gap && s.Gap == nil && s.Text != ""
	}
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
