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

// defaultRunWait is how long run_shell_command waits if the caller does not say:
// below the 60 s after which clients give up.
const defaultRunWait = 25 * time.Second

// maxCommand bounds a command: it is staged in a file, but held in memory.
const maxCommand = 1 << 20

// runTools are the tools that run commands to their end.
func runTools() []*tool {
	runs := func(name, title, doc string, set toolset, params []param, out schema) tool {
		t := tool{
			name: name, title: title, toolset: set, doc: doc, params: params, output: out,
			reach: reachNone, effects: []string{effectObserve}, classes: []string{classTerminal, classMetadata},
		}
		switch name {
		case "run_shell_command":
			t.reach, t.effects, t.classes = reachCommand, []string{effectObserve, effectChange}, []string{classMetadata, classTerminal}
		case "interrupt_run":
			t.reach, t.effects, t.classes = reachInput, []string{effectObserve, effectChange}, []string{classMetadata}
		case "list_runs":
			t.classes = []string{classMetadata}
		}
		return t
	}
	run := define(runs("run_shell_command", "Run a shell command",
		"Runs a command in the shell of a pane and waits for its end: exit status, exact output, duration. The pane must be "+
			"at the prompt of bash, zsh, dash, ash, ksh, mksh or fish. It runs in a subshell, so cd and export do not last "+
			"unless persist is set. A command that outlasts the wait goes on: read it again with get_run and the runId, "+
			"do not call again.",
		execute, []param{
			{
				name: "command", required: true, max: maxCommand, minLen: 1, want: "a command",
				doc: "Any text the shell takes, of any length and of several lines.",
			},
			paneParam(true), runTimeoutParam(), maxLinesParam(),
			{
				name: "force", kind: kindBoolean,
				doc: "Allow the pane that the caller itself runs in. It allows nothing else. Default false.",
			},
			{
				name: "persist", kind: kindBoolean, added: true,
				doc: "Run it in the pane's own shell, so that cd and export last. An interrupt can then cost the exit status. Default false.",
			},
			{
				name: "newPane", kind: kindBoolean, added: true,
				doc: "Run it in a new pane beside paneId, which is removed once its output has been read after the end. Default false.",
			},
			holdParam(),
		}, runOut()), runShellCommand)
	run.waits = func(any) bool { return true }
	get := define(runs("get_run", "Read a run",
		"Shows a run of run_shell_command and its output: the newest part, or with a cursor what follows it, oldest first. "+
			"Any client may read any run, also after its end.",
		inspect, []param{
			runParam(),
			{
				name: "cursor", pattern: state.CursorPattern, match: isCursor, want: "a cursor",
				doc: "Go on from here: the cursor of a run or of an earlier answer. Default: the newest part of all output.",
			},
			maxLinesParam(),
			{
				name: "waitMs", kind: kindInteger,
				doc: "Wait at most this long for the run to end. Default 0.",
			},
		}, getRunOut()), getRun)
	get.waits = func(args any) bool {
		a := args.(getRunArgs)
		return a.WaitMs != nil && *a.WaitMs > 0
	}
	return []*tool{
		run, get,
		define(runs("list_runs", "List runs",
			"Lists the runs of run_shell_command that are remembered, oldest first: those that run and the newest that have ended.",
			inspect, []param{paneParam(false)}, output(map[string]schema{
				"runs": arrayOut(runViewOut()), "complete": booleanOut(), "omittedEntries": countOut(),
			})), listRuns),
		define(runs("interrupt_run", "Interrupt a run",
			"Interrupts the command of a run: C-c, or a signal to its processes. The answer shows the run a moment later.",
			execute, []param{
				runParam(),
				{
					name: "signal", enum: []string{"INT", "TERM", "KILL"},
					doc: "INT presses C-c, TERM and KILL are sent to the processes in the foreground. After KILL the exit status may be unknown. Default INT.",
				},
			}, output(map[string]schema{
				"run": runViewOut(), "sent": booleanOut().with("description", "false: the run was not running any more."),
			})), interruptRun),
	}
}

func runTimeoutParam() param {
	return param{
		name: "timeoutMs", kind: kindInteger, positive: true,
		doc: "Wait at most this long, within the server's limit. Default 25000. The command is not ended by it.",
	}
}

func runParam() param {
	return param{name: "runId", required: true, max: 64, doc: "The id of a run; list_runs shows them."}
}

