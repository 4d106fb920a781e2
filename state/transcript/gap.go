package transcript

// Skip advances Offset by n without rendering anything: the place of bytes that
// were lost, or of a mark that is no byte of the pane. A Reseed must follow, as
// what tmux shows is not known any more.
func (t *Transcript) Skip(n int64) { t.off += n }

// LostTo is the offset up to which lines have left the transcript before a
// reader at an earlier offset could be told of them, 0 if none has.
func (t *Transcript) LostTo() int64 {
	if t.lost.n == 0 {
		return 0
	}
	return t.lost.marks[t.lost.n-1].offset
}

// Kept is how many bytes the rows take that are kept by Keep.
func (t *Transcript) Kept() int { return t.history.keptBytes }
