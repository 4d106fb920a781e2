package transcript

import "unicode/utf8"

// cell is one column of a visible row: a rune or the number of an interned
// cluster in the low bits, flags above. A padding cell is the second half of a
// wide character and has no text.
type cell uint32

const (
	cellValue   cell = 1<<21 - 1
	cellCluster cell = 1 << 21 // the value is a cluster's number
	cellPadding cell = 1 << 22
	cellWide    cell = 1 << 23 // two columns
	cellCleared cell = 1 << 24 // never printed, or erased
	cellACS     cell = 1 << 25 // a letter that stands for line drawing
	cellTab     cell = 1 << 26 // start of a stored tab, from tmux 3.6 on

	// A tab's width less one sits above the flags; tmux stores a tab only when
	// its blanks fit into a cell's 32 bytes (input.c, 3.6).
	cellTabShift = 27

	cellBlank = cell(' ') | cellCleared
	cellSpace = cell(' ') // what tmux calls the default cell: printed, not erased

	// cellLook is what decides a cell's text.
	cellLook = cellValue | cellCluster | cellPadding | cellACS | cellTab
)

// sameText tells whether two cells read alike: an erased cell reads as a space.
func sameText(a, b cell) bool { return (a^b)&cellLook == 0 }

func (c cell) padding() bool { return c&cellPadding != 0 }

func (c cell) blank() bool { return c&cellLook == cellSpace || c&cellPadding != 0 }

// width is the number of columns; a padding cell has none.
func (c cell) width() int {
	switch {
	case c&cellPadding != 0:
		return 0
	case c&cellTab != 0:
		return int(c>>cellTabShift) + 1
	case c&cellWide != 0:
		return 2
	}
	return 1
}

const (
	// maxClusters bounds the interned clusters of one pane. Past it, after a
	// sweep of those no longer on screen, a combining character is dropped and
	// the base character stays.
	maxClusters = 4096

	// clusterBytes33 and clusterBytes36 are tmux's UTF8_SIZE: what does not fit
	// into a cell is dropped (3.3a to 3.5a, and from 3.6 on).
	clusterBytes33 = 21
	clusterBytes36 = 32
)

// clusters interns the texts of cells that hold more than one rune.
type clusters struct {
	texts  []string
	number map[string]uint32
	free   []uint32
}

// text appends the UTF-8 text of a cell.
func (t *Transcript) appendCell(b []byte, c cell) []byte {
	switch {
	case c&cellPadding != 0:
		return b
	case c&cellTab != 0:
		return append(b, '\t')
	case c&cellCluster != 0:
		return append(b, t.clusters.texts[c&cellValue]...)
	case c&cellValue < utf8.RuneSelf:
		return append(b, byte(c))
	}
	return appendRune(b, rune(c&cellValue))
}

// appendRune encodes a rune. The C library takes F4 90 to F4 BF, beyond the
// last code point, for a character, and tmux from 3.4 on stores its bytes.
func appendRune(b []byte, r rune) []byte {
	if r <= utf8.MaxRune {
		return utf8.AppendRune(b, r)
	}
	return append(b, 0xf0|byte(r>>18), 0x80|byte(r>>12)&0x3f, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// intern finds or makes the number of a cluster. It fails when the pane holds
// too many even after a sweep.
func (t *Transcript) intern(text []byte) (uint32, bool) {
	k := &t.clusters
	if n, ok := k.number[string(text)]; ok {
		return n, true
	}
	if len(k.free) == 0 && len(k.texts) >= maxClusters {
		t.sweepClusters()
		if len(k.free) == 0 {
			return 0, false
		}
	}
	if k.number == nil {
		k.number = make(map[string]uint32)
	}
	s := string(text)
	var n uint32
	if f := len(k.free); f > 0 {
		n = k.free[f-1]
		k.free = k.free[:f-1]
		k.texts[n] = s
	} else {
		n = uint32(len(k.texts))
		k.texts = append(k.texts, s)
	}
	k.number[s] = n
	return n, true
}

// sweepClusters frees the clusters that no visible or saved row uses. History
// rows are strings and use none.
func (t *Transcript) sweepClusters() {
	k := &t.clusters
	used := make([]bool, len(k.texts))
	mark := func(rows []*row) {
		for _, r := range rows {
			for _, c := range r.cells {
				if c&cellCluster != 0 {
					used[c&cellValue] = true
				}
			}
		}
	}
	mark(t.rows)
	mark(t.saved)
	k.free = k.free[:0]
	for n, u := range used {
		if !u {
			delete(k.number, k.texts[n])
			k.texts[n] = ""
			k.free = append(k.free, uint32(n))
		}
	}
}
