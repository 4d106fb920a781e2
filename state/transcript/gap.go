package transcript

// Skip advances Offset by n without rendering anything: the place of bytes that
// were lost, or of a mark that is no byte of the pane. A Reseed must follow, as
// what tmux shows is not known any more.
func (t *Transcript) Skip(n int64) { t.off += n }

// LostTo is the offset up to which lines have left the transcript before a
// reader at an earlier offset could be told of them, 0 if none has.
func (t *Transcript) LostTo() int64 { return t.lost.to }

// Held is how many bytes history takes: what Keep bounds, and room for more.
func (t *Transcript) Held() int {
	h := &t.history
	return h.bytes + (len(h.ring)-h.n)*pastBytes
}
