package transcript

//go:generate go run ./internal/widthgen width_table.go

// wcwidth is the C library's: 0, 1 or 2 columns, -1 for a character without a
// width (controls, unassigned).
func wcwidth(r rune) int {
	if uint32(r) >= 0x110000 {
		return -1
	}
	block := int(widthIndex[r>>8])
	b := widthBlocks[block*64+int(r&0xff)>>2]
	w := int(b >> (2 * (r & 3)) & 3)
	if w == 3 {
		return -1
	}
	return w
}
