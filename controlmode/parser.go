package controlmode

import (
	"bytes"
	"fmt"
	"strconv"
)

const (
	defaultMaxBody = 64 << 20
	// defaultMaxLine bounds a notification. The longest %output line seen is
	// 10,931 bytes; a subscription's value has no bound.
	defaultMaxLine = 1 << 20
	// maxGuardArgs bounds the arguments of a %begin line: three numbers, and
	// room for what a later tmux may add.
	maxGuardArgs = 160
	// keepScratch is how large a buffer may be to be kept for the next line or
	// body.
	keepScratch = 64 << 10
)

// Parser turns the bytes of a control client into events. It does no I/O and
// has no clock; however the stream is cut into chunks, the events are the same.
// Memory is bounded by MaxBody and MaxLine. A Parser must not be used by two
// goroutines at a time. The zero value is ready for use.
//
// Inside a block every line that is not the exact closing guard of that block
// is body, whatever it looks like: pane text that imitates guards or
// notifications cannot get out of a block.
type Parser struct {
	MaxBody int64 // bound of one reply body in bytes, 0 for 64 MiB
	MaxLine int   // bound of one line outside blocks in bytes, 0 for 1 MiB

	pos   int64 // bytes consumed
	start int64 // offset of the line being read
	err   error

	line []byte // the unfinished line, as far as it must be kept
	cut  int64  // bytes of it beyond MaxLine (outside blocks only)

	open     bool
	guard    Guard
	args     []byte // the text of the open %begin after the first space
	crlf     bool   // that %begin ended in CR LF, so every line of its block does
	begun    bool   // the unfinished body line is too long to be a guard; its front is in body
	heldCR   bool   // a CR that is the line's end if LF follows, and body if not
	body     []byte
	overflow int64

	out Output // the one Output handed out, reused
}

// Offset is the offset of the line being read; during emit, of the line that
// made the event.
func (p *Parser) Offset() int64 { return p.start }

// Feed consumes a chunk and calls emit for every event that it completes. *Output is
// valid only until emit returns; all other events are the receiver's. The
// error is a *ProtocolError, after which the Parser stays failed: the stream
// cannot be trusted any more.
func (p *Parser) Feed(chunk []byte, emit func(Event)) error {
	for len(chunk) > 0 && p.err == nil {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			p.hold(chunk)
			p.pos += int64(len(chunk))
			break
		}
		p.finish(chunk[:i], emit)
		p.pos = p.pos + int64(i) + 1
		p.start = p.pos
		chunk = chunk[i+1:]
	}
	return p.err
}

// hold keeps the front of an unfinished line.
func (p *Parser) hold(b []byte) {
	if !p.open {
		if room := p.maxLine() - len(p.line); len(b) > room {
			p.cut += int64(len(b) - room)
			b = b[:room]
		}
		p.line = append(p.line, b...)
		return
	}
	// In a block only so much is held as a closing guard can have.
	if !p.begun && len(p.line)+len(b) <= len("%error ")+len(p.args)+1 {
		p.line = append(p.line, b...)
		return
	}
	if !p.begun {
		p.begun = true
		p.addBody(p.line)
		p.line = p.line[:0]
	}
	p.addBody(b)
}

// finish handles a line whose last part is tail.
func (p *Parser) finish(tail []byte, emit func(Event)) {
	line := tail
	if len(p.line) > 0 || p.begun || p.cut > 0 {
		p.hold(tail)
		line = p.line
	} else if max := p.maxLine(); !p.open && len(line) > max {
		p.cut = int64(len(line) - max)
		line = line[:max]
	}
	if p.open {
		p.bodyLine(line, emit)
	} else {
		p.outside(line, emit)
	}
	p.line, p.cut, p.begun = p.line[:0], 0, false
	if cap(p.line) > keepScratch {
		p.line = nil
	}
}

func (p *Parser) maxLine() int {
	if p.MaxLine > 0 {
		return p.MaxLine
	}
	return defaultMaxLine
}

// bodyLine handles a finished line of the open block; if begun, line is empty
// and the body has the whole line already.
func (p *Parser) bodyLine(line []byte, emit func(Event)) {
	if !p.begun {
		guard := line
		if p.crlf {
			guard = trimCR(guard)
		}
		if args, ok := bytes.CutPrefix(guard, []byte("%end ")); ok && bytes.Equal(args, p.args) {
			p.closeBlock(false, emit)
			return
		}
		if args, ok := bytes.CutPrefix(guard, []byte("%error ")); ok && bytes.Equal(args, p.args) {
			p.closeBlock(true, emit)
			return
		}
		p.addBody(line)
	}
	p.heldCR = false
	p.store([]byte{'\n'})
}

