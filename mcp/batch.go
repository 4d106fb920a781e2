package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

const (
	batchName     = "call_read_tools_batch"
	maxOperations = 16
)

// nestable are the tools that a batch may call, in the order of its variants.
var nestable = []string{
	"list_sessions", "list_windows", "list_panes", "get_pane_info", "get_server_info", "capture_pane",
	"capture_since", "search_panes", "show_option", "show_hooks", "show_environment", "get_session_info",
	"get_window_info", "find_pane_by_position", "get_tmux_variables", "snapshot_pane",
}

type batchArgs struct {
	Operations []json.RawMessage `arg:"operations"`
	OnError    *string           `arg:"onError"`
}

// batchTool makes the batch over the tools that are not excluded. What it can
// do and show is the union of what they can.
func batchTool(rows map[string]*tool, excluded names) *tool {
	b := &batch{rows: map[string]*tool{}}
	row := tool{
		name: batchName, title: "Call several read tools", toolset: inspect,
		doc: "Runs up to 16 inspect tools in order and returns one row for each. One approval covers them all. " +
			"The whole response stays below 1,000,000 bytes: the largest results are left out first, and counted.",
		output: batchOut(), reach: reachNone, effects: []string{}, classes: []string{},
	}
	variants := []any{}
	for _, name := range nestable {
		t := rows[name]
		if t == nil || excluded[name] {
			continue
		}
		b.rows[name] = t
		row.nested = append(row.nested, name)
		row.effects = union(row.effects, t.effects)
		row.classes = union(row.classes, t.classes)
		variants = append(variants, variant(t))
	}
	items := schema{"anyOf": variants}
	if len(variants) == 0 {
		items = schema{"not": schema{}} // nothing is left to call
	}
	row.params = []param{
		{
			name: "operations", kind: kindObjects, required: true, items: items, minItems: 1, maxItems: maxOperations,
			doc: "The calls, in order.",
		},
		{
			name: "onError", enum: []string{onErrorStop, onErrorContinue},
			doc: "Whether a failed call ends the batch. Default stop.",
		},
	}
	b.operation = newDecoder([]param{
		{name: "tool", required: true, enum: row.nested},
		{name: "arguments", kind: kindObject},
	})
	return define(row, b.run)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// variant is one alternative of the operations' schema.
func variant(t *tool) schema {
	return schema{
		"type":                 "object",
		"additionalProperties": false,
		"required":             []string{"tool"},
		"properties": schema{
			"tool": stringOut().with("const", t.name).with("description", "Calls "+t.name+"."),
			"arguments": inputSchema(contractParams(t.params)).with("additionalProperties", false).
				with("description", "What "+t.name+" takes when it is called alone."),
		},
	}
}

// contractParams leaves out what we have added to a tool.
func contractParams(params []param) []param {
	return slices.DeleteFunc(slices.Clone(params), func(p param) bool { return p.added })
}

func batchOut() schema {
	nested := schema{
		"type":                 "object",
		"additionalProperties": schema{},
		"required":             []string{"content"},
		"properties": schema{
			"content":           arrayOut(schema{}),
			"isError":           booleanOut(),
			"structuredContent": mapOut(schema{}),
		},
	}
	return output(map[string]schema{
		"failed":  countOut(),
		"onError": enumOut(onErrorStop, onErrorContinue),
		"results": arrayOut(objectOut(map[string]schema{
			"error":           orNull(stringOut()),
			"index":           countOut(),
			"result":          {"anyOf": []any{nested, schema{"type": "null"}}},
			"resultTruncated": booleanOut(),
			"success":         booleanOut(),
			"tool":            stringOut(),
		})),
		"stoppedAt":      orNull(countOut()),
		"succeeded":      countOut(),
		"truncated":      booleanOut(),
		"truncatedBytes": countOut(),
	})
}

const (
	onErrorStop     = "stop"
	onErrorContinue = "continue"
)

// batch is the tool over one set of nested tools.
type batch struct {
	rows      map[string]*tool
	operation *decoder
}

// operation is one call of a batch.
type operation struct {
	tool *tool
	args any
	err  error // invalid arguments; the row fails with it
}

// waits tells whether nothing may run beside the operation.
func (o *operation) waits() bool {
	return o.err == nil && o.tool.waits != nil && o.tool.waits(o.args)
}

func (b *batch) run(ctx context.Context, c *call, a batchArgs) (*toolResult, error) {
	ops, err := b.operations(a.Operations)
	if err != nil {
		return nil, err
	}
	if err := c.policy.spend(len(ops) - 1); err != nil {
		return nil, err
	}
	mode := onErrorStop
	if a.OnError != nil {
		mode = *a.OnError
	}
	results := runOperations(ops, mode == onErrorStop, func(segment []operation) func(*operation) *toolResult {
		nested := &call{table: c.table, caller: c.caller, policy: c.policy, sel: c.sel}
		nested.arrival = c.policy.arrive(c.table.mirror, sharedTables(segment))
		nested.arrival.Share(sharedScreens(segment))
		return func(o *operation) *toolResult { return nested.nested(ctx, o) }
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return newBatchResult(ops, results, mode).answer(), nil
}

// operations reads the operations' own form; the whole batch is refused for a
// fault there, while faulty nested arguments fail their row only.
func (b *batch) operations(list []json.RawMessage) ([]operation, error) {
	ops := make([]operation, len(list))
	for i, raw := range list {
		values, err := b.operation.decode(raw)
		if err != nil {
			p := prefixed(fmt.Sprintf("operations[%d]", i), err).(*problem)
			p.hint = "Nothing was run. An operation is {\"tool\": NAME, \"arguments\": {...}}."
			return nil, p
		}
		o := &ops[i]
		o.tool = b.rows[values[0].(string)]
		args, _ := values[1].(json.RawMessage)
		if o.args, o.err = o.tool.decode(args); o.err != nil {
			o.err = prefixed(o.tool.name, o.err)
		}
	}
	return ops, nil
}

// sharedTables are what the operations of a segment read in one refresh.
func sharedTables(segment []operation) state.Tables {
	var all state.Tables
	for i := range segment {
		all |= segment[i].tool.tables
	}
	return all
}

// sharedScreens are the panes whose screens the operations of a segment capture
// in one line.
func sharedScreens(segment []operation) (panes []controlmode.PaneID) {
	for i := range segment {
		if o := &segment[i]; o.err == nil && o.tool.screen != nil {
			if id, ok := o.tool.screen(o.args); ok {
				panes = append(panes, id)
			}
		}
	}
	return panes
}

// nested runs one operation as a call of its own. A panic fails its row only.
func (c *call) nested(ctx context.Context, o *operation) (res *toolResult) {
	defer func() {
		if p := recover(); p != nil {
			res = errorResult("internal error in " + o.tool.name)
		}
	}()
	if o.err != nil {
		res, _ = c.table.failure(ctx, o.err)
		return res
	}
	own := *c // the look at tmux is shared, the rest is the operation's
	own.arrival = c.arrival.again()
	res, _ = own.answer(ctx, o.tool, o.args)
	return res
}

// runOperations runs operations in order of effect: each run of operations
// that do not wait is one segment, which looks at tmux once and runs at once,
// so that captures are pipelined; an operation that waits is a segment of its
// own, and what follows it looks again. The results are those of the operations
// that ran, in order; under stop the first failed one is the last. A nil result
// means that the call's context ended.
func runOperations(ops []operation, stop bool, look func([]operation) func(*operation) *toolResult) []*toolResult {
	var results []*toolResult
	for len(results) < len(ops) {
		rest := ops[len(results):]
		n := 1
		for !rest[0].waits() && n < len(rest) && !rest[n].waits() {
			n++
		}
		found := runSegment(rest[:n], look(rest[:n]))
		for _, res := range found {
			results = append(results, res)
			if res == nil || stop && res.IsError {
				return results
			}
		}
	}
	return results
}

func runSegment(segment []operation, run func(*operation) *toolResult) []*toolResult {
	found := make([]*toolResult, len(segment))
	if len(segment) == 1 {
		found[0] = run(&segment[0])
		return found
	}
	var wg sync.WaitGroup
	for i := range segment {
		wg.Go(func() { found[i] = run(&segment[i]) })
	}
	wg.Wait()
	return found
}

// batchRow is one row of the answer. result is nil once it has been left out.
type batchRow struct {
	tool   string
	err    *string
	result []byte
}

func (r *batchRow) success() bool { return r.err == nil }

// batchResult is the answer of a batch before its size is known to fit.
type batchResult struct {
	rows      []batchRow
	mode      string
	failed    int
	stoppedAt *int
	truncated int // rows whose result was left out
	bytes     int // what they took
}

// noErrorText stands for the error of a failed call that says nothing.
const noErrorText = "the call failed without a reason"

func newBatchResult(ops []operation, results []*toolResult, mode string) *batchResult {
	b := &batchResult{rows: make([]batchRow, len(results)), mode: mode}
	for i, res := range results {
		row := &b.rows[i]
		row.tool = ops[i].tool.name
		row.result = encodeNested(res)
		if !res.IsError {
			continue
		}
		text := res.Text
		if text == "" {
			text = noErrorText
		}
		row.err = &text
		b.failed++
		if mode == onErrorStop {
			b.stoppedAt = &i
		}
	}
	return b
}

// encodeNested is a whole tool result. isError is always there: the Java port's
// schema requires it.
func encodeNested(res *toolResult) []byte {
	o := object{b: make([]byte, 0, len(res.Text)+len(res.Structured)+128)}
	o.open()
	if meta, err := json.Marshal(res.Meta); err == nil && res.Meta != nil {
		o.raw("_meta", meta)
	}
	o.content(res.Text)
	o.bool("isError", res.IsError)
	if res.Structured != nil {
		o.raw("structuredContent", res.Structured)
	}
	o.close()
	return o.b
}

// content writes the content of a result: one block of text.
func (o *object) content(text string) {
	o.key("content")
	o.b = append(o.b, `[{"type":"text","text":`...)
	o.b = appendQuoted(o.b, text)
	o.b = append(o.b, "}]"...)
}

// answer leaves the framing to whoever knows the request id: the cap is on the
// whole response line.
func (b *batchResult) answer() *toolResult {
	return &toolResult{Text: b.summary(), encode: b.encode}
}

// encode gives the complete result object, within the cap together with the
// request id. It may be called repeatedly, for different ids.
func (b *batchResult) encode(id json.RawMessage) []byte {
	c := *b
	c.rows = slices.Clone(b.rows)
	frame := len(`{"id":,"jsonrpc":"2.0","result":}`) + len(id) + len("\n")
	for {
		size := frame + len(c.object(false))
		largest := -1
		for i := range c.rows {
			n := len(c.rows[i].result)
			if n == 0 {
				continue
			}
			size += n - len("null")
			if largest < 0 || n > len(c.rows[largest].result) {
				largest = i
			}
		}
		if size <= resultCeiling {
			return c.object(true)
		}
		if largest < 0 {
			o := object{}
			o.open()
			o.content("the rows of this batch alone are larger than 1,000,000 bytes\n\nRun fewer operations in one batch.")
			o.bool("isError", true)
			o.close()
			return o.b
		}
		c.truncated++
		c.bytes += len(c.rows[largest].result) - len("null")
		c.rows[largest].result = nil
	}
}

// object is the result object, with null in place of the rows' results if they
// are not wanted.
func (b *batchResult) object(results bool) []byte {
	var o object
	o.open()
	o.content(b.summary())
	o.key("structuredContent")
	o.open()
	o.int("failed", b.failed)
	o.string("onError", b.mode)
	o.key("results")
	o.b = append(o.b, '[')
	for i := range b.rows {
		row := &b.rows[i]
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.open()
		o.stringOrNull("error", row.err)
		o.int("index", i)
		if results && row.result != nil {
			o.raw("result", row.result)
		} else {
			o.null("result")
		}
		o.bool("resultTruncated", row.result == nil)
		o.bool("success", row.success())
		o.string("tool", row.tool)
		o.close()
	}
	o.b = append(o.b, ']')
	o.intOrNull("stoppedAt", b.stoppedAt)
	o.int("succeeded", len(b.rows)-b.failed)
	o.bool("truncated", b.truncated > 0)
	o.int("truncatedBytes", b.bytes)
	o.close()
	o.close()
	return o.b
}

// maxSummaryError is how much of a row's error the text half repeats.
const maxSummaryError = 200

// summary is the text half: what became of each row.
func (b *batchResult) summary() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s ran: %d succeeded, %d failed.", plural(len(b.rows), "operation"), len(b.rows)-b.failed, b.failed)
	if b.stoppedAt != nil {
		fmt.Fprintf(&s, " Stopped at operation %d.", *b.stoppedAt)
	}
	for i := range b.rows {
		row := &b.rows[i]
		fmt.Fprintf(&s, "\n%d %s: ", i, row.tool)
		if row.success() {
			s.WriteString("ok")
		} else {
			line, _, _ := strings.Cut(*row.err, "\n")
			s.WriteString("failed: " + abridged(line, maxSummaryError))
		}
		if row.result == nil {
			s.WriteString(" [result left out, too large]")
		}
	}
	if b.truncated > 0 {
		fmt.Fprintf(&s, "\n[%s of results left out; call these tools alone]", plural(b.bytes, "byte"))
	}
	return s.String()
}
