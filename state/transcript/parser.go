package transcript

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// parserState is a state of tmux's input parser (input.c). It is not the
// VT500 machine: there are no 8-bit controls, a DCS ends only at ESC \, and
// APC, PM, SOS and the window name (ESC k) do not end at BEL.
type parserState uint8

const (
	stateGround parserState = iota
	stateEsc
	stateEscIntermediate
	stateCSI
	stateCSIParameter
	stateCSIIntermediate
	stateCSIIgnore
	stateDCS
	stateDCSParameter
	stateDCSIntermediate
	stateDCSData
	stateDCSEscape
	stateDCSIgnore
	stateOSC
	stateAPC
	stateRename
	stateConsume // PM and SOS
)

const (
	maxParameterBytes = 63
	maxIntermediates  = 3
	maxParameters     = 23
	maxString         = 4096 // of a title or mark; tmux keeps up to 1 MiB
	stringTimeout     = 5 * time.Second
)

// parser is the part of a Transcript that reads bytes.
type parser struct {
	state   parserState
	discard bool // the sequence is too long to mean anything

	params        [maxParameterBytes]byte
	nParams       int
	intermediates [maxIntermediates]byte
	nInter        int

	str      []byte    // of OSC, APC and rename, up to maxString
	strStart int64     // offset before the introducer's ESC
	strSince time.Time // when the introducer came

	utf8     [4]byte
	utf8Have int
	utf8Need int // 0: none begun
	utf8Bad  bool

	escStart int64
	replay   bool // bytes of an unfinished sequence are fed again
}

// inString tells whether tmux's timer runs: it starts at the introducer of a
// string and stops at an ESC or in the ground state.
func (p *parser) inString() bool { return p.state >= stateDCS }

// parse feeds bytes to the state machine. at is when they came.
func (t *Transcript) parse(b []byte, at time.Time) {
	for len(b) > 0 {
		if t.state != stateGround {
			n := t.skipString(b)
			if n == 0 {
				t.advance(b[0], at)
				n = 1
			}
			b = b[n:]
			continue
		}
		n := 0
		for n < len(b) && b[n]-0x20 < 0x5f { // 0x20 to 0x7e
			n++
		}
		if n > 0 {
			t.stopRune(1)
			t.print(b[:n], t.off, 1)
			b = b[n:]
			continue
		}
		n = t.simpleCSI(b)
		if n == 0 {
			n = t.wholeRune(b)
		}
		if n > 0 {
			b = b[n:]
			continue
		}
		t.off++
		c := b[0]
		switch {
		case c >= 0x80:
			t.topBit(c)
		case c == 0x1b:
			t.enterEsc()
		default: // C0; DEL does nothing
			t.control(c)
		}
		b = b[1:]
	}
}

// simpleCSI executes a control sequence at the start of b that has nothing but
// numbers and maybe a question mark, without going through the states byte by
// byte. It returns the bytes used, 0 if the sequence is not of that kind or not
// complete.
func (t *Transcript) simpleCSI(b []byte) int {
	if len(b) < 3 || b[0] != 0x1b || b[1] != '[' || t.replay {
		return 0
	}
	private := b[2] == '?'
	i := 2
	if private {
		i++
	}
	t.nArgs = 0
	value, start := paramMissing, i
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c-'0' < 10:
			if value = max(value, 0)*10 + int(c-'0'); value > 1<<24 {
				return 0
			}
			continue
		case c == ';', i > start && c >= 0x40 && c < 0x7f:
			if t.nArgs == maxParameters || i-start > maxParameterBytes {
				return 0
			}
			t.args[t.nArgs] = value
			t.nArgs++
			value = paramMissing
		}
		if c == ';' {
			continue
		}
		if c < 0x40 || c > 0x7e || private && c != 'h' && c != 'l' {
			return 0
		}
		break
	}
	if i == len(b) {
		return 0
	}
	t.clearSequence()
	t.off += int64(i + 1)
	if private {
		for k := range t.nArgs {
			t.privateMode(t.arg(k, 0, -1), b[i] == 'h')
		}
		t.canRepeat = false
	} else if t.csiPlain(b[i]) {
		t.canRepeat = false
	}
	return i + 1
}

