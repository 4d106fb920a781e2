package transcript

// partials remembers how far rows had been written at the ends of chunks.
type partials struct{}

func (p *partials) leave(id uint64, off int64) {}

type orphan struct{}

func (t *Transcript) notePartial() {}
