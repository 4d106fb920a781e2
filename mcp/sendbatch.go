package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

const (
	sendBatchName = "send_keys_batch"
	// maxSends is the contract's bound of operations; the seed's schema has none.
	maxSends = 64
)

// sendBatchTool is the one tool whose contract is the Python port's: snake_case
// on the wire, seconds, and a schema that is the seed's to the letter.
func sendBatchTool() *tool {
	row := tool{
		name: sendBatchName, title: "Send keys in a batch", toolset: execute,
		doc: "Sends keys or text to panes in order, each operation as send_keys does. Name a pane by pane_id, or by window_id, session_id " +
			"or session_name for the active pane there; the row says which it was. The answer's _meta has for each pane a cursor from before its " +
			"first input. Look at the rows: a batch is no error when an operation fails.",
		reach: reachInput, effects: []string{effectObserve, effectChange}, classes: []string{classMetadata},
		rawInput: sendBatchInput(), output: sendBatchOutput(),
		params: []param{
			{name: "operations", kind: kindObjects, required: true, maxItems: maxSafe, doc: "What to send, in order."},
			{name: "on_error", also: []string{"onError"}, enum: []string{onErrorStop, onErrorContinue}, doc: "Whether a failed operation ends the batch. Default stop."},
			{
				name: "socket_name", also: []string{"socketName"}, nullable: true,
				doc: "The name of the tmux socket that is meant: it must be the one that is served.",
			},
			{name: "timeout", kind: kindNumber, nullable: true, doc: "Seconds for the whole batch."},
		},
	}
	return define(row, newSendBatch().run)
}

func newSendBatch() *sendBatch {
	target := func(name string) param { return param{name: name, also: []string{camel(name)}, nullable: true} }
	return &sendBatch{operation: newDecoder([]param{
		{name: "keys", required: true, max: maxTyped, want: "a string"},
		{name: "enter", kind: kindBoolean},
		{name: "literal", kind: kindBoolean},
		{name: "suppress_history", also: []string{"suppressHistory"}, kind: kindBoolean},
		target("pane_id"), target("window_id"), target("session_id"), target("session_name"),
	})}
}

// camel spells a snake_case name in camelCase.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// sendBatchInput is the seed's input schema.
func sendBatchInput() schema {
	orNullDefault := func(typ, doc string) schema {
		return schema{
			"anyOf": []any{schema{"type": typ}, schema{"type": "null"}}, "default": nil, "description": doc,
		}
	}
	return schema{
		"type": "object", "additionalProperties": false, "required": []string{"operations"},
		"properties": schema{
			"on_error": schema{
				"type": "string", "enum": []string{onErrorStop, onErrorContinue}, "default": onErrorStop,
				"description": "Whether a failed operation ends the batch.",
			},
			"operations": schema{
				"type": "array", "description": "What to send, in order; at most 64.",
				"items": schema{
					"type": "object", "additionalProperties": false, "required": []string{"keys"},
					"description": "One operation. It must name a pane, or where to find one.",
					"properties": schema{
						"keys": schema{"type": "string", "description": "One key, or text that is typed as it is; as in send_keys."},
						"enter": schema{
							"type": "boolean", "default": true,
							"description": "Press Enter afterwards; after a key only if it is said here.",
						},
						"literal": schema{"type": "boolean", "default": false, "description": "Type keys as text whatever they are."},
						"suppress_history": schema{
							"type": "boolean", "default": false,
							"description": "Type a space first, so that shells set up for it keep the line out of their history.",
						},
						"pane_id":      orNullDefault("string", "Pane id such as %1."),
						"window_id":    orNullDefault("string", "Window id such as @1: its active pane."),
						"session_id":   orNullDefault("string", "Session id such as $1: the active pane of its current window."),
						"session_name": orNullDefault("string", "Exact session name: as session_id."),
					},
				},
			},
			"socket_name": orNullDefault("string", "The name of the tmux socket that is meant: it must be the one that is served."),
			"timeout":     orNullDefault("number", "Seconds for the whole batch."),
		},
	}
}