// wholeRune prints a valid character that lies complete at the start of b and
// returns its bytes, 0 if there is none.
func (t *Transcript) wholeRune(b []byte) int {
	if b[0] < utf8.RuneSelf || t.utf8Need != 0 {
		return 0
	}
	r, size := utf8.DecodeRune(b)
	if size < 2 {
		return 0
	}
	t.off += int64(size)
	t.canRepeat = false
	t.printRune(r)
	if t.profile >= Profile35 {
		t.lastRune, t.canRepeat = r, true
	}
	return size
}

// skipString passes over the inside of a string in one step.
func (t *Transcript) skipString(b []byte) int {
	switch t.state {
	case stateConsume, stateDCSIgnore:
		n := 0
		for n < len(b) && b[n] >= 0x20 {
			n++
		}
		t.off += int64(n)
		return n
	case stateDCSData:
		n := bytes.IndexByte(b, 0x1b)
		if n < 0 {
			n = len(b)
		}
		t.off += int64(n)
		return n
	}
	return 0
}

// advance takes one byte outside the ground state.
func (t *Transcript) advance(c byte, at time.Time) {
	t.off++
	if t.state != stateDCSData && t.state != stateDCSEscape {
		switch c {
		case 0x18, 0x1a:
			t.leaveString(false)
			t.state = stateGround
			t.control(c)
			return
		case 0x1b:
			t.leaveString(false)
			t.enterEsc()
			return
		}
	}
	switch t.state {
	case stateEsc:
		t.esc(c, at)
	case stateEscIntermediate:
		switch {
		case c < 0x20:
			t.control(c)
		case c < 0x30:
			t.intermediate(c)
		case c < 0x7f:
			t.state = stateGround
			t.escDispatch(c)
		}
	case stateCSI, stateCSIParameter, stateCSIIntermediate, stateCSIIgnore:
		t.csi(c)
	case stateDCS, stateDCSParameter, stateDCSIntermediate:
		t.dcs(c)
	case stateDCSData:
		if c == 0x1b {
			t.state = stateDCSEscape
		}
	case stateDCSEscape:
		t.state = stateDCSData
		if c == '\\' {
			t.state = stateGround
		}
	case stateOSC:
		if c == 0x07 {
			t.leaveString(true)
			t.state = stateGround
		} else if c >= 0x20 {
			t.collect(c)
		}
	case stateAPC, stateRename:
		if c >= 0x20 {
			t.collect(c)
		}
	}
}

func (t *Transcript) enterEsc() {
	t.escStart = t.off - 1
	t.clearSequence()
	t.state = stateEsc
}

func (t *Transcript) clearSequence() {
	t.nParams, t.nInter, t.discard = 0, 0, false
	t.str = t.str[:0]
}

func (t *Transcript) esc(c byte, at time.Time) {
	switch {
	case c < 0x20:
		t.control(c)
	case c < 0x30:
		t.intermediate(c)
		t.state = stateEscIntermediate
	case c == 'P':
		t.enterString(stateDCS, at)
	case c == 'X', c == '^':
		t.enterString(stateConsume, at)
	case c == ']':
		t.enterString(stateOSC, at)
	case c == '_':
		t.enterString(stateAPC, at)
	case c == 'k':
		t.enterString(stateRename, at)
	case c == '[':
		t.clearSequence()
		t.state = stateCSI
	case c < 0x7f:
		t.state = stateGround
		t.escDispatch(c)
	}
}

func (t *Transcript) enterString(s parserState, at time.Time) {
	t.clearSequence()
	t.state = s
	t.canRepeat = false
	t.strStart, t.strSince = t.escStart, at
}

func (t *Transcript) intermediate(c byte) {
	if t.nInter == maxIntermediates {
		t.discard = true
		return
	}
	t.intermediates[t.nInter] = c
	t.nInter++
}

func (t *Transcript) parameter(c byte) {
	if t.nParams == maxParameterBytes {
		t.discard = true
		return
	}
	t.params[t.nParams] = c
	t.nParams++
}

func (t *Transcript) collect(c byte) {
	if len(t.str) < maxString {
		t.str = append(t.str, c)
	}
}

