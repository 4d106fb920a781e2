package transcript

// pen is what tmux's input parser calls its cell, as far as rows depend on it:
// erasing fills with the background, a blank is skipped only with the default
// pen, and from 3.6 on a tab is stored only over blanks of one style.
type pen struct {
	attr uint16 // of attr...; 0 is none
	fg   colour
	bg   colour
	link bool // inside a hyperlink; only from 3.4 on

	space cell // the style of a printed blank, see styleOf

	g0, g1, shiftOut bool // line drawing in G0, G1; G1 is in use
}

// styleOf squeezes a style into the bits of a blank cell that a tab uses for
// its width; 0 is the default style. Different styles rarely meet in one value,
// and then a stored tab may be read as blanks.
func styleOf(attr uint16, fg, bg colour, link bool) cell {
	if attr == 0 && !fg.set() && !bg.set() && !link {
		return 0
	}
	h := (uint32(attr)*31+uint32(fg))*0x9e3779b1 + uint32(bg)*0x85ebca6b
	if link {
		h += 0xc2b2ae35
	}
	return cell(h>>16%31+1) << cellTabShift
}

// blankCell is what erasing with a background leaves.
func (t *Transcript) blankCell(bg colour) cell {
	if t.profile < Profile36 {
		return cellBlank
	}
	return cellBlank | styleOf(0, 0, bg, false)
}

// restyle follows a change of the pen.
func (t *Transcript) restyle() {
	if t.profile >= Profile36 {
		t.pen.space = styleOf(t.pen.attr, t.pen.fg, t.pen.bg, t.pen.link)
	}
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
	return p.attr == 0 && !p.fg.set() && !p.bg.set() && !p.link && !(p.g0 && !p.shiftOut || p.g1 && p.shiftOut)
}

// clear is SGR 0. The hyperlink is no attribute and stays.
func (p *pen) clear() {
	p.attr, p.fg, p.bg = 0, 0, 0
}

// sgr is CSI m.
func (t *Transcript) sgr() {
	t.attributes()
	t.restyle()
}

func (t *Transcript) attributes() {
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
		p.fg = colour(n)
	case n == 39:
		p.fg = 0
	case n >= 40 && n <= 47, n >= 100 && n <= 107:
		p.bg = colour(n - 10)
	case n == 49:
		p.bg = 0
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

func (t *Transcript) indexed(which, n int) {
	c := colour(0x100 | n)
	if n < 0 || n > 255 {
		c = 0
	}
	switch which {
	case 38:
		t.pen.fg = c
	case 48:
		t.pen.bg = c
	}
}

func (t *Transcript) rgb(which, r, g, b int) bool {
	for _, v := range [3]int{r, g, b} {
		if v < 0 || v > 255 {
			return false
		}
	}
	c := colour(1<<24 | r<<16 | g<<8 | b)
	switch which {
	case 38:
		t.pen.fg = c
	case 48:
		t.pen.bg = c
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