// sendBatchOutput is the seed's output schema. It is open: rows say more.
func sendBatchOutput() schema {
	orNullDefault := func(typ, doc string) schema {
		return schema{"anyOf": []any{schema{"type": typ}, schema{"type": "null"}}, "default": nil, "description": doc}
	}
	return schema{
		"type": "object", "required": []string{"succeeded", "failed"}, "description": "What became of the batch.",
		"properties": schema{
			"succeeded": schema{"type": "integer", "description": "Operations that were sent."},
			"failed":    schema{"type": "integer", "description": "Operations that were not."},
			"results": schema{
				"type": "array", "description": "One row for each operation that was tried, in order.",
				"items": schema{
					"type": "object", "required": []string{"index", "success", "elapsed_seconds"}, "description": "One operation.",
					"properties": schema{
						"index":           schema{"type": "integer", "description": "Its place among the operations, from 0."},
						"success":         schema{"type": "boolean", "description": "It was sent."},
						"elapsed_seconds": schema{"type": "number", "description": "How long it took."},
						"error":           orNullDefault("string", "Why it was not."),
						"pane_id":         orNullDefault("string", "The pane that was found."),
					},
				},
			},
			"stopped_at": orNullDefault("integer", "The operation at which the batch ended early; null if all were tried."),
		},
	}
}

type sendBatchArgs struct {
	Operations []json.RawMessage `arg:"operations"`
	OnError    *string           `arg:"on_error"`
	SocketName *string           `arg:"socket_name"`
	Timeout    *float64          `arg:"timeout"`
}

type sendBatch struct{ operation *decoder }

// sendOp is one operation, read.
type sendOp struct {
	keys                         string
	enter                        *bool
	literal, suppress            bool
	pane, window, session, named *string
}

// sendRow is what became of one operation.
type sendRow struct {
	took  time.Duration
	pane  *controlmode.PaneID
	panes []controlmode.PaneID
	said  string
	err   string // "" for success
}

func (b *sendBatch) run(ctx context.Context, c *call, a sendBatchArgs) (*toolResult, error) {
	ops, err := b.operations(a.Operations)
	if err != nil {
		return nil, err
	}
	if err := c.table.servedSocket(a.SocketName); err != nil {
		return nil, err
	}
	if err := c.policy.spend(len(ops) - 1); err != nil {
		return nil, err
	}
	within := ctx
	if a.Timeout != nil {
		d, err := seconds(*a.Timeout)
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		within, cancel = context.WithTimeoutCause(ctx, d, errBatchTimeout)
		defer cancel()
	}
	s := &sent{cursors: map[string]any{}}
	for i := range ops {
		begin := time.Now()
		row := s.one(within, c, &ops[i])
		if ctx.Err() != nil && !c.wrote {
			return nil, context.Cause(ctx) // it may be called again
		}
		row.took = time.Since(begin)
		s.rows = append(s.rows, row)
		if row.err == "" {
			continue
		}
		s.failed++
		if within.Err() != nil || a.OnError == nil || *a.OnError == onErrorStop {
			s.stoppedAt = &i
			break
		}
	}
	return s.answer(), nil
}

var errBatchTimeout = errors.New("the batch's timeout has passed")

// longestTimeout is what a timeout is clamped to; more seconds than that would
// not fit a duration.
const longestTimeout = 24 * time.Hour

func seconds(s float64) (time.Duration, error) {
	if !(s > 0) {
		return 0, &problem{reason: fmt.Sprintf("timeout must be a number of seconds above 0, not %v; nothing was sent", s)}
	}
	if s > longestTimeout.Seconds() {
		return longestTimeout, nil
	}
	return time.Duration(s * float64(time.Second)), nil
}

