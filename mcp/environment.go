package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"tmux-mcpd/controlmode"
)

type hookArgs struct {
	sessionArgs
	Name   *string `arg:"name"`
	Target *string `arg:"target"`
	Scope  *string `arg:"scope"`
}

func showHooks(ctx context.Context, c *call, a hookArgs) (*toolResult, error) {
	commands, err := c.hookCommands(ctx, a)
	if err != nil {
		return nil, err
	}
	bodies, err := c.ask(ctx, commands...)
	if err != nil {
		return nil, err
	}
	unset := 0
	var all []entry
	for line := range strings.SplitSeq(strings.Join(bodies, ""), "\n") {
		name, command, set := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "[")
		switch {
		case name == "" || a.Name != nil && *a.Name != name:
		case !set:
			unset++
		case len(all) > 0 && all[len(all)-1].key == name:
			joined := *all[len(all)-1].value + "\n" + command
			all[len(all)-1].value = &joined
		default:
			all = append(all, entry{name, &command})
		}
	}
	return c.entries("hooks", "hooks are set", all, func(o *object) { o.int("unset", unset) }), nil
}

// hookCommands are the listings to read: the global hooks are in two tables,
// of sessions and of windows.
func (c *call) hookCommands(ctx context.Context, a hookArgs) ([]controlmode.Command, error) {
	_, bySession := a.asked()
	scope := scopeGlobal
	if a.Scope != nil {
		scope = *a.Scope
	}
	if bySession {
		id, err := c.sessionID(ctx, a.sessionArgs)
		if err != nil {
			return nil, err
		}
		return []controlmode.Command{controlmode.Cmd("show-hooks", "-t", id)}, nil
	}
	if scope == scopeGlobal || scope == scopeServer || scope == scopeGlobalSession || scope == scopeGlobalWindow {
		if err := c.beyond("the hooks of all sessions"); err != nil {
			return nil, err
		}
	}
	if scope == scopeGlobal || scope == scopeServer {
		return []controlmode.Command{controlmode.Cmd("show-hooks", "-g"), controlmode.Cmd("show-hooks", "-gw")}, nil
	}
	flags, err := c.scopeFlags(ctx, scope, a.Target)
	if err != nil {
		return nil, err
	}
	return []controlmode.Command{controlmode.Cmd("show-hooks", flags...)}, nil
}

// entry is one entry of a map answer; a nil value is null.
type entry struct {
	key   string
	value *string
}

// append appends the entry to a JSON object, and gives its line of text.
func (e *entry) append(dst []byte) (json []byte, line string) {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendQuoted(dst, clean(e.key)), ':')
	if e.value == nil {
		return append(dst, "null"...), inline(e.key) + " is removed\n"
	}
	return appendQuoted(dst, clean(*e.value)), inline(e.key) + "=" + inline(*e.value) + "\n"
}

// entries makes the answer of a tool that shows a map: entries from the head
// while both halves and the lines are within their limits. more writes further
// members.
func (c *call) entries(name, what string, all []entry, more func(*object)) *toolResult {
	const around = 256 // what the answer has around the map
	m := []byte{'{'}
	var text []byte
	shown := 0
	for i := range all {
		longer, line := all[i].append(m)
		if shown == c.sel.limits.lines || len(longer) > viewCeiling-around || len(text)+len(line) > viewCeiling {
			break
		}
		m, text = longer, append(text, line...)
		shown++
	}
	m = append(m, '}')
	omitted := len(all) - shown
	var o object
	o.open()
	o.bool("complete", omitted == 0)
	o.raw(name, m)
	o.int("omittedEntries", omitted)
	more(&o)
	o.close()
	switch {
	case len(all) == 0:
		text = fmt.Appendf(text, "No %s.", what)
	case omitted > 0:
		text = fmt.Appendf(text, "[%d more not shown]", omitted)
	default:
		text = text[:len(text)-1]
	}
	return &toolResult{Text: string(text), Structured: o.b}
}

func showEnvironment(ctx context.Context, c *call, a sessionArgs) (*toolResult, error) {
	scope := []string{"-s", "-g"}
	if _, ok := a.asked(); ok {
		id, err := c.sessionID(ctx, a)
		if err != nil {
			return nil, err
		}
		scope = []string{"-s", "-t", id}
	} else if err := c.beyond("the environment of all sessions"); err != nil {
		return nil, err
	}
	bodies, err := c.ask(ctx, controlmode.Cmd("show-environment", scope...))
	if err != nil {
		return nil, err
	}
	return c.entries("environment", "variables", shellEnvironment(bodies[0]), func(*object) {}), nil
}

// shellEnvironment reads show-environment -s: NAME="value"; export NAME; with
// $, `, " and \ escaped in the value, and unset NAME; for a removed one. The
// plain form cannot be read: a value may hold newlines.
func shellEnvironment(text string) []entry {
	var all []entry
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "unset "); ok {
			if name, after, ok := strings.Cut(rest, ";\n"); ok && !strings.Contains(name, "=") {
				all, text = append(all, entry{key: name}), after
				continue
			}
		}
		name, rest, ok := strings.Cut(text, `="`)
		if !ok {
			return all
		}
		value, rest := shellValue(rest)
		_, text, _ = strings.Cut(rest, "\n")
		all = append(all, entry{name, &value})
	}
	return all
}

// shellValue reads up to the closing quote.
func shellValue(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

type variableArgs struct {
	Names  []string `arg:"names"`
	PaneID *string  `arg:"paneId"`
}

// noPane is an id that tmux, which counts from 0, never gives.
const noPane = "%4294967295"

func tmuxVariables(ctx context.Context, c *call, a variableArgs) (*toolResult, error) {
	// Without a target tmux would choose a pane, and whose it is depends on who is
	// attached. A pane that cannot exist has no variables, and those of the
	// server are the same (display-message does not mind, 3.2a to 3.8).
	flags := []string{"-p", "-t", noPane}
	if a.PaneID != nil {
		_, p, err := c.pane(ctx, *a.PaneID)
		if err != nil {
			return nil, err
		}
		flags[2] = p.ID.String()
		if c.policy.restricted() {
			// tmux would choose a session of the window's by itself.
			flags[2] = fmt.Sprintf("%s:%s.%s", p.Links[0].Session, p.Window, p.ID)
		}
	}
	if err := c.mayTell(a.Names, a.PaneID != nil); err != nil {
		return nil, err
	}
	commands := make([]controlmode.Command, len(a.Names))
	for i, name := range a.Names {
		commands[i] = controlmode.Cmd("display-message", append(flags[:len(flags):len(flags)], "--", "#{"+name+"}")...)
	}
	bodies, err := c.ask(ctx, commands...)
	if err != nil {
		return nil, err
	}
	values := object{b: []byte{'{'}}
	var text []string
	seen := names{}
	for i, name := range a.Names {
		if seen[name] {
			continue
		}
		seen[name] = true
		// Names are ASCII words, so they are keys as they are.
		value := tail(c.redactText(clean(strings.TrimSuffix(bodies[i], "\n"))), stringBudget/len(a.Names))
		values.string(name, value)
		text = append(text, name+"="+cmp.Or(inline(value), "(empty)"))
	}
	values.close()
	var o object
	o.open()
	o.raw("values", values.b)
	o.close()
	return &toolResult{Text: strings.Join(text, "\n"), Structured: o.b}, nil
}
