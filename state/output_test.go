package state

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
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
			s, _, err := o.since(r.at, GapRestarted)
			if err != nil {
				t.Fatal(err)
			}
			if (s.Missed > 0) != (s.Gap != nil) {
				t.Fatalf("missed %d with gap %+v", s.Missed, s.Gap)
			}
			r.seen += s.Missed
			if want := all[r.seen:]; !bytes.Equal(s.Data, want) {
				t.Fatalf("from %d: got %d bytes, want %d", r.seen, len(s.Data), len(want))
			}
			r.seen += int64(len(s.Data))
			r.at = s.Cursor
			readers = append(readers, &reader{at: s.Cursor, seen: r.seen})
		}
		if n := o.size(); n > o.budget {
			t.Fatalf("ring of %d bytes over the budget %d", n, o.budget)
		}
	})
}

func TestOutputEpochs(t *testing.T) {
	o := newOutput(7, 1<<20)
	first := o.begin(testServer, 1, GapAttached)
	o.append([]byte("one"))
	o.finish(testServer, GapPaneDied)
	if n := o.append([]byte("lost")); n != 0 {
		t.Errorf("a closed epoch took bytes")
	}
	s, _, err := o.since(first, GapRestarted)
	if err != nil || string(s.Data) != "one" || s.Gap == nil || s.Gap.Reason != GapPaneDied || s.Gap.Bytes != nil {
		t.Fatalf("after death: %+v, gap %+v, %v", s, s.Gap, err)
	}
	if s, _, _ := o.since(s.Cursor, GapRestarted); s.Gap != nil {
		t.Errorf("the gap was told twice")
	}
	second := o.begin(testServer, 2, GapRespawned)
	o.append([]byte("two"))
	s, _, err = o.since(first, GapRestarted)
	if err != nil || string(s.Data) != "onetwo" || s.Gap.Reason != GapRespawned {
		t.Fatalf("over two epochs: %q, gap %+v, %v", s.Data, s.Gap, err)
	}
	if s, _, _ = o.since(second, GapRestarted); string(s.Data) != "two" || s.Gap != nil {
		t.Fatalf("within the newest: %q, gap %+v", s.Data, s.Gap)
	}
	if s, _, _ = o.since(Cursor{newStream(testServer, 7, [7]byte{1}), 99}, GapRestarted); s.Gap == nil || s.Gap.Reason != GapRestarted {
		t.Fatalf("unknown stream: gap %+v", s.Gap)
	}
	if _, _, err = o.since(Cursor{second.Stream, 7}, GapRestarted); !errors.Is(err, ErrCursor) {
		t.Fatalf("beyond the end: %v", err)
	}
	if _, _, err = o.since(Cursor{second.Stream, 2}, GapRestarted); !errors.Is(err, ErrCursor) {
		t.Fatalf("before its stream: %v", err)
	}
}

func TestOutputShrink(t *testing.T) {
	o := newOutput(7, 1<<20)
	c := o.begin(testServer, 1, GapAttached)
	o.append(make([]byte, 5000))
	if n := o.shrink(); n != 8192 {
		t.Fatalf("gave back %d bytes", n)
	}
	o.append([]byte("x"))
	s, _, err := o.since(c, GapRestarted)
	if err != nil || s.Missed != 5000 || s.Gap.Reason != GapEvicted || *s.Gap.Bytes != 5000 || string(s.Data) != "x" {
		t.Fatalf("%+v %+v %v", s, s.Gap, err)
	}
}

// A wait that starts before an append is woken by it, and by nothing else.
func TestOutputWake(t *testing.T) {
	o := newOutput(7, 1<<20)
	c := o.begin(testServer, 1, GapAttached)
	_, more, _ := o.since(c, GapRestarted)
	select {
	case <-more:
		t.Fatal("woken by nothing")
	default:
	}
	o.append([]byte("x"))
	<-more
	_, more, _ = o.since(c, GapRestarted)
	o.finish(testServer, GapPaneDied)
	<-more
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
