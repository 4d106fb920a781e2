package transcript

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Shown is the end of what capture-pane -J prints, from any row on; the rows
// come from random streams, on both screens.
func TestShownIsTheEndOfJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(agreeSizes).Draw(t, "size")
		k := kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
		x := New(size[0], size[1], rapid.SampledFrom([]int{0, 10, 2000}).Draw(t, "limit"), ProfileNewest)
		if rapid.Bool().Draw(t, "keep") {
			x.Keep(1 << 20)
		}
		write(x, string(generate(rapid.Uint64().Draw(t, "seed"), k, size[0], size[1], ProfileNewest)))
		rows := x.history.tmux() + x.height
		for history := -1; history <= x.history.tmux()+1; history++ {
			lines, known := x.Shown(history)
			if !known {
				t.Fatal("not known")
			}
			want := x.joinedFrom(rows - x.height - min(max(history, 0), x.history.tmux()))
			got := make([]string, len(lines))
			for i, l := range lines {
				got[i] = l.Text
				if l.Offset > x.Offset() {
					t.Fatalf("line %d at %d of %d", i, l.Offset, x.Offset())
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of history: %q\nwant %q", history, got, want)
			}
		}
	})
}

// joinedFrom joins what Joined does, from a row of tmux's on, and reads it.
func (t *Transcript) joinedFrom(row int) (lines []string) {
	var line strings.Builder
	add := func(text string, wrapped bool) {
		if row--; row >= 0 {
			return
		}
		line.WriteString(text)
		if !wrapped {
			lines = append(lines, trimBlanks(readText(line.String(), true)))
			line.Reset()
		}
	}
	for i := t.history.kept; i < t.history.len(); i++ {
		add(t.history.at(i).text, t.history.at(i).wrapped)
	}
	for y, r := range t.rows {
		add(string(t.appendRaw(nil, r, r.used)), r.wrapped && y < t.height-1)
	}
	return lines
}

// What a seed did not bring is not answered as if it were all.
func TestShownKnowsWhatItLacks(t *testing.T) {
	x, err := Seed(SeedState{
		Width: 10, Height: 2, CursorX: 1, CursorY: 1, Lower: 1, Wrap: true, HistorySize: 5, HistoryLimit: 100,
		Styled: []byte("h\na\nb\n"), Joined: []byte("h\na\nb\n"), AlternateX: -1, AlternateY: -1,
	}, 0, ProfileNewest)
	if err != nil {
		t.Fatal(err)
	}
	for history, want := range map[int]bool{0: true, 1: true, 2: false, 5: false, 100: false} {
		if lines, known := x.Shown(history); known != want || known && len(lines) != 2+history {
			t.Errorf("%d rows of history: %v, %v", history, lines, known)
		}
	}
}
