package mcp

import (
	"time"
)

// progressEvery is how often a client that asked for it is told how a wait is
// getting on: often enough for one that gives up after a minute of silence, and
// for the person who watches it.
const progressEvery = 5 * time.Second

// maxProgressLine bounds the line that a progress report shows, in bytes.
const maxProgressLine = 200

// clock is how long a call waits: a deadline, and the moments to report at.
type clock struct {
	effective time.Duration
	late      <-chan time.Time
	tick      <-chan time.Time // nil if nobody is told
	report    func(string)
	deadline  *time.Timer
	ticker    *time.Ticker
}

// timeoutParam is the argument of a clock.
func timeoutParam() param {
	return param{
		name: "timeoutMs", kind: kindInteger, positive: true,
		doc: "Wait at most this many milliseconds; a longer time than is allowed here is shortened, and the answer's " +
			"effectiveTimeoutMs says to what. Default 25000.",
	}
}

// clock starts the clock of a call that may wait. A request for more than the
// ceiling is clamped; the ceiling is higher while the client is told of progress.
func (c *call) clock(ms *int64) *clock {
	ceiling := c.sel.limits.wait
	if c.progress != nil {
		ceiling = c.sel.limits.long
	}
	p := &clock{effective: min(defaultWait, ceiling), report: c.progress}
	if ms != nil {
		p.effective = min(time.Duration(min(*ms, 1<<40))*time.Millisecond, ceiling)
	}
	p.deadline = time.NewTimer(p.effective)
	p.late = p.deadline.C
	if c.progress != nil {
		p.ticker = time.NewTicker(progressEvery)
		p.tick = p.ticker.C
	}
	return p
}

// end stops the clock. It must be called.
func (p *clock) end() {
	p.deadline.Stop()
	if p.ticker != nil {
		p.ticker.Stop()
	}
}

// tell reports that the call still waits, with the newest line of output.
func (p *clock) tell(line string) {
	if line == "" {
		line = "nothing new yet"
	}
	p.report("still waiting: " + abridged(inline(line), maxProgressLine))
}
