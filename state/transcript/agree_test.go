package transcript

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
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

// recording is what a real program printed.
type recording struct {
	name          string
	width, height int
	stream        []byte
}

func recordings(t testing.TB) []recording {
	t.Helper()
	paths, err := filepath.Glob("testdata/recordings/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 60 {
		t.Fatalf("only %d recordings", len(paths))
	}
	var out []recording
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		f.Close()
		r := recording{name: strings.TrimSuffix(filepath.Base(p), ".gz"), stream: b}
		if _, err := fmt.Sscanf(r.name[strings.LastIndexByte(r.name, '-')+1:], "%dx%d", &r.width, &r.height); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		out = append(out, r)
	}
	return out
}

// TestAgreeRecordings compares what real programs printed: every eighth in a
// short run, all of them in the long one.
func TestAgreeRecordings(t *testing.T) {
	r := newRig(t)
	for i, rec := range recordings(t) {
		if os.Getenv(agreeEnv) == "" && i%8 != 0 {
			continue
		}
		t.Run(rec.name, func(t *testing.T) {
			compare(t, r, rec.width, rec.height, rec.stream)
		})
	}
}

// TestAgreeCases compares the shared cases with tmux.
func TestAgreeCases(t *testing.T) {
	r := newRig(t)
	for _, c := range sharedCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if r.profile >= Profile34 && c.Name == "17-dcs-sixel-apc" {
				t.Skip("a tmux built with sixel scrolls and moves the cursor for an image, by the size of the client's cells")
			}
			compare(t, r, c.Cols, c.Rows, c.Bytes)
		})
	}
}

func compare(t *testing.T, r *rig, width, height int, stream []byte) bool {
	t.Helper()
	want := r.show(t, width, height, stream)
	got := render(width, height, r.profile, stream)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differs from tmux %s (-tmux +transcript):\n%s\nstream %.2000q", r.version, d, stream)
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
