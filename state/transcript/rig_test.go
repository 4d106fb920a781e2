package transcript

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/term"
)

// The rig compares the transcript with tmux itself. A feeder runs in a pane of
// a private server, sets its tty raw and writes the stream it gets over a
// socket. It then asks tmux for its version: the answer comes only after tmux
// has parsed everything before the question, so nothing sleeps.

const (
	feederEnv = "TRANSCRIPT_FEEDER"       // socket of the rig
	tmuxEnv   = "TMUX_MCPD_TEST_TMUX"     // path of the tmux to compare with
	fence     = "\x1b\\\x1b\\\x18\x1b[>q" // ends whatever is open, then asks
	separator = "=transcript-capture="    // between the answers of one call
)

// feed is the program in the pane.
func feed(addr string) error {
	conn, err := net.Dial("unix", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := term.MakeRaw(0); err != nil {
		return err
	}
	if err := writeUint(conn, os.Getenv("TMUX_PANE")); err != nil {
		return err
	}
	for {
		var size uint32
		if err := binary.Read(conn, binary.BigEndian, &size); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		stream := make([]byte, size)
		if _, err := io.ReadFull(conn, stream); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(stream); err != nil {
			return err
		}
		var answer []byte
		buf := make([]byte, 4096)
		for !bytes.Contains(answer, []byte(">|tmux ")) {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return err
			}
			answer = append(answer, buf[:n]...)
		}
		if _, err := conn.Write([]byte{1}); err != nil {
			return err
		}
	}
}

func writeUint(w io.Writer, pane string) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(pane, "%"), 10, 32)
	if err != nil {
		return err
	}
	return binary.Write(w, binary.BigEndian, uint32(n))
}

// rig is one private tmux server.
type rig struct {
	tmux    string
	socket  string
	listen  net.Listener
	addr    string
	profile Profile
	version string

	mu       sync.Mutex
	sessions map[string]bool
}

// newRig starts a server, or skips the test where there is no tmux.
func newRig(t *testing.T) *rig {
	t.Helper()
	path := os.Getenv(tmuxEnv)
	if path == "" {
		var err error
		if path, err = exec.LookPath("tmux"); err != nil {
			t.Skip("no tmux in PATH")
		}
	}
	dir, err := os.MkdirTemp("", "rig") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{tmux: path, socket: filepath.Join(dir, "s"), addr: filepath.Join(dir, "f"), sessions: map[string]bool{}}
	out, err := exec.Command(path, "-V").Output()
	if err != nil {
		t.Fatalf("%s -V: %v", path, err)
	}
	r.version = strings.TrimSpace(strings.TrimPrefix(string(out), "tmux "))
	r.profile = ProfileFor(r.version)
	if r.listen, err = net.Listen("unix", r.addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.run(t, "kill-server")
		r.listen.Close()
	})
	// The session that keeps the server alive; it is never compared.
	r.run(t, "new-session", "-d", "-s", "keep", "-x", "80", "-y", "24", "sleep 3600")
	r.run(t, "set-option", "-g", "status", "off")
	return r
}

