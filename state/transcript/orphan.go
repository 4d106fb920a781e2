package transcript

// orphan is a line that a new seed no longer shows: it was trimmed, cleared or
// cut differently by tmux while a reader had not seen it. It is told from the
// old rows, in its old place.
type orphan struct {
	text   string
	id     uint64
	news   int64
	before uint64 // the line it stood before, 0 at the end
}

// placeOrphans puts orphans among the lines to tell.
func (t *Transcript) placeOrphans(lines []line, orphans []orphan) []line {
	at := map[uint64]int{} // row index of each line's first row
	for i, n := 0, t.rowCount(); i < n; i++ {
		at[t.view(i).id] = i
	}
	out := make([]line, 0, len(lines)+len(orphans))
	next := 0
	for i := range orphans {
		o := &orphans[i]
		limit := t.rowCount()
		if y, ok := at[o.before]; ok && o.before != 0 {
			limit = y
		}
		for next < len(lines) && lines[next].from < limit {
			out = append(out, lines[next])
			next++
		}
		out = append(out, line{orphan: o, id: o.id, news: o.news, changed: o.news, blank: o.text == ""})
	}
	return append(out, lines[next:]...)
}
