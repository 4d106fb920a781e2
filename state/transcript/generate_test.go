package transcript

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// The grammar generator: streams that meet the rules of tmux's grid far more
// often than real programs do. A seed and a kind name a stream.

// kind is a third of the streams.
type kind int

const (
	kindPlain     kind = iota // ordinary sequences
	kindWide                  // wide characters, insert and origin mode, line drawing
	kindMalformed             // broken sequences and UTF-8
	kinds
)

func (k kind) String() string { return [...]string{"plain", "wide", "malformed"}[k] }

type generator struct {
	bytes.Buffer
	rand          *rand.Rand
	width, height int
	kind          kind
	profile       Profile
}

// generate makes a stream for a screen size.
func generate(seed uint64, k kind, width, height int, p Profile) []byte {
	g := &generator{rand: rand.New(rand.NewPCG(seed, uint64(k))), width: width, height: height, kind: k, profile: p}
	for range 5 + g.rand.IntN(60) {
		g.step()
	}
	return g.Bytes()
}

func (g *generator) n(n int) int { return g.rand.IntN(max(n, 1)) }

func (g *generator) pick(list ...string) { g.WriteString(list[g.n(len(list))]) }

func (g *generator) step() {
	switch g.n(12) {
	case 0, 1, 2:
		g.text(1 + g.n(g.width+4))
	case 3, 4:
		g.pick("\r\n", "\n", "\r", "\b", "\t", "\r\n\r\n", "\v", "\f")
	case 5, 6, 7, 8, 9:
		g.sequence()
	case 10:
		g.special()
	case 11:
		if g.kind == kindMalformed {
			g.broken()
		} else {
			g.sequence()
		}
	}
}

