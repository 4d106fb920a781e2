package state

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"

	"tmux-mcpd/controlmode"
)

// Stream names one unbroken stream of one pane's output. Its first five bytes
// are a digest of the tmux server's identity, the next four the pane's number,
// three are those of the daemon that made it and the last four are random; so
// the pane and the server of a cursor are known even to a daemon that has never
// seen the stream, and whether it ever could have.
type Stream [16]byte

// maker is what the streams that one daemon makes have in common: random.
type maker [3]byte

// Cursor is a place in a pane's output that a caller may keep: a stream and the
// offset of a raw byte in it. Its text form is ltxc1.<32 hex>.<decimal>.
type Cursor struct {
	Stream Stream
	Offset int64
}

// ErrCursor is a cursor text that this daemon did not issue.
var ErrCursor = errors.New("not a cursor issued by this server")

// CursorPattern is the grammar of a cursor's text form.
const CursorPattern = `^ltxc1\.[0-9a-f]{32}\.(?:0|[1-9][0-9]*)$`

var cursorRE = regexp.MustCompile(CursorPattern)

const maxSafeInteger = 1<<53 - 1

// String gives the text form.
func (c Cursor) String() string {
	b := make([]byte, 0, 64)
	b = append(b, "ltxc1."...)
	b = hex.AppendEncode(b, c.Stream[:])
	b = append(b, '.')
	return string(strconv.AppendInt(b, c.Offset, 10))
}

// ParseCursor reads the text form. The offset must be a safe integer (2^53-1).
func ParseCursor(s string) (Cursor, error) {
	var c Cursor
	if len(s) > 64 || !cursorRE.MatchString(s) {
		return c, ErrCursor
	}
	if _, err := hex.Decode(c.Stream[:], []byte(s[6:38])); err != nil {
		return c, ErrCursor
	}
	n, err := strconv.ParseInt(s[39:], 10, 64)
	if err != nil || n > maxSafeInteger {
		return c, ErrCursor
	}
	c.Offset = n
	return c, nil
}

// newStream names a stream of a pane; salt is random.
func newStream(server ServerID, pane controlmode.PaneID, by maker, salt [4]byte) Stream {
	var s Stream
	d := serverDigest(server)
	copy(s[:5], d[:])
	binary.BigEndian.PutUint32(s[5:9], uint32(pane))
	copy(s[9:12], by[:])
	copy(s[12:], salt[:])
	return s
}

func (s Stream) madeBy() maker { return maker(s[9:12]) }

// Pane is the pane the stream belongs to.
func (s Stream) Pane() controlmode.PaneID {
	return controlmode.PaneID(binary.BigEndian.Uint32(s[5:9]))
}

// Of tells whether the stream belongs to that life of the tmux server.
func (s Stream) Of(server ServerID) bool {
	d := serverDigest(server)
	return [5]byte(s[:5]) == d
}

func serverDigest(server ServerID) (d [5]byte) {
	h := fnv.New64a()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(server.PID))
	binary.BigEndian.PutUint64(b[8:], uint64(server.StartTime))
	h.Write(b[:])
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], h.Sum64())
	copy(d[:], sum[:5])
	return d
}
