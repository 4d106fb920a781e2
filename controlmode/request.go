package controlmode

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxLine bounds one request's encoded line in bytes, newline included. tmux has
// no limit of its own, but parsing takes about 0.6 s per megabyte, during which
// the server does nothing else (tmux 3.3a).
const MaxLine = 64 << 10

// Errors of requests that are refused before anything is sent.
var (
	// ErrTooLong: the encoded line would be longer than MaxLine.
	ErrTooLong = errors.New("command line too long for tmux")
	// ErrNUL: an argument holds a NUL byte, which tmux cannot carry.
	ErrNUL = errors.New("a tmux argument cannot hold a NUL byte")
	// ErrEmpty: there is no command, or one without a name. (tmux would answer
	// nothing at all, or detach the client.)
	ErrEmpty = errors.New("empty tmux command")
)

// Request is one input line: one command, or several that must run at one
// instant (joined with ';').
type Request struct {
	Commands []Command
	// Begin, if set, is called on the reader goroutine when the block of
	// Commands[i] opens. All output tmux wrote before that command ran has
	// been handed to the event callback by then. It must not block. It is never
	// called once Do has returned. What it saw counts only if Do returns
	// without an error.
	Begin func(i int)
	// Fence appends display-message -p NONCE and ends the request only with
	// that block, so that neither pane text nor a command alias can shift or
	// forge the answer. A request that fails ends at its %error: tmux drops
	// the rest of the line then, the fence with it.
	Fence bool
	// Timeout is the deadline for the whole answer, counted from Do; 0 for
	// Options.Timeout. When it passes the connection is closed.
	Timeout time.Duration
}

// Check tells whether the request can be sent: ErrTooLong, ErrNUL, ErrEmpty or
// nil. Do calls it.
func (r Request) Check() error {
	_, err := r.line("0123456789abcdef")
	return err
}

// line is the encoded line with its newline.
func (r Request) line(nonce string) ([]byte, error) {
	if len(r.Commands) == 0 {
		return nil, ErrEmpty
	}
	var b []byte
	for i, cmd := range r.Commands {
		if len(cmd.words) == 0 || cmd.words[0] == "" {
			return nil, ErrEmpty
		}
		n := 0
		for _, w := range cmd.words {
			if strings.IndexByte(w, 0) >= 0 {
				return nil, fmt.Errorf("%s: %w", cmd.words[0], ErrNUL)
			}
			n += len(w)
		}
		if n < MaxLine { // else do not even encode it
			if i > 0 {
				b = append(b, " ; "...)
			}
			b = cmd.AppendLine(b)
		}
		if n >= MaxLine || len(b) >= MaxLine {
			return nil, tooLong(cmd)
		}
	}
	if r.Fence {
		b = append(b, " ; display-message -p "...)
		b = append(b, nonce...)
	}
	if b = append(b, '\n'); len(b) > MaxLine {
		return nil, tooLong(r.Commands[len(r.Commands)-1])
	}
	return b, nil
}

func tooLong(cmd Command) error {
	return fmt.Errorf("%s: %w (limit %d bytes, encoded)", cmd.words[0], ErrTooLong, MaxLine)
}

// newNonce is 16 random hexadecimal digits: nothing in them is special to
// tmux's command parser, format expansion or strftime.
func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// Reply is the answer to a Request: one block per command in order, fewer when
// one failed (the last block then has Error set and tmux ran nothing after it).
// The fence block is not included.
type Reply struct {
	Blocks []BlockEnd
}

// Err returns the first failed block as a *CommandError.
func (r Reply) Err(req Request) error {
	for i, b := range r.Blocks {
		if b.Error {
			e := &CommandError{Words: []string{"display-message"}, Text: errorText(b.Body)}
			if i < len(req.Commands) {
				e.Words = req.Commands[i].words
			}
			return e
		}
	}
	return nil
}

func errorText(body []byte) string {
	return string(bytes.TrimRight(body, "\r\n"))
}