// operations reads all operations before the first is sent, so that a fault in
// one leaves nothing half done.
func (b *sendBatch) operations(list []json.RawMessage) ([]sendOp, error) {
	if len(list) > maxSends {
		return nil, &problem{reason: fmt.Sprintf("%d operations in one batch; the limit is %d; nothing was sent", len(list), maxSends)}
	}
	ops := make([]sendOp, len(list))
	for i, raw := range list {
		v, err := b.operation.decode(raw)
		if err != nil {
			p := prefixed(fmt.Sprintf("operations[%d]", i), err).(*problem)
			p.hint = "Nothing was sent. " + p.hint
			return nil, p
		}
		o := &ops[i]
		o.keys = v[0].(string)
		if e, ok := v[1].(bool); ok {
			o.enter = &e
		}
		o.literal, _ = v[2].(bool)
		o.suppress, _ = v[3].(bool)
		for j, field := range []**string{&o.pane, &o.window, &o.session, &o.named} {
			if s, ok := v[4+j].(string); ok {
				*field = &s
			}
		}
	}
	return ops, nil
}

// servedSocket checks that a socket name means the server that is served.
func (t *table) servedSocket(name *string) error {
	if name == nil || sameSocket(controlmode.Socket{Name: *name}.Abs(os.Getenv, os.Getuid()), t.mirror.SocketPath()) {
		return nil
	}
	return &problem{
		reason: fmt.Sprintf("socket_name %s is not the tmux server that this daemon serves, which is %s; nothing was sent", quote(*name), inline(t.mirror.SocketPath())),
		hint:   "Leave socket_name out, or use a tmux-mcpd for that server.",
	}
}

// sent is a batch under way.
type sent struct {
	rows      []sendRow
	failed    int
	stoppedAt *int
	cursors   map[string]any // by pane id, from before its first input
}

