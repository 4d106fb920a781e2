package transcript

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// agreeEnv asks for the long run: so many random streams of each kind.
const agreeEnv = "TRANSCRIPT_AGREE"

type shared struct {
	Name   string
	Cols   int
	Rows   int
	Screen string
	Joined *string
	Stream string
	Bytes  []byte `json:"-"` // what the pane gets: LF is CR LF in a tty
}

func sharedCases(t testing.TB) []shared {
	t.Helper()
	b, err := os.ReadFile("testdata/cases/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []shared
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		raw, err := os.ReadFile(filepath.Join("testdata/cases", cases[i].Name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		cases[i].Bytes = []byte(strings.ReplaceAll(string(raw), "\n", "\r\n"))
	}
	return cases
}

// TestAgreeCases compares the shared cases with tmux.
func TestAgreeCases(t *testing.T) {
	r := newRig(t)
	for _, c := range sharedCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			compare(t, r, c.Cols, c.Rows, c.Bytes)
		})
	}
}

func compare(t *testing.T, r *rig, width, height int, stream []byte) bool {
	t.Helper()
	want := r.show(t, width, height, stream)
	got := render(width, height, r.profile, stream)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differs from tmux %s (-tmux +transcript):\n%s\nstream %q", r.version, d, stream)
		return false
	}
	return true
}

var agreeSizes = [][2]int{{80, 24}, {40, 10}, {13, 5}, {132, 43}, {21, 8}, {7, 3}, {2, 2}, {60, 1}}

// TestAgreeRandom compares random streams: a few with fixed seeds in a short
// run, many with fresh ones when TRANSCRIPT_AGREE says how many.
func TestAgreeRandom(t *testing.T) {
	r := newRig(t)
	n, seed := 50, uint64(1)
	if s := os.Getenv(agreeEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", agreeEnv, err)
		}
		seed = rand.Uint64()
		t.Logf("first seed %d", seed)
	}
	for k := range kinds {
		failed := 0
		for i := range n {
			s := seed + uint64(i)
			size := agreeSizes[i%len(agreeSizes)]
			stream := generate(s, k, size[0], size[1], r.profile)
			if failed < 5 || os.Getenv(agreeEnv) != "" {
				ok := t.Run(fmt.Sprintf("%v/%d/%dx%d", k, s, size[0], size[1]), func(t *testing.T) {
					compareShrunk(t, r, size[0], size[1], stream)
				})
				if !ok {
					failed++
				}
			}
		}
		t.Logf("%v: %d of %d streams differ", k, failed, n)
	}
}

// compareShrunk compares, and on a difference looks for a shorter stream that
// still differs.
func compareShrunk(t *testing.T, r *rig, width, height int, stream []byte) {
	t.Helper()
	differs := func(s []byte) bool {
		return !cmp.Equal(r.show(t, width, height, s), render(width, height, r.profile, s))
	}
	if !differs(stream) {
		return
	}
	budget := 150
	for size := len(stream) / 2; size >= 1 && budget > 0; {
		cut := false
		for at := 0; at < len(stream) && budget > 0; at += size {
			s := append(append([]byte{}, stream[:at]...), stream[min(at+size, len(stream)):]...)
			budget--
			if differs(s) {
				stream, cut = s, true
				break
			}
		}
		if !cut {
			size /= 2
		}
	}
	if compare(t, r, width, height, stream) {
		t.Errorf("a difference did not come again when shrinking %q", stream)
	}
}