func runOut() schema {
	return output(map[string]schema{
		"cursor":             orNull(patternOut(state.CursorPattern)).with("description", "Where the output begins, for get_run and capture_since."),
		"droppedLines":       integerOut(),
		"durationMs":         orNull(integerOut()),
		"effectiveTimeoutMs": integerOut(),
		"exitStatus":         orNull(integerOut()).with("description", "null unless completed."),
		"foreignOutputSuspected": booleanOut().with("description",
			"Marks were seen that the run did not print; false proves nothing."),
		"interrupted":    booleanOut().with("description", "By interrupt_run."),
		"missedBytes":    integerOut(),
		"omittedBytes":   integerOut(),
		"outcome":        enumOut("completed", "timed_out", "pane_died", "cancelled"),
		"output":         stringOut().with("description", "The newest part of what the command printed."),
		"outputComplete": booleanOut().with("description", "false if anything is missing from output."),
		"paneId":         patternOut(panePattern),
		"returnedBytes":  integerOut(),
		"runId":          stringOut(),
		"stillRunning":   booleanOut(),
	})
}

func runViewOut() schema {
	return objectOut(map[string]schema{
		"cursor":         orNull(patternOut(state.CursorPattern)),
		"durationMs":     orNull(integerOut()),
		"endedAt":        orNull(stringOut()),
		"exitStatus":     orNull(integerOut()),
		"interrupted":    booleanOut(),
		"outputComplete": booleanOut(),
		"paneId":         patternOut(panePattern),
		"runId":          stringOut(),
		"startedAt":      stringOut(),
		"state":          enumOut("running", "completed", "stopped", "pane_died", "unknown"),
	})
}

func getRunOut() schema {
	return output(map[string]schema{
		"cursor":             orNull(patternOut(state.CursorPattern)).with("description", "Pass it to the next call to go on."),
		"droppedLines":       integerOut(),
		"effectiveTimeoutMs": integerOut(),
		"missedBytes":        integerOut(),
		"omittedBytes":       integerOut(),
		"output":             stringOut(),
		"returnedBytes":      integerOut(),
		"run":                runViewOut(),
	})
}

type runArgs struct {
	Command     string `arg:"command"`
	PaneID      string `arg:"paneId"`
	TimeoutMs   *int64 `arg:"timeoutMs"`
	MaxLines    *int64 `arg:"maxLines"`
	Force       bool   `arg:"force"`
	Persist     bool   `arg:"persist"`
	NewPane     bool   `arg:"newPane"`
	WaitReadyMs int64  `arg:"waitReadyMs"`
}

func runShellCommand(ctx context.Context, c *call, a runArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.Command) == "" {
		return nil, &problem{reason: "the command is blank", hint: "To press Enter in a pane, use send_keys."}
	}
	wait := c.wait(defaultRunWait.Milliseconds())
	if a.TimeoutMs != nil {
		wait = c.wait(*a.TimeoutMs)
	}
	opt := state.RunOptions{Command: a.Command, Same: a.Persist}
	if !a.NewPane {
		if err := c.hold(ctx, id, a.WaitReadyMs, atPrompt); err != nil {
			return nil, c.missing(ctx, err, a.PaneID)
		}
	}
	var run string
	if a.NewPane {
		run, err = c.startBeside(ctx, id, opt)
	} else {
		run, err = c.start(ctx, id, opt, a.Force)
	}
	if err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	v, err := c.awaitRun(ctx, run, wait)
	cut := err != nil && ctx.Err() != nil // the command goes on
	if err != nil && !cut {
		return nil, err
	}
	if v.State == state.RunNotStarted {
		return nil, c.notStarted(v)
	}
	res, err := c.runResult(v, wait, c.lines(a.MaxLines), cut)
	if err == nil {
		c.tidy(ctx, v)
	}
	return res, err
}

