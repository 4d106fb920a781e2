package mcp

import (
	"fmt"
	"slices"
	"strings"
)

// Text limits of the contract, in UTF-8 bytes.
const (
	maxRequestText = 1_000_000 // session, target, pattern, cursor
	maxInlineText  = 8_182     // text that is quoted into a tmux command line
)

// kind is the JSON type of an argument.
type kind int

const (
	kindString kind = iota
	kindInteger
	kindBoolean
	kindStrings // array of strings
	kindObjects // array of objects, checked by the tool itself
	kindObject  // object or null, checked by the tool itself; never advertised
	kindNumber  // any number
)

// param describes one property of a tool's arguments. The advertised schema and
// the strict check are both made from it, so they cannot drift apart.
type param struct {
	name     string
	kind     kind
	doc      string
	required bool
	// Strings, and the items of kindStrings. want says in words what pattern
	// asks for; match is the check.
	enum    []string
	alias   []string // values accepted beside enum, not advertised
	pattern string
	match   func(string) bool
	want    string
	minLen  int // characters
	max     int // bytes; beyond the advertised schema, 0 for maxRequestText
	// Integers: lowest value, and exclusive spelling of it (x > 0); highest value,
	// 0 for maxSafe.
	lowest   int64
	positive bool
	highest  int64
	// Arrays.
	minItems, maxItems int
	items              schema // of kindObjects
	single             bool   // one string may stand for a list of one
	// format is the value of the key x-libtmux-tmux-format.
	format string
	// hidden properties are accepted and not advertised. group names the
	// advertised property that a hidden one replaces; of one group only one
	// may be given.
	hidden bool
	group  string
	// added properties are ours: advertised by the tool, not by the batch, whose
	// variants are the contract's.
	added bool
	// nullable properties take null for "not given".
	nullable bool
	// also are further names of this property, in camelCase.
	also []string
}

// Common properties.

func paneParam(required bool) param {
	return param{
		name: "paneId", doc: "Pane id such as %1; list_panes shows them.", required: required,
		pattern: panePattern, match: isPaneID, want: "a pane id such as %1",
	}
}

func windowParam(name string, required bool) param {
	return param{
		name: name, doc: "Window id such as @1; list_windows shows them.", required: required,
		pattern: windowPattern, match: isWindowID, want: "a window id such as @1",
	}
}

// sessionParams are the advertised session argument and the two that other
// ports have in its place: one that is an id first, one that is always a name.
func sessionParams(required bool, doc string) []param {
	return []param{
		{name: "session", doc: doc, required: required, want: "a session id such as $1, or an exact session name"},
		{name: "sessionId", hidden: true, group: "session", want: "a session id such as $1"},
		{name: "sessionName", hidden: true, group: "session", want: "an exact session name"},
	}
}

func maxLinesParam() param {
	return param{
		name: "maxLines", kind: kindInteger, positive: true,
		doc: "Keep at most this many lines, counted from the end. It can lower the server's limit, never raise it.",
	}
}

func isPaneID(s string) bool    { return idText('%', s) }
func isWindowID(s string) bool  { return idText('@', s) }
func isSessionID(s string) bool { return idText('$', s) }

func idText(sigil byte, s string) bool {
	if len(s) < 2 || s[0] != sigil {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// schema is the advertised schema of the property.
func (p *param) schema() schema {
	var s schema
	switch p.kind {
	case kindInteger:
		s = schema{"type": "integer", "maximum": p.most()}
		if p.positive {
			s["exclusiveMinimum"] = 0
		} else {
			s["minimum"] = p.lowest
		}
	case kindBoolean:
		s = booleanOut()
	case kindNumber:
		s = schema{"type": "number"}
	case kindStrings:
		s = schema{"type": "array", "items": p.text(), "minItems": p.minItems, "maxItems": p.maxItems}
	case kindObjects:
		s = schema{"type": "array", "items": p.items, "minItems": p.minItems, "maxItems": p.maxItems}
	default:
		s = p.text()
	}
	s["description"] = p.doc
	if p.format != "" {
		s["x-libtmux-tmux-format"] = p.format
	}
	return s
}

// most is the highest value of an integer.
func (p *param) most() int64 {
	if p.highest > 0 {
		return p.highest
	}
	return maxSafe
}

func (p *param) text() schema {
	s := stringOut()
	if p.pattern != "" {
		s["pattern"] = p.pattern
	}
	if p.enum != nil {
		s["enum"] = p.enum
	}
	if p.minLen > 0 {
		s["minLength"] = p.minLen
	}
	return s
}

// inputSchema is the advertised schema of a tool's arguments, without $schema.
func inputSchema(params []param) schema {
	properties := schema{}
	var required []string
	for i := range params {
		p := &params[i]
		if p.hidden {
			continue
		}
		properties[p.name] = p.schema()
		if p.required {
			required = append(required, p.name)
		}
	}
	s := schema{"type": "object", "properties": properties}
	if required != nil {
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

// wants says in words what the property takes.
func (p *param) wants() string {
	what := p.want
	switch p.kind {
	case kindInteger:
		low := p.lowest
		if p.positive {
			low = 1
		}
		what = fmt.Sprintf("an integer from %d to %d", low, p.most())
	case kindBoolean:
		what = "true or false"
	case kindStrings:
		what = fmt.Sprintf("an array of %d to %d strings", p.minItems, p.maxItems)
		if p.want != "" {
			what += ", each " + p.want
		}
	case kindObjects:
		what = fmt.Sprintf("an array of %d to %d objects", p.minItems, p.maxItems)
	case kindObject:
		what = "an object"
	case kindNumber:
		what = "a number"
	default:
		switch {
		case p.enum != nil:
			what = "one of " + strings.Join(p.enum, ", ")
		case what == "" && p.minLen > 0:
			what = "a string that is not empty"
		case what == "":
			what = "a string"
		}
	}
	return what
}
