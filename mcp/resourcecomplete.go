package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tmux-mcpd/state"
)

// maxCompletions is the most values that a completion may give (MCP).
const maxCompletions = 100

// maxCompleted bounds what is completed, in bytes.
const maxCompleted = 1000

// completion is one object that a variable may stand for.
type completion struct {
	id    string // with its sigil
	name  string // what may stand for it as well, "" for nothing
	words string // what else it is found by
	rank  int
}

// complete implements resourceful: it completes the variables of templates. What
// is typed is looked for in ids, names, places and commands as the caller may
// see them; the values are ids, and the names of sessions.
func (t *table) complete(ctx context.Context, caller *Caller, p *sdk.CompleteParams) (*sdk.CompletionResultDetails, error) {
	_, sel, err := t.selectionOf(caller)
	if err != nil {
		return nil, err
	}
	r, err := t.completed(sel, p)
	if err != nil {
		return nil, err
	}
	c, end, err := t.beginResource(ctx, caller, r.tool)
	if err != nil {
		return nil, err
	}
	defer end()
	all, err := c.completions(ctx, r.variable())
	if err != nil {
		return nil, t.asProtocolError(ctx, err)
	}
	c.learn(c.sel.tools[r.tool], &toolResult{})
	values := chosen(all, head(p.Argument.Value, maxCompleted))
	found := &sdk.CompletionResultDetails{Values: values, Total: len(values)}
	if len(values) > maxCompletions {
		found.Values, found.HasMore = values[:maxCompletions], true
	}
	return found, nil
}

// completed is the resource whose variable is to be completed.
func (t *table) completed(sel *selection, p *sdk.CompleteParams) (*resource, error) {
	var known []string
	for _, r := range kindsFor(sel) {
		if r.variable() == "" {
			continue
		}
		known = append(known, r.template())
		if p.Ref.Type == "ref/resource" && p.Ref.URI == r.template() {
			if p.Argument.Name == r.variable() {
				return r, nil
			}
			known = []string{r.template()}
			break
		}
	}
	return nil, &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: "only the variables of resource templates can be completed: " + strings.Join(known, ", "),
	}
}

// completions are all objects that a variable may stand for.
func (c *call) completions(ctx context.Context, variable string) ([]completion, error) {
	tables := state.Panes
	switch variable {
	case varSession:
		tables = state.Sessions
	case varWindow:
		tables = state.Windows
	}
	m, err := c.model(ctx, tables)
	if err != nil {
		return nil, err
	}
	var all []completion
	switch variable {
	case varSession:
		for _, s := range m.Sessions {
			one := completion{id: s.ID.String(), words: c.shown(s.Name)}
			if _, number := idOf('$', s.Name); !number && one.words == s.Name && utf8.ValidString(s.Name) && len(s.Name) <= maxCompleted {
				one.name = s.Name
			}
			all = append(all, one)
		}
	case varWindow:
		for _, w := range m.Windows {
			words := w.Name
			for _, l := range w.Links {
				words += fmt.Sprintf("\n%s:%d", l.SessionName, l.Index)
			}
			all = append(all, completion{id: w.ID.String(), words: c.shown(words)})
		}
	default:
		for _, p := range m.Panes {
			words := p.Command + "\n" + p.Title + "\n" + p.WindowName
			for _, l := range p.Links {
				words += fmt.Sprintf("\n%s:%d.%d", l.SessionName, l.Index, p.Index)
			}
			all = append(all, completion{id: p.ID.String(), words: c.shown(words)})
		}
	}
	return all, nil
}

// shown is a text as the caller may see it: nobody finds out by typing what is
// taken out of everything else.
func (c *call) shown(text string) string {
	if r := c.policy.redact; r != nil {
		text, _ = r.text(text)
	}
	return text
}

// Ranks of completions.
const (
	rankID = iota
	rankBegins
	rankHas
	rankNone
)

// chosen are the values for what is typed, the best first: ids that begin so,
// then what has a word that begins so, then the rest that has it anywhere.
// Numbers are completed as numbers, ids as ids.
func chosen(all []completion, typed string) []string {
	low := strings.ToLower(typed)
	for i := range all {
		all[i].rank = all[i].rankOf(low)
	}
	all = slices.DeleteFunc(all, func(c completion) bool { return c.rank == rankNone })
	slices.SortStableFunc(all, func(a, b completion) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.id), len(b.id)), strings.Compare(a.id, b.id))
	})
	values := []string{}
	for _, c := range all {
		switch {
		case typed != "" && typed[0] == c.id[0]:
			values = append(values, c.id)
		case c.name != "" && c.rank != rankID:
			values = append(values, c.name)
		default:
			values = append(values, c.id[1:])
		}
	}
	return values
}

func (c *completion) rankOf(low string) int {
	words := strings.ToLower(c.words)
	switch {
	case low == "":
		return rankBegins // what it is called is shown, where it has a name
	case strings.HasPrefix(c.id, low), strings.HasPrefix(c.id[1:], low):
		return rankID
	case strings.HasPrefix(words, low), strings.Contains(words, "\n"+low):
		return rankBegins
	case strings.Contains(words, low):
		return rankHas
	}
	return rankNone
}
