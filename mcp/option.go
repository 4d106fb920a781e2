package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// The tools that read tmux's configuration: options, hooks, the environment
// that new processes get, and format variables.
func optionTools() []*tool {
	config := func(name, title, doc string, classes []string, params []param, out map[string]schema) tool {
		return tool{
			name: name, title: title, toolset: inspect, doc: doc, params: params, output: output(out),
			reach: reachNone, effects: []string{effectObserve}, classes: classes,
		}
	}
	variables := config("get_tmux_variables", "Read tmux variables",
		"Reads tmux format variables by name. With paneId they are those of that pane; without it only variables of "+
			"the whole server mean anything.",
		[]string{classMetadata, classConfiguration},
		[]param{
			{
				name: "names", kind: kindStrings, required: true, minItems: 1, maxItems: 32, single: true,
				pattern: variablePattern, match: isVariable, want: "a variable name such as pane_pid",
				format: "validated-variable-name", doc: "Bare variable names; no #{...} syntax.",
			},
			withNames(paneParam(false), "pane"),
		},
		map[string]schema{"values": mapOut(stringOut())})
	variables.literal = map[string]string{"names": "validated-variable-name"}
	return []*tool{
		define(config("show_option", "Show an option",
			"Shows the value that a tmux option has in one scope, without inherited values; null if it is not set there.",
			[]string{classMetadata, classConfiguration},
			[]param{
				{name: "name", required: true, max: maxInlineText, doc: "Option name, for example status-left."},
				{name: "scope", enum: scopes, alias: []string{scopeGlobal}, doc: "Where to look. Default server."},
				{name: "target", doc: "Session id or name, window id or pane id; needed for the scopes session, window and pane."},
				{name: "effective", kind: kindBoolean, hidden: true},
			},
			map[string]schema{"name": stringOut(), "scope": stringOut(), "value": orNull(stringOut())}), showOption),
		define(config("show_hooks", "Show hooks",
			"Shows the commands that tmux runs by itself on events.", []string{classConfiguration},
			append(sessionParams(false, "A session's own hooks: an id such as $1, or an exact name. Leave it out for the global ones."),
				param{name: "name", hidden: true}, param{name: "target", hidden: true},
				param{name: "scope", hidden: true, enum: append([]string{scopeGlobal}, scopes...)}),
			map[string]schema{
				"complete": booleanOut(), "hooks": mapOut(stringOut()), "omittedEntries": integerOut(),
				"unset": integerOut().with("description", "Hooks that carry no command."),
			}), showHooks),
		define(config("show_environment", "Show the environment",
			"Shows the variables that new processes in tmux get; null marks one that is removed.", []string{classEnvironment},
			sessionParams(false, "A session's own environment: an id such as $1, or an exact name. Leave it out for the global one."),
			map[string]schema{
				"complete": booleanOut(), "environment": mapOut(orNull(stringOut())),
				"omittedEntries": integerOut(),
			}), showEnvironment),
		define(variables, tmuxVariables),
	}
}

