package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// tmux writes what send-keys -H names to the pane's terminal unchanged, NUL and
// bytes that are no UTF-8 included (3.3a to 3.8), while -l looks at characters,
// and drops or re-encodes some; of ASCII it takes what can be printed as it is.
// But the time that tmux takes for a command grows with the square of its
// arguments (1 s for 8192 of them, 3.3a to 3.8), and -H takes one for each byte.
// So text travels as long runs of ASCII with -l, and all else in short ones with -H.
const (
	hexRun     = 48       // bytes of one -H command
	literalRun = 2048     // bytes of one -l command
	worthIt    = 24       // ASCII shorter than that stays among the bytes around it
	lineCost   = 16 << 10 // of one line as it is encoded: a few ms of tmux's time
)

// hexBytes are the words for all bytes.
var hexBytes = func() (words [256]string) {
	for i := range words {
		words[i] = fmt.Sprintf("%02x", i)
	}
	return words
}()

// typing is one line of commands that type bytes of a text.
type typing struct {
	cmds  []controlmode.Command
	bytes int
}

// typeText gives the lines that type a text, each byte as it is.
func typeText(id controlmode.PaneID, text string) []typing {
	lines := []typing{{}}
	cost := 0
	for text != "" {
		run, cmd := nextRun(id, text)
		c := len(cmd.AppendLine(nil))
		if cost += c; cost > lineCost {
			lines = append(lines, typing{})
			cost = c
		}
		last := &lines[len(lines)-1]
		last.cmds = append(last.cmds, cmd)
		last.bytes += run
		text = text[run:]
	}
	return lines
}

// nextRun is the command for the start of a text, and how many bytes it types.
func nextRun(id controlmode.PaneID, text string) (int, controlmode.Command) {
	if n := printable(text); n >= worthIt || n == len(text) {
		n = min(n, literalRun)
		return n, controlmode.Cmd("send-keys", "-t", id.String(), "-l", "--", text[:n])
	}
	n := 0
	for n < len(text) && n < hexRun {
		if ascii := printable(text[n:]); ascii >= worthIt {
			break
		}
		n++
	}
	if n < len(text) {
		n = max(len(head(text, n)), 1) // not within a character
	}
	args := []string{"-t", id.String(), "-H"}
	for i := range n {
		args = append(args, hexBytes[text[i]])
	}
	return n, controlmode.Cmd("send-keys", args...)
}

// printable is the length of the ASCII at the start of a text that can be
// printed, as far as it matters.
func printable(s string) int {
	n := 0
	for n < len(s) && n < literalRun && s[n] >= ' ' && s[n] <= '~' {
		n++
	}
	return n
}

// pressKey presses a key of the closed list. What bytes it is depends on what the
// program in the pane has asked for.
func pressKey(id controlmode.PaneID, name string) controlmode.Command {
	return controlmode.Cmd("send-keys", "-t", id.String(), "--", name)
}

// input is what one call types.
type input struct {
	pane  controlmode.PaneID
	key   string // tmux's name of a key, "" for text
	text  string
	enter bool
	delay time.Duration // before Enter
	force bool
	// suppressed tells that text has a leading space that the caller did not write.
	suppressed bool
}

// typed is what became of an input.
type typed struct {
	input
	panes  []controlmode.PaneID // the cohort
	cursor *state.Cursor        // before the input; nil if the output cannot be followed
	bytes  int                  // of the text that were handed over
	echo   string               // with a delay: what the pane printed before Enter
	line   bool                 // the pane's terminal was in line mode
}

// newInput reads the keys of a call as the contract says: literal text, or one
// key argument of tmux.
func newInput(pane controlmode.PaneID, keys string, literal, suppress bool, enter *bool) (input, error) {
	in := input{pane: pane, text: keys}
	if !literal {
		name, err := key(keys)
		if err != nil {
			return in, err
		}
		if name != "" {
			in.key, in.text = name, ""
		}
	}
	// Enter after a key is pressed only where it was asked for (S04).
	in.enter = in.key == ""
	if enter != nil {
		in.enter = *enter
	}
	if suppress && in.key == "" && in.text != "" && in.text[0] != ' ' {
		in.text, in.suppressed = " "+in.text, true
	}
	return in, nil
}

// send types an input. What it returns is set as far as it got, also with an
// error. An error with state.ErrUnknown means that nobody can tell how far.
func (c *call) send(ctx context.Context, in input) (*typed, error) {
	t := &typed{input: in}
	err := c.guard(ctx, inputTo(in.pane, in.force), func(g *guarded) error {
		t.panes, t.bytes = g.ids(), 0
		if err := hasBytes(t.key, g.model.Server.Version); err != nil {
			return err
		}
		c.echoes(t.panes, in.text)
		g.unentered(in.text, in.enter || in.key != "")
		if in.text != "" {
			p, _ := g.model.Pane(in.pane)
			t.line = longestLine(in.text) > longLine && lineMode(p.TTY)
		}
		return t.write(ctx, g)
	})
	return t, err
}

// place is the place in a pane's output now, before an input. A pane that is not
// watched yet is watched from then on, so that a wait can start from the cursor
// (W01). nil if the output cannot be followed.
func (c *call) place(ctx context.Context, id controlmode.PaneID) *state.Cursor {
	ctx, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	at, err := c.table.mirror.Place(ctx, id)
	if err != nil {
		return nil
	}
	return &at
}

