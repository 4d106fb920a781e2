package transcript

func (t *Transcript) combineNew(r rune, width int) bool { return false }

func forcedWide(p Profile, r rune) bool { return false }

func (t *Transcript) putTab(n int) {}
