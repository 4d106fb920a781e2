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
// That is known where the shell marks the end of its prompt (OSC 133 B), and of
// what this daemon has typed itself; what stands behind the cursor is not looked
// at. Of all else nothing is known: bytes do not tell the echo of an editor from
// what a job in the background prints, or a prompt from what was typed before it
// was there. Then the wrapper's parenthesis keeps what is left from being run.
//
// A prompt may mark its end too early. So what was found before, on the line of
// another prompt, counts as the prompt's own.
func (m *Mirror) emptyLine(ctx context.Context, id controlmode.PaneID, out *Output) error {
	_, marked := out.commandLine()
	if !marked && !out.typedOn() {
		return nil
	}
	if _, err := m.caughtUp(ctx, id, GapAttached); err != nil {
		return err
	}
	now, ok := out.commandLine()
	if !ok {
		if text := out.stillThere(); text != "" {
			return &LeftoverError{Pane: id, Text: text}
		}
		return nil
	}
	if now.text == "" {
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

// unentered is text that this daemon has typed on the command line of a shell and
// not entered. Its zero value is none.
type unentered struct {
	text   string
	before string // on the same line: the prompt
	row    uint64 // where that begins
}

// maxUnentered bounds the text that is remembered.
const maxUnentered = 512

// Unentered tells that a text is about to be typed into a pane as the model shows
// it; entered, that Enter or some other key comes with it. A run is then not typed
// behind it as long as it stands there (LeftoverError). It must be called before
// the text is sent, and is without effect on a pane that is not watched or not at
// the prompt of a shell. It does not ask tmux.
func (m *Mirror) Unentered(p *Pane, text string, entered bool) {
	_, out := m.watches.liveStream(p.ID)
	if out == nil {
		return
	}
	plain := text != "" && len(text) <= maxUnentered && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
	if entered || !plain || m.lookAt(p).For != WaitsPrompt {
		out.mu.Lock()
		out.typedText = unentered{}
		out.mu.Unlock()
		return
	}
	out.typeOn(text)
}

// typeOn remembers a text that is about to be typed at the cursor.
func (o *Output) typeOn(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	line, row, ok := o.beforeCursorLocked()
	switch was := o.typedText; {
	case !ok:
		o.typedText = unentered{}
	case was.text != "" && row == was.row && strings.HasPrefix(was.before+was.text, line): // the echo may be on its way
		o.typedText.text += text
	default:
		o.typedText = unentered{text: text, before: line, row: row}
	}
}

// on tells whether it is all that stands on a line behind what was there before.
func (u *unentered) on(line string, row uint64) bool {
	return row == u.row && strings.TrimRight(line, " ") == strings.TrimRight(u.before+u.text, " ")
}

func (o *Output) beforeCursorLocked() (line string, row uint64, ok bool) {
	if o.text == nil || o.stale || o.held >= 0 {
		return "", 0, false
	}
	return o.text.BeforeCursor()
}

// typedOn tells whether text was typed and not entered.
func (o *Output) typedOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.typedText.text != ""
}

// stillThere is the text that was typed and not entered, "" if it does not stand
// before the cursor any more.
func (o *Output) stillThere() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if line, row, ok := o.beforeCursorLocked(); !ok || !o.typedText.on(line, row) {
		return ""
	}
	return strings.TrimSpace(o.typedText.text)
}
