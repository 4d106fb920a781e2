// Package controltest is a scripted tmux: the far end of an in-memory control
// connection, for tests that must say exactly what tmux says and when. It runs
// in testing/synctest bubbles.
package controltest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"tmux-mcpd/controlmode"
)

// Tmux is the far end. Its methods may be called by one goroutine at a time,
// the test's or the one that Serve runs on; they fail the test when the
// connection is gone.
type Tmux struct {
	t      testing.TB
	conn   net.Conn
	lines  *bufio.Reader
	time   uint64
	number uint64
	once   sync.Once
}

// New makes a connection. The second result is for controlmode.NewClient. The
// far end is closed when the test ends.
func New(t testing.TB) (*Tmux, io.ReadWriteCloser) {
	t.Helper()
	near, far := net.Pipe()
	s := &Tmux{t: t, conn: far, lines: bufio.NewReader(far), time: 1796038274, number: 100}
	t.Cleanup(func() { s.Close() })
	return s, near
}

// Close ends the connection as tmux does, without %exit.
func (s *Tmux) Close() { s.once.Do(func() { s.conn.Close() }) }

// Write sends raw bytes.
func (s *Tmux) Write(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, text); err != nil {
		s.t.Errorf("scripted tmux: write %.40q: %v", text, err)
	}
}

// Say sends lines.
func (s *Tmux) Say(lines ...string) {
	s.t.Helper()
	s.Write(strings.Join(lines, "\n") + "\n")
}

// Attach says what tmux says to a client that has attached: the block of the
// attach command itself, flags 0, and %session-changed.
func (s *Tmux) Attach(session controlmode.SessionID, name string) {
	s.t.Helper()
	s.Block(0, "")
	s.Say(fmt.Sprintf("%%session-changed %s %s", session, name))
}

// Output sends the bytes as %output of a pane.
func (s *Tmux) Output(pane controlmode.PaneID, data string) {
	s.t.Helper()
	s.Say(fmt.Sprintf("%%output %s %s", pane, controlmode.AppendEscape(nil, []byte(data))))
}

// Guard takes the next item number and returns the arguments of its guards.
func (s *Tmux) Guard(flags int) string {
	s.number++
	return fmt.Sprintf("%d %d %d", s.time, s.number, flags)
}

// Block sends one successful block. A body that is not empty must end in LF.
func (s *Tmux) Block(flags int, body string) {
	s.t.Helper()
	g := s.Guard(flags)
	s.Write("%begin " + g + "\n" + body + "%end " + g + "\n")
}

// Reply answers one command with text lines.
func (s *Tmux) Reply(lines ...string) {
	s.t.Helper()
	body := ""
	for _, l := range lines {
		body += l + "\n"
	}
	s.Block(1, body)
}

// Error answers one command with %error.
func (s *Tmux) Error(text string) {
	s.t.Helper()
	g := s.Guard(1)
	s.Say("%begin "+g, text, "%error "+g)
}

// Line reads the next line the client sends, without its LF. The second result is
// false at the end of the connection.
func (s *Tmux) Line() (string, bool) {
	line, err := s.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err == nil
}

// Commands reads the next line and decodes it to the words of its commands. It
// is nil at the end of the connection.
func (s *Tmux) Commands() [][]string {
	line, ok := s.Line()
	if !ok {
		return nil
	}
	return Decode(line)
}

// Nonce is the text of the fence that ends a line of commands.
func Nonce(commands [][]string) string {
	last := commands[len(commands)-1]
	return last[len(last)-1]
}

// Serve answers lines until the connection ends: for every command it calls
// answer with the words, and sends the text as the body or, if failed, as an
// error that drops the rest of the line. display-message -p with a text that
// is not a format (a fence) it answers itself. It blocks; run it on a goroutine
// and wait for it after Close.
func (s *Tmux) Serve(answer func(words []string) (body string, failed bool)) {
	for {
		commands := s.Commands()
		if commands == nil {
			return
		}
		var b bytes.Buffer
		for _, words := range commands {
			body, failed := "", false
			if len(words) == 3 && words[0] == "display-message" && words[1] == "-p" && !strings.Contains(words[2], "#") {
				body = words[2]
			} else {
				body, failed = answer(words)
			}
			if body != "" && !strings.HasSuffix(body, "\n") {
				body += "\n"
			}
			g, end := s.Guard(1), "end"
			if failed {
				end = "error"
			}
			fmt.Fprintf(&b, "%%begin %s\n%s%%%s %s\n", g, body, end, g)
			if failed {
				break
			}
		}
		if _, err := s.conn.Write(b.Bytes()); err != nil {
			return
		}
	}
}

// Decode reads a line that controlmode has encoded.
func Decode(line string) [][]string {
	commands := [][]string{nil}
	for _, w := range strings.Split(line, " ") {
		if w == ";" {
			commands = append(commands, nil)
			continue
		}
		if len(w) >= 2 && w[0] == '"' {
			w = string(controlmode.AppendUnescape(nil, []byte(w[1:len(w)-1])))
		}
		last := &commands[len(commands)-1]
		*last = append(*last, w)
	}
	return commands
}
