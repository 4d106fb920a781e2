package controlmode

import (
	"errors"
	"fmt"
	"strconv"
)

// Split is how a cell of a layout is divided.
type Split byte

// The ways a cell is divided; a Leaf is one pane.
const (
	Leaf      Split = 0
	LeftRight Split = '{'
	TopBottom Split = '['
)

// Layout is a cell of a window's layout: a pane, or cells side by side or on top
// of each other with a border of one column or row between them.
type Layout struct {
	Width, Height int // in columns and rows, borders around it not counted
	X, Y          int // of its top left corner in the window
	Split         Split
	Pane          PaneID   // of a Leaf
	Cells         []Layout // of a split, in order
	// Floating are the floating panes of the window, topmost first; only in the
	// root and only from tmux 3.7 to 3.7c, which lists them in Cells too. tmux 3.8
	// leaves them out of what it tells control clients.
	Floating []Layout
}

const (
	// maxLayoutDepth bounds the nesting; a window cannot be split deeper than
	// it has rows and columns.
	maxLayoutDepth = 200
	// maxLayoutNumber bounds sizes; windows have at most 10,000 columns
	// (tmux.h WINDOW_MAXIMUM).
	maxLayoutNumber = 1 << 20
)

// ErrLayout is a text that is not a layout string.
var ErrLayout = errors.New("not a tmux layout")

// ParseLayout reads a layout string as %layout-change and #{window_layout} have
// it: four hexadecimal digits of checksum, a comma, the root cell. tmux 3.8
// shows a JSON form to clients that are not in control mode; that is an error.
func ParseLayout(s string) (Layout, error) {
	if len(s) < 5 || s[4] != ',' {
		return Layout{}, fmt.Errorf("%w: %.40q", ErrLayout, s)
	}
	p := layoutParser{s: s[5:]}
	if want := fmt.Sprintf("%04x", layoutChecksum(p.s)); s[:4] != want {
		return Layout{}, fmt.Errorf("%w: checksum %q of a layout with %s", ErrLayout, s[:4], want)
	}
	root, ok := p.cell(0)
	if ok && p.take('<') {
		root.Floating, ok = p.cells('>', maxLayoutDepth)
	}
	if !ok || p.at != len(p.s) {
		return Layout{}, fmt.Errorf("%w: at byte %d of %.40q", ErrLayout, p.at+5, s)
	}
	return root, nil
}

// layoutParser is a position in the text behind the checksum.
type layoutParser struct {
	s  string
	at int
}

func (p *layoutParser) take(c byte) bool {
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *layoutParser) number(max uint64) (n uint64, ok bool) {
	start := p.at
	for p.at < len(p.s) && p.s[p.at] >= '0' && p.s[p.at] <= '9' {
		if n = n*10 + uint64(p.s[p.at]-'0'); n > max {
			return 0, false
		}
		p.at++
	}
	// No leading zeros, so that every layout has one spelling.
	return n, p.at == start+1 || p.at > start && p.s[start] != '0'
}

// cell reads WxH,X,Y and then ",ID" or the cells of a split.
func (p *layoutParser) cell(depth int) (Layout, bool) {
	var l Layout
	for i, field := range []*int{&l.Width, &l.Height, &l.X, &l.Y} {
		if i > 0 && !p.take("?x,,"[i]) {
			return l, false
		}
		n, ok := p.number(maxLayoutNumber)
		if !ok {
			return l, false
		}
		*field = int(n)
	}
	var ok bool
	switch {
	case p.take(','):
		var id uint64
		id, ok = p.number(1<<32 - 1)
		l.Pane = PaneID(id)
	case depth >= maxLayoutDepth:
	case p.take('{'):
		l.Split = LeftRight
		l.Cells, ok = p.cells('}', depth+1)
	case p.take('['):
		l.Split = TopBottom
		l.Cells, ok = p.cells(']', depth+1)
	}
	return l, ok
}

// cells reads cells with commas between them up to the closing byte.
func (p *layoutParser) cells(end byte, depth int) ([]Layout, bool) {
	var list []Layout
	for {
		l, ok := p.cell(depth)
		if !ok {
			return nil, false
		}
		list = append(list, l)
		if p.take(end) {
			return list, true
		}
		if !p.take(',') {
			return nil, false
		}
	}
}

// layoutChecksum is tmux's (layout-custom.c layout_checksum).
func layoutChecksum(s string) uint16 {
	var sum uint16
	for i := 0; i < len(s); i++ {
		sum = sum>>1 | sum<<15
		sum += uint16(s[i])
	}
	return sum
}

// String is the layout string with its checksum, as select-layout takes it.
func (l Layout) String() string {
	b := l.append(nil)
	if len(l.Floating) > 0 {
		b = appendCells(b, '<', l.Floating, '>')
	}
	return fmt.Sprintf("%04x,%s", layoutChecksum(string(b)), b)
}

func (l Layout) append(b []byte) []byte {
	for i, n := range [...]int{l.Width, l.Height, l.X, l.Y} {
		if i > 0 {
			b = append(b, "?x,,"[i])
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	switch l.Split {
	case LeftRight:
		return appendCells(b, '{', l.Cells, '}')
	case TopBottom:
		return appendCells(b, '[', l.Cells, ']')
	}
	b = append(b, ',')
	return strconv.AppendUint(b, uint64(l.Pane), 10)
}

func appendCells(b []byte, open byte, cells []Layout, end byte) []byte {
	sep := open
	for _, c := range cells {
		b = append(b, sep)
		b = c.append(b)
		sep = ','
	}
	return append(b, end)
}

// Panes are the panes of the layout in its order.
func (l Layout) Panes() []PaneID {
	if l.Split == Leaf {
		return []PaneID{l.Pane}
	}
	var panes []PaneID
	for _, c := range l.Cells {
		panes = append(panes, c.Panes()...)
	}
	return panes
}
