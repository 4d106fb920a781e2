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

const (
	// maxPasted is how many bytes one paste_text may hold.
	maxPasted = 4 << 20
	// pasteCost bounds a set-buffer line as it is encoded: control-mode 10.2.
	pasteCost = 32 << 10
	// cleanLimit is how long the deletion of a buffer may take; it is tried also
	// for a caller that has gone.
	cleanLimit = 5 * time.Second
	// cleanAtEnd is the same when the call has been cut off: the daemon may be
	// ending, and the answer has to leave before.
	cleanAtEnd = 200 * time.Millisecond
	// pasteEnd ends a bracketed paste. A text that holds it would end its own.
	pasteEnd = "\x1b[201~"
)

func pasteTool() *tool {
	return define(tool{
		name: "paste_text", title: "Paste text", toolset: execute,
		doc: "Pastes text of any kind and up to 4 MiB into a pane, as one paste where its program has asked for bracketed paste, so that " +
			"lines are not run one by one. Line feeds are sent as line feeds; CR LF becomes LF. Only the pane named gets it. " +
			"The answer's _meta has a cursor from before the paste.",
		params: []param{
			paneParam(true),
			{name: "text", required: true, max: maxPasted, want: "a string", doc: "What to paste. It cannot hold NUL."},
			{name: "enter", kind: kindBoolean, doc: "Press Enter afterwards. Default false."},
			forceParam(), holdParam(),
		},
		output: output(map[string]schema{
			"bytes":  countOut().with("description", "Bytes of text that were pasted, Enter not counted."),
			"paneId": patternOut(panePattern),
		}),
		reach: reachInput, effects: []string{effectObserve, effectChange}, classes: []string{classMetadata},
	}, pasteText)
}

type pasteArgs struct {
	PaneID      string `arg:"paneId"`
	Text        string `arg:"text"`
	Enter       bool   `arg:"enter"`
	Force       bool   `arg:"force"`
	WaitReadyMs int64  `arg:"waitReadyMs"`
}

func pasteText(ctx context.Context, c *call, a pasteArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	p, err := newPaste(id, a)
	if err != nil {
		return nil, err
	}
	if err := c.hold(ctx, id, a.WaitReadyMs, readsInput); err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	if err := p.run(ctx, c); err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	var o object
	o.open()
	o.int("bytes", len(p.text))
	o.string("paneId", id.String())
	o.close()
	return &toolResult{Structured: o.b, Text: p.report(), Meta: map[string]any{metaCursor: cursorOrNil(p.cursor)}}, nil
}

// paste is one text on its way to a pane through a buffer of its own.
type paste struct {
	pane   controlmode.PaneID
	text   string
	enter  bool
	force  bool
	crlf   int // line ends that became LF
	long   bool
	cursor *state.Cursor
	cohort int

	buffer string
	filled bool // tmux may have the buffer
}

func newPaste(id controlmode.PaneID, a pasteArgs) (*paste, error) {
	text := strings.ReplaceAll(a.Text, "\r\n", "\n")
	switch {
	case strings.ContainsRune(text, 0):
		return nil, &problem{reason: "the text holds a NUL character, which no tmux buffer can", hint: "send_keys with literal set to true can type it."}
	case strings.Contains(text, pasteEnd):
		return nil, &problem{
			reason: "the text holds the sequence that ends a bracketed paste: what follows it would be taken for typed keys",
			hint:   "Take it out, or, if that is meant, use send_keys with literal set to true.",
		}
	}
	return &paste{
		pane: id, text: text, enter: a.Enter, force: a.Force, crlf: len(a.Text) - len(text),
		buffer: state.BufferName(),
	}, nil
}

// run pastes, and deletes the buffer whatever happens.
func (p *paste) run(ctx context.Context, c *call) error {
	err := c.guard(ctx, inputTo(p.pane, p.force), func(g *guarded) error {
		p.cohort = len(g.panes)
		p.cursor = c.place(ctx, p.pane)
		c.echoes([]controlmode.PaneID{p.pane}, p.text)
		if p.text == "" && !p.enter {
			return nil
		}
		target, _ := g.model.Pane(p.pane)
		c.table.mirror.Unentered(target, p.text, p.enter)
		p.long = longestLine(p.text) > longLine && lineMode(target.TTY)
		return p.write(ctx, g)
	})
	if err == nil || !p.filled {
		return err // the paste has deleted its buffer
	}
	if again := p.clean(ctx, c); again != nil {
		err = fmt.Errorf("%w; and the buffer %s may be left: %w", err, p.buffer, again)
	}
	if errors.Is(err, state.ErrUnknown) {
		return &lostAnswer{cause: err, what: "it was pasted", where: "at pane " + p.pane.String(), cursor: p.cursor}
	}
	return err
}