func (r *rig) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.tmux, append([]string{"-u", "-S", r.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8", "TERM=xterm-256color")
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "kill-server" {
		t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// session makes sure there is a session of a size; its windows have that size.
func (r *rig) session(t *testing.T, width, height int) string {
	t.Helper()
	name := fmt.Sprintf("s%dx%d", width, height)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.sessions[name] {
		r.run(t, "new-session", "-d", "-s", name, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "sleep 3600")
		r.sessions[name] = true
	}
	return name
}

// screenshot is everything compared.
type screenshot struct {
	Cursor    string
	Alternate bool
	History   int
	Rows      []string
	Joined    []string
}

// pane is a pane with a feeder in it.
type pane struct {
	id   string
	conn net.Conn
}

// open starts a feeder in a new window.
func (r *rig) open(t *testing.T, width, height int) pane {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	session := r.session(t, width, height)
	r.run(t, "new-window", "-d", "-t", session+":", "-e", feederEnv+"="+r.addr, exe)
	if err := r.listen.(*net.UnixListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	conn, err := r.listen.Accept()
	if err != nil {
		t.Fatalf("waiting for the feeder: %v", err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var id uint32
	if err := binary.Read(conn, binary.BigEndian, &id); err != nil {
		t.Fatalf("feeder: %v", err)
	}
	return pane{id: fmt.Sprintf("%%%d", id), conn: conn}
}

// send writes to the pane and waits until tmux has parsed it.
func (p pane) send(t *testing.T, stream []byte) {
	t.Helper()
	if err := binary.Write(p.conn, binary.BigEndian, uint32(len(stream))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.conn.Write(stream); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.conn, make([]byte, 1)); err != nil {
		t.Fatalf("waiting for the fence: %v", err)
	}
}

// show feeds a stream to a new pane and captures it.
func (r *rig) show(t *testing.T, width, height int, stream []byte) screenshot {
	t.Helper()
	p := r.open(t, width, height)
	defer p.conn.Close()
	p.send(t, append(stream[:len(stream):len(stream)], fence...))
	out := r.capture(t, p)
	r.run(t, "kill-pane", "-t", p.id)
	return parseScreenshot(t, out, width, height)
}

// capture asks for everything compared.
func (r *rig) capture(t *testing.T, p pane) string {
	t.Helper()
	return r.run(t, "display-message", "-p", "-t", p.id, "#{cursor_x},#{cursor_y} #{alternate_on} #{history_size} #{pane_width}x#{pane_height}",
		";", "capture-pane", "-p", "-J", "-S", "-", "-t", p.id,
		";", "display-message", "-p", separator,
		";", "capture-pane", "-p", "-S", "-", "-t", p.id)
}

func parseScreenshot(t *testing.T, out string, width, height int) screenshot {
	t.Helper()
	first, rest, _ := strings.Cut(out, "\n")
	joined, rows, ok := strings.Cut(rest, separator+"\n")
	f := strings.Fields(first)
	if !ok || len(f) != 4 || f[3] != fmt.Sprintf("%dx%d", width, height) {
		t.Fatalf("unexpected answer of tmux for %dx%d: %.200q", width, height, out)
	}
	n, err := strconv.Atoi(f[2])
	if err != nil {
		t.Fatal(err)
	}
	return screenshot{
		Cursor: f[0], Alternate: f[1] == "1", History: n,
		Rows: tidy(strings.Split(rows, "\n")), Joined: tidy(strings.Split(joined, "\n")),
	}
}

// tidy cuts trailing blanks and trailing empty rows.
func tidy(rows []string) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, strings.TrimRight(r, " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// render is the transcript's view of a stream.
func render(width, height int, p Profile, stream []byte) screenshot {
	t := New(width, height, 2000, p)
	t.Write(append(stream[:len(stream):len(stream)], fence...), time.Time{})
	return shot(t)
}

func shot(t *Transcript) screenshot {
	x, y := t.Cursor()
	return screenshot{
		Cursor: fmt.Sprintf("%d,%d", x, y), Alternate: t.Alternate(), History: t.HistorySize(),
		Rows: tidy(t.Rows()), Joined: tidy(t.Joined()),
	}
}

// state asks for what a Seed needs.
func (r *rig) state(t *testing.T, p pane) SeedState {
	t.Helper()
	const formats = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{scroll_region_upper} #{scroll_region_lower} " +
		"#{wrap_flag} #{insert_flag} #{origin_flag} #{alternate_on} #{alternate_saved_x} #{alternate_saved_y} " +
		"#{history_size} #{history_limit} [#{pane_tabs}]"
	mark := []string{";", "display-message", "-p", separator}
	args := []string{"display-message", "-p", "-t", p.id, formats}
	for _, c := range [][]string{
		{"-e", "-N", "-S", "-2000"}, {"-J", "-S", "-2000"}, {"-a", "-q", "-e", "-N"}, {"-a", "-q", "-J"}, {"-P", "-C"},
	} {
		args = append(append(args, mark...), append([]string{";", "capture-pane", "-p", "-t", p.id}, c...)...)
	}
	parts := strings.Split(r.run(t, args...), separator+"\n")
	if len(parts) != 6 {
		t.Fatalf("%d parts", len(parts))
	}
	var s SeedState
	var wrap, insert, origin, alternate int
	var tabs string
	if _, err := fmt.Sscan(parts[0], &s.Width, &s.Height, &s.CursorX, &s.CursorY, &s.Upper, &s.Lower,
		&wrap, &insert, &origin, &alternate, &s.AlternateX, &s.AlternateY, &s.HistorySize, &s.HistoryLimit, &tabs); err != nil {
		t.Fatalf("%q: %v", parts[0], err)
	}
	s.Wrap, s.Insert, s.Origin, s.Alternate = wrap == 1, insert == 1, origin == 1, alternate == 1
	s.Tabs = strings.Trim(tabs, "[]")
	if s.AlternateX == 1<<32-1 {
		s.AlternateX, s.AlternateY = -1, -1
	}
	s.Styled, s.Joined = []byte(parts[1]), []byte(parts[2])
	s.SavedStyled, s.SavedJoined = []byte(parts[3]), []byte(parts[4])
	s.Pending = []byte(parts[5])
	return s
}
