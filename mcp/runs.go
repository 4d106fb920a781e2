package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

type listRunsArgs struct {
	PaneID *string `arg:"paneId"`
}

func listRuns(ctx context.Context, c *call, a listRunsArgs) (*toolResult, error) {
	var only *controlmode.PaneID
	if a.PaneID != nil {
		id, err := c.paneID(ctx, *a.PaneID)
		if err != nil {
			return nil, err
		}
		only = &id
	}
	var rows [][]byte
	var text []string
	omitted := 0
	for _, v := range c.table.mirror.Runs(only) {
		if c.arrival.see(ctx, v.Pane) != nil {
			continue
		}
		if len(rows) == c.sel.limits.lines { // the newest are kept
			rows, text, omitted = rows[1:], text[1:], omitted+1
		}
		rows, text = append(rows, runView(v)), append(text, runLine(v))
	}
	var o object
	o.open()
	o.array("runs", rows)
	o.bool("complete", omitted == 0)
	o.int("omittedEntries", omitted)
	o.close()
	if len(text) == 0 {
		text = []string{"No runs."}
	}
	var n notices
	n.count(omitted, "%s before these not shown", "run")
	return &toolResult{Text: n.over(strings.Join(text, "\n")), Structured: o.b}, nil
}

type getRunArgs struct {
	RunID    string  `arg:"runId"`
	Cursor   *string `arg:"cursor"`
	MaxLines *int64  `arg:"maxLines"`
	WaitMs   *int64  `arg:"waitMs"`
}

func getRun(ctx context.Context, c *call, a getRunArgs) (*toolResult, error) {
	v, err := c.run(ctx, a.RunID)
	if err != nil {
		return nil, err
	}
	opt := state.RunTextOptions{MaxLines: c.lines(a.MaxLines), MaxBytes: resultCeiling}
	if a.Cursor != nil {
		at, err := state.ParseCursor(*a.Cursor)
		if err != nil {
			return nil, &problem{reason: "cursor: " + err.Error(), hint: "Omit it to read the newest output of the run."}
		}
		opt.From = &at
	}
	wait := time.Duration(0)
	if a.WaitMs != nil && v.Active() {
		wait = c.wait(*a.WaitMs)
		if _, err = c.awaitRun(ctx, a.RunID, wait); err != nil {
			return nil, err
		}
	}
	v, text, err := c.runText(a.RunID, opt)
	if errors.Is(err, state.ErrOtherPane) {
		return nil, &problem{reason: err.Error(), hint: "Use the cursor of this run, or omit it."}
	}
	if err != nil {
		return nil, c.noRun(ctx, a.RunID)
	}
	remains := a.Cursor == nil && c.remains(ctx, v, a.MaxLines, &text)
	out := clean(text.Text)
	var o object
	o.b = make([]byte, 0, len(out)+512)
	o.open()
	o.stringOrNull("cursor", cursorText(text.Cursor))
	o.int("droppedLines", text.DroppedLines)
	o.int("effectiveTimeoutMs", int(wait.Milliseconds()))
	o.int("missedBytes", int(text.Missed))
	o.int("omittedBytes", text.OmittedBytes)
	o.string("output", out)
	o.int("returnedBytes", len(out))
	o.raw("run", runView(v))
	o.close()
	n := append(notices{runLine(v)}, runNotices(v, wait)...)
	n.add(remains, "the output is what the pane still shows, with its prompts and the typed line")
	n.text(text)
	if !text.More && (!remains || text.DroppedLines == 0 && text.OmittedBytes == 0) {
		c.tidy(ctx, v)
	}
	return &toolResult{Text: n.over(strings.TrimRight(out, "\n")), Structured: o.b}, nil
}

// run finds a run whose pane the caller may see.
func (c *call) run(ctx context.Context, id string) (state.Run, error) {
	v, _, err := c.table.mirror.RunNow(id)
	if err == nil {
		err = c.arrival.see(ctx, v.Pane)
	}
	if err != nil {
		return v, c.noRun(ctx, id)
	}
	c.about(v.Pane)
	return v, nil
}

// noRun is the error for a run that is not remembered.
func (c *call) noRun(ctx context.Context, id string) error {
	p := &problem{reason: "run " + quote(id) + " does not exist", hint: "No runs are remembered; run_shell_command makes one."}
	var near []string
	all := c.table.mirror.Runs(nil)
	for i := len(all) - 1; i >= 0 && len(near) < maxAlternatives; i-- {
		if c.arrival.see(ctx, all[i].Pane) == nil {
			near = append(near, all[i].ID+" ("+all[i].Pane.String()+" "+string(all[i].State)+")")
		}
	}
	if len(near) > 0 {
		p.hint = "Runs, newest first: " + strings.Join(near, ", ")
	}
	return p
}

type interruptArgs struct {
	RunID  string  `arg:"runId"`
	Signal *string `arg:"signal"`
}

// interruptShown is how long an interrupt waits for its effect before it answers.
const interruptShown = time.Second

func interruptRun(ctx context.Context, c *call, a interruptArgs) (*toolResult, error) {
	v, err := c.run(ctx, a.RunID)
	if err != nil {
		return nil, err
	}
	if v, err = c.table.mirror.AwaitSignals(ctx, a.RunID); err != nil {
		return nil, err
	}
	sent := false
	switch {
	case v.Ended():
	case a.Signal == nil || *a.Signal == "INT":
		err = c.guard(ctx, inputTo(v.Pane, true), func(g *guarded) error {
			if sent = c.table.mirror.Interrupting(a.RunID); !sent {
				return nil
			}
			return g.write(ctx, controlmode.Cmd("send-keys", "-t", v.Pane.String(), "-H", "03"))
		})
		if errors.Is(err, state.ErrUnknown) {
			err = &lostAnswer{cause: err, what: "C-c was pressed", where: "at run " + v.ID + " with get_run", cursor: c.here}
		}
	default:
		sent, err = c.table.mirror.SignalRun(ctx, a.RunID, *a.Signal)
	}
	if err != nil {
		return nil, c.missing(ctx, err, v.Pane.String())
	}
	if sent {
		if v, err = c.table.mirror.AwaitRun(ctx, a.RunID, interruptShown); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	var o object
	o.open()
	o.raw("run", runView(v))
	o.bool("sent", sent)
	o.close()
	var n notices
	n.add(!sent, "nothing was sent: it is not running")
	return &toolResult{Text: n.over(runLine(v)), Structured: o.b}, nil
}
