package mcp

import "testing"

func TestParentFromStat(t *testing.T) {
	for stat, want := range map[string]int{
		"12 (bash) S 7 12 12 0 -1": 7,
		"12 (a) b (c) 9) R 3 1":    3,
		"12 (x":                    0,
		"":                         0,
		"12 (x) S":                 0,
		"12 (x) S y":               0,
	} {
		if got := parentFromStat([]byte(stat)); got != want {
			t.Errorf("%q: %d, want %d", stat, got, want)
		}
	}
}