// addBody stores a part of a body line. In a CR LF block a CR at the end of
// the part waits until it is known whether LF follows.
func (p *Parser) addBody(b []byte) {
	if p.heldCR && len(b) > 0 {
		p.heldCR = false
		p.store([]byte{'\r'})
	}
	if p.crlf && len(b) > 0 && b[len(b)-1] == '\r' {
		p.heldCR = true
		b = b[:len(b)-1]
	}
	p.store(b)
}

func (p *Parser) store(b []byte) {
	max := p.MaxBody
	if max <= 0 {
		max = defaultMaxBody
	}
	if room := max - int64(len(p.body)); int64(len(b)) > room {
		p.overflow += int64(len(b)) - room
		b = b[:room]
	}
	p.body = append(p.body, b...)
}

func (p *Parser) closeBlock(failed bool, emit func(Event)) {
	end := BlockEnd{Guard: p.guard, Error: failed, Truncated: p.overflow}
	if cap(p.body) > keepScratch {
		end.Body, p.body = p.body, nil
	} else if len(p.body) > 0 {
		end.Body = bytes.Clone(p.body)
	}
	p.open, p.overflow, p.body = false, 0, p.body[:0]
	emit(end)
}

// outside handles a finished line outside every block.
func (p *Parser) outside(line []byte, emit func(Event)) {
	p.crlf = false
	if p.cut == 0 {
		whole := len(line)
		line = trimCR(line)
		p.crlf = len(line) < whole
	}
	if len(line) == 0 || line[0] != '%' {
		emit(Stray{Line: string(line), Cut: p.cut})
		return
	}
	word, rest, _ := bytes.Cut(line, []byte{' '})
	switch string(word) {
	case "%output", "%extended-output":
		if p.cut > 0 {
			// Dropping a part of a pane's output would break every offset
			// after it without anybody knowing.
			p.fail("an output line longer than %d bytes", p.maxLine())
			return
		}
		if p.output(rest, len(word) > len("%output")) {
			emit(&p.out)
			return
		}
	case "%begin":
		p.begin(rest, emit)
		return
	case "%end", "%error":
		if g, ok := parseGuard(rest); !ok || g.Flags&1 != 0 {
			p.fail("%s outside a block", word)
			return
		}
	default:
		if p.cut > 0 {
			break
		}
		if ev := parseNotification(string(word), rest); ev != nil {
			emit(ev)
			return
		}
	}
	emit(Unknown{Line: string(line), Cut: p.cut})
}

func (p *Parser) begin(args []byte, emit func(Event)) {
	g, ok := parseGuard(args)
	if !ok || p.cut > 0 {
		p.fail("unreadable %%begin")
		return
	}
	p.open, p.guard = true, g
	p.args = append(p.args[:0], args...)
	emit(BlockBegin{Guard: g})
}

// output reads the rest of an output line into p.out.
func (p *Parser) output(rest []byte, extended bool) bool {
	id, data, ok := bytes.Cut(rest, []byte{' '})
	if !ok && extended {
		return false
	}
	n, ok := idNumber('%', id)
	if !ok {
		return false
	}
	p.out.Pane, p.out.Extended, p.out.Age = PaneID(n), extended, 0
	if extended {
		// %extended-output %P AGE ... : DATA; words between AGE and the colon
		// are for future use (tmux.1).
		head, tail, ok := bytes.Cut(data, []byte(" : "))
		if !ok {
			return false
		}
		age, _, _ := bytes.Cut(head, []byte{' '})
		ms, ok := number(age)
		if !ok {
			return false
		}
		p.out.Age = milliseconds(ms)
		data = tail
	}
	p.out.Data = AppendUnescape(p.out.Data[:0], data)
	return true
}

func (p *Parser) fail(format string, args ...any) {
	p.err = &ProtocolError{Offset: p.start, What: fmt.Sprintf(format, args...)}
}

// parseGuard reads "TIME NUMBER FLAGS". More fields are tolerated; they are
// part of what the closing guard must repeat.
func parseGuard(args []byte) (Guard, bool) {
	var n [3]uint64
	if len(args) > maxGuardArgs {
		return Guard{}, false
	}
	rest := args
	for i := range n {
		field, tail, more := bytes.Cut(rest, []byte{' '})
		var ok bool
		if n[i], ok = number(field); !ok || (!more && i < 2) {
			return Guard{}, false
		}
		rest = tail
	}
	return Guard{Time: n[0], Number: n[1], Flags: n[2]}, true
}

func number(s []byte) (uint64, bool) {
	if len(s) == 0 || len(s) > 20 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(string(s), 10, 64)
	return n, err == nil
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