func withNames(p param, also ...string) param {
	p.also = also
	return p
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

// Scopes of options. scopeGlobal is the Java port's word for the global table
// that the option belongs to.
const (
	scopeServer        = "server"
	scopeSession       = "session"
	scopeGlobalSession = "global-session"
	scopeWindow        = "window"
	scopeGlobalWindow  = "global-window"
	scopePane          = "pane"
	scopeGlobal        = "global"
)

var scopes = []string{scopeServer, scopeSession, scopeGlobalSession, scopeWindow, scopeGlobalWindow, scopePane}

// scopeFlags are the flags of show-options and show-hooks for a scope.
func (c *call) scopeFlags(ctx context.Context, scope string, target *string) ([]string, error) {
	switch scope {
	case scopeServer:
		return []string{"-s"}, nil
	case scopeGlobalSession, scopeGlobal:
		return []string{"-g"}, nil
	case scopeGlobalWindow:
		return []string{"-gw"}, nil
	}
	if target == nil {
		return nil, &problem{
			reason: "target is missing: the scope " + scope + " needs one",
			hint:   "Give a session id or name, a window id or a pane id, as the scope asks.",
		}
	}
	switch scope {
	case scopeWindow:
		m, err := c.model(ctx, state.Windows)
		if err != nil {
			return nil, err
		}
		w, err := c.window(ctx, m, *target)
		if err != nil {
			return nil, err
		}
		return []string{"-w", "-t", w.ID.String()}, nil
	case scopePane:
		_, p, err := c.pane(ctx, *target)
		if err != nil {
			return nil, err
		}
		return []string{"-p", "-t", p.ID.String()}, nil
	}
	id, err := c.sessionID(ctx, sessionArgs{Session: target})
	if err != nil {
		return nil, err
	}
	return []string{"-t", id}, nil
}

// sessionID resolves a session in our own model: a name is never a target.
func (c *call) sessionID(ctx context.Context, a sessionArgs) (string, error) {
	m, err := c.model(ctx, state.Sessions)
	if err != nil {
		return "", err
	}
	s, err := c.session(ctx, m, a)
	if err != nil {
		return "", err
	}
	return s.ID.String(), nil
}

// askTries is how often a question is asked again because the session that the
// connection was attached to was killed meanwhile.
const askTries = 3

// ask runs commands that only read, at one instant, and gives the bodies of
// their answers.
func (c *call) ask(ctx context.Context, commands ...controlmode.Command) ([]string, error) {
	req := controlmode.Request{Commands: commands, Fence: true}
	var reply controlmode.Reply
	var err error
	for range askTries {
		reply, err = c.table.mirror.Do(ctx, req)
		if !errors.Is(err, controlmode.ErrClosed) || errors.Is(err, controlmode.ErrTimeout) {
			break
		}
	}
	if err == nil {
		err = reply.Err(req)
	}
	if err != nil {
		return nil, err
	}
	bodies := make([]string, len(commands))
	for i := range bodies {
		bodies[i] = string(reply.Blocks[i].Body)
	}
	return bodies, nil
}

type optionArgs struct {
	Name      string  `arg:"name"`
	Scope     *string `arg:"scope"`
	Target    *string `arg:"target"`
	Effective bool    `arg:"effective"`
}

func showOption(ctx context.Context, c *call, a optionArgs) (*toolResult, error) {
	scope := scopeServer
	if a.Scope != nil {
		scope = *a.Scope
	}
	flags, err := c.scopeFlags(ctx, scope, a.Target)
	if err != nil {
		return nil, err
	}
	value, err := c.optionInSight(ctx, scope, flags, a)
	if err != nil {
		return nil, err
	}
	var o object
	o.open()
	o.string("name", clean(a.Name))
	o.string("scope", scope)
	text := fmt.Sprintf("%s is not set in scope %s", inline(a.Name), scope)
	if value != nil {
		v := tail(c.redactText(clean(*value)), stringBudget)
		value = &v
		text = inline(a.Name) + " = " + v
	}
	o.stringOrNull("value", value)
	o.close()
	return &toolResult{Text: text, Structured: o.b}, nil
}

// optionInSight reads the option that was asked for. Where only some sessions
// exist for the caller, a value of the server's or a global table is shown only
// if it cannot tell of others.
func (c *call) optionInSight(ctx context.Context, scope string, flags []string, a optionArgs) (*string, error) {
	global := scope == scopeServer || scope == scopeGlobal || scope == scopeGlobalSession || scope == scopeGlobalWindow
	effective := flags
	if a.Effective {
		effective = append(flags[:len(flags):len(flags)], "-A")
	}
	value, err := c.option(ctx, scope, effective, a.Name)
	if err != nil || value == nil || !c.policy.restricted() || !global && !a.Effective {
		return value, err
	}
	if !global {
		own, err := c.option(ctx, scope, flags, a.Name)
		if err != nil || own != nil {
			return own, err
		}
	}
	if tellsNothing(a.Name, *value) {
		return value, nil
	}
	return nil, c.beyond("the value of " + quote(a.Name) + " for all sessions")
}

// tellsNothing tells whether the value of an option is a number or a switch.
// What users have named themselves can count anything.
func tellsNothing(name, value string) bool {
	if strings.HasPrefix(name, "@") {
		return false
	}
	_, err := strconv.ParseUint(value, 10, 64)
	return err == nil || value == "on" || value == "off"
}

// option reads one option in one scope. Given a name, tmux looks where options
// of that name belong and ignores the scope's flags (options_scope_from_name),
// and takes a unique start of a name for the name. So the table of the scope is
// listed in the same line, with inherited entries, and the name must be in it.
// User options (@name) may be anywhere.
func (c *call) option(ctx context.Context, scope string, flags []string, name string) (*string, error) {
	value := controlmode.Cmd("show-options", append(append([]string{"-qv"}, flags...), "--", controlmode.LiteralFormat(name))...)
	list := controlmode.Cmd("show-options", append([]string{"-A"}, flags...)...)
	bodies, err := c.ask(ctx, list, value)
	if err != nil && !strings.HasPrefix(name, "@") {
		if p := c.unlisted(ctx, scope, flags, name); p != nil {
			return nil, p
		}
	}
	if err != nil {
		return nil, err
	}
	if base, _, _ := strings.Cut(name, "["); !strings.HasPrefix(name, "@") && scope != scopeGlobal {
		if known := optionNames(bodies[0]); !known[base] {
			return nil, notAnOption(scope, name, known)
		}
	}
	text, ok := strings.CutSuffix(bodies[1], "\n")
	if !ok {
		return nil, nil // no line: not set. An empty value is an empty line.
	}
	return &text, nil
}

// unlisted explains a name that tmux refused.
func (c *call) unlisted(ctx context.Context, scope string, flags []string, name string) error {
	bodies, err := c.ask(ctx, controlmode.Cmd("show-options", append([]string{"-A"}, flags...)...))
	if err != nil {
		return err
	}
	base, _, _ := strings.Cut(name, "[")
	if known := optionNames(bodies[0]); !known[base] {
		return notAnOption(scope, name, known)
	}
	return nil
}

// optionNames reads the names of a listing: "name value", "name[0] value", and
// "name* value" for an inherited one.
func optionNames(listing string) names {
	all := names{}
	for line := range strings.SplitSeq(listing, "\n") {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "[")
		if name = strings.TrimSuffix(name, "*"); name != "" {
			all[name] = true
		}
	}
	return all
}

func notAnOption(scope, name string, known names) error {
	p := &problem{
		reason: fmt.Sprintf("tmux has no option %s in scope %s", quote(name), scope),
		hint:   "Options belong to one of: server, session (and global-session), window (and global-window), pane.",
	}
	all := make([]string, 0, len(known))
	for k := range known {
		if !strings.HasPrefix(k, "@") { // a user's own name, and maybe nobody else's to know
			all = append(all, k)
		}
	}
	if near := nearestName(name, all); near != "" {
		p.reason += "; did you mean " + near + "?"
	}
	return p
}
