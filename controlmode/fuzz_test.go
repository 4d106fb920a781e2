package controlmode_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
)

// FuzzParser cuts a stream in an arbitrary way: the events must be those of the
// whole, and what is kept must stay within the limits.
func FuzzParser(f *testing.F) {
	for _, n := range notifications {
		f.Add([]byte(n.line+"\n"), []byte{3, 1, 4})
	}
	f.Add([]byte("%begin 1 2 1\none\n%end 1 2 1\n%output %0 a\\015\\012\n"), []byte{1})
	f.Add([]byte("%begin 1 2 1\r\none\r\n\r\n%end 1 2 1\r\n%exit\r\n"), []byte{2})
	f.Add([]byte("%begin 1 2 1\n%end 1 2 0\n%begin 1 2 1\n%error 1 2 1\n%end 1 2 1\n"), []byte{5, 7})
	f.Add([]byte("%begin 1 2 1\n"+strings.Repeat("long ", 100)+"\n%end 1 2 1\nstray\n\n%"), []byte{64})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		for _, limits := range []controlmode.Parser{{}, {MaxBody: 20, MaxLine: 40}} {
			whole, cut := limits, limits
			want, werr := collect(&whole, in)
			var chunks [][]byte
			for rest, i := in, 0; len(rest) > 0; i++ {
				n := 1
				if len(cuts) > 0 {
					n = min(len(rest), 1+int(cuts[i%len(cuts)]))
				}
				chunks, rest = append(chunks, rest[:n]), rest[n:]
			}
			got, gerr := collect(&cut, chunks...)
			if !reflect.DeepEqual(want, got) || !reflect.DeepEqual(werr, gerr) {
				t.Fatalf("errors %v, %v (-whole +cut):\n%s", werr, gerr, cmp.Diff(want, got))
			}
			checkBounds(t, limits, len(in), want)
		}
	})
}

func checkBounds(t *testing.T, limits controlmode.Parser, size int, events []controlmode.Event) {
	t.Helper()
	for _, ev := range events {
		switch ev := ev.(type) {
		case controlmode.BlockEnd:
			if limits.MaxBody > 0 && int64(len(ev.Body)) > limits.MaxBody || int64(len(ev.Body))+ev.Truncated > int64(size) {
				t.Fatalf("body of %d bytes and %d truncated", len(ev.Body), ev.Truncated)
			}
		case controlmode.Unknown:
			checkLine(t, limits, size, ev.Line, ev.Cut)
		case controlmode.Stray:
			checkLine(t, limits, size, ev.Line, ev.Cut)
		case *controlmode.Output:
			if len(ev.Data) > size {
				t.Fatalf("output of %d bytes from %d", len(ev.Data), size)
			}
		}
	}
}

func checkLine(t *testing.T, limits controlmode.Parser, size int, line string, cut int64) {
	t.Helper()
	if limits.MaxLine > 0 && len(line) > limits.MaxLine || int64(len(line))+cut > int64(size) {
		t.Fatalf("line of %d bytes and %d cut", len(line), cut)
	}
}

// Memory stays bounded when a line or a body never ends.
func TestParserMemoryIsBounded(t *testing.T) {
	for name, front := range map[string]string{"line": "%message ", "body": "%begin 1 2 1\n", "body lines": "%begin 1 2 1\n"} {
		t.Run(name, func(t *testing.T) {
			p := &controlmode.Parser{MaxBody: 1 << 16, MaxLine: 1 << 16}
			emit := func(controlmode.Event) {}
			if err := p.Feed([]byte(front), emit); err != nil {
				t.Fatal(err)
			}
			chunk := bytes.Repeat([]byte("x"), 1<<16)
			if name == "body lines" {
				chunk = bytes.Repeat([]byte("%end 1 2 0\n"), 1<<12)
			}
			for range 8 { // reach the bounds
				p.Feed(chunk, emit)
			}
			if n := testing.AllocsPerRun(100, func() { p.Feed(chunk, emit) }); n != 0 {
				t.Errorf("%v allocations per chunk beyond the limits", n)
			}
		})
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("a\\b\x00\x1f\x7f\xff\r\n"))
	f.Add([]byte(`\134\9\77\400`))
	f.Add([]byte(allBytes()))
	f.Fuzz(func(t *testing.T, data []byte) {
		esc := controlmode.AppendEscape(nil, data)
		if got := controlmode.AppendUnescape(nil, esc); !bytes.Equal(got, data) {
			t.Fatalf("%q became %q and then %q", data, esc, got)
		}
		for _, c := range esc {
			if c < 0x20 {
				t.Fatalf("raw byte %#x in %q", c, esc)
			}
		}
		// Whatever is given as encoded data, it does not grow or touch what was there.
		if got := controlmode.AppendUnescape([]byte("front"), data); len(got) > len(data)+5 || string(got[:5]) != "front" {
			t.Fatalf("%q became %q", data, got)
		}
	})
}
