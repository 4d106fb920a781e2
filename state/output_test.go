package state

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/state/transcript"
)

var testServer = ServerID{PID: 4242, StartTime: 1796050186}

// What was delivered can be read back from any cursor, by any reader, without a
// byte repeated or silently missing, whatever the sizes of writes and ring.
func TestOutputDeltasJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutput(7, minRing<<rapid.IntRange(0, 2).Draw(t, "budget"))
		var all []byte // everything delivered
		o.begin(testServer, 1, GapAttached)
		type reader struct {
			at   Cursor
			seen int64 // bytes read or told as missed
		}
		c, _ := o.cursor()
		readers := []*reader{{at: c}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "write") {
				b := bytes.Repeat([]byte{byte(len(all))}, rapid.IntRange(0, 3*minRing).Draw(t, "n"))
				for i := range b {
					b[i] += byte(i * 7)
				}
				all = append(all, b...)
				o.append(b)
				continue
			}
			r := readers[rapid.IntRange(0, len(readers)-1).Draw(t, "reader")]
			s, _, _, err := o.since(r.at, GapRestarted, SinceOptions{Raw: true})
			if err != nil {
				t.Fatal(err)
			}
			if (s.Missed > 0) != (s.Gap != nil) {
				t.Fatalf("missed %d with gap %+v", s.Missed, s.Gap)
			}
			r.seen += s.Missed
			if want := all[r.seen:]; !bytes.Equal(s.Raw, want) {
				t.Fatalf("from %d: got %d bytes, want %d", r.seen, len(s.Raw), len(want))
			}
			r.seen += int64(len(s.Raw))
			r.at = s.Cursor
			readers = append(readers, &reader{at: s.Cursor, seen: r.seen})
		}
		if n := o.measure(); n > int64(o.budget) {
			t.Fatalf("ring of %d bytes over the budget %d", n, o.budget)
		}
	})
}

// raw reads bytes.
func (o *Output) raw(t *testing.T, from Cursor) *Since {
	t.Helper()
	s, _, ready, err := o.since(from, GapRestarted, SinceOptions{Raw: true})
	if err != nil || !ready {
		t.Fatalf("ready %v: %v", ready, err)
	}
	return s
}

func TestOutputEpochs(t *testing.T) {
	o := newOutput(7, 1<<20)
	first := o.begin(testServer, 1, GapAttached)
	o.append([]byte("one"))
	o.finish(testServer, GapPaneDied)
	if o.append([]byte("lost")) != 0 {
		t.Errorf("a closed epoch took bytes")
	}
	s := o.raw(t, first)
	if string(s.Raw) != "one" || s.Gap == nil || s.Gap.Reason != GapPaneDied || s.Gap.Bytes != nil {
		t.Fatalf("after death: %+v, gap %+v", s, s.Gap)
	}
	if s := o.raw(t, s.Cursor); s.Gap != nil {
		t.Errorf("the gap was told twice")
	}
	second := o.begin(testServer, 2, GapRespawned)
	o.append([]byte("two"))
	s = o.raw(t, first)
	if string(s.Raw) != "onetwo" || s.Gap.Reason != GapRespawned {
		t.Fatalf("over two epochs: %q, gap %+v", s.Raw, s.Gap)
	}
	if s = o.raw(t, second); string(s.Raw) != "two" || s.Gap != nil {
		t.Fatalf("within the newest: %q, gap %+v", s.Raw, s.Gap)
	}
	if s = o.raw(t, Cursor{newStream(testServer, 7, maker{}, [4]byte{1}), 99}); s.Gap == nil || s.Gap.Reason != GapRespawned {
		t.Fatalf("unknown stream: gap %+v", s.Gap)
	}
	for _, off := range []int64{second.Offset + 4, second.Offset - 1} {
		if _, _, _, err := o.since(Cursor{second.Stream, off}, GapRestarted, SinceOptions{Raw: true}); !errors.Is(err, ErrCursor) {
			t.Fatalf("offset %d outside its stream: %v", off, err)
		}
	}
	if s := o.raw(t, Cursor{first.Stream, 2}); string(s.Raw) != "etwo" {
		t.Fatalf("from the middle of an ended epoch: %q", s.Raw)
	}
}

// Bytes can be read in pages from the oldest on without loss, gaps included.
func TestOutputRawPages(t *testing.T) {
	o := newOutput(7, 1<<20)
	at := o.begin(testServer, 1, GapAttached)
	o.append([]byte("hello "))
	o.begin(testServer, 2, GapRespawned)
	o.append([]byte("world"))
	var all []byte
	for gaps := 0; ; {
		s, _, _, err := o.since(at, GapRestarted, SinceOptions{Raw: true, Oldest: true, MaxBytes: 4})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.Raw...)
		if s.Gap != nil {
			gaps++
		}
		at = s.Cursor
		if !s.More {
			if string(all) != "hello world" || gaps != 1 {
				t.Fatalf("%q with %d gaps", all, gaps)
			}
			return
		}
	}
}

