package state

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// floodBytes is how much a flooding program prints: 20 MB, or TMUX_MCPD_FLOOD
// megabytes.
func floodBytes(t *testing.T) int {
	t.Helper()
	n := 20
	if s := os.Getenv("TMUX_MCPD_FLOOD"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	return n << 20
}

// P9: a pane that floods while its reader sleeps. The program finishes, memory
// stays within the budget all the time, the reader is told exactly how much it
// missed, and a pane beside loses nothing.
func TestFloodBesideSleepingReader(t *testing.T) {
	const budget = 1 << 20
	total := floodBytes(t)
	x := newTmux(t).quiet("80", "24")
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	m := x.mirror(func(c *Config) { c.PaneBytes, c.Timeout = budget, time.Minute })
	flood, calm := x.printer(m, 0), x.printer(m, 1)
	before, told := flood.watch(), &joiner{at: calm.watch()}
	start := heap()

	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(total>>20)*5*time.Second)
	defer cancel()
	printed := make(chan int, 1)
	go func() { printed <- flood.flood(total) }()
	most, lines := int64(0), ""
	for n, sent := 0, 0; sent == 0; n++ {
		select {
		case sent = <-printed:
			total = sent
		case <-ctx.Done():
			t.Fatal("the program is held up")
		default:
		}
		line := fmt.Sprintf("calm %d\n", n)
		lines += line
		calm.print(crlf(line))
		s, err := m.Since(ctx, 1, told.at, SinceOptions{Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		told.add(t, s)
		most = max(most, m.logBytes(), m.Status().LogBytes)
	}
	// Its own bytes can be paused away behind the flood when we are slow; its
	// lines are on the screen then and are told all the same.
	for !strings.HasSuffix(told.text, lines[strings.LastIndexByte(lines[:len(lines)-1], '\n')+1:]) {
		s, err := m.Since(ctx, 1, told.at, SinceOptions{Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		told.add(t, s)
	}
	sameLines(t, "the pane beside", told.all(t, calm, SinceOptions{}), lines)
	if most > 2*(1+textBudget)*budget {
		t.Errorf("%d bytes kept for readers", most)
	}
	end, whole := flood.floodEnd(before, total)
	if grown := heap() - start; grown > 4*(1+textBudget)*budget {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if !whole { // the race detector makes us slow enough to lose the chain
		s, err := m.Since(within(t), 0, before, SinceOptions{})
		if err != nil || s.Gap == nil || s.Gap.Reason == GapEvicted {
			t.Errorf("after the chain broke: gap %+v, %v", s.Gap, err)
		}
		t.Log("the chain broke, so what was missed cannot be compared")
		return
	}
	flood.checkMissed(t, before, end, total)
	t.Logf("%d bytes, most kept %d, heap %d", total, most, heap()-start)
}

// floodEnd waits until all has been delivered, or the chain has broken in
// between (tmux has paused the pane, or our client was replaced): whole is then
// false. What was evicted is counted and breaks nothing.
func (p *printer) floodEnd(before Cursor, total int) (end Cursor, whole bool) {
	p.x.t.Helper()
	end = before
	for ctx := within(p.x.t); end.Offset < before.Offset+int64(total); {
		s, err := p.m.Since(ctx, p.pane, end, SinceOptions{Raw: true, Wait: time.Second})
		if err != nil {
			p.x.t.Fatalf("%d of %d bytes: %v", end.Offset-before.Offset, total, err)
		}
		if end = s.Cursor; s.Gap != nil && s.Gap.Reason != GapEvicted {
			return end, false
		}
	}
	return end, true
}

// flood prints numbered lines, at least total bytes, and tells how many.
func (p *printer) flood(total int) (sent int) {
	var b strings.Builder
	for i := 0; sent < total; i++ {
		fmt.Fprintf(&b, "%d %.*s\r\n", i, i%70, strings.Repeat("x", 70))
		if b.Len() > 32<<10 {
			n, err := p.WriteString(b.String())
			sent += n
			if err != nil {
				return sent
			}
			b.Reset()
		}
	}
	return sent
}

// checkMissed: after the flood the reader gets the newest lines, and a count of
// the bytes before them.
func (p *printer) checkMissed(t *testing.T, before, end Cursor, total int) {
	t.Helper()
	s, err := p.m.Since(within(t), p.pane, before, SinceOptions{Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missed+int64(len(s.Raw)) != int64(total) || s.Missed == 0 || s.Gap == nil || s.Gap.Reason != GapEvicted || *s.Gap.Bytes != s.Missed {
		t.Errorf("missed %d, got %d of %d bytes, gap %+v", s.Missed, len(s.Raw), total, s.Gap)
	}
	s, err = p.m.Since(within(t), p.pane, before, SinceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missed == 0 || s.Gap == nil || s.Gap.Reason != GapEvicted || s.Cursor != end {
		t.Errorf("missed %d, gap %+v, cursor %v, want %v", s.Missed, s.Gap, s.Cursor, end)
	}
	bytes, last := s.Missed, -1
	lines := strings.Split(s.Text, "\n")
	for i, l := range lines[:len(lines)-1] {
		bytes += int64(len(l)) + 2
		n, err := strconv.Atoi(strings.Fields(l)[0])
		if err != nil || last >= 0 && n != last+1 {
			t.Fatalf("line %d is %q after %d", i, l, last)
		}
		if i == 0 { // blanks at a line's end are not told
			bytes += int64(len(fmt.Sprintf("%d %.*s", n, n%70, strings.Repeat("x", 70))) - len(l))
		} else if n%70 == 0 {
			bytes++
		}
		last = n
	}
	if bytes != int64(total) {
		t.Errorf("%d bytes missed or told as text, %d printed", bytes, total)
	}
}

// logBytes sums up what the logs keep.
func (m *Mirror) logBytes() (n int64) {
	m.watches.mu.Lock()
	defer m.watches.mu.Unlock()
	for _, p := range m.watches.panes {
		p.out.mu.Lock()
		n += p.out.sizeLocked()
		p.out.mu.Unlock()
	}
	return n
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// All logs together stay within their budget too, all the time: many panes print
// short lines, which cost more as rows than as bytes, into a history that takes
// them all.
func TestFloodOfManyPanes(t *testing.T) {
	const panes, all, bytes = 12, 4 << 20, 20 * 4000 * 3
	x := newTmux(t).quiet("80", "24")
	x.run("set-option", "-g", "history-limit", "1000000")
	m := x.mirror(func(c *Config) { c.AllBytes = all })
	printers, before := []*printer{}, []Cursor{}
	for i := range panes {
		if i > 0 {
			x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
		}
		p := x.printer(m, controlmode.PaneID(i))
		printers, before = append(printers, p), append(before, p.watch())
	}
	printed := make(chan int, panes)
	for _, p := range printers {
		go func() {
			n := 0
			for range 20 {
				k, _ := p.WriteString(strings.Repeat("y\r\n", 4000))
				n += k
			}
			printed <- n
		}()
	}
	most := int64(0)
	for done, ctx := 0, within(t); done < panes; {
		select {
		case n := <-printed:
			if n != bytes {
				t.Fatalf("a program printed %d bytes", n)
			}
			done++
		case <-ctx.Done():
			t.Fatal("the programs are held up")
		default:
			if _, err := m.Arrive(0).Pane(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, m.logBytes())
	}
	if most > all*5/4 {
		t.Errorf("%d bytes kept for readers, the budget is %d", most, all)
	}
	evicted, told := false, 0
	for i, p := range printers {
		end, whole := p.floodEnd(before[i], bytes)
		if !whole {
			continue // paused: we were slow
		}
		told++
		s, err := m.Since(within(t), p.pane, before[i], SinceOptions{})
		if err != nil || s.Cursor != end || s.Missed+3*int64(s.Lines) != bytes {
			t.Errorf("%d bytes missed and %d lines told of %d bytes, %v", s.Missed, s.Lines, bytes, err)
		}
		if s.Missed > 0 && (s.Gap == nil || s.Gap.Reason != GapEvicted) {
			t.Errorf("gap %+v", s.Gap)
		}
		evicted = evicted || s.Missed > 0
	}
	if told > panes/2 && !evicted {
		t.Error("nothing was evicted")
	}
	t.Logf("most kept %d; %d of %d panes delivered whole", most, told, panes)
}

// One pane's rows stay within its own budget, however many tmux keeps: a reader
// who is behind is told what is missing, and what is searched is all of it.
func TestHistoryWithinBudget(t *testing.T) {
	const budget, lines = 64 << 10, 40_000
	x := newTmux(t).quiet("80", "24")
	x.run("set-option", "-g", "history-limit", "1000000")
	x.run("new-window", "-d", "-t", "main:", "cat >/dev/null")
	m := x.mirror(func(c *Config) { c.PaneBytes = budget })
	p := x.printer(m, 1)
	before, total := p.watch(), 0
	for from := 0; from < lines; from += 1000 {
		var b strings.Builder
		for i := from; i < from+1000; i++ {
			fmt.Fprintf(&b, "line %d\r\n", i)
		}
		p.print(b.String())
		total += b.Len()
		if n := m.logBytes(); n > 2*(1+textBudget)*budget {
			t.Fatalf("%d bytes kept after %d lines", n, from)
		}
	}
	end, whole := p.floodEnd(before, total)
	if !whole {
		// tmux paused the pane of a daemon that was too slow: how much is missing
		// nobody knows, and that is what has to be said.
		s, err := m.Since(within(t), 1, before, SinceOptions{})
		if err != nil || s.Gap == nil {
			t.Errorf("after a pause no gap is told: %+v, %v", s, err)
		}
		return
	}
	s, err := m.Since(within(t), 1, before, SinceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(s.Text, "\n")
	first := lines - len(got) + 1
	missed := 0
	for i := range lines {
		if i < first {
			missed += len(fmt.Sprintf("line %d\r\n", i))
		} else if got[i-first] != fmt.Sprintf("line %d", i) {
			t.Fatalf("%q where line %d belongs", got[i-first], i)
		}
	}
	if first == 0 || s.Missed != int64(missed) || s.Gap == nil || s.Gap.Reason != GapEvicted || *s.Gap.Bytes != s.Missed || s.Cursor != end {
		t.Errorf("%d lines and %d bytes missed, told %d, gap %+v", first, missed, s.Missed, s.Gap)
	}
	if _, ok := m.Shown(within(t), []controlmode.PaneID{1}).Lines(1, lines); ok {
		t.Error("what is not held was answered")
	}
	if want := captured(t, m, 1, 100); want[0] != fmt.Sprintf("line %d", lines-100-23) {
		t.Errorf("the capture begins with %q", want[0])
	} else if got := texts(p.shown(t, 100)); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	// The next row that tmux drops is one that was not held any more.
	x.run("clear-history", "-t", "%1")
	p.print("after\r\n")
	if s, err := m.Since(within(t), 1, end, SinceOptions{Wait: 10 * time.Second}); err != nil || s.Text != "after\n" || s.Missed != 0 {
		t.Errorf("afterwards: %+v %v", s, err)
	}
}
