package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder checks the arguments of one tool. It is made once and then only read.
type decoder struct {
	params []param
	names  map[string]int // every accepted spelling to an index of params
}

func newDecoder(params []param) *decoder {
	d := &decoder{params: params, names: map[string]int{}}
	for i, p := range params {
		for _, name := range append([]string{p.name}, p.also...) {
			d.names[name] = i
			d.names[snake(name)] = i
		}
	}
	return d
}

// snake spells a camelCase name in snake_case.
func snake(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			b = append(b, '_')
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// maxComplaints is how many faults of one call are named.
const maxComplaints = 5

// decode checks arguments strictly and returns a value per property: string,
// int64, bool, []string or []json.RawMessage, nil for one that was not given.
// The error is a *problem that names every fault, so that one more call mends
// them all.
func (d *decoder) decode(args json.RawMessage) ([]any, error) {
	values := make([]any, len(d.params))
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	err := eachMember(args, func(name string, raw json.RawMessage) {
		i, ok := d.names[name]
		if !ok {
			faults = append(faults, d.unknown(name))
			return
		}
		p := &d.params[i]
		if p.nullable && string(raw) == "null" {
			return
		}
		if values[i] != nil {
			fault("%s is given twice (as %q); give it once", p.name, name)
			return
		}
		v, bad := p.value(raw)
		if bad != "" {
			fault("%s must be %s, not %s", p.label(name), p.wants(), bad)
			v = bad // given, so not missing too
		}
		values[i] = v
	})
	if err != nil {
		return nil, &problem{reason: err.Error()}
	}
	faults = append(faults, d.missing(values)...)
	if len(faults) == 0 {
		return values, nil
	}
	if more := len(faults) - maxComplaints; more > 0 {
		faults = append(faults[:maxComplaints], fmt.Sprintf("and %d more faults", more))
	}
	return nil, &problem{reason: "invalid arguments: " + strings.Join(faults, "; "), hint: d.takes()}
}

// label is the property's own name, with the caller's spelling where that helps.
func (p *param) label(given string) string {
	if given == p.name || given == snake(p.name) {
		return given
	}
	return fmt.Sprintf("%s (%s)", given, p.name)
}

// missing names required properties that are absent and groups given twice.
func (d *decoder) missing(values []any) []string {
	var faults []string
	for i := range d.params {
		p := &d.params[i]
		if p.hidden {
			continue
		}
		given := 0
		for j := range d.params {
			if (j == i || d.params[j].group == p.name) && values[j] != nil {
				given++
			}
		}
		switch {
		case given == 0 && p.required:
			faults = append(faults, fmt.Sprintf("%s is missing: it must be %s", p.name, p.wants()))
		case given > 1:
			faults = append(faults, fmt.Sprintf("%s is named in more than one way; give only one of them", p.name))
		}
	}
	return faults
}

func (d *decoder) unknown(name string) string {
	s := fmt.Sprintf("there is no property %s", quote(name))
	if near := nearestName(name, slices.Collect(d.spellings())); near != "" {
		s += fmt.Sprintf("; did you mean %s?", d.params[d.names[near]].name)
	}
	return s
}

func (d *decoder) spellings() func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range d.names {
			if !yield(name) {
				return
			}
		}
	}
}