// one runs one operation.
func (s *sent) one(ctx context.Context, c *call, o *sendOp) (row sendRow) {
	fail := func(err error) sendRow {
		if ctx.Err() != nil && !errors.Is(err, state.ErrUnknown) {
			err = context.Cause(ctx)
		}
		row.err = clean(err.Error())
		if res, err := c.table.failure(context.WithoutCancel(ctx), err); err == nil {
			row.err = res.Text
		}
		return row
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	id, err := c.resolve(ctx, o)
	if err != nil {
		return fail(err)
	}
	row.pane = &id
	in, err := newInput(id, o.keys, o.literal, o.suppress, o.enter)
	if err != nil {
		return fail(err)
	}
	t, err := c.send(ctx, in)
	row.panes = t.panes
	if _, ok := s.cursors[id.String()]; !ok && (err == nil || errors.Is(err, state.ErrUnknown)) {
		s.cursors[id.String()] = cursorOrNil(t.cursor)
	}
	if err != nil {
		return fail(c.missing(ctx, t.lost(err), id.String()))
	}
	t.cursor = nil // told in the metadata
	row.said = t.remarks().over(t.report())
	return row
}

// resolve finds the pane of an operation: the one named, or the active pane of
// the window named, or of the current window of the session named. All that is
// named must agree. Nothing named finds nothing: tmux's own guess depends on who
// is attached (M13).
func (c *call) resolve(ctx context.Context, o *sendOp) (controlmode.PaneID, error) {
	if o.pane == nil && o.window == nil && o.session == nil && o.named == nil {
		return 0, &problem{
			reason: "the operation names no pane; nothing was sent",
			hint:   "Give pane_id, or window_id, session_id or session_name for the active pane there.",
		}
	}
	m, err := c.policy.arrive(c.table.mirror, 0).Model(ctx, state.Sessions|state.Windows|state.Panes)
	if err != nil {
		return 0, err
	}
	if err := c.sameServer(m.Server.ID); err != nil {
		return 0, err
	}
	session, err := c.opSession(ctx, m, o)
	if err != nil {
		return 0, err
	}
	var window *state.Window
	if o.window != nil {
		id, err := controlmode.ParseWindowID(*o.window)
		w, ok := m.Window(id)
		if err != nil || !ok {
			return 0, c.noWindow(ctx, *o.window)
		}
		window = w
		if session != nil && !linked(w.Links, session.ID) {
			return 0, disagree("window "+w.ID.String(), "session "+session.ID.String())
		}
	}
	if o.pane != nil {
		id, err := controlmode.ParsePaneID(*o.pane)
		p, ok := m.Pane(id)
		if err != nil || !ok {
			return 0, c.noPane(ctx, *o.pane)
		}
		switch {
		case window != nil && p.Window != window.ID:
			return 0, disagree("pane "+p.ID.String(), "window "+window.ID.String())
		case session != nil && !linked(p.Links, session.ID):
			return 0, disagree("pane "+p.ID.String(), "session "+session.ID.String())
		}
		return id, nil
	}
	if window == nil {
		for _, w := range m.Windows {
			for _, l := range w.Links {
				if l.Session == session.ID && l.Active {
					window = w
				}
			}
		}
	}
	if window == nil {
		return 0, fmt.Errorf("session %s: no current window: %w", session.ID, state.ErrNotFound)
	}
	return window.ActivePane, nil
}

// opSession is the session that an operation names, nil for none.
func (c *call) opSession(ctx context.Context, m *state.Model, o *sendOp) (*state.Session, error) {
	if o.session != nil && !isSessionID(*o.session) {
		return nil, c.noSession(ctx, *o.session)
	}
	var found *state.Session
	for _, by := range []sessionArgs{{SessionID: o.session}, {SessionName: o.named}} {
		if _, ok := by.asked(); !ok {
			continue
		}
		s, err := c.session(ctx, m, by)
		if err != nil {
			return nil, err
		}
		if found != nil && found != s {
			return nil, disagree("session "+found.ID.String(), "session name "+quote(s.Name))
		}
		found = s
	}
	return found, nil
}

func linked(links []state.Link, id controlmode.SessionID) bool {
	for _, l := range links {
		if l.Session == id {
			return true
		}
	}
	return false
}

func disagree(a, b string) error {
	return &problem{reason: fmt.Sprintf("%s is not in %s; nothing was sent", a, b), hint: "Name the pane in one way, or in ways that agree."}
}

// answer is the batch's answer.
func (s *sent) answer() *toolResult {
	var text strings.Builder
	fmt.Fprintf(&text, "%s tried: %d sent, %d failed.", plural(len(s.rows), "operation"), len(s.rows)-s.failed, s.failed)
	if s.stoppedAt != nil {
		fmt.Fprintf(&text, " Stopped at operation %d; what follows it was not sent.", *s.stoppedAt)
	}
	rows := make([][]byte, len(s.rows))
	for i := range s.rows {
		row := &s.rows[i]
		said := row.said
		if row.err != "" {
			said = "failed: " + row.err
		}
		fmt.Fprintf(&text, "\n%d: %s", i, strings.ReplaceAll(said, "\n", " "))
		rows[i] = row.encode(i)
	}
	var o object
	o.open()
	o.int("failed", s.failed)
	o.array("results", rows)
	o.intOrNull("stopped_at", s.stoppedAt)
	o.int("succeeded", len(s.rows)-s.failed)
	o.close()
	return &toolResult{Structured: o.b, Text: text.String(), Meta: map[string]any{metaCursor: s.cursors}}
}

func (row *sendRow) encode(i int) []byte {
	var o object
	o.open()
	o.key("elapsed_seconds")
	o.b = fmt.Appendf(o.b, "%.6f", row.took.Seconds())
	if row.err == "" {
		o.null("error")
	} else {
		o.string("error", row.err)
	}
	o.int("index", i)
	if row.pane == nil {
		o.null("pane_id")
	} else {
		o.string("pane_id", row.pane.String())
	}
	o.array("resolved_pane_ids", quotedIDs(row.panes))
	o.bool("success", row.err == "")
	o.close()
	return o.b
}