// start types the line of a run, through the guards of all input.
func (c *call) start(ctx context.Context, id controlmode.PaneID, opt state.RunOptions, force bool) (run string, err error) {
	err = c.guard(ctx, inputTo(id, force), func(g *guarded) error {
		if n := len(g.panes); n > 1 {
			return &problem{
				reason: fmt.Sprintf("synchronize-panes is on: what is typed into %s goes to %s; nothing was typed", id, plural(n, "pane")),
				hint:   "A run needs a pane of its own: set_synchronize_panes turns it off, or use newPane.",
			}
		}
		p, err := c.table.mirror.PrepareRun(ctx, id, opt)
		if err != nil {
			return runProblem(id, err)
		}
		err = g.write(ctx, typeLine(id, p.Line))
		if err != nil && !g.wrote {
			p.Cancel()
			return err
		}
		run = p.Typed()
		if errors.Is(err, state.ErrUnknown) {
			return &lostAnswer{cause: err, what: "the command was typed", where: "at run " + run + " with get_run", cursor: &p.Cursor}
		}
		if err != nil {
			return &problem{
				reason: fmt.Sprintf("unknown whether the command was typed (%v); it is not typed again", err),
				hint:   fmt.Sprintf("get_run with runId %s tells whether it runs; what the pane printed follows the cursor %s.", run, p.Cursor),
			}
		}
		return nil
	})
	return run, err
}

// typeLine types a line and Enter, each byte as it is.
func typeLine(id controlmode.PaneID, line string) controlmode.Command {
	args := []string{"-t", id.String(), "-H"}
	for _, b := range []byte(line + "\r") {
		args = append(args, fmt.Sprintf("%02x", b))
	}
	return controlmode.Cmd("send-keys", args...)
}

// runProblem explains why a pane cannot run a command.
func runProblem(id controlmode.PaneID, err error) error {
	var not *state.NotReadyError
	var left *state.LeftoverError
	switch {
	case errors.As(err, &left):
		return &problem{
			reason: fmt.Sprintf("pane %s has text on its command line that nobody has entered, nothing was typed: %s", id, inline(left.Text)),
			hint: "It may be a person's. If it is yours, C-c by send_keys clears it; newPane runs the command beside it. " +
				"If it is part of the prompt, the shell marks its end (OSC 133 B) too early: press Enter once, then it is known.",
		}
	case errors.Is(err, state.ErrBusy):
		return &problem{
			reason: fmt.Sprintf("pane %s is busy: %s; nothing was typed", id, err),
			hint:   "get_run with waitMs waits for that run, interrupt_run ends it; newPane runs the command beside it.",
		}
	case errors.As(err, &not):
		return &problem{
			reason: fmt.Sprintf("pane %s is not at the prompt of a known shell, nothing was typed: it is %s", id, waitingText(not.Waiting)),
			hint:   hints[not.Waiting.For],
		}
	}
	return err
}

// hints say what to do with a pane that cannot run a command.
var hints = map[state.WaitingFor]string{
	state.WaitsLine:       "A program reads there: answer or leave it with send_keys, or set newPane to run the command in a pane of its own.",
	state.WaitsPassword:   "A password is asked for: that is for a person. Set newPane to run the command in a pane of its own.",
	state.WaitsFullscreen: "Leave that program with send_keys, or set newPane to run the command in a pane of its own.",
	state.WaitsBusy:       "Wait for it to end, or set newPane to run the command in a pane of its own. Known shells are bash, zsh, dash, ash, ksh, mksh and fish.",
	state.WaitsDead:       "respawn_pane starts its command again.",
	state.WaitsMode:       "Somebody may be reading there; it ends when they leave it.",
	state.WaitsUnknown:    "Behind ssh and the like commands cannot be followed: type them with send_keys and wait with wait_for_text.",
}

// awaitRun waits for a run, and tells a client that wants to know how it goes.
func (c *call) awaitRun(ctx context.Context, run string, wait time.Duration) (state.Run, error) {
	const tell = 3 * time.Second
	end := time.Now().Add(wait)
	for {
		slice := time.Until(end)
		if c.progress != nil {
			slice = min(slice, tell)
		}
		v, err := c.table.mirror.AwaitRun(ctx, run, slice)
		if err != nil || !v.Active() || !time.Now().Before(end) {
			return v, err
		}
		if _, text, err := c.runText(run, state.RunTextOptions{MaxLines: 1}); err == nil && c.progress != nil {
			c.progress(inline(strings.TrimSuffix(text.Text, "\n")))
		}
	}
}

// notStarted is the error for a line that the shell did not run.
func (c *call) notStarted(v state.Run) error {
	p := &problem{
		reason: fmt.Sprintf("the command did not start in pane %s (run %s): the shell took the line and did not run it; it is not typed again", v.Pane, v.ID),
		hint:   "Something may have been left on its command line. Look with snapshot_pane; C-c by send_keys clears the line.",
	}
	if text := strings.TrimSpace(c.redactText(c.table.mirror.EarlyText(v.ID))); text != "" {
		p.reason += "\n\nThe pane printed:\n" + clean(text)
	}
	return p
}
