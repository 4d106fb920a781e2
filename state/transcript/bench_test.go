package transcript

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func benchmarkWrite(b *testing.B, stream string) {
	text := []byte(strings.Repeat(stream, 1+1<<20/len(stream)))
	tr := New(80, 24, 2000, Profile33)
	tr.Write(text, time.Time{}) // history is full, buffers have grown
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for at := 0; at < len(text); at += 4096 {
			tr.Write(text[at:min(at+4096, len(text))], time.Time{})
		}
	}
}

func plainText() string {
	var b strings.Builder
	for i := range 50 {
		b.WriteString(strings.Repeat("plain text of a log ", 5)[:20+i%60] + "\r\n")
	}
	return b.String()
}

func colourText() string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "\x1b[1;3%dmcolour\x1b[0m \x1b[38;5;%dmof a\x1b[m line \x1b[48;2;%d;2;3mhere\x1b[49m and more text\r\n", i%8, i, i)
	}
	return b.String()
}

func cursorText() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "\x1b[%d;%dHcell %d\x1b[K", 1+i%24, 1+i*7%60, i)
	}
	return b.String()
}

func wideText() string {
	return strings.Repeat("\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587 e\u0301 \U0001f600\r\n", 40)
}

func BenchmarkWritePlain(b *testing.B)  { benchmarkWrite(b, plainText()) }
func BenchmarkWriteColour(b *testing.B) { benchmarkWrite(b, colourText()) }
func BenchmarkWriteCursor(b *testing.B) { benchmarkWrite(b, cursorText()) }
func BenchmarkWriteWide(b *testing.B)   { benchmarkWrite(b, wideText()) }

// BenchmarkByteLoop is the plain loop over bytes that the others are judged by.
func BenchmarkByteLoop(b *testing.B) {
	text := []byte(plainText())
	b.SetBytes(int64(len(text)))
	sum := 0
	for b.Loop() {
		for _, c := range text {
			if c < 0x20 || c > 0x7e {
				sum++
			}
		}
	}
	_ = sum
}

// BenchmarkWriteBesideByteLoop writes and loops over the same bytes in turns, and
// tells both in MB/s of the processor's time, which a busy machine changes less
// than the clock's. The aims are 100 for plain text, 80 for colours, 60 for cursor
// movement, all on a machine whose loop does 1,000; or-aim is how much of the aim
// is reached on this one, scaled by its loop.
func BenchmarkWriteBesideByteLoop(b *testing.B) {
	for _, c := range []struct {
		name, stream string
		aim          float64
	}{{"plain", plainText(), 100}, {"colour", colourText(), 80}, {"cursor", cursorText(), 60}, {"wide", wideText(), 60}} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(strings.Repeat(c.stream, 1+1<<20/len(c.stream)))
			tr := New(80, 24, 2000, Profile33)
			tr.Keep(8 << 20) // as in the daemon
			for range 20 {
				tr.Write(text, time.Time{})
			}
			var wrote, looped time.Duration
			sum := 0
			for b.Loop() {
				begin := cpu(b)
				for at := 0; at < len(text); at += 4096 {
					tr.Write(text[at:min(at+4096, len(text))], time.Time{})
				}
				middle := cpu(b)
				for range 4 {
					for _, c := range text {
						if c < 0x20 || c > 0x7e {
							sum++
						}
					}
				}
				wrote += middle - begin
				looped += cpu(b) - middle
			}
			_ = sum
			bytes := float64(len(text)*b.N) / 1e6
			mbs, loop := bytes/wrote.Seconds(), 4*bytes/looped.Seconds()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(mbs, "MB/s-cpu")
			b.ReportMetric(loop, "loop-MB/s-cpu")
			b.ReportMetric(mbs/c.aim*1000/loop, "of-aim")
		})
	}
}

// cpu is the processor time this process has taken.
func cpu(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func BenchmarkSinceNothing(b *testing.B) {
	tr := New(80, 24, 2000, Profile33)
	tr.Write([]byte(strings.Repeat(plainText(), 60)), time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		tr.Since(tr.Offset(), SinceOptions{MaxLines: 200})
	}
}

func BenchmarkSince100Lines(b *testing.B) {
	tr := New(80, 24, 2000, Profile33)
	tr.Write([]byte(strings.Repeat(plainText(), 60)), time.Time{})
	at := tr.Offset()
	tr.Write([]byte(strings.Repeat(plainText(), 2)), time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		tr.Since(at, SinceOptions{MaxLines: 200})
	}
}

// TestAllocations: nothing is allocated but one string per row that enters
// history.
func TestAllocations(t *testing.T) {
	for name, stream := range map[string]string{"plain": plainText(), "colour": colourText(), "cursor": cursorText()} {
		tr := New(80, 24, 2000, Profile33)
		tr.Keep(1 << 20)
		chunk := []byte(stream)
		for range 1000 { // until the budget is used up
			tr.Write(chunk, time.Time{})
		}
		rows := strings.Count(stream, "\n")
		if n := testing.AllocsPerRun(50, func() { tr.Write(chunk, time.Time{}) }); n > float64(rows) {
			t.Errorf("%s: %v allocations for %d rows", name, n, rows)
		}
	}
}
