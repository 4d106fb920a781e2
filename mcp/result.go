package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// Ceilings of the contract, in bytes.
const (
	resultCeiling = 1_000_000              // text of one capture; the whole response of a batch
	viewCeiling   = resultCeiling - 16_384 // each half of a projected result
	stringBudget  = viewCeiling * 3 / 4    // the variable strings of one view
)

// problem is something the caller can mend: it becomes a result with isError.
type problem struct {
	reason string
	hint   string // what to do next, "" for none
	absent bool   // what was named does not exist
}

func (p *problem) Error() string {
	if p.hint == "" {
		return p.reason
	}
	return p.reason + "\n\n" + p.hint
}

// errorResult carries no structured half: clients validate that half against
// the output schema even for errors.
func errorResult(text string) *toolResult {
	return &toolResult{Text: clean(text), IsError: true}
}

// failure turns an error of a tool into its answer. Only the end of the call's
// context stays an error: nobody waits for an answer then.
func (t *table) failure(ctx context.Context, err error) (*toolResult, error) {
	if errors.Is(err, state.ErrUnknown) { // also to a caller that the daemon's end cuts off
		return unknownResult(err), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var p *problem
	var refused *controlmode.CommandError
	switch {
	case errors.As(err, &p):
		res := errorResult(p.Error())
		res.absent = p.absent
		return res, nil
	case errors.Is(err, state.ErrNoServer):
		return errorResult(t.noServer().Error()), nil
	case errors.Is(err, state.ErrOtherServer):
		return errorResult("the tmux server was restarted: ids and cursors from before it are void\n\n" +
			"List again, and omit the cursor to start a new one."), nil
	case errors.Is(err, controlmode.ErrTimeout):
		return errorResult("tmux is not answering; this call was given up at its deadline\n\n" +
			"The connection is renewed by itself; read calls may be tried again."), nil
	case errors.Is(err, state.ErrDetached), errors.Is(err, controlmode.ErrClosed):
		return errorResult("the connection to tmux was lost during the call\n\n" +
			"It is renewed by itself; read calls may be tried again."), nil
	case errors.As(err, &refused):
		return errorResult("tmux refused: " + refused.Text), nil
	}
	return errorResult(err.Error()), nil
}

// noServer says which server was looked for and who can choose another.
func (t *table) noServer() *problem {
	return &problem{
		reason: "no tmux server is running on " + t.socketText(),
		hint: "The server is chosen when tmux-mcpd is started (--tmux-socket-path or --tmux-socket-name, " +
			"LIBTMUX_SOCKET_PATH or LIBTMUX_SOCKET); only the operator can change it.",
	}
}

func (t *table) socketText() string {
	switch s := t.cfg.Socket; {
	case s.Path != "":
		return "socket " + inline(s.Path)
	case s.Name != "":
		return "the socket named " + inline(s.Name)
	}
	return "the user's default socket"
}

// plural gives "1 pane", "2 panes".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// shortened is text after the line and the byte limit, with what they took.
type shortened struct {
	text    string
	lines   int // lines before the limits
	dropped int // lines cut from the front by the line limit
	omitted int // bytes cut from the front by the byte ceiling
}

// newest keeps the last limit lines of text and then its last resultCeiling
// bytes. A line ends at LF; a text that does not end in one has an unfinished
// last line, which counts.
func newest(text string, limit int) shortened {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	s := shortened{lines: n, text: text}
	if n > limit {
		s.dropped = n - limit
		for range s.dropped {
			s.text = s.text[strings.IndexByte(s.text, '\n')+1:]
		}
	}
	return s.ceiling()
}

// newestRows is newest for the rows of a grid, where an empty last row is a row.
func newestRows(rows []string, limit int) shortened {
	s := shortened{lines: len(rows)}
	if len(rows) > limit {
		s.dropped = len(rows) - limit
		rows = rows[s.dropped:]
	}
	s.text = strings.Join(rows, "\n")
	return s.ceiling()
}

func (s shortened) ceiling() shortened {
	if len(s.text) > resultCeiling {
		kept := tail(s.text, resultCeiling)
		s.omitted = len(s.text) - len(kept)
		s.text = kept
	}
	return s
}

// notices collects bracketed remarks that precede the text half of an answer.
type notices []string

func (n *notices) add(when bool, format string, a ...any) {
	if when {
		*n = append(*n, "["+fmt.Sprintf(format, a...)+"]")
	}
}

// count adds a notice about how many there are of something, if there are any.
func (n *notices) count(some int, format, one string) {
	if some > 0 {
		n.add(true, format, plural(some, one))
	}
}

func (n *notices) cut(s shortened) {
	n.count(s.dropped, "%s before these not shown", "line")
	n.count(s.omitted, "%s before these not shown", "byte")
}

// over puts the notices above a text.
func (n notices) over(text string) string {
	if len(n) == 0 {
		return text
	}
	return strings.Join(append(n, text), "\n")
}