func (g *generator) text(n int) {
	if g.kind == kindWide && g.n(2) == 0 {
		for range 1 + n/3 {
			g.pick("\u6f22", "\u5b57", "\u00e9", "e\u0301", "\U0001f600", "a", " ", "\u3042", "\u1100", "\u00ad", "\u2500",
				"\u0627", "x\u0300\u0301", "\u200b", "\u2603")
			if g.n(12) == 0 {
				g.pick("\u200d", "\ufe0f", "\U0001f3fb", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f")
			}
		}
		return
	}
	if g.n(6) == 0 {
		for range n {
			g.WriteByte(' ')
		}
		return
	}
	for range n {
		c := byte('a' + g.n(26))
		if g.n(8) == 0 {
			c = ' '
		}
		g.WriteByte(c)
	}
}

// number is a parameter: often small, sometimes near the screen's size, rarely
// missing or absurd.
func (g *generator) number(limit int) string {
	switch g.n(10) {
	case 0:
		return ""
	case 1:
		return "0"
	case 2:
		return fmt.Sprint(limit)
	case 3:
		return fmt.Sprint(limit + g.n(3) - 1)
	case 4:
		if g.n(3) == 0 {
			return "99999"
		}
	}
	return fmt.Sprint(1 + g.n(limit))
}

func (g *generator) sequence() {
	w, h := g.width, g.height
	switch g.n(22) {
	case 0, 1, 2:
		fmt.Fprintf(g, "\x1b[%s;%s%c", g.number(h), g.number(w), "Hf"[g.n(2)])
	case 3:
		fmt.Fprintf(g, "\x1b[%s%c", g.number(w), "CDG`"[g.n(4)])
	case 4:
		fmt.Fprintf(g, "\x1b[%s%c", g.number(h), "ABEFd"[g.n(5)])
	case 5, 6:
		fmt.Fprintf(g, "\x1b[%c%c", "0123"[g.n(4)], "JK"[g.n(2)])
	case 7:
		g.pick("\x1b[J", "\x1b[K", "\x1b[H\x1b[J", "\x1b[2J", "\x1b[H", "\x1b[3J")
	case 8, 9:
		fmt.Fprintf(g, "\x1b[%s%c", g.number(h), "LMST"[g.n(4)])
	case 10, 11:
		fmt.Fprintf(g, "\x1b[%s%c", g.number(w), "@PX"[g.n(3)])
	case 12:
		fmt.Fprintf(g, "\x1b[%s;%sr", g.number(h), g.number(h))
	case 13:
		g.pick("\x1b7", "\x1b8", "\x1b[s", "\x1b[u")
	case 14:
		g.pick("\x1bD", "\x1bM", "\x1bE")
	case 15:
		fmt.Fprintf(g, "%c\x1b[%sb", 'a'+g.n(26), g.number(w))
	case 16:
		g.pick("\x1b[?7l", "\x1b[?7h", "\x1b[?7h")
	case 17:
		g.pick("\x1b[?1049h", "\x1b[?1049l", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b[?1047h", "\x1b[?1047l")
	case 18:
		fmt.Fprintf(g, "\x1b[%sZ", g.number(3))
	case 19:
		g.pick("\x1bH", "\x1b[g", "\x1b[3g", "\t", "\t\t")
	case 20:
		g.pick("\x1b[41m", "\x1b[m", "\x1b[1;32m", "\x1b[48;5;20m", "\x1b[48;2;1;2;3m", "\x1b[49m", "\x1b[4:3m", "\x1b[0;7m")
	case 21:
		g.text(g.width - g.n(3))
	}
}

func (g *generator) special() {
	switch g.n(8) {
	case 0:
		g.pick("\x1bc", "\x1b#8", "\x1b[?3h", "\x1b[?3l")
	case 1:
		g.pick("\x1b]0;title\x07", "\x1b]2;t\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1b]133;A\x07", "\x1bkname\x1b\\", "\x1b_apc\x1b\\", "\x1bPq#0\x1b\\")
	case 2, 3:
		if g.kind != kindPlain {
			g.pick("\x1b[4h", "\x1b[4l", "\x1b[?6h", "\x1b[?6l", "\x1b[4h", "\x1b[?6h")
		}
	case 4, 5:
		if g.kind == kindWide {
			g.pick("\x1b(0lqk\x1b(B", "\x0eabc\x0f", "\x1b)0", "\x1b(0", "\x1b(B", "\x0f", "\x1b)B")
		}
	case 6:
		g.pick("\x1b[?25l", "\x1b[?2004h", "\x1b[6n", "\x1b[c", "\x1b=", "\x1b>", "\x1b[22;0;0t", "\x1b[!p", "\x1b[?2026h")
	case 7:
		for range g.n(4) {
			g.text(g.n(g.width) + 1)
			g.WriteString("\r\n")
		}
	}
}

// broken is a damaged sequence or character.
func (g *generator) broken() {
	switch g.n(12) {
	case 0:
		g.pick("\xe9", "\xe2\x82", "\xe2\x82\r\n", "\xc3(", "\xf0\x9f\x98", "\x80", "\xff", "\xe2\xc3\xa9", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\xe0\x80\x80")
	case 1:
		g.pick("\xe2\x1b[1m\x82\xac", "\xe2\x1b[3C\x82\xac", "\xc3\x1bD\xa9")
	case 2:
		fmt.Fprintf(g, "\x1b[%d%c%dC", g.n(9), "\r\n\b\t"[g.n(4)], g.n(9))
	case 3:
		g.pick("\x1b[3\x18C", "\x1b[3\x1aD", "\x1b[3\x1b[2D", "\x1b(\x1b[C")
	case 4:
		fmt.Fprintf(g, "\x1b[%s%c", "99999999999", "ABCDLMPSTX@"[g.n(11)])
	case 5:
		g.pick("\x1b[?2J", "\x1b[>1C", "\x1b[1 C", "\x1b[1!C", "\x1b[1:2C", "\x1b[3:4;5H", "\x1b[1?2C", "\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;5H", "\x1b[1$$$$C")
	case 6:
		g.WriteString("\x1b[")
		for range 70 {
			g.WriteByte('1')
		}
		g.WriteByte('C')
	case 7:
		g.pick("\x1b]0;open", "\x1bPopen\x1b", "\x1b_open", "\x1bXopen", "\x1b^open\x07", "\x1bkopen\x07")
	case 8:
		g.pick("\x1b\\", "\x18", "\x07", "\x1b]8;;u\x1bc", "\x1bP1;2:3q\x1b\\", "\x1bP$$$$$q\x1b\\\x1b\\")
	case 9:
		g.pick("\x7f", "\x00", "\x01", "\x05", "\x0e", "\x0f", "\x1c", "\x1b\x7fD", "\x1b[\x7f2C", "\x1b\xe9D")
	case 10:
		g.pick("\x1b[38;5m", "\x1b[48;5;300m", "\x1b[48;2;1;2m", "\x1b[48:5:3m", "\x1b[48:2::1:2:3m", "\x1b[4:9m", "\x1b[38;2;300;0;0;41m")
	case 11:
		g.pick("\x1b%G", "\x1b Z", "\x1b*0", "\x1bn", "\x1bo", "\x1bZ", "\x1b[5i", "\x1b[20h", "\x1b[?69h", "\x1b[a", "\x1b[e")
	}
}
