package controlmode

import (
	"bytes"
	"strings"
	"testing"
)

func TestRingKeepsTheLastBytes(t *testing.T) {
	for size := 1; size < 9; size++ {
		for step := 1; step < 20; step++ {
			r := ring{buf: make([]byte, size)}
			var all []byte
			for i := range 12 {
				chunk := bytes.Repeat([]byte{byte('a' + i)}, step)
				chunk[0] = '|'
				all = append(all, chunk...)
				r.write(chunk)
				want := all[max(0, len(all)-size):]
				if got := r.bytes(); !bytes.Equal(got, want) || r.total != int64(len(all)) {
					t.Fatalf("size %d, step %d: %q, want %q", size, step, got, want)
				}
			}
		}
	}
}

func TestDumpOfCutRecording(t *testing.T) {
	var r recorder
	r.init(20)
	r.add(&r.in, []byte("%output %0 a secret\n%window-add @3\nsec"))
	r.add(&r.out, []byte("list-panes\n"))
	want := "from tmux, bytes 18 to 38:\n\t...x\n\t%window-add @3\n\txxx(no newline)\nto tmux, bytes 0 to 11:\n\tlist-panes\n"
	if got := string(r.dump()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r = recorder{}
	r.init(-1) // none
	r.add(&r.in, []byte("x"))
	if got := string(r.dump()); strings.Contains(got, "\t") {
		t.Errorf("got %s", got)
	}
}
