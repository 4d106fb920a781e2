package mcp

import (
	"encoding/json"
	"unicode/utf8"
)

// member is one property of an object.
type member struct {
	name string
	raw  json.RawMessage
}

// plainMembers reads an object of strings without escapes, whole numbers, true,
// false and null, which arguments mostly are, and adds its members. Whatever else
// there is, ok is false and the general reader is to be asked.
func plainMembers(object []byte, into []member) (members []member, ok bool) {
	b := skipBlanks(object[1:])
	for len(b) > 0 && b[0] != '}' {
		if len(into) > 0 {
			if b[0] != ',' {
				return nil, false
			}
			b = skipBlanks(b[1:])
		}
		n := plainString(b)
		if n == 0 {
			return nil, false
		}
		m := member{name: string(b[1 : n-1])}
		if b = skipBlanks(b[n:]); len(b) == 0 || b[0] != ':' {
			return nil, false
		}
		b = skipBlanks(b[1:])
		if n = plainString(b); n == 0 {
			n = plainWord(b)
		}
		if n == 0 {
			return nil, false
		}
		m.raw, b = json.RawMessage(b[:n:n]), skipBlanks(b[n:])
		into = append(into, m)
	}
	return into, len(b) == 1
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// plainString is the length of the string that b begins with, quotes included; 0
// if it has an escape, is not UTF-8 or is none.
func plainString(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i, c := range b[1:] {
		switch {
		case c == '"':
			if !utf8.Valid(b[1 : i+1]) {
				return 0
			}
			return i + 2
		case c == '\\' || c < ' ':
			return 0
		}
	}
	return 0
}

// plainWord is the length of the word or whole number that b begins with, 0 if it
// is anything else.
func plainWord(b []byte) int {
	n := 0
	for n < len(b) && b[n] != ',' && b[n] != '}' && b[n] > ' ' {
		n++
	}
	switch string(b[:n]) {
	case "true", "false", "null", "0":
		return n
	}
	for i, c := range b[:n] {
		if c < '0' || c > '9' || i == 0 && c == '0' {
			return 0
		}
	}
	return n
}