// writeAt is write for the first line of an input: it also tells the place in
// the pane's output just before it, nil if the output cannot be followed. watched
// is called if the output is followed only from then on.
func (g *guarded) writeAt(ctx context.Context, id controlmode.PaneID, watched func(), cmds ...controlmode.Command) (*state.Cursor, error) {
	at, err := g.call.table.mirror.WriteAt(ctx, g.look, id, cmds...)
	if errors.Is(err, state.ErrNotFollowed) {
		was := g.call.table.mirror.Watched(id)
		at := g.call.place(ctx, id)
		if !was {
			watched()
		}
		return at, g.write(ctx, cmds...)
	}
	return &at, g.note(err)
}

// unentered has runs know a text that is about to be typed without Enter.
func (g *guarded) unentered(text string, entered bool) {
	for _, p := range g.panes {
		g.call.table.mirror.Unentered(p, text, entered)
	}
}

// echoes has waits know the echo of a text that is about to be typed (W01).
func (c *call) echoes(panes []controlmode.PaneID, text string) {
	for _, id := range panes {
		c.table.mirror.Typing(id, text)
	}
}

// placeLimit is how long an input waits for its place; without one it is sent all
// the same.
const placeLimit = 3 * time.Second

// write sends the lines, and Enter in the last one unless it is to
// come later.
func (t *typed) write(ctx context.Context, g *guarded) error {
	if t.key != "" {
		cmds := []controlmode.Command{pressKey(t.pane, t.key)}
		if t.enter {
			cmds = append(cmds, pressKey(t.pane, "Enter"))
		}
		return t.first(ctx, g, cmds)
	}
	later := t.enter && t.delay > 0 && t.text != ""
	all := typeText(t.pane, t.text)
	for i, line := range all {
		cmds := line.cmds
		if i == len(all)-1 && t.enter && !later {
			cmds = append(cmds, pressKey(t.pane, "Enter"))
		}
		write := t.next
		if i == 0 {
			write = t.first
		}
		if err := write(ctx, g, cmds); err != nil {
			return t.halfway(err)
		}
		t.bytes += line.bytes
	}
	if !later {
		return nil
	}
	if err := t.linger(ctx, g.call); err != nil {
		return t.halfway(err)
	}
	if err := g.write(ctx, pressKey(t.pane, "Enter")); err != nil {
		return t.halfway(err)
	}
	return nil
}

// first sends the first line, and notes the place before it.
func (t *typed) first(ctx context.Context, g *guarded, cmds []controlmode.Command) (err error) {
	watched := func() { g.unentered(t.text, t.enter || t.key != "") }
	t.cursor, err = g.writeAt(ctx, t.pane, watched, cmds...)
	return err
}

// next sends another line.
func (t *typed) next(ctx context.Context, g *guarded, cmds []controlmode.Command) error {
	return g.write(ctx, cmds...)
}

// halfway says how far an input got that was not finished.
func (t *typed) halfway(err error) error {
	if t.bytes == 0 || errors.Is(err, state.ErrUnknown) || errors.Is(err, context.Canceled) {
		return err
	}
	what := "the rest was not"
	if t.bytes == len(t.text) {
		what = "Enter was not pressed"
	}
	return &problem{
		reason: fmt.Sprintf("%d of %d bytes were typed into pane %s, then %s: %s", t.bytes, len(t.text), t.pane, what, err),
		hint:   "Look at the pane with snapshot_pane before you type again.",
	}
}

// linger waits before Enter, for programs that take what comes with a text for
// part of it (S16), and notes what the pane has printed meanwhile.
func (t *typed) linger(ctx context.Context, c *call) error {
	wait := time.NewTimer(t.delay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.echo = echoUnknown
	if t.cursor == nil {
		return nil
	}
	s, err := c.table.mirror.Since(ctx, t.pane, *t.cursor, state.SinceOptions{MaxBytes: resultCeiling})
	if err != nil {
		return nil //nolint:nilerr // what was printed is only told
	}
	switch last := lastLine(t.text); {
	case s.Text == "":
		t.echo = echoNothing
	case last != "" && strings.Contains(s.Text, tail(last, 20)):
		t.echo = echoText
	default:
		t.echo = echoOther
	}
	return nil
}

// What a pane printed between a text and Enter.
const (
	echoUnknown = "unknown"
	echoNothing = "nothing"
	echoText    = "text"
	echoOther   = "other output"
)

func lastLine(s string) string {
	s = strings.TrimRight(s, "\r\n")
	return s[strings.LastIndexAny(s, "\r\n")+1:]
}

// longLine is the longest line that every terminal in line mode takes: macOS
// keeps 1024 bytes of one, Linux 4096, and drops the rest in silence (S07).
const longLine = 1000

// longestLine is the length of the longest line in bytes.
func longestLine(s string) int {
	longest := 0
	for s != "" {
		i := strings.IndexAny(s, "\r\n")
		if i < 0 {
			return max(longest, len(s))
		}
		longest = max(longest, i)
		s = s[i+1:]
	}
	return longest
}
