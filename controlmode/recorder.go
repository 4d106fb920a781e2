package controlmode

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

const defaultRecord = 64 << 10

// ring keeps the last len(buf) bytes written to it.
type ring struct {
	buf   []byte
	total int64 // bytes ever written
}

func (r *ring) write(b []byte) {
	if len(r.buf) == 0 {
		return
	}
	r.total += int64(len(b))
	if len(b) > len(r.buf) {
		b = b[len(b)-len(r.buf):]
	}
	// total counts b already, so b ends at total mod len.
	at := int((r.total - int64(len(b))) % int64(len(r.buf)))
	n := copy(r.buf[at:], b)
	copy(r.buf, b[n:])
}

// bytes are the kept bytes, oldest first.
func (r *ring) bytes() []byte {
	if r.total <= int64(len(r.buf)) {
		return bytes.Clone(r.buf[:r.total])
	}
	at := int(r.total % int64(len(r.buf)))
	return append(bytes.Clone(r.buf[at:]), r.buf[:at]...)
}

// recorder keeps the last bytes of both directions for a dump.
type recorder struct {
	mu      sync.Mutex // guards the fields that follow
	in, out ring
}

func (r *recorder) init(size int) {
	if size == 0 {
		size = defaultRecord
	}
	if size > 0 {
		r.in.buf, r.out.buf = make([]byte, size), make([]byte, size)
	}
}

func (r *recorder) add(to *ring, b []byte) {
	r.mu.Lock()
	to.write(b)
	r.mu.Unlock()
}

func (r *recorder) dump() []byte {
	r.mu.Lock()
	in, inTotal := r.in.bytes(), r.in.total
	out, outTotal := r.out.bytes(), r.out.total
	r.mu.Unlock()
	var b bytes.Buffer
	fmt.Fprintf(&b, "from tmux, bytes %d to %d:\n", inTotal-int64(len(in)), inTotal)
	dumpLines(&b, in, inTotal > int64(len(in)), maskReceived)
	fmt.Fprintf(&b, "to tmux, bytes %d to %d:\n", outTotal-int64(len(out)), outTotal)
	dumpLines(&b, out, outTotal > int64(len(out)), maskSent)
	return b.Bytes()
}

// dumpLines writes masked lines. What a line is that lost its front cannot be
// told, so all of it is masked.
func dumpLines(b *bytes.Buffer, data []byte, cut bool, mask func(string) string) {
	for line := range bytes.Lines(data) {
		s := strings.TrimSuffix(string(line), "\n")
		if cut {
			s = "..." + maskText(s)
			cut = false
		} else {
			s = mask(s)
		}
		b.WriteString("\t")
		b.WriteString(s)
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			b.WriteString("(no newline)")
		}
		b.WriteByte('\n')
	}
}

// keptFields says how many ids and numbers behind a notification's word are
// kept. Other words may be text of a pane and are masked themselves.
var keptFields = map[string]int{
	"%begin": 3, "%end": 3, "%error": 3,
	"%output": 1, "%extended-output": 2, "%pause": 1, "%continue": 1, "%pane-mode-changed": 1,
	"%sessions-changed": 0, "%session-changed": 1, "%session-renamed": 1, "%session-window-changed": 2,
	"%client-session-changed": 0, "%client-detached": 0,
	"%window-add": 1, "%window-close": 1, "%window-renamed": 1, "%window-pane-changed": 2, "%layout-change": 1,
	"%unlinked-window-add": 1, "%unlinked-window-close": 1, "%unlinked-window-renamed": 1,
	"%subscription-changed": 0, "%paste-buffer-changed": 0, "%paste-buffer-deleted": 0,
	"%message": 0, "%config-error": 0, "%exit": 0,
}

// maskReceived keeps what a notification or guard has of structure. Whether a
// line is in a block is not known here; a line of pane text that looks like one
// shows no more than that it does.
func maskReceived(s string) string {
	word, rest, more := strings.Cut(s, " ")
	fields, known := keptFields[word]
	if !known {
		return maskText(s)
	}
	kept := word
	for ; more && fields > 0; fields-- {
		field, tail, m := strings.Cut(rest, " ")
		if !idOrNumber(field) {
			break
		}
		kept, rest, more = kept+" "+field, tail, m
	}
	switch {
	case !more:
		return kept
	case word == "%output", word == "%extended-output":
		return kept + " " + maskEscaped(rest)
	}
	return kept + " " + maskText(rest)
}

func idOrNumber(s string) bool {
	s = strings.TrimLeft(s, "$@%")
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}

// maskSent keeps command names, option words and ids of an encoded line.
func maskSent(s string) string {
	words := strings.Split(s, " ")
	first := true
	for i, w := range words {
		switch {
		case w == ";":
			first = true
			continue
		case first, strings.HasPrefix(w, "-") && len(w) <= 3:
		default:
			plain := unquote(w)
			if !idOrNumber(plain) || plain == w {
				plain = maskText(plain)
			}
			words[i] = plain
		}
		first = false
	}
	return strings.Join(words, " ")
}

func unquote(w string) string {
	if len(w) < 2 || w[0] != '"' || w[len(w)-1] != '"' {
		return w
	}
	return string(AppendUnescape(nil, []byte(w[1:len(w)-1])))
}

// maskEscaped masks %output data and keeps its escapes, which are control bytes.
func maskEscaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if _, ok := octal([]byte(s[i:min(i+4, len(s))])); ok {
			b.WriteString(s[i : i+4])
			i += 3
			continue
		}
		b.WriteByte(maskByte(s[i]))
	}
	return b.String()
}

func maskText(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = maskByte(c)
	}
	return string(b)
}

// maskByte hides letters, digits and every part of a longer character, and
// control bytes, which do not belong in a log.
func maskByte(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
		return 'x'
	case c >= '0' && c <= '9':
		return '0'
	case c < 0x20 || c == 0x7f:
		return '?'
	}
	return c
}
