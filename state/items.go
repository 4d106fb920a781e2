package state

import (
	"slices"
	"sync"
)

// items remembers under which item numbers a tmux server has run commands of this
// Mirror that change nothing.
type items struct {
	mu    sync.Mutex
	spans []span // sorted, with others' items between them; the newest maxSpans
}

// span is the item numbers from first to last.
type span struct{ first, last uint64 }

const maxSpans = 256

// add is called by the reader goroutines of all clients: numbers come in order
// from each, and nearly so from all.
func (t *items) add(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.spans)
	if i > 0 && n+1<<31 < t.spans[i-1].last { // tmux counts with 32 bits
		t.spans, i = t.spans[:0], 0
	}
	for i > 0 && t.spans[i-1].first > n {
		i--
	}
	before := i > 0 && t.spans[i-1].last+1 >= n
	after := i < len(t.spans) && t.spans[i].first == n+1
	switch {
	case before && after:
		t.spans[i-1].last = t.spans[i].last
		t.spans = slices.Delete(t.spans, i, i+1)
	case before:
		t.spans[i-1].last = max(t.spans[i-1].last, n)
	case after:
		t.spans[i].first = n
	case len(t.spans) == maxSpans && i == 0: // older than what is remembered
	default:
		if len(t.spans) == maxSpans {
			t.spans, i = slices.Delete(t.spans, 0, 1), i-1
		}
		t.spans = slices.Insert(t.spans, i, span{n, n})
	}
}

// all tells whether every item after one and up to another was among them.
func (t *items) all(after, upTo uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.spans) - 1; i >= 0; i-- {
		if s := t.spans[i]; s.first <= upTo {
			return s.first <= after+1 && upTo <= s.last
		}
	}
	return false
}

// itemsOf is what is remembered of one life of the tmux server.
func (m *Mirror) itemsOf(life ServerID) *items {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil || m.itemLife != life {
		m.items, m.itemLife = &items{}, life
	}
	return m.items
}
