package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// TestDeltasOfRandomPrograms: whatever a program prints and however readers read
// beside it, joined deltas are what it printed, bytes are covered without hole or
// overlap, and the rows are tmux's in the end. A few seeds in the ordinary run;
// TMUX_MCPD_SOAK=10m goes on with fresh ones, TMUX_MCPD_SEED=n runs one.
func TestDeltasOfRandomPrograms(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror()
	full(t, m)
	run := func(seed uint64) bool {
		return t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { randomProgram(t, x, m, seed) })
	}
	if s := os.Getenv("TMUX_MCPD_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		run(seed)
		return
	}
	for seed := range uint64(12) {
		run(seed)
	}
	if s := os.Getenv("TMUX_MCPD_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for end := time.Now().Add(d); time.Now().Before(end) && failed < 5; {
			if !run(rand.Uint64()) {
				failed++
			}
		}
	}
}

// program is what a random program prints, and what is to be read of it.
type program struct {
	rand    *rand.Rand
	writes  []string
	text    strings.Builder // as it is to be read, while nothing is rewritten
	rewrote bool            // it moves the cursor about: text is not known
}

// newProgram makes a program; plain ones only ever go on.
func newProgram(r *rand.Rand, plain bool) *program {
	p := &program{rand: r}
	for range 10 + r.IntN(60) {
		kinds := 6
		if !plain {
			kinds = 11
		}
		switch r.IntN(kinds) {
		case 0: // a burst of lines
			for range r.IntN(300) {
				p.line(p.word(r.IntN(40)))
			}
		case 1:
			p.line(p.word(r.IntN(400)))
		case 2: // a line bit by bit
			for range r.IntN(8) {
				p.say("." + p.word(1+r.IntN(30)))
			}
			p.line("!")
		case 3: // wide characters, over the margin
			p.line(strings.Repeat("\u6f22\u5b57", r.IntN(60)) + "e\u0301" + p.word(3))
		case 4: // colours, titles, marks
			p.mute("\x1b[1;3" + strconv.Itoa(r.IntN(8)) + "m")
			p.line(p.word(1 + r.IntN(90)))
			p.mute("\x1b[0m\x1b]0;title\x07\x1b]133;A\x07")
		case 5: // a character in two writes
			p.writes = append(p.writes, "\xe6", "\xbc\xa2")
			p.text.WriteString("\u6f22")
			p.line("")
		case 6: // a progress bar
			for i := range 5 + r.IntN(30) {
				p.raw(fmt.Sprintf("\r%d%% %s", i*3, strings.Repeat("#", i)))
			}
			p.raw("\r\n")
		case 7:
			p.raw("\x1b[?1049h\x1b[2J\x1b[H" + p.word(200) + "\x1b[12;3Hmiddle")
			if r.IntN(4) > 0 {
				p.raw("\x1b[5;1H" + p.word(20) + "\x1b[?1049l")
			}
		case 8:
			p.raw("\x1b[" + strconv.Itoa(1+r.IntN(24)) + ";" + strconv.Itoa(1+r.IntN(80)) + "H" + p.word(r.IntN(50)) + "\x1b[K")
		case 9:
			p.raw("\x1b[" + strconv.Itoa(1+r.IntN(5)) + "A\x1b[2K" + p.word(r.IntN(60)) + "\r\n\x1b[J")
		case 10:
			p.raw("\x1b[2;10r" + strings.Repeat("x\r\n", r.IntN(20)) + "\x1b[r\x1b[H\x1b[2J")
		}
	}
	return p
}

func (p *program) word(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789-_"[p.rand.IntN(38)]
	}
	return string(b)
}

func (p *program) say(s string) {
	p.writes = append(p.writes, s)
	p.text.WriteString(s)
}

// mute prints what shows nothing.
func (p *program) mute(s string) { p.writes = append(p.writes, s) }

func (p *program) line(s string) {
	p.writes = append(p.writes, s+"\r\n")
	p.text.WriteString(s + "\n")
}

func (p *program) raw(s string) {
	p.writes = append(p.writes, s)
	p.rewrote = true
}

