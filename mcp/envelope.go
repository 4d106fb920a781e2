package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Limits of one incoming message.
const (
	// maxDepth is the deepest nesting of arrays and objects. The SDK refuses
	// params deeper than 1,000 levels, so what passes here passes there.
	maxDepth = 1000
	// maxIDBytes is the longest request id, as spelled by its sender.
	maxIDBytes = 512 << 10
	// maxInteger is the largest integer id that every JSON implementation
	// keeps exact.
	maxInteger = 1 << 53
)

// codeRefused is our code for a request that was well formed but is not
// served now: too much in flight, shutting down, wrong user.
const codeRefused = -32000

// envelope is the outer object of one JSON-RPC message, its values as spelled.
type envelope struct {
	id     json.RawMessage // nil when absent
	key    jsonrpc.ID      // id decoded, valid when id is
	method string
	call   bool // has a method; else it is a response
	params json.RawMessage
	result json.RawMessage
	err    json.RawMessage
}

// refusal is a message that is answered by the transport itself.
type refusal struct {
	id     json.RawMessage // null when the message's own id could not be told
	noID   bool            // leave the id out altogether
	code   int64
	reason string
}

func refuse(id json.RawMessage, code int64, format string, args ...any) *refusal {
	if id == nil {
		id = json.RawMessage("null")
	}
	return &refusal{id: id, code: code, reason: fmt.Sprintf(format, args...)}
}

// parseEnvelope reads one line, which must not be blank. A line that cannot
// be passed on gives a refusal. The result refers to line.
func parseEnvelope(line []byte) (envelope, *refusal) {
	if line[0] == '[' {
		return envelope{}, refuse(nil, jsonrpc.CodeInvalidRequest,
			"JSON-RPC batches are not accepted: send one message per line")
	}
	// Bad UTF-8 is refused rather than mended: what a caller types into a pane
	// arrives byte for byte or not at all.
	if !utf8.Valid(line) {
		var id json.RawMessage
		if json.Valid(line) { // which does not look into strings
			id = readableID(line)
		}
		return envelope{}, refuse(id, jsonrpc.CodeParseError, "message is not valid UTF-8")
	}
	if tooDeep(line) {
		return envelope{}, refuse(readableID(line), jsonrpc.CodeInvalidRequest,
			"message is nested deeper than %d levels", maxDepth)
	}
	if !json.Valid(line) {
		return envelope{}, refuse(nil, jsonrpc.CodeParseError, "message is not valid JSON")
	}
	if line[0] != '{' {
		return envelope{}, refuse(nil, jsonrpc.CodeInvalidRequest, "message is not a JSON object")
	}
	return readEnvelope(line)
}

// readEnvelope takes a valid JSON object apart. As everywhere in JSON, the
// last of several equal keys counts.
func readEnvelope(line []byte) (envelope, *refusal) {
	var e envelope
	var version, method json.RawMessage
	visitMembers(line, func(key string, value []byte) bool {
		switch key {
		case "jsonrpc":
			version = value
		case "id":
			e.id = value
		case "method":
			method = value
		case "params":
			e.params = value
		case "result":
			e.result = value
		case "error":
			e.err = value
		}
		return true
	})
	e.call = method != nil
	if e.id != nil {
		if r := e.readID(); r != nil {
			return e, r
		}
	}
	if string(version) != `"2.0"` {
		return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	}
	if !e.call {
		if e.result == nil && e.err == nil {
			return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `message has no "method"`)
		}
		return e, nil
	}
	if method[0] != '"' || json.Unmarshal(method, &e.method) != nil {
		return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `"method" must be a string`)
	}
	return e, e.checkParams()
}

// checkParams wants an object or nothing; MCP has no positional parameters.
func (e *envelope) checkParams() *refusal {
	if string(e.params) == "null" {
		e.params = nil
	}
	if e.params != nil && e.params[0] != '{' {
		if e.id == nil {
			e.params = nil // a notification is never answered
			return nil
		}
		return refuse(e.id, jsonrpc.CodeInvalidParams, `"params" must be an object`)
	}
	return nil
}

// readID applies the rule for ids: a string, or an integer in plain digits
// within 2^53 of zero. So every id we accept can be echoed exactly.
func (e *envelope) readID() *refusal {
	if len(e.id) > maxIDBytes {
		return &refusal{
			noID: true, code: jsonrpc.CodeInvalidRequest,
			reason: fmt.Sprintf("request id longer than %d bytes", maxIDBytes),
		}
	}
	if e.id[0] == '"' {
		var s string
		if err := json.Unmarshal(e.id, &s); err == nil {
			e.key, _ = jsonrpc.MakeID(s)
			return nil
		}
	}
	if n, ok := plainInteger(e.id); ok {
		e.key, _ = jsonrpc.MakeID(float64(n))
		return nil
	}
	// A response with such an id is no answer to anything of ours; readers
	// drop it, so that two peers never refuse each other's refusals for ever.
	return refuse(nil, jsonrpc.CodeInvalidRequest, `"id" must be a string or an integer within 2^53 of zero`)
}

// plainInteger parses an id that is an integer as Go would print it.
func plainInteger(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n > maxInteger || n < -maxInteger {
		return 0, false
	}
	return n, strconv.FormatInt(n, 10) == string(b)
}

// readableID looks for an id in a message that is refused for its size or
// depth, so that its sender does not wait for an answer in vain. The line may
// be cut short.
func readableID(line []byte) json.RawMessage {
	var e envelope
	visitMembers(line, func(key string, value []byte) bool {
		if key == "id" {
			e.id = value
			return false
		}
		return true
	})
	if e.id == nil || !utf8.Valid(e.id) || !json.Valid(e.id) || e.readID() != nil {
		return nil
	}
	return bytes.Clone(e.id)
}

// tooDeep reports nesting beyond maxDepth. It does not care for validity.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// visitMembers calls visit for the members of the object that b starts with, until
// visit returns false or the text ends. Values are complete, as spelled. It
// needs no valid JSON, but what it finds in invalid JSON means nothing.
func visitMembers(b []byte, visit func(key string, value []byte) bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	i++
	for {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != '"' {
			return
		}
		end := skipString(b, i)
		if end > len(b) {
			return
		}
		key := keyText(b[i:end])
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return
		}
		i = skipSpace(b, i+1)
		end = skipValue(b, i)
		if end > len(b) || end == i {
			return
		}
		if !visit(key, b[i:end:end]) {
			return
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
		i++
	}
}

func keyText(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && strings.IndexByte(" \t\r\n", b[i]) >= 0 {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, or more
// than len(b) if it does not end.
func skipString(b []byte, i int) int {
	i++
	// The search for the end is many times faster than a look at each byte.
	for end := i; i < len(b); {
		if end <= i {
			n := bytes.IndexByte(b[i:], '"')
			if n < 0 {
				return math.MaxInt
			}
			end = i + n
		}
		n := bytes.IndexByte(b[i:end], '\\')
		if n < 0 {
			return end + 1
		}
		if i += n + 2; i > end { // what ended it was escaped
			end = i
		}
	}
	return math.MaxInt
}

// skipValue returns the index after the value that starts at i, or more than
// len(b) if it does not end. A number or word that runs up to the end of b
// counts as unfinished, because more of it may have been cut off.
func skipValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = skipString(b, i) - 1; i >= len(b) {
				return math.MaxInt
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of a number or word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return math.MaxInt
}
