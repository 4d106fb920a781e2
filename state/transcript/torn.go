package transcript

import (
	"slices"
	"strings"
)

// tornLine finds the line in whose middle the output was interrupted: the old
// unfinished last line, of which tmux shows more now, right after the last line
// that both know. Without such a line the screen may be another process's. head
// is what was known of it.
func (t *Transcript) tornLine(n *Transcript, old, fresh []known, pairs [][2]int) (pair [2]int, head string, ok bool) {
	pair = [2]int{-1, -1}
	for _, p := range pairs { // nothing else stands between
		if p[0] > pair[0] {
			pair = p
		}
	}
	if pair[0] < 0 {
		return pair, "", false
	}
	i, j := pair[0]+1, pair[1]+1
	for i < len(old) && strings.TrimSpace(old[i].text) == "" {
		i++
	}
	for j < len(fresh) && strings.TrimSpace(fresh[j].text) == "" {
		j++
	}
	if i >= len(old) || j >= len(fresh) || old[i].orphan != nil || t.finished(old[i].line) {
		return pair, "", false
	}
	head = trimBlanks(t.lineRaw(old[i].line))
	return [2]int{i, j}, head, strings.HasPrefix(n.lineRaw(fresh[j].line), head)
}

// lineRaw is a line's text in the internal form.
func (t *Transcript) lineRaw(l line) string {
	var b []byte
	for i := l.from; i < l.to; i++ {
		b = append(b, t.rawText(i)...)
	}
	return string(b)
}

// goOn makes the part of a torn line behind its head news, as if it had been
// printed now.
func (t *Transcript) goOn(l line, head string) {
	at := 0
	for k := l.from; k < l.to; k++ {
		v := t.view(k)
		begin, end := at, at+len(t.rawText(k))
		at = end
		if end <= len(head) && k < l.to-1 {
			continue
		}
		if end > len(head) {
			v.changed = t.off
		}
		if begin >= len(head) && begin > 0 {
			v.born, v.rewrote, v.gap = t.off, 0, 0
		}
		v.left = 0
		t.setView(k, v)
	}
}

// withTorn adds the pair of the torn line.
func withTorn(pairs [][2]int, torn [2]int) [][2]int {
	at, _ := slices.BinarySearchFunc(pairs, torn, func(a, b [2]int) int { return a[0] - b[0] })
	return slices.Insert(pairs, at, torn)
}

// withText leaves out pairs of blank lines: on the screen of another process
// they mean nothing.
func withText(old []known, pairs [][2]int) [][2]int {
	return slices.DeleteFunc(pairs, func(p [2]int) bool { return strings.TrimSpace(old[p[0]].text) == "" })
}
