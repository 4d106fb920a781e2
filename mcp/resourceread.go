package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// resourceful is a registry that has resources besides its capabilities. Errors
// are *jsonrpc.Error, or the end of ctx.
type resourceful interface {
	// resources lists those that exist for a caller, a page at a time; next is ""
	// after the last. first is put before the first page.
	resources(ctx context.Context, c *Caller, first []*sdk.Resource, cursor string) (*sdk.ListResourcesResult, error)
	templates(c *Caller) ([]*sdk.ResourceTemplate, error)
	read(ctx context.Context, c *Caller, uri string) (*resourceText, error)
	complete(ctx context.Context, c *Caller, p *sdk.CompleteParams) (*sdk.CompletionResultDetails, error)
	// resourceFollower and listFollower tell when a resource, or which there are,
	// changes after the call. They nudge wake, which must have room for one.
	resourceFollower(ctx context.Context, c *Caller, uri string, wake chan struct{}) (changes, error)
	listFollower(c *Caller, wake chan struct{}) changes
}

var _ resourceful = (*table)(nil)

// resourcePage is how many panes a page of resources lists.
const resourcePage = 100

// maxDescription bounds a pane's directory and its title in a list, in bytes.
const maxDescription = 150

// kindsFor are the kinds of resources of a selection.
func kindsFor(sel *selection) []*resource {
	var kinds []*resource
	for i := range resources {
		if sel.tools[resources[i].tool] != nil {
			kinds = append(kinds, &resources[i])
		}
	}
	return kinds
}

// selectionOf is the policy of a caller and what it has selected.
func (t *table) selectionOf(c *Caller) (*policy, *selection, error) {
	p := t.policyOf(c)
	sel, err := p.picks.of(c)
	if err != nil {
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return p, sel, nil
}

// beginResource lets something begin that is answered as the tool's calls are.
func (t *table) beginResource(ctx context.Context, caller *Caller, tool string) (*call, func(), error) {
	p, sel, err := t.selectionOf(caller)
	if err != nil {
		return nil, nil, err
	}
	c, end, err := t.begin(caller, p, sel, sel.tools[tool], nil)
	if err != nil {
		return nil, nil, t.asProtocolError(ctx, err)
	}
	return c, end, nil
}

// asProtocolError is an error where there is no result to carry it.
func (t *table) asProtocolError(ctx context.Context, err error) error {
	res, err := t.failure(ctx, err)
	if err != nil {
		return err
	}
	return protocolError(res, "")
}

// protocolError is an answer that is an error where the protocol has no other
// place for it. uri is the resource that was asked for.
func protocolError(res *toolResult, uri string) error {
	e := &jsonrpc.Error{Code: codeRefused, Message: res.Text}
	if res.absent {
		e.Code = jsonrpc.CodeInvalidParams
		if uri != "" {
			e.Data = encodeOnce(map[string]string{"uri": uri})
		}
	}
	return e
}

// resources implements resourceful.
func (t *table) resources(ctx context.Context, caller *Caller, first []*sdk.Resource, cursor string) (*sdk.ListResourcesResult, error) {
	after, err := pageAfter(cursor)
	if err != nil {
		return nil, err
	}
	_, sel, err := t.selectionOf(caller)
	if err != nil {
		return nil, err
	}
	res := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
	if cursor == "" {
		res.Resources = append(res.Resources, first...)
	}
	panes := false
	for _, r := range kindsFor(sel) {
		panes = panes || r.content()
		if r.variable() == "" && cursor == "" {
			res.Resources = append(res.Resources, r.listed())
		}
	}
	if !panes {
		return res, nil
	}
	c, end, err := t.beginResource(ctx, caller, screenTool)
	if err != nil {
		return nil, err
	}
	defer end()
	m, err := c.model(ctx, state.Panes)
	if err != nil {
		return nil, t.asProtocolError(ctx, err)
	}
	rows := slices.SortedFunc(slices.Values(m.Panes), func(a, b *state.Pane) int { return cmp.Compare(a.ID, b.ID) })
	rows = slices.DeleteFunc(rows, func(p *state.Pane) bool { return int64(p.ID) <= after })
	if len(rows) > resourcePage {
		rows = rows[:resourcePage]
		res.NextCursor = pageCursor(rows[resourcePage-1].ID)
	}
	redactions := 0
	for _, p := range rows {
		row, n := c.listedPane(p)
		res.Resources, redactions = append(res.Resources, row), redactions+n
	}
	if redactions > 0 {
		res.Meta = sdk.Meta{metaRedacted: redactions}
	}
	c.learn(sel.tools[screenTool], &toolResult{})
	return res, nil
}

// listedPane is a pane's content as resources/list shows it: by its place and
// command, for people who pick one from a list. Secrets are taken out of whole
// texts, before they are shortened: half of one looks like nothing.
func (c *call) listedPane(p *state.Pane) (row *sdk.Resource, redactions int) {
	shown := func(text string) string {
		if r := c.policy.redact; r != nil {
			n := 0
			text, n = r.text(text)
			redactions += n
		}
		return text
	}
	place, command := p.ID.String(), shortName(shown(p.Command))
	if len(p.Links) > 0 {
		place = fmt.Sprintf("%s:%d.%d", shortName(shown(p.Links[0].SessionName)), p.Links[0].Index, p.Index)
	}
	about := fmt.Sprintf("Screen of %s, %dx%d, running %s", p.ID, p.Width, p.Height, command)
	for _, more := range []struct{ before, text, after string }{{" in ", p.Path, ""}, {", \"", p.Title, "\""}} {
		if more.text != "" {
			about += more.before + head(inline(shown(more.text)), maxDescription) + more.after
		}
	}
	return &sdk.Resource{URI: addressOf(p.ID), Name: place + " " + command, MIMEType: plainType, Description: about}, redactions
}

// A cursor of resources/list is the last pane of its page: what comes and goes
// meanwhile moves no other pane to another page.
func pageCursor(last controlmode.PaneID) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after " + last.String()))
}

