package mcp

import (
	"fmt"
	"strings"
	"time"

	"tmux-mcpd/state"
)

// runResult is the answer to run_shell_command. cut: its wait was cut off.
func (c *call) runResult(v state.Run, wait time.Duration, lines int, cut bool) (*toolResult, error) {
	_, text, err := c.runText(v.ID, state.RunTextOptions{MaxLines: lines, MaxBytes: resultCeiling})
	if err != nil {
		return nil, err
	}
	outcome, going := "completed", false
	switch v.State {
	case state.RunRunning, state.RunStopped:
		if outcome, going = "timed_out", v.Began; cut {
			outcome = "cancelled"
		}
	case state.RunPaneDied:
		outcome = "pane_died"
	}
	out := clean(text.Text)
	complete := v.Ended() && v.OutputComplete && text.DroppedLines == 0 && text.OmittedBytes == 0 && text.Missed == 0
	var o object
	o.b = make([]byte, 0, len(out)+512)
	o.open()
	o.stringOrNull("cursor", cursorText(v.Cursor))
	o.int("droppedLines", text.DroppedLines)
	o.intOrNull("durationMs", durationMs(v))
	o.int("effectiveTimeoutMs", int(wait.Milliseconds()))
	o.intOrNull("exitStatus", v.ExitStatus)
	o.bool("foreignOutputSuspected", v.Foreign)
	o.bool("interrupted", v.Interrupted)
	o.int("missedBytes", int(text.Missed))
	o.int("omittedBytes", text.OmittedBytes)
	o.string("outcome", outcome)
	o.string("output", out)
	o.bool("outputComplete", complete)
	o.string("paneId", v.Pane.String())
	o.int("returnedBytes", len(out))
	o.string("runId", v.ID)
	o.bool("stillRunning", going)
	o.close()
	var n notices
	if cut && !v.Ended() {
		n.add(true, "the wait was cut off, and the command goes on; get_run with runId %s waits and reads on", v.ID)
	} else {
		n = runNotices(v, wait)
	}
	n.text(text)
	return &toolResult{Text: n.over(strings.TrimRight(out, "\n")), Structured: o.b}, nil
}

// runNotices say in words where a run stands.
func runNotices(v state.Run, wait time.Duration) notices {
	var n notices
	switch v.State {
	case state.RunCompleted:
		n.add(true, "exit status %d", *v.ExitStatus)
	case state.RunRunning:
		n.add(v.Began && wait > 0, "still running after %s; get_run with runId %s waits and reads on, interrupt_run ends it", wait, v.ID)
		n.add(v.Began && wait <= 0, "running")
		n.add(!v.Began, "not started yet; get_run with runId %s tells when it has", v.ID)
	case state.RunStopped:
		n.add(true, "stopped, as by C-z; fg in the pane lets it go on")
	case state.RunPaneDied:
		n.add(true, "the pane ended before the command did; the last output may be missing")
	case state.RunNotStarted:
		n.add(true, "the shell did not run the line")
	case state.RunUnknown:
		n.add(true, "it has ended without telling its exit status, as when it is killed")
	}
	n.add(v.Interrupted, "interrupted by interrupt_run")
	n.add(v.Restarted, "tmux-mcpd was restarted since it began: output is missing")
	n.add(v.Foreign, "end marks were seen that the run did not print; they were not believed")
	n.add(v.Ended() && !v.OutputComplete && !v.Restarted && v.State == state.RunCompleted, "output may be incomplete")
	return n
}

func (n *notices) text(t state.RunText) {
	n.count(int(t.Missed), "%s of output are not kept any more", "byte")
	n.count(t.DroppedLines, "%s before these not shown", "line")
	n.count(t.OmittedBytes, "%s before these not shown", "byte")
	n.add(t.More, "more follows the cursor")
}

func cursorText(at *state.Cursor) *string {
	if at == nil {
		return nil
	}
	s := at.String()
	return &s
}

// durationMs is how long a run took, nil while it has not ended.
func durationMs(v state.Run) *int {
	if v.EndedAt.IsZero() || !v.Began {
		return nil
	}
	ms := int(max(0, v.EndedAt.Sub(v.StartedAt)).Milliseconds())
	return &ms
}

// timeText is a time as the tools give it.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// runView writes a Run. What never started is unknown in its states.
func runView(v state.Run) []byte {
	st := v.State
	if st == state.RunNotStarted {
		st = state.RunUnknown
	}
	var o object
	o.open()
	o.stringOrNull("cursor", cursorText(v.Cursor))
	o.intOrNull("durationMs", durationMs(v))
	if v.EndedAt.IsZero() {
		o.null("endedAt")
	} else {
		o.string("endedAt", timeText(v.EndedAt))
	}
	o.intOrNull("exitStatus", v.ExitStatus)
	o.bool("interrupted", v.Interrupted)
	o.bool("outputComplete", v.Ended() && v.OutputComplete)
	o.string("paneId", v.Pane.String())
	o.string("runId", v.ID)
	o.string("startedAt", timeText(v.StartedAt))
	o.string("state", string(st))
	o.close()
	return o.b
}

// runLine is a run in one line of text.
func runLine(v state.Run) string {
	s := fmt.Sprintf("%s in %s: %s", v.ID, v.Pane, v.State)
	if v.ExitStatus != nil {
		s += fmt.Sprintf(" with status %d", *v.ExitStatus)
	}
	s += ", started " + timeText(v.StartedAt)
	if ms := durationMs(v); ms != nil {
		s += fmt.Sprintf(", took %d ms", *ms)
	}
	return s
}
