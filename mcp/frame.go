package mcp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Outgoing frames. The SDK encodes a text block three to four times on its
// way out, each time scanning all of it again; a pane's screen is encoded
// once here, straight into the line that goes to the socket.

const frameStart = `{"jsonrpc":"2.0","id":`

// maxErrorBytes bounds the message of an error response: the SDK quotes the
// caller's whole params in some of its own.
const maxErrorBytes = 1024

// checkResults makes encodeResult verify what a tool handed it. Tests set it.
var checkResults = false

// Large frames come from spareFrames and go back there when they have been
// written: clearing and collecting them costs more than copying them does.
// Those beyond the bounds are left to the collector.
var spareFrames sync.Pool

const (
	smallestSpare = 16 << 10
	largestSpare  = 4 << 20
)

// newFrame is an empty buffer with room for n bytes.
func newFrame(n int) []byte {
	if n >= smallestSpare {
		if b, ok := spareFrames.Get().(*[]byte); ok && cap(*b) >= n {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, n)
}

// spareFrame takes back a frame to which nobody refers any more.
func spareFrame(b []byte) {
	if cap(b) >= smallestSpare && cap(b) <= largestSpare {
		b = b[:0]
		spareFrames.Put(&b)
	}
}

// startFrame begins a response with room for n more bytes.
func startFrame(id json.RawMessage, member string, n int) []byte {
	b := newFrame(len(frameStart) + len(id) + len(member) + n + 2)
	b = append(b, frameStart...)
	b = append(b, id...)
	return append(b, member...)
}

func endFrame(b []byte) []byte { return append(b, '}', '\n') }

// resultFrame frames a result the SDK has encoded, which is compact JSON.
func resultFrame(id, result json.RawMessage) []byte {
	if len(result) == 0 {
		result = json.RawMessage("{}")
	}
	return endFrame(append(startFrame(id, `,"result":`, len(result)), result...))
}

// errorFrame frames an error as JSON-RPC wants it.
func errorFrame(id json.RawMessage, err error) []byte {
	var wire *jsonrpc.Error
	code, message, data := int64(0), err.Error(), json.RawMessage(nil)
	if errors.As(err, &wire) {
		code, data = wire.Code, wire.Data
	}
	if code == 0 {
		// The SDK's own complaints about the order of messages carry no code.
		code = jsonrpc.CodeInvalidRequest
	}
	b := startFrame(id, `,"error":`, len(message)+len(data)+64)
	return endFrame(appendError(b, code, message, data))
}

func (r *refusal) frame() []byte {
	if r.noID {
		b := append([]byte(nil), `{"jsonrpc":"2.0","error":`...)
		return endFrame(appendError(b, r.code, r.reason, nil))
	}
	b := startFrame(r.id, `,"error":`, len(r.reason)+64)
	return endFrame(appendError(b, r.code, r.reason, nil))
}

func appendError(b []byte, code int64, message string, data json.RawMessage) []byte {
	if len(message) > maxErrorBytes {
		message = strings.ToValidUTF8(message[:maxErrorBytes], "") + " ..."
	}
	b = fmt.Appendf(b, `{"code":%d,"message":`, code)
	b = appendQuoted(b, message)
	if len(data) > 0 && len(data) <= 64*maxErrorBytes && json.Valid(data) {
		b = append(b, `,"data":`...)
		b = appendOneLine(b, data)
	}
	return append(b, '}')
}

// encodeResult frames one tool answer. complete adds what protocol versions
// from 2026-07-28 on want in every result: its type, and who answered.
func encodeResult(id json.RawMessage, r *toolResult, complete bool, server json.RawMessage) ([]byte, error) {
	if r.encode != nil {
		return encodeOwn(id, r, complete)
	}
	b := startFrame(id, `,"result":{`, len(r.Text)+len(r.Text)/8+len(r.Structured)+256)
	b, err := appendMeta(b, r.Meta, complete, server)
	if err != nil {
		return nil, fmt.Errorf("encoding _meta: %w", err)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	b = appendQuoted(b, r.Text)
	b = append(b, `}]`...)
	if len(r.Structured) > 0 {
		if checkResults && !json.Valid(r.Structured) {
			return nil, errors.New("structured content is not valid JSON")
		}
		b = append(b, `,"structuredContent":`...)
		b = appendOneLine(b, r.Structured)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	if complete {
		b = append(b, `,"resultType":"complete"`...)
	}
	return endFrame(append(b, '}')), nil
}

// encodeOwn frames the answer of a tool that encodes itself because it counts
// the bytes of its whole response. The type that newer versions want is put
// in front of its first member and is not part of that count.
func encodeOwn(id json.RawMessage, r *toolResult, complete bool) ([]byte, error) {
	own := bytes.TrimSpace(r.encode(id))
	if len(own) < 2 || own[0] != '{' || checkResults && !json.Valid(own) {
		return nil, errors.New("a tool's own encoding is not a JSON object")
	}
	b := startFrame(id, `,"result":`, len(own)+32)
	if complete {
		b = append(b, `{"resultType":"complete"`...)
		own = bytes.TrimLeft(own[1:], " \t\r\n")
		if own[0] != '}' {
			b = append(b, ',')
		}
	}
	return endFrame(appendOneLine(b, own)), nil
}

// encodeListing frames an answer to tools/list. The tools are encoded once, when
// they are selected; around is the answer without any.
func encodeListing(id json.RawMessage, around *sdk.ListToolsResult, tools []json.RawMessage, complete bool, server json.RawMessage) ([]byte, error) {
	const place = `"tools":[]`
	rest, err := json.Marshal(around)
	if err != nil {
		return nil, fmt.Errorf("encoding the listing: %w", err)
	}
	before, after, ok := bytes.Cut(rest, []byte(place))
	if !ok || len(before) == 0 || before[0] != '{' {
		return nil, fmt.Errorf("no place for the tools in %s", rest)
	}
	size := len(rest) + len(server) + 128
	for _, t := range tools {
		size += len(t) + 1
	}
	b := startFrame(id, `,"result":{`, size)
	if complete {
		if b, err = appendMeta(b, nil, true, server); err != nil {
			return nil, fmt.Errorf("encoding _meta: %w", err)
		}
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(append(b, before[1:]...), place[:len(place)-1]...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	return endFrame(append(append(b, ']'), after...)), nil
}

// appendMeta writes _meta as the result's first member, if there is any.
func appendMeta(b []byte, meta map[string]any, complete bool, server json.RawMessage) ([]byte, error) {
	if _, told := meta[sdk.MetaKeyServerInfo]; complete && !told {
		with := make(map[string]any, len(meta)+1)
		for k, v := range meta {
			with[k] = v
		}
		with[sdk.MetaKeyServerInfo] = server
		meta = with
	}
	if len(meta) == 0 {
		return b, nil
	}
	m, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	b = append(b, `"_meta":`...)
	return append(append(b, m...), ','), nil
}

// appendOneLine appends valid JSON, on one line whatever its own layout: a
// newline inside would end our frame. In JSON a raw newline can only stand
// between tokens.
func appendOneLine(b []byte, v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return append(b, v...)
	}
	for _, c := range v {
		if c != '\n' && c != '\r' {
			b = append(b, c)
		}
	}
	return b
}

// plain marks the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := byte(0x20); c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// notPlain has the top bit of each of eight bytes set that does not stand for
// itself. Above the first such bit there can be wrong ones: a borrow goes up.
func notPlain(x uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	return (x | (x - 0x20*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones)) & tops
}

// appendQuoted appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
// Only what JSON demands is escaped, and the line separators that some
// readers take for the end of a line.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			// Eight bytes at a time, which are copied before it is known how
			// many of them may stay.
			w := s[i : i+8]
			x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
				uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
			odd := notPlain(x)
			b = binary.LittleEndian.AppendUint64(b, x)
			if odd == 0 {
				i += 8
				continue
			}
			n := bits.TrailingZeros64(odd) / 8
			b = b[:len(b)-8+n]
			i += n
		} else if plain[s[i]] {
			b = append(b, s[i])
			i++
			continue
		}
		c := s[i]
		if c < utf8.RuneSelf {
			b = appendEscape(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return append(b, '"')
}

// short are the second bytes of the escapes of two.
var short = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\t': 't', '\r': 'r', '\b': 'b', '\f': 'f'}

func appendEscape(b []byte, c byte) []byte {
	if e := short[c]; e != 0 {
		return append(b, '\\', e)
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