func randomProgram(t *testing.T, x *testTmux, m *Mirror, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	id, err := controlmode.ParsePaneID(x.run("new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}", "cat >/dev/null"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.run("kill-pane", "-t", id.String())
	p := x.printer(m, id)
	prog := newProgram(r, seed%2 == 0)
	want := strings.Join(prog.writes, "")
	before := p.watch()

	readers := make([]*randomReader, 1+r.IntN(4))
	done := make(chan struct{}) // closed when all has been printed
	end := before.Offset + int64(len(want))
	var wg sync.WaitGroup
	for i := range readers {
		readers[i] = &randomReader{p: p, rand: rand.New(rand.NewPCG(seed, uint64(i)+2)), end: end}
		readers[i].at, readers[i].lines = before, strings.Split(prog.text.String(), "\n")
		wg.Go(func() { readers[i].read(done) })
	}
	for _, w := range prog.writes {
		p.print(w)
		if r.IntN(4) == 0 { // let tmux and the readers see it
			if _, err := m.Since(within(t), id, before, SinceOptions{MaxLines: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := p.delivered(before, len(want))
	close(done)
	wg.Wait()
	if at.Offset != end || at.Stream != before.Stream {
		t.Fatalf("the stream ends at %v, want offset %d of %v", at, end, before.Stream)
	}
	raw, err := m.Since(within(t), id, before, SinceOptions{Raw: true})
	if err != nil || string(raw.Raw) != want {
		t.Fatalf("%d bytes delivered are not the %d printed (%v)", len(raw.Raw), len(want), err)
	}
	for i, rd := range readers {
		rd.check(t, i, prog, want)
	}
	checkRows(t, x, m, id)
}

// randomReader reads beside a program in one of the ways there are.
type randomReader struct {
	joiner
	p       *printer
	rand    *rand.Rand
	opt     SinceOptions
	end     int64
	lines   []string // of the program, if it rewrites none
	raw     []byte
	dropped int
	gap     *Gap
	err     error
	bad     string
}

func (r *randomReader) read(done <-chan struct{}) {
	r.opt = SinceOptions{Oldest: r.rand.IntN(3) > 0, Raw: r.rand.IntN(4) == 0, MaxLines: 1 + r.rand.IntN(1000)}
	if r.rand.IntN(3) == 0 {
		r.opt.MaxBytes = 1 + r.rand.IntN(5000)
		r.opt.Oldest = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for last := false; !last; {
		select {
		case <-done:
			last = r.at.Offset >= r.end
		default:
		}
		opt := r.opt
		if !last && r.rand.IntN(2) == 0 {
			opt.Wait = time.Duration(r.rand.IntN(30)) * time.Millisecond
			if r.rand.IntN(2) == 0 {
				opt.Settle = opt.Wait / 3
			}
		}
		s, err := r.p.m.Since(ctx, r.p.pane, r.at, opt)
		if err != nil {
			r.err = err
			return
		}
		r.take(s)
	}
}

// take joins a delta; what it finds wrong is told later, on the test's goroutine.
func (r *randomReader) take(s *Since) {
	if s.Gap != nil || s.Missed > 0 {
		r.gap = &Gap{Reason: GapEvicted}
	}
	if r.opt.Raw {
		if n := s.Cursor.Offset - r.at.Offset; n != int64(len(s.Raw)+s.OmittedBytes) {
			r.bad = fmt.Sprintf("from %d to %d with %d bytes and %d omitted", r.at.Offset, s.Cursor.Offset, len(s.Raw), s.OmittedBytes)
		}
		r.raw = append(r.raw, s.Raw...)
	}
	if s.DroppedLines > 0 && !s.ContinuesLine && r.toldPart() {
		r.dropped-- // the rest of a line that is among the told
	}
	if s.Text != "" && !s.AlternateScreen {
		if r.text != "" && !strings.HasSuffix(r.text, "\n") && !s.ContinuesLine {
			r.text += "\n"
		}
		r.text += s.Text
	}
	if r.opt.Oldest && s.DroppedLines > 0 && !s.AlternateScreen {
		r.bad = fmt.Sprintf("%d lines dropped from a page", s.DroppedLines)
	}
	r.dropped += s.DroppedLines
	r.at = s.Cursor
}

// toldPart tells whether the text ends with a part of a line: of one that is told
// whole only the newline is to come, which is no line to drop.
func (r *randomReader) toldPart() bool {
	part := r.text[strings.LastIndexByte(r.text, '\n')+1:]
	n := strings.Count(r.text, "\n") + r.dropped
	return part != "" && (n >= len(r.lines) || strings.TrimRight(part, " ") != strings.TrimRight(r.lines[n], " "))
}

func (r *randomReader) check(t *testing.T, i int, prog *program, want string) {
	t.Helper()
	name := fmt.Sprintf("reader %d %+v", i, r.opt)
	switch {
	case r.err != nil:
		t.Fatalf("%s: %v", name, r.err)
	case r.bad != "":
		t.Fatalf("%s: %s", name, r.bad)
	case r.gap != nil:
		t.Fatalf("%s: a gap or missed bytes", name)
	case r.opt.Raw:
		if string(r.raw) != want {
			t.Errorf("%s: %d bytes are not the %d printed", name, len(r.raw), len(want))
		}
		return
	}
	checkText(t, r.text)
	if prog.rewrote {
		return
	}
	text := trimLines(prog.text.String())
	if r.dropped == 0 {
		sameLines(t, name, r.text, text)
	} else if n := strings.Count(r.text, "\n") + r.dropped; n != strings.Count(text, "\n") {
		t.Errorf("%s: %d lines told or dropped, want %d", name, n, strings.Count(text, "\n"))
	}
}

// checkRows compares the transcript's rows with tmux's.
func checkRows(t *testing.T, x *testTmux, m *Mirror, id controlmode.PaneID) {
	t.Helper()
	m.watches.mu.Lock()
	out := m.watches.panes[id].out
	m.watches.mu.Unlock()
	out.mu.Lock()
	got := out.text.Rows()
	misses := out.misses
	out.mu.Unlock()
	want := strings.Split(x.run("capture-pane", "-p", "-S", "-", "-t", id.String()), "\n")
	trim := func(rows []string) []string {
		rows = slices.Clone(rows)
		for i := range rows {
			rows[i] = strings.TrimRight(rows[i], " ")
		}
		for len(rows) > 0 && rows[len(rows)-1] == "" {
			rows = rows[:len(rows)-1]
		}
		return rows
	}
	sameLines(t, "rows", strings.Join(trim(got), "\n"), strings.Join(trim(want), "\n"))
	if misses > 0 {
		t.Errorf("%d audits found the transcript different from tmux", misses)
	}
}