func (t *Transcript) csi(c byte) {
	switch {
	case c < 0x20:
		t.control(c)
	case c >= 0x7f: // ignored
	case t.state == stateCSIIgnore:
		if c >= 0x40 {
			t.state = stateGround
		}
	case c >= 0x40:
		t.state = stateGround
		t.csiDispatch(c)
	case c < 0x30:
		t.intermediate(c)
		t.state = stateCSIIntermediate
	case t.state == stateCSIIntermediate:
		t.state = stateCSIIgnore
	case c <= ';':
		t.parameter(c)
		t.state = stateCSIParameter
	case t.state == stateCSI: // < = > ? only at the start
		t.intermediate(c)
		t.state = stateCSIParameter
	default:
		t.state = stateCSIIgnore
	}
}

func (t *Transcript) dcs(c byte) {
	switch {
	case c < 0x20, c >= 0x7f:
	case c >= 0x40:
		t.state = stateDCSData
	case c < 0x30:
		t.state = stateDCSIntermediate
	case t.state == stateDCSIntermediate, c == ':':
		t.state = stateDCSIgnore
	case c < 0x3c, t.state == stateDCS:
		t.state = stateDCSParameter
	default:
		t.state = stateDCSIgnore
	}
}

// control executes a C0 control, also inside a sequence.
func (t *Transcript) control(c byte) {
	if c == 0x7f {
		return
	}
	t.stopRune(0)
	t.canRepeat = false
	if t.replay {
		return // it had its effect when it first came
	}
	switch c {
	case '\a':
		t.bells++
	case '\b':
		t.backspace()
	case '\t':
		t.tab()
	case '\n', '\v', '\f':
		t.lineFeed()
	case '\r':
		t.cx = 0
	case 0x0e:
		t.pen.shiftOut = true
	case 0x0f:
		t.pen.shiftOut = false
	}
}

// topBit takes a byte of UTF-8. A bad continuation still counts, and the whole
// group is dropped at its full length; an escape sequence in between does not
// end the group.
func (t *Transcript) topBit(c byte) {
	t.canRepeat = false
	if t.utf8Need == 0 {
		switch {
		case c >= 0xc2 && c <= 0xdf:
			t.utf8Need = 2
		case c >= 0xe0 && c <= 0xef:
			t.utf8Need = 3
		case c >= 0xf0 && c <= 0xf4:
			t.utf8Need = 4
		default:
			t.badRune()
			return
		}
		t.utf8[0], t.utf8Have, t.utf8Bad = c, 1, false
		return
	}
	if c&0xc0 != 0x80 {
		t.utf8Bad = true
	}
	t.utf8[t.utf8Have] = c
	t.utf8Have++
	if t.utf8Have < t.utf8Need {
		return
	}
	n := t.utf8Need
	t.utf8Need = 0
	r, size := utf8.DecodeRune(t.utf8[:n])
	if beyond := t.utf8[0] == 0xf4 && t.utf8[1] >= 0x90; beyond && !t.utf8Bad {
		r, size = 1<<20|rune(t.utf8[1]&0x3f)<<12|rune(t.utf8[2]&0x3f)<<6|rune(t.utf8[3]&0x3f), n
	}
	if t.utf8Bad || size != n {
		t.badRune()
		return
	}
	t.printRune(r)
	if t.profile >= Profile35 {
		t.lastRune, t.canRepeat = r, true
	}
}

// stopRune drops a character that something else has cut short. The bytes
// before the one that cut it are counted already, step is what is missing.
func (t *Transcript) stopRune(step int64) {
	if t.utf8Need != 0 {
		t.utf8Need = 0
		t.off += step
		t.badRune()
		t.off -= step
	}
}

// badRune is what a tmux does with bytes that are no character: nothing before
// 3.6, then U+FFFD.
func (t *Transcript) badRune() {
	if t.profile >= Profile36 {
		t.printRune(utf8.RuneError)
	}
}

// leaveString handles the end of a string by whatever ended it.
func (t *Transcript) leaveString(bel bool) {
	switch t.state {
	case stateOSC:
		t.osc()
	case stateAPC:
		t.setTitle(t.str)
	case stateRename:
		t.setWindowName(t.str)
	}
}

// abandon ends a string that stayed open too long: tmux's timer runs five
// seconds from the introducer and then resets the parser, pen, character sets
// and saved cursor.
func (t *Transcript) abandon(at time.Time) {
	if !t.inString() || t.strSince.IsZero() || at.Sub(t.strSince) < stringTimeout {
		return
	}
	t.resetPen()
	t.clearSequence()
	t.canRepeat = false
	t.state = stateGround
}
