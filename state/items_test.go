package state

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever order numbers come in, all says yes only for items that were added,
// and while few are missing says so for all of those.
func TestItemsAreThoseAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got items
		had := map[uint64]bool{}
		for range rapid.IntRange(0, 600).Draw(t, "adds") {
			n := rapid.Uint64Range(1, 300).Draw(t, "item")
			if len(had) > 0 && rapid.Bool().Draw(t, "next") {
				n = rapid.SampledFrom(numbers(had)).Draw(t, "after") + 1
			}
			got.add(n)
			had[n] = true
		}
		from := rapid.Uint64Range(0, 300).Draw(t, "from")
		to := rapid.Uint64Range(from+1, 301).Draw(t, "to")
		want := true
		for n := from + 1; n <= to; n++ {
			want = want && had[n]
		}
		if all := got.all(from, to); all != want {
			t.Fatalf("all(%d, %d) of %v is %v", from, to, got.spans, all)
		}
	})
}

func numbers(m map[uint64]bool) (all []uint64) {
	for n := range 1000 {
		if m[uint64(n)] {
			all = append(all, uint64(n))
		}
	}
	return all
}

// Numbers with gaps between them do not fill the memory: the oldest are
// forgotten, and then cannot be told.
func TestItemsAreForgotten(t *testing.T) {
	var got items
	for n := uint64(2); n <= 4*maxSpans; n += 2 {
		got.add(n)
	}
	got.add(1)
	if len(got.spans) != maxSpans {
		t.Errorf("%d spans", len(got.spans))
	}
	if got.all(1, 2) {
		t.Error("a forgotten item is remembered")
	}
	if !got.all(4*maxSpans-1, 4*maxSpans) {
		t.Error("the newest item is forgotten")
	}
}

// tmux starts again at 0 after 32 bits.
func TestItemsStartAgain(t *testing.T) {
	var got items
	for n := uint64(1<<32 - 2*maxSpans); n < 1<<32; n += 2 {
		got.add(n)
	}
	for n := uint64(0); n < 9; n++ {
		got.add(n)
	}
	if !got.all(0, 8) || got.all(1<<32-3, 1<<32-2) {
		t.Errorf("%v", got.spans)
	}
}
