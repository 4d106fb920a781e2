package state

import (
	"context"
	"fmt"
	"strings"

	"tmux-mcpd/controlmode"
)

// LeftoverError: something stands on a pane's command line that nobody has
// entered. It may be a person's, so it is neither run nor cleared.
type LeftoverError struct {
	Pane controlmode.PaneID
	Text string // a program's text
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("pane %s has text on its command line", e.Pane)
}

// leftover is what was found on a command line, and where.
type leftover struct {
	text string
	row  uint64
	own  bool // it is the prompt's own
}

// emptyLine fails with a LeftoverError if text stands on the pane's command line.
// That is known where the shell marks the end of its prompt (OSC 133 B); what
// stands behind the cursor is not looked at, and of other shells nothing is known:
// there the wrapper's parenthesis keeps what is left from being run.
//
// A prompt may mark its end too early. So what was found before, on the line of
// another prompt, counts as the prompt's own.
func (m *Mirror) emptyLine(ctx context.Context, id controlmode.PaneID, out *Output) error {
	if _, ok := out.commandLine(); !ok {
		return nil
	}
	if _, err := m.caughtUp(ctx, id, GapAttached); err != nil {
		return err
	}
	now, ok := out.commandLine()
	if !ok || now.text == "" {
		return nil
	}
	if out.knownLeftover(now) {
		return nil
	}
	return &LeftoverError{Pane: id, Text: now.text}
}

// commandLine is what stands on the command line that the cursor is on; false if
// it is not known where that begins.
func (o *Output) commandLine() (leftover, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil || o.stale || o.held >= 0 {
		return leftover{}, false
	}
	text, row, ok := o.text.CommandLine()
	return leftover{text: strings.TrimSpace(text), row: row}, ok
}

// knownLeftover notes what was found and tells whether it was found on another
// line before.
func (o *Output) knownLeftover(now leftover) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now.own = o.left.text == now.text && (o.left.own || o.left.row != now.row)
	o.left = now
	return now.own
}