// write fills the buffer, in lines of their own but for the last part, which
// travels with the paste: a text that fits into one line can leave no buffer
// behind, whoever dies.
func (p *paste) write(ctx context.Context, g *guarded) error {
	parts := pasteParts(p.text)
	last := parts[len(parts)-1]
	if !p.filled {
		p.filled = true
		for _, part := range parts[:len(parts)-1] {
			if err := p.fill(ctx, g.call, part); err != nil {
				return err
			}
		}
	}
	line := []controlmode.Command{p.set(last, len(parts) > 1)}
	err := p.paste(ctx, g, line, sanitizes(g.model.Server.Version))
	var refused *controlmode.CommandError
	if errors.As(err, &refused) && strings.Contains(refused.Text, "unknown flag") {
		// tmux has run nothing of a line that it could not parse.
		g.wrote = false
		err = p.paste(ctx, g, line, false)
	}
	return err
}

// sanitizes tells a tmux that shows control characters of a buffer as ^X when it
// is pasted, unless it is told not to (3.7c and 3.8 do, 3.5a does not).
func sanitizes(version string) bool {
	v, err := controlmode.ParseVersion(version)
	return err == nil && v.AtLeast("3.6")
}

func (p *paste) paste(ctx context.Context, g *guarded, line []controlmode.Command, plain bool) error {
	flags := []string{"-d", "-r", "-b", p.buffer, "-t", p.pane.String()}
	if plain {
		flags = append([]string{"-S"}, flags...)
	}
	line = line[:len(line):len(line)]
	if p.text == "" {
		line = nil
	} else {
		line = append(line, controlmode.Cmd("paste-buffer", append([]string{"-p"}, flags...)...))
	}
	switch {
	case p.enter && p.cohort > 1: // keys would reach the other panes, too
		line = append(line, p.set("\r", false), controlmode.Cmd("paste-buffer", flags...))
	case p.enter:
		line = append(line, pressKey(p.pane, "Enter"))
	}
	return g.write(ctx, line...)
}

func (p *paste) set(text string, more bool) controlmode.Command {
	if more {
		return controlmode.Cmd("set-buffer", "-a", "-b", p.buffer, "--", text)
	}
	return controlmode.Cmd("set-buffer", "-b", p.buffer, "--", text)
}

// fill appends a part to the buffer. Nothing of a pane is touched.
func (p *paste) fill(ctx context.Context, c *call, part string) error {
	req := controlmode.Request{Commands: []controlmode.Command{p.set(part, true)}, Fence: true}
	reply, err := c.table.mirror.Do(ctx, req)
	if err == nil {
		err = reply.Err(req)
	}
	if err != nil {
		return fmt.Errorf("fill the buffer for pane %s, nothing was pasted: %w", p.pane, err)
	}
	return nil
}

// clean deletes the buffer. One that is not there is no error.
func (p *paste) clean(ctx context.Context, c *call) error {
	limit := cleanLimit
	if ctx.Err() != nil {
		limit = cleanAtEnd
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	req := controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("delete-buffer", "-b", p.buffer)}, Fence: true}
	reply, err := c.table.mirror.Do(ctx, req)
	if err == nil {
		err = reply.Err(req)
	}
	var refused *controlmode.CommandError
	if errors.As(err, &refused) || errors.Is(err, state.ErrNoServer) {
		return nil
	}
	return err
}

// pasteParts cuts a text, at characters, into parts whose lines stay within
// pasteCost.
func pasteParts(text string) []string {
	var parts []string
	for {
		n, cost := 0, 0
		for n < len(text) && cost < pasteCost {
			if c := text[n]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				cost++
			} else {
				cost += len(`\000`)
			}
			n++
		}
		part := head(text, n)
		parts = append(parts, part)
		if text = text[len(part):]; text == "" {
			return parts
		}
	}
}

// report says what was done.
func (p *paste) report() string {
	var n notices
	n.add(p.crlf > 0, "%s CR LF became LF", plural(p.crlf, "line end"))
	n.add(p.cohort > 1, "synchronize-panes is on; only %s got this", p.pane)
	n.add(p.long, "not safe: a line is longer than %d bytes and the terminal is in line mode, which cuts long lines in silence "+
		"(4096 bytes on Linux, 1024 on macOS); check what arrived, or use a file or a here-document", longLine)
	s := fmt.Sprintf("Pasted %s", plural(len(p.text), "byte"))
	if p.enter {
		s += " and pressed Enter"
	}
	s += fmt.Sprintf(" in pane %s.", p.pane)
	if p.cursor != nil {
		s += fmt.Sprintf("\n[cursor %s]", p.cursor)
	}
	return n.over(s)
}
