package mcp

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// object writes one JSON object in one pass. Answers can be a megabyte of text;
// encoding/json would scan that once per level it is nested in. Keys are given
// by the caller in order, are plain ASCII, and every open has its close.
type object struct{ b []byte }

func (o *object) open()  { o.b = append(o.b, '{') }
func (o *object) close() { o.b = append(o.b, '}') }

// key starts a member. A comma is due unless the object was just opened: no
// value ends in an opening brace.
func (o *object) key(name string) {
	if n := len(o.b); n > 0 && o.b[n-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) string(name, value string) {
	o.key(name)
	o.b = appendQuoted(o.b, value)
}

func (o *object) int(name string, value int) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, int64(value), 10)
}

// id writes an id in tmux's spelling.
func (o *object) id(name string, sigil byte, n uint32) {
	o.key(name)
	o.b = append(o.b, '"', sigil)
	o.b = strconv.AppendUint(o.b, uint64(n), 10)
	o.b = append(o.b, '"')
}

func (o *object) bool(name string, value bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, value)
}

// intOrNull writes null for nil.
func (o *object) intOrNull(name string, value *int) {
	if value == nil {
		o.null(name)
		return
	}
	o.int(name, *value)
}

func (o *object) stringOrNull(name string, value *string) {
	if value == nil {
		o.null(name)
		return
	}
	o.string(name, *value)
}

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

// raw writes a value that is JSON already.
func (o *object) raw(name string, value []byte) {
	o.key(name)
	o.b = append(o.b, value...)
}

// array writes encoded values.
func (o *object) array(name string, values [][]byte) {
	o.key(name)
	o.b = appendArray(o.b, values)
}

func appendArray(dst []byte, values [][]byte) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	return append(dst, ']')
}

// clean makes text of tmux fit for an answer: valid UTF-8, and no control
// characters but LF and TAB. The others are shown as \xNN, so that a hostile
// title is seen for what it is. It returns s itself if there is nothing to do.
func clean(s string) string { return cleanRunes(s, false) }

// inline is clean for a place that must stay on one line.
func inline(s string) string { return cleanRunes(s, true) }

func cleanRunes(s string, oneLine bool) string {
	bad := func(r rune) bool {
		switch {
		case r == '\n' || r == '\t':
			return oneLine
		case oneLine && (r == '\u2028' || r == '\u2029'):
			return true
		}
		return r < 0x20 || r >= 0x7f && r < 0xa0
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for _, r := range s { // invalid bytes range as U+FFFD
		switch {
		case !bad(r):
			b = utf8.AppendRune(b, r)
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x80:
			b = append(b, '\\', 'x', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		}
	}
	return string(b)
}

// quote shows caller text inside an error: one line, at most 80 bytes.
func quote(s string) string { return `"` + abridged(inline(s), 80) + `"` }

// cutMark stands where a text was cut short. A redactor knows it.
const cutMark = "..."

// abridged is s, or of a longer one the start and cutMark, n bytes together.
func abridged(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return head(s, n-len(cutMark)) + cutMark
}

// head is the longest start of s within n bytes that ends at a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail is the longest end of s within n bytes that starts at a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
