package mcp

import (
	"fmt"
	"sync"
	"time"
)

// meter counts calls. The zero value has no limits.
type meter struct {
	rate, most int

	// mu guards the fields that follow.
	mu      sync.Mutex
	tokens  float64 // calls that may begin now; below 0 while a batch is paid off
	filled  time.Time
	running int
}

func (m *meter) start(rate, most int) {
	m.rate, m.most = rate, most
	m.tokens, m.filled = float64(rate), time.Now()
}

// take counts n calls. It fails, with the time after which to try again, if not
// even one may begin now.
func (m *meter) take(n int) (after time.Duration, ok bool) {
	if m.rate == 0 {
		return 0, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.tokens = min(float64(m.rate), m.tokens+now.Sub(m.filled).Seconds()*float64(m.rate))
	m.filled = now
	if n > 0 && m.tokens < 1 {
		return time.Duration((1 - m.tokens) / float64(m.rate) * float64(time.Second)), false
	}
	m.tokens -= float64(n)
	return 0, true
}

// begin lets a call begin, and gives what is to be called at its end.
func (p *policy) begin() (end func(), err error) {
	m := &p.meter
	if err := p.spend(1); err != nil {
		return nil, err
	}
	if m.most == 0 {
		return func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running >= m.most {
		return nil, &problem{
			reason: fmt.Sprintf("%s run through this socket already, the most it allows", plural(m.running, "call")),
			hint:   "Nothing was done. Try again when one has ended.",
		}
	}
	m.running++
	return func() {
		m.mu.Lock()
		m.running--
		m.mu.Unlock()
	}, nil
}

// spend counts n calls against the rate.
func (p *policy) spend(n int) error {
	if after, ok := p.meter.take(n); !ok {
		return &problem{
			reason: fmt.Sprintf("this socket allows %s a second", plural(p.meter.rate, "call")),
			hint:   fmt.Sprintf("Nothing was done. Try again in %d ms.", after.Milliseconds()+1),
		}
	}
	return nil
}
