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

// maxTyped is how many bytes one send_keys or one row of a batch may type.
const maxTyped = 1 << 20

// maxEnterDelay is the longest time between a text and Enter.
const maxEnterDelay = 10 * time.Second

// The tools that type.
func inputTools() []*tool {
	typing := func(name, title, doc string, params []param, out schema) tool {
		return tool{
			name: name, title: title, toolset: execute, doc: doc, params: params, output: out,
			reach: reachInput, effects: []string{effectObserve, effectChange}, classes: []string{classMetadata},
		}
	}
	return []*tool{
		define(typing("send_keys", "Send keys",
			"Types text into a pane, or presses a key. One call is never mixed with another's, and is never repeated. The "+
				"answer's _meta has a cursor from before the input: read on from there with capture_since.",
			[]param{
				paneParam(true),
				{
					name: "keys", required: true, max: maxTyped, want: "a string",
					doc: "One key, or text that is typed as it is. Keys are " + keyList + ". What only looks like a key is refused.",
				},
				{name: "enter", kind: kindBoolean, doc: "Press Enter afterwards. Default true after text, false after a key."},
				{name: "literal", kind: kindBoolean, doc: "Type keys as text whatever they are. Default false."},
				forceParam(),
				{
					name: "suppressHistory", kind: kindBoolean, added: true,
					doc: "Type a space first, so that shells set up for it keep the line out of their history. Default false.",
				},
				{
					name: "enterDelayMs", kind: kindInteger, added: true,
					doc: "Wait this long, at most 10 s, between text and Enter, for programs that take an Enter that comes at once for " +
						"part of the text. The answer tells what the pane printed meanwhile. Default 0.",
				},
				holdParam(),
			},
			output(map[string]schema{
				"attended": booleanOut().with("description", "A person was looking at the pane: always false, it is refused then."),
				"paneId":   patternOut(panePattern),
				"resolvedPaneIds": arrayOut(patternOut(panePattern)).with("description",
					"The pane and those synchronised with it as of the last check; no receipt."),
				"sent": booleanOut(),
			})), sendKeys),
		pasteTool(),
		sendBatchTool(),
	}
}

func forceParam() param {
	return param{
		name: "force", kind: kindBoolean,
		doc: "Allow the pane that the caller itself runs in. It allows nothing else. Default false.",
	}
}

type sendKeysArgs struct {
	PaneID          string `arg:"paneId"`
	Keys            string `arg:"keys"`
	Enter           *bool  `arg:"enter"`
	Literal         bool   `arg:"literal"`
	Force           bool   `arg:"force"`
	SuppressHistory bool   `arg:"suppressHistory"`
	EnterDelayMs    *int64 `arg:"enterDelayMs"`
	WaitReadyMs     int64  `arg:"waitReadyMs"`
}

func sendKeys(ctx context.Context, c *call, a sendKeysArgs) (*toolResult, error) {
	id, err := c.paneID(ctx, a.PaneID)
	if err != nil {
		return nil, err
	}
	in, err := newInput(id, a.Keys, a.Literal, a.SuppressHistory, a.Enter)
	if err != nil {
		return nil, err
	}
	in.force = a.Force
	if a.EnterDelayMs != nil {
		in.delay = min(c.wait(*a.EnterDelayMs), maxEnterDelay)
	}
	if err := c.hold(ctx, id, a.WaitReadyMs, readsInput); err != nil {
		return nil, c.missing(ctx, err, a.PaneID)
	}
	t, err := c.send(ctx, in)
	if err != nil {
		return nil, c.missing(ctx, t.lost(err), a.PaneID)
	}
	var o object
	o.open()
	o.bool("attended", false)
	o.string("paneId", id.String())
	o.array("resolvedPaneIds", quotedIDs(t.panes))
	o.bool("sent", true)
	o.close()
	return &toolResult{Structured: o.b, Text: t.remarks().over(t.report()), Meta: t.meta()}, nil
}

func quotedIDs(ids []controlmode.PaneID) [][]byte {
	all := make([][]byte, len(ids))
	for i, id := range ids {
		all[i] = appendQuoted(nil, id.String())
	}
	return all
}

// report says what was done.
func (t *typed) report() string {
	var b strings.Builder
	switch {
	case t.key != "":
		fmt.Fprintf(&b, "Pressed the key %s", t.key)
	case t.text != "":
		fmt.Fprintf(&b, "Typed %s of text", plural(len(t.text), "byte"))
	case t.enter:
		b.WriteString("Pressed Enter")
	default:
		b.WriteString("Sent nothing, as keys is empty and enter is false")
	}
	switch {
	case t.key == "" && t.text == "":
	case t.enter:
		b.WriteString(" and then Enter")
	default:
		b.WriteString(", and no Enter")
	}
	fmt.Fprintf(&b, " in pane %s.", t.pane)
	if t.cursor != nil {
		fmt.Fprintf(&b, "\n[cursor %s]", t.cursor)
	}
	return b.String()
}

// remarks are what the caller should know besides.
func (t *typed) remarks() notices {
	var n notices
	n.add(len(t.panes) > 1, "synchronize-panes is on: %s are sent the same", idList(t.panes))
	n.add(t.suppressed, "a space was typed first")
	lines := strings.Count(t.text, "\n") + strings.Count(strings.ReplaceAll(t.text, "\r\n", "\n"), "\r")
	n.count(lines, "the text holds %s: a shell runs each line as it comes; paste_text keeps them together where the program can", "line break")
	n.add(t.line, "not safe: a line is longer than %d bytes and the terminal is in line mode, which cuts long lines in silence "+
		"(4096 bytes on Linux, 1024 on macOS); check what arrived, or use a file or a here-document", longLine)
	switch t.echo {
	case echoNothing:
		n.add(true, "before Enter the pane had printed nothing in answer to the text")
	case echoText:
		n.add(true, "before Enter the pane had shown the text")
	case echoOther:
		n.add(true, "before Enter the pane had printed something, but not the text")
	case echoUnknown:
		n.add(true, "it is unknown what the pane printed before Enter")
	}
	return n
}

func idList(ids []controlmode.PaneID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ", ")
}

// metaInput tells in an answer's metadata what was typed.
const metaInput = "tmux-mcpd/input"

func (t *typed) meta() map[string]any {
	in := map[string]any{"as": "text", "bytes": t.bytes, "enter": t.enter, "lineTooLong": t.line}
	if t.key != "" {
		in["as"], in["key"] = "key", t.key
	}
	if t.echo != "" {
		in["shownBeforeEnter"] = t.echo
	}
	return map[string]any{metaCursor: cursorOrNil(t.cursor), metaInput: in}
}

func cursorOrNil(at *state.Cursor) any {
	if at == nil {
		return nil
	}
	return at.String()
}

// lost makes an error whose outcome is unknown tell where to look.
func (t *typed) lost(err error) error {
	if !errors.Is(err, state.ErrUnknown) {
		return err
	}
	what := "it was typed"
	if t.bytes > 0 {
		what = fmt.Sprintf("more than the first %d bytes were typed", t.bytes)
	}
	return &lostAnswer{cause: err, what: what, where: "at pane " + t.pane.String(), cursor: t.cursor}
}
