package transcript

// pen is what tmux's input parser calls its cell, as far as rows depend on it:
// erasing asks for the background, and a blank is skipped only with the
// default pen.
type pen struct {
	attr       uint16 // of attr...; 0 is none
	foreground bool   // not the default
	bg         background
	link       bool // inside a hyperlink; only from 3.4 on

	g0, g1, shiftOut bool // line drawing in G0, G1; G1 is in use
}

const (
	attrBold uint16 = 1 << iota
	attrDim
	attrItalics
	attrUnderline // any style of it
	attrBlink
	attrReverse
	attrHidden
	attrStrike
	attrOverline
)

func (p *pen) isDefault() bool {
	return p.attr == 0 && !p.foreground && !p.bg.coloured() && !p.link && !(p.g0 && !p.shiftOut || p.g1 && p.shiftOut)
}

// clear is SGR 0. The hyperlink is no attribute and stays.
func (p *pen) clear() {
	p.attr, p.foreground, p.bg = 0, false, backgroundDefault
}

// sgr is CSI m.
func (t *Transcript) sgr() {
	if t.nArgs == 0 {
		t.pen.clear()
		return
	}
	for i := 0; i < t.nArgs; i++ {
		if t.args[i] == paramString {
			t.sgrColon(i)
			continue
		}
		n := t.arg(i, 0, 0)
		if n == 38 || n == 48 || n == 58 {
			i = t.sgrColour(i, n)
			continue
		}
		t.pen.set(n)
	}
}

// set applies one plain attribute.
func (p *pen) set(n int) {
	switch {
	case n == 0:
		p.clear()
	case n >= 30 && n <= 37, n >= 90 && n <= 97:
		p.foreground = true
	case n == 39:
		p.foreground = false
	case n >= 40 && n <= 47, n >= 100 && n <= 107:
		p.bg = backgroundPalette
	case n == 49:
		p.bg = backgroundDefault
	}
	switch n {
	case 1:
		p.attr |= attrBold
	case 2:
		p.attr |= attrDim
	case 3:
		p.attr |= attrItalics
	case 4, 21:
		p.attr |= attrUnderline
	case 5, 6:
		p.attr |= attrBlink
	case 7:
		p.attr |= attrReverse
	case 8:
		p.attr |= attrHidden
	case 9:
		p.attr |= attrStrike
	case 22:
		p.attr &^= attrBold | attrDim
	case 23:
		p.attr &^= attrItalics
	case 24:
		p.attr &^= attrUnderline
	case 25:
		p.attr &^= attrBlink
	case 27:
		p.attr &^= attrReverse
	case 28:
		p.attr &^= attrHidden
	case 29:
		p.attr &^= attrStrike
	case 53:
		p.attr |= attrOverline
	case 55:
		p.attr &^= attrOverline
	}
}

// sgrColour reads 38, 48 and 58 with semicolons and returns the index of the
// last parameter it used.
func (t *Transcript) sgrColour(i, which int) int {
	i++
	switch t.arg(i, 0, -1) {
	case 2:
		if t.rgb(which, t.arg(i+1, 0, -1), t.arg(i+2, 0, -1), t.arg(i+3, 0, -1)) {
			i += 3
		}
	case 5:
		t.indexed(which, t.arg(i+1, 0, -1))
		i++
	}
	return i
}

func (t *Transcript) indexed(which, c int) {
	set := c >= 0 && c <= 255
	switch which {
	case 38:
		t.pen.foreground = set
	case 48:
		t.pen.bg = backgroundDefault
		if set {
			t.pen.bg = backgroundPalette
		}
	}
}

func (t *Transcript) rgb(which, r, g, b int) bool {
	for _, v := range [3]int{r, g, b} {
		if v < 0 || v > 255 {
			return false
		}
	}
	switch which {
	case 38:
		t.pen.foreground = true
	case 48:
		t.pen.bg = backgroundRGB
	}
	return true
}

// sgrColon reads one parameter with colons: an underline style or a colour.
func (t *Transcript) sgrColon(i int) {
	var p [8]int
	for n := range p {
		p[n] = -1
	}
	n := 0
	text := t.params[t.argText[i][0]:t.argText[i][1]]
	for at := 0; at <= len(text); {
		v, digits := 0, 0
		for at < len(text) && text[at] != ':' {
			v = min(v*10+int(text[at]-'0'), 1<<31)
			digits++
			at++
		}
		at++
		if digits > 0 {
			if v > 1<<31-1 {
				return
			}
			p[n] = v
		}
		n++
		if n == len(p) {
			return
		}
	}
	switch {
	case p[0] == 4 && n == 2:
		switch {
		case p[1] == 0:
			t.pen.attr &^= attrUnderline
		case p[1] <= 5 && p[1] > 0:
			t.pen.attr |= attrUnderline
		}
	case n < 2 || p[0] != 38 && p[0] != 48 && p[0] != 58:
	case p[1] == 2:
		at := 3
		if n == 5 {
			at = 2
		}
		if n >= at+3 {
			t.rgb(p[0], p[at], p[at+1], p[at+2])
		}
	case p[1] == 5 && n >= 3:
		t.indexed(p[0], p[2])
	}
}