func TestOutputShrink(t *testing.T) {
	o := newOutput(7, 1<<20)
	c := o.begin(testServer, 1, GapAttached)
	o.append(make([]byte, 5000))
	if n := o.measure(); n != 8192 {
		t.Fatalf("%d bytes for 5000", n)
	}
	if o.shrink(); o.measure() != 0 {
		t.Fatalf("%d bytes were not given back", o.measure())
	}
	o.append([]byte("x"))
	s := o.raw(t, c)
	if s.Missed != 5000 || s.Gap.Reason != GapEvicted || *s.Gap.Bytes != 5000 || string(s.Raw) != "x" {
		t.Fatalf("%+v %+v", s, s.Gap)
	}
}

// A wait that starts before an append is woken by it, and by nothing else.
func TestOutputWake(t *testing.T) {
	o := newOutput(7, 1<<20)
	o.begin(testServer, 1, GapAttached)
	more := o.changed()
	select {
	case <-more:
		t.Fatal("woken by nothing")
	default:
	}
	o.append([]byte("x"))
	<-more
	more = o.changed()
	o.finish(testServer, GapPaneDied)
	<-more
}

// started gives a log the transcript of an empty screen.
func started(t *testing.T, o *Output, at int64) {
	t.Helper()
	startedSize(t, o, at, 20, 4)
}

func startedSize(t testing.TB, o *Output, at int64, width, height int) {
	t.Helper()
	s := &paneSeed{pid: 1, options: transcript.Options{AlternateScreen: true, ScrollOnClear: true}}
	s.Width, s.Height, s.HistoryLimit, s.Wrap = width, height, 100, true
	empty := bytes.Repeat([]byte("\n"), height)
	s.Styled, s.Joined, s.Lower = empty, empty, height-1
	if err := o.start(s, at, transcript.Profile33, transcript.Interrupted); err != nil {
		t.Fatal(err)
	}
}

func TestOutputText(t *testing.T) {
	o := newOutput(7, 1<<20)
	first := o.begin(testServer, 1, GapAttached)
	o.append([]byte("held\r\n")) // comes before the screen is known
	if _, _, ready, _ := o.since(first, GapRestarted, SinceOptions{}); ready {
		t.Fatal("text before the screen was known")
	}
	started(t, o, first.Offset)
	text := func(from Cursor, opt SinceOptions) *Since {
		s, _, ready, err := o.since(from, GapRestarted, opt)
		if err != nil || !ready {
			t.Fatalf("ready %v: %v", ready, err)
		}
		return s
	}
	s := text(first, SinceOptions{})
	if s.Text != "held\n" || s.Gap != nil {
		t.Fatalf("%q gap %+v", s.Text, s.Gap)
	}
	o.append([]byte("10%\r50%\r100%\r\n\x1b[31mred\x1b[0m"))
	if s = text(s.Cursor, SinceOptions{}); s.Text != "100%\nred" {
		t.Fatalf("%q", s.Text)
	}
	o.append([]byte("der\r\n"))
	if s = text(s.Cursor, SinceOptions{}); s.Text != "der\n" || !s.ContinuesLine {
		t.Fatalf("%q continues %v", s.Text, s.ContinuesLine)
	}
	if s = text(s.Cursor, SinceOptions{}); s.news() {
		t.Fatalf("news twice: %+v", s)
	}
	// a gap: what was not read is still told, once, and so is the new screen
	o.append([]byte("unread\r\n"))
	second := o.begin(testServer, 2, GapRespawned)
	started(t, o, second.Offset)
	o.append([]byte("born\r\n"))
	got := text(s.Cursor, SinceOptions{})
	if got.Text != "unread\nborn\n" || got.Gap == nil || got.Gap.Reason != GapRespawned {
		t.Fatalf("%q gap %+v", got.Text, got.Gap)
	}
	if again := text(got.Cursor, SinceOptions{}); again.news() {
		t.Fatalf("told twice: %q", again.Text)
	}
}

func TestOutputAppendAllocates(t *testing.T) {
	o := newOutput(7, 1<<16)
	o.begin(testServer, 1, GapAttached)
	b := make([]byte, 1000)
	for range 100 {
		o.append(b)
	}
	if n := testing.AllocsPerRun(100, func() { o.append(b) }); n != 0 {
		t.Errorf("%v allocations per append", n)
	}
}
