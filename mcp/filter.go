package mcp

import (
	"bytes"
	"unicode/utf8"
)

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
	del = 0x7f
)

// filterStream appends to dst the text of raw pane output: without escape
// sequences, device strings and control characters other than LF and TAB. CRs
// before an LF belong to it (a tty makes CR LF of LF, and CR CR LF of CR LF),
// other runs of CRs are one line end. Bytes that are not UTF-8 become U+FFFD.
//
// It is a function of the bytes alone: used is where it stopped, which is the
// end of data or the start of something unfinished (a sequence, a character, a
// run of CRs). A caller that goes on from there gets the same text however the
// bytes were cut.
func filterStream(dst, data []byte) (text []byte, used int) {
	for used < len(data) {
		rest := data[used:]
		n := 0
		switch c := rest[0]; {
		case c == '\n' || c == '\t' || c >= 0x20 && c < del:
			dst = append(dst, c)
			n = 1
		case c == '\r':
			if n = countCR(rest); n == len(rest) {
				return dst, used
			}
			if rest[n] != '\n' {
				dst = append(dst, '\n')
			}
		case c == esc:
			if n = escapeLength(rest); n == 0 {
				return dst, used
			}
		case c < 0x20 || c == del:
			n = 1
		default:
			if !utf8.FullRune(rest) {
				return dst, used
			}
			var r rune
			r, n = utf8.DecodeRune(rest)
			if r >= 0xa0 { // below: C1 controls
				dst = utf8.AppendRune(dst, r)
			}
		}
		used += n
	}
	return dst, used
}

func countCR(b []byte) int {
	n := 0
	for n < len(b) && b[n] == '\r' {
		n++
	}
	return n
}

// escapeLength is the length of the escape sequence at the start of b, 0 if it
// is not complete. The grammar is tmux's (input.c): a string ends at ST, at BEL
// too if it is an OSC, at CAN and SUB always; any other ESC ends it and starts
// a new sequence, except inside a DCS, which may carry escaped ESCs.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch c := b[1]; {
	case c == '[':
		return csiLength(b)
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_' || c == 'k':
		return stringLength(b, c)
	case c >= 0x20 && c < 0x30: // charsets and the like: intermediates, one final
		for i := 2; i < len(b); i++ {
			if b[i] < 0x20 || b[i] >= 0x30 {
				return afterFinal(b, i)
			}
		}
		return 0
	}
	return afterFinal(b, 1)
}

// afterFinal is the length of a sequence whose final byte should be at i. A
// byte that cannot be final is not eaten: it is text or a control of its own.
func afterFinal(b []byte, i int) int {
	if b[i] >= 0x30 && b[i] < del {
		return i + 1
	}
	return i
}

func csiLength(b []byte) int {
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 0x40 && c < del:
			return i + 1
		case c == can || c == sub:
			return i + 1
		case c == esc || c >= del:
			return i
		}
	}
	return 0
}

func stringLength(b []byte, kind byte) int {
	for i := 2; i < len(b); {
		n := bytes.IndexAny(b[i:], "\x07\x18\x1a\x1b")
		if n < 0 {
			return 0
		}
		i += n
		switch c := b[i]; {
		case c == can || c == sub || c == bel && kind == ']':
			return i + 1
		case c == bel:
			i++
			continue
		}
		if i+1 == len(b) {
			return 0
		}
		if b[i+1] == '\\' {
			return i + 2
		}
		if kind != 'P' {
			return i
		}
		i++
	}
	return 0
}
