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

type listCommandsArgs struct {
	PaneID     string `arg:"paneId"`
	MaxEntries *int64 `arg:"maxEntries"`
}

func listCommands(ctx context.Context, c *call, a listCommandsArgs) (*toolResult, error) {
	id, list, err := c.commands(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	shown := list.Commands
	omitted := max(0, len(shown)-c.lines(a.MaxEntries))
	shown = shown[omitted:]
	rows, text := make([][]byte, 0, len(shown)), make([]string, 0, len(shown))
	for i := range shown {
		rows, text = append(rows, c.commandView(&shown[i])), append(text, c.commandSaid(&shown[i]))
	}
	hint := markHint(c.programIn(id), &list)
	var o object
	o.open()
	o.array("commands", rows)
	o.bool("complete", omitted == 0)
	o.gap("gap", list.Gap)
	o.stringOrNull("hint", hint)
	o.bool("marksSeen", list.Marked)
	o.int("omittedEntries", omitted)
	o.string("since", timeText(list.Since))
	o.close()
	if len(text) == 0 {
		text = []string{"No commands."}
	}
	n := notices{"since " + timeText(list.Since)}
	n.count(omitted, "%s before these not shown", "command")
	if list.Gap != nil {
		n.add(true, "output was lost: %s; commands may be missing", list.Gap.Reason)
	}
	if hint != nil {
		text = append(text, *hint)
	}
	return &toolResult{Text: n.over(strings.Join(text, "\n")), Structured: o.b}, nil
}

// commands are the commands of a pane that the caller may see.
func (c *call) commands(ctx context.Context, pane string) (controlmode.PaneID, state.CommandList, error) {
	id, err := c.paneID(ctx, pane)
	if err != nil {
		return id, state.CommandList{}, err
	}
	list, err := c.table.mirror.Commands(ctx, id)
	if err != nil {
		err = c.missing(ctx, err, pane)
	}
	return id, list, err
}

// programIn is what runs in a pane, as far as is known.
func (c *call) programIn(id controlmode.PaneID) string {
	if p, ok := c.table.mirror.Model().Pane(id); ok {
		return p.Command
	}
	return ""
}

type commandOutputArgs struct {
	PaneID    string  `arg:"paneId"`
	CommandID *string `arg:"commandId"`
	Cursor    *string `arg:"cursor"`
	MaxLines  *int64  `arg:"maxLines"`
}

func getCommandOutput(ctx context.Context, c *call, a commandOutputArgs) (*toolResult, error) {
	id, list, err := c.commands(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	which := list.Last()
	if a.CommandID != nil {
		which = list.Find(*a.CommandID)
	}
	if which == nil {
		return nil, c.noCommand(id, a.CommandID, &list)
	}
	opt := state.RunTextOptions{MaxLines: c.lines(a.MaxLines), MaxBytes: resultCeiling}
	if a.Cursor != nil {
		at, err := c.cursor(ctx, id, *a.Cursor)
		if err != nil {
			return nil, err
		}
		opt.From = &at
	}
	found, text, err := c.commandText(id, which.ID, opt)
	switch {
	case errors.Is(err, state.ErrNoCommand):
		return nil, c.noCommand(id, &which.ID, &list)
	case errors.Is(err, state.ErrOtherPane), errors.Is(err, state.ErrCursor):
		return nil, &problem{reason: err.Error(), hint: "Use the cursor of this command, or omit it."}
	case err != nil:
		return nil, err
	}
	out := clean(text.Text)
	var o object
	o.b = make([]byte, 0, len(out)+512)
	o.open()
	o.raw("command", c.commandView(&found))
	o.stringOrNull("cursor", cursorText(text.Cursor))
	o.int("droppedLines", text.DroppedLines)
	o.int("missedBytes", int(text.Missed))
	o.bool("more", text.More)
	o.int("omittedBytes", text.OmittedBytes)
	o.string("output", out)
	o.int("returnedBytes", len(out))
	o.close()
	n := notices{c.commandSaid(&found)}
	n.add(found.Ended() && !found.OutputComplete && text.Missed == 0, "output may be incomplete")
	n.text(text)
	n.add(text.More, "the cursor is %s", text.Cursor)
	return &toolResult{Text: n.over(strings.TrimRight(out, "\n")), Structured: o.b}, nil
}

// noCommand is the error for a command that is not remembered, or nil for any.
func (c *call) noCommand(id controlmode.PaneID, which *string, l *state.CommandList) error {
	p := &problem{reason: fmt.Sprintf("no command of pane %s has ended since %s", id, timeText(l.Since))}
	if which != nil {
		p.reason = fmt.Sprintf("pane %s has no command %s", id, quote(*which))
	}
	var near []string
	for i := len(l.Commands) - 1; i >= 0 && len(near) < maxAlternatives; i-- {
		v := &l.Commands[i]
		near = append(near, v.ID+" ("+string(v.State)+" "+shortName(v.Line)+")")
	}
	hint := markHint(c.programIn(id), l)
	switch {
	case len(near) > 0:
		p.hint = "Commands, newest first: " + strings.Join(near, ", ")
	case hint != nil:
		p.hint = *hint
	default:
		p.hint = "wait_for or what_changed with command_ended tells when one ends; snapshot_pane shows the screen."
	}
	return p
}

// commandLine is a command's line as the caller may see it; one that was cut may
// end within a secret.
func (c *call) commandLine(v *state.Command) string {
	if len(v.Line) >= state.MaxCommandLine-utf8Max {
		return clean(c.redactText(v.Line))
	}
	return clean(v.Line)
}

const utf8Max = 4

// commandView writes a Command.
func (c *call) commandView(v *state.Command) []byte {
	timeOrNull := func(t time.Time) *string {
		if t.IsZero() {
			return nil
		}
		s := timeText(t)
		return &s
	}
	textOrNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	var o object
	o.open()
	o.string("commandId", v.ID)
	o.stringOrNull("commandLine", textOrNull(c.commandLine(v)))
	o.stringOrNull("cursor", cursorText(v.Cursor))
	o.intOrNull("durationMs", tookMs(v))
	o.stringOrNull("endedAt", timeOrNull(v.EndedAt))
	o.intOrNull("exitStatus", v.ExitStatus)
	o.bool("outputComplete", v.OutputComplete)
	o.stringOrNull("runId", textOrNull(v.Run))
	o.stringOrNull("startedAt", timeOrNull(v.StartedAt))
	o.string("state", string(v.State))
	o.close()
	return o.b
}

// tookMs is how long a command took, nil if that is not known.
func tookMs(v *state.Command) *int {
	if v.StartedAt.IsZero() || v.EndedAt.IsZero() || v.EndAtMost {
		return nil
	}
	ms := int(max(0, v.EndedAt.Sub(v.StartedAt)).Milliseconds())
	return &ms
}

// commandSaid is a command in one line of text.
func (c *call) commandSaid(v *state.Command) string {
	s := v.ID + " " + string(v.State)
	if v.ExitStatus != nil {
		s += fmt.Sprintf(" with status %d", *v.ExitStatus)
	}
	if !v.StartedAt.IsZero() {
		s += ", started " + timeText(v.StartedAt)
	}
	if ms := tookMs(v); ms != nil {
		s += fmt.Sprintf(", took %d ms", *ms)
	}
	if v.Run != "" {
		s += ", run " + v.Run
	}
	if line := c.commandLine(v); line != "" {
		s += ": " + inline(line)
	}
	return s
}
