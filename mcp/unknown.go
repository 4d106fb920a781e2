package mcp

import (
	"context"
	"errors"
	"fmt"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// lostAnswer is a change of which nobody can tell whether tmux has made it. It is
// never tried again by us, nor should it be by anybody who has not looked.
type lostAnswer struct {
	cause  error
	what   string        // "it was typed"
	where  string        // to look: "at pane %1"
	cursor *state.Cursor // before it, nil for none
}

func (e *lostAnswer) Error() string { return "unknown whether " + e.what + ": " + e.cause.Error() }

func (e *lostAnswer) Unwrap() []error { return []error{state.ErrUnknown, e.cause} }

// why is what kept the answer away.
func (e *lostAnswer) why() string {
	switch {
	case errors.Is(e.cause, controlmode.ErrTimeout):
		return "tmux did not answer in time"
	case errors.Is(e.cause, errShutdown), errors.Is(e.cause, context.Canceled), errors.Is(e.cause, context.DeadlineExceeded):
		return "the call was cut off before the answer of tmux came"
	}
	return "the connection to tmux was lost before the answer came"
}

// about notes where the output of a pane stands that the call may change.
func (c *call) about(id controlmode.PaneID) {
	if !c.changing || c.here != nil {
		return
	}
	if at, ok := c.table.mirror.Here(id); ok {
		c.here = &at
	}
}

// unfinished is the error of a call that may have changed something, and then
// could not go on. "Try again" would be the wrong advice for it.
func (c *call) unfinished(ctx context.Context, err error) error {
	var lost *lostAnswer
	if errors.As(err, &lost) {
		if lost.cursor != nil || c.here == nil {
			return err
		}
		located := *lost
		located.cursor = c.here
		return &located
	}
	var told *problem
	var refused *controlmode.CommandError
	cut := ctx.Err() != nil
	switch {
	case errors.Is(err, state.ErrUnknown):
	case !c.wrote, !cut && (errors.As(err, &told) || errors.As(err, &refused)):
		return err
	case cut:
		err = context.Cause(ctx)
	case !lostTmux(err):
		return err
	}
	return &lostAnswer{cause: err, what: "it was done", where: "at what it was to change", cursor: c.here}
}

// lostTmux tells whether an error says that tmux could not be asked.
func lostTmux(err error) bool {
	for _, lost := range []error{controlmode.ErrClosed, controlmode.ErrTimeout, state.ErrDetached, state.ErrNoServer, state.ErrOtherServer} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// unknownResult is the answer for it.
func unknownResult(err error) *toolResult {
	e := &lostAnswer{cause: err, what: "it was done", where: "at what it was to change"}
	_ = errors.As(err, &e)
	text := fmt.Sprintf("unknown: %s, and nobody can tell whether %s. It was not sent again.\n\nLook %s before you call again",
		e.why(), e.what, e.where)
	if e.cursor == nil {
		return errorResult(text + ".")
	}
	res := errorResult(text + ": capture_since with the cursor " + e.cursor.String() + " shows what came after it.")
	res.Meta = map[string]any{metaCursor: e.cursor.String()}
	return res
}
