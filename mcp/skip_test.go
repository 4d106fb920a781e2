package mcp

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// skipString finds the end that a look at each byte finds.
func TestSkipString(t *testing.T) {
	plain := func(b []byte, i int) int {
		for i++; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return math.MaxInt
	}
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(`"` + rapid.StringOfN(rapid.RuneFrom([]rune{'a', '\\', '"', 'é'}), 0, 40, -1).Draw(t, "text"))
		if got, want := skipString(b, 0), plain(b, 0); got != want {
			t.Fatalf("%q ends at %d, want %d", b, got, want)
		}
	})
}
