package mcp

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A duration is given back right to an eighth, whatever it is.
func TestLatencyBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(1, 1<<31).Draw(t, "us")
		d := time.Duration(us) * time.Microsecond
		got := middle(bucket(d))
		if off := got - d; max(off, -off) > d/8+time.Microsecond {
			t.Errorf("%v is told as %v", d, got)
		}
		if next := bucket(d + time.Microsecond); next < bucket(d) {
			t.Errorf("%v is in bucket %d, a microsecond more in %d", d, bucket(d), next)
		}
	})
	for _, d := range []time.Duration{-1, 0, 1 << 62} {
		if b := bucket(d); b < 0 || b >= parts*octaves {
			t.Errorf("%v is in bucket %d", d, b)
		}
	}
}

func TestLatencyQuantiles(t *testing.T) {
	var l latencies
	for i := range 1000 {
		took := time.Millisecond
		if i%40 == 0 {
			took = time.Second
		}
		l.add("often", took)
	}
	l.add("once", 3*time.Millisecond)
	for i := range 2 * maxLatencies { // names are bounded
		l.add(fmt.Sprint("name", i), 1)
	}
	all := l.stats()
	if len(all) != maxLatencies {
		t.Errorf("%d tools", len(all))
	}
	near := func(got, want time.Duration) bool { return got > want*7/8 && got < want*9/8 }
	for _, s := range all {
		switch s.Tool {
		case "often":
			if s.Count != 1000 || !near(s.Median, time.Millisecond) || !near(s.P99, time.Second) {
				t.Errorf("%+v", s)
			}
		case "once":
			if s.Count != 1 || !near(s.Median, 3*time.Millisecond) || s.P99 != s.Median {
				t.Errorf("%+v", s)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { l.add("often", time.Millisecond) }); n != 0 {
		t.Errorf("a call costs %v allocations", n)
	}
}