// pageAfter is the pane after which a page begins, -1 for the first.
func pageAfter(cursor string) (int64, error) {
	if cursor == "" {
		return -1, nil
	}
	if b, err := base64.RawURLEncoding.DecodeString(cursor); err == nil {
		if last, ok := strings.CutPrefix(string(b), "after "); ok {
			if id, err := controlmode.ParsePaneID(last); err == nil {
				return int64(id), nil
			}
		}
	}
	return 0, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this cursor is not one that resources/list returned: begin without one"}
}

// templates implements resourceful.
func (t *table) templates(caller *Caller) ([]*sdk.ResourceTemplate, error) {
	_, sel, err := t.selectionOf(caller)
	if err != nil {
		return nil, err
	}
	list := []*sdk.ResourceTemplate{}
	for _, r := range kindsFor(sel) {
		if r.variable() != "" {
			list = append(list, r.listedTemplate())
		}
	}
	return list, nil
}

// address finds the resource that a caller names.
func (t *table) address(sel *selection, uri string) (address, error) {
	a, ok := parseAddress(uri)
	if ok && sel.tools[a.tool] != nil {
		return a, nil
	}
	var known []string
	for _, r := range kindsFor(sel) {
		known = append(known, r.template())
	}
	text := "there is no resource " + quote(uri) + " on this connection"
	if ok {
		text += ": it is what the tool " + a.tool + " tells, which is not selected"
	}
	return a, protocolError(&toolResult{
		Text: text + "\n\nResources: " + strings.Join(append(known, capabilitiesURI), ", "), absent: true,
	}, uri)
}

// openResource begins a call for what the address names; end ends it.
func (t *table) openResource(ctx context.Context, caller *Caller, uri string) (c *call, a address, end func(), err error) {
	_, sel, err := t.selectionOf(caller)
	if err != nil {
		return nil, a, nil, err
	}
	if a, err = t.address(sel, uri); err != nil {
		return nil, a, nil, err
	}
	c, end, err = t.beginResource(ctx, caller, a.tool)
	return c, a, end, err
}

// read implements resourceful.
func (t *table) read(ctx context.Context, caller *Caller, uri string) (*resourceText, error) {
	c, a, end, err := t.openResource(ctx, caller, uri)
	if err != nil {
		return nil, err
	}
	defer end()
	row := *c.sel.tools[a.tool]
	row.run = func(ctx context.Context, c *call, _ any) (*toolResult, error) { return a.read(ctx, c, a.id) }
	res, err := c.answer(ctx, &row, nil)
	if err != nil {
		return nil, err
	}
	if res.IsError {
		return nil, protocolError(res, uri)
	}
	c.learn(&row, res)
	r := &resourceText{address: a, uri: uri}
	return r, r.contents(res)
}