// takes says what the tool accepts, for the end of an error.
func (d *decoder) takes() string {
	var names []string
	for i := range d.params {
		p := &d.params[i]
		if p.hidden {
			continue
		}
		name := p.name
		if p.required {
			name += " (required)"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "This tool takes no arguments."
	}
	slices.Sort(names)
	return "This tool takes: " + strings.Join(names, ", ") + "."
}

// value checks one value. bad says what was given instead, "" if it is right.
func (p *param) value(raw json.RawMessage) (v any, bad string) {
	switch p.kind {
	case kindInteger:
		return p.integer(raw)
	case kindBoolean:
		switch string(raw) {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, describe(raw)
	case kindNumber:
		return number(raw)
	case kindStrings:
		return p.strings(raw)
	case kindObjects:
		var list []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
			return nil, describe(raw)
		}
		return list, p.count(len(list))
	case kindObject:
		if raw[0] != '{' && raw[0] != 'n' {
			return nil, describe(raw)
		}
		return raw, ""
	}
	if raw[0] != '"' {
		return nil, describe(raw)
	}
	return p.stringValue(raw)
}

func (p *param) stringValue(raw json.RawMessage) (any, string) {
	var s string
	if n := plainString(raw); n > 0 && n == len(raw) {
		s = string(raw[1 : n-1])
	} else if json.Unmarshal(raw, &s) != nil {
		return nil, describe(raw)
	}
	most := p.max
	if most == 0 {
		most = maxRequestText
	}
	switch {
	case len(s) > most:
		return nil, fmt.Sprintf("one of %d bytes; the limit is %d", len(s), most)
	case p.enum != nil && !slices.Contains(p.enum, s) && !slices.Contains(p.alias, s):
		return nil, quote(s)
	case p.match != nil && !p.match(s):
		return nil, quote(s)
	case p.minLen > 0 && utf8.RuneCountInString(s) < p.minLen:
		return nil, "an empty string"
	}
	return s, ""
}

func (p *param) strings(raw json.RawMessage) (any, string) {
	if p.single && raw[0] == '"' {
		s, bad := p.stringValue(raw)
		if bad != "" {
			return nil, bad
		}
		return []string{s.(string)}, ""
	}
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil, describe(raw)
	}
	if bad := p.count(len(list)); bad != "" {
		return nil, bad
	}
	all := make([]string, len(list))
	for i, item := range list {
		if item[0] != '"' {
			return nil, "an array with " + describe(item)
		}
		s, bad := p.stringValue(item)
		if bad != "" {
			return nil, "an array with " + bad
		}
		all[i] = s.(string)
	}
	return all, ""
}

func (p *param) count(n int) string {
	if n < p.minItems || n > p.maxItems {
		return fmt.Sprintf("%d of them", n)
	}
	return ""
}

// integer accepts any spelling of a whole number, as JSON schema does: 3, 3.0, 3e0.
func (p *param) integer(raw json.RawMessage) (any, string) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return nil, describe(raw)
	}
	low := p.lowest
	if p.positive {
		low = 1
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
			return nil, describe(raw)
		}
		n = int64(f)
	}
	if n < low || n > p.most() {
		return nil, describe(raw)
	}
	return n, ""
}

func number(raw json.RawMessage) (any, string) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return nil, describe(raw)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, describe(raw)
	}
	return f, ""
}

// describe names a JSON value for an error: its type, and itself if it is short.
func describe(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil && len(s) <= 40 {
			return "the string " + quote(s)
		}
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null (leave the property out instead)"
	}
	if len(raw) > 40 {
		return "a number"
	}
	return string(raw)
}

// eachMember calls f for the members of a JSON object in order, repeated names
// included. Missing and null arguments are an empty object.
func eachMember(args json.RawMessage, f func(name string, raw json.RawMessage)) error {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return nil
	}
	if args[0] != '{' {
		return fmt.Errorf("arguments must be an object, not %s", describe(args))
	}
	var few [8]member
	if members, ok := plainMembers(args, few[:0]); ok {
		for _, m := range members {
			f(m.name, m.raw)
		}
		return nil
	}
	return anyMember(args, f)
}

// anyMember is eachMember for an object of any content.
func anyMember(args json.RawMessage, f func(name string, raw json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(args))
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("arguments are not valid JSON: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("arguments are not valid JSON: %w", err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("arguments are not valid JSON: %w", err)
		}
		f(name.(string), raw)
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("arguments are not valid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("arguments are not valid JSON: text after the object")
	}
	return nil
}
