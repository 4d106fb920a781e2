package mcp

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// CallStats are the calls of one tool that have ended since the start. Of how
// long they took the quantiles are right to an eighth.
type CallStats struct {
	Tool        string
	Count       uint64
	Median, P99 time.Duration
}

// latencies counts how long calls took, by tool. Its memory is bounded: one
// histogram of fixed size for each tool, and none for names that are no tool's.
type latencies struct {
	mu    sync.RWMutex // guards tools; not the histograms
	tools map[string]*histogram
}

// maxLatencies bounds the tools that are counted: more than there are.
const maxLatencies = 128

// add counts a call. A tool's first call makes its histogram; no other allocates.
func (l *latencies) add(tool string, took time.Duration) {
	l.mu.RLock()
	h := l.tools[tool]
	l.mu.RUnlock()
	if h == nil {
		h = l.make(tool)
	}
	if h != nil {
		h[bucket(took)].Add(1)
	}
}

func (l *latencies) make(tool string) *histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.tools[tool]; h != nil || len(l.tools) == maxLatencies {
		return h
	}
	if l.tools == nil {
		l.tools = map[string]*histogram{}
	}
	h := new(histogram)
	l.tools[tool] = h
	return h
}

// stats are all that was counted, by name.
func (l *latencies) stats() []CallStats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]CallStats, 0, len(l.tools))
	for _, name := range slices.Sorted(maps.Keys(l.tools)) {
		s := l.tools[name].stats()
		s.Tool = name
		all = append(all, s)
	}
	return all
}

// octaves of microseconds, each in four parts: 1 µs to 71 minutes.
const (
	parts   = 4
	octaves = 32
)

// histogram counts durations in buckets.
type histogram [parts * octaves]atomic.Uint32

// bucket is where a duration is counted.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	octave := bits.Len64(us) - 1
	within := us << 2 >> octave & (parts - 1)
	return min(octave*parts+int(within), parts*octaves-1)
}

// middle is the duration that stands for those of a bucket.
func middle(bucket int) time.Duration {
	low := func(n int) float64 { return float64(uint64(1)<<(n/parts)) * (1 + float64(n%parts)/parts) }
	return time.Duration((low(bucket) + low(bucket+1)) / 2 * float64(time.Microsecond))
}

func (h *histogram) stats() CallStats {
	var counts [len(h)]uint64
	var s CallStats
	for i := range h {
		counts[i] = uint64(h[i].Load())
		s.Count += counts[i]
	}
	var seen uint64
	for i, n := range counts {
		if n == 0 {
			continue
		}
		seen += n
		if s.Median == 0 && 2*seen >= s.Count {
			s.Median = middle(i)
		}
		if s.P99 == 0 && 100*seen >= 99*s.Count {
			s.P99 = middle(i)
		}
	}
	return s
}
