package controlmode_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
)

// collect parses chunks into events that outlive the parser's buffers.
func collect(p *controlmode.Parser, chunks ...[]byte) (events []controlmode.Event, err error) {
	for _, c := range chunks {
		c = bytes.Clone(c)
		err = p.Feed(c, func(ev controlmode.Event) {
			if o, ok := ev.(*controlmode.Output); ok {
				kept := *o
				kept.Data = append([]byte{}, o.Data...)
				ev = &kept
			}
			events = append(events, ev)
		})
		clear(c) // nothing kept may point into a chunk
	}
	return events, err
}

// everySplit parses in whole, by single bytes and cut in two at every place.
func everySplit(t *testing.T, limits controlmode.Parser, in string, want []controlmode.Event) {
	t.Helper()
	check := func(name string, chunks ...[]byte) {
		t.Helper()
		p := limits
		got, err := collect(&p, chunks...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(want, got) { // cmp.Diff is slow for so many cuts
			t.Fatalf("%s (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
	b := []byte(in)
	check("whole", b)
	check("byte by byte", slices.Collect(slices.Chunk(b, 1))...)
	for i := range b {
		check(fmt.Sprintf("cut at %d", i), b[:i], b[i:])
	}
}

func ptr[T any](v T) *T { return &v }

type (
	events = []controlmode.Event
	output = controlmode.Output
)

var notifications = []struct {
	line string
	want controlmode.Event
}{
	{`%output %0 a\015\012b`, &output{Pane: 0, Data: []byte("a\r\nb")}},
	{`%output %4294967295  two spaces `, &output{Pane: 4294967295, Data: []byte(" two spaces ")}},
	{`%output %1 `, &output{Pane: 1, Data: []byte{}}},
	{`%output %1`, &output{Pane: 1, Data: []byte{}}},
	{"%output %2 a\xe4\xb8\x7f\xff", &output{Pane: 2, Data: []byte("a\xe4\xb8\x7f\xff")}},
	{`%output %3 \134\000\377 : `, &output{Pane: 3, Data: []byte("\\\x00\xff : ")}},
	{`%output %3 \9\77\400x\`, &output{Pane: 3, Data: []byte(`\9\77\400x\`)}},
	{`%output %x data`, controlmode.Unknown{Line: `%output %x data`}},
	{`%output`, controlmode.Unknown{Line: `%output`}},
	{`%output 0 data`, controlmode.Unknown{Line: `%output 0 data`}},
	{`%output %4294967296 data`, controlmode.Unknown{Line: `%output %4294967296 data`}},
	{`%extended-output %0 1 : a\033[m : b`, &output{Pane: 0, Age: time.Millisecond, Extended: true, Data: []byte("a\x1b[m : b")}},
	{`%extended-output %0 1200 new words : a`, &output{Pane: 0, Age: 1200 * time.Millisecond, Extended: true, Data: []byte("a")}},
	{`%extended-output %0 18446744073709551615 : a`, &output{Pane: 0, Age: 1<<63 - 1, Extended: true, Data: []byte("a")}},
	{`%extended-output %0 0 : `, &output{Pane: 0, Extended: true, Data: []byte{}}},
	{`%extended-output %0 1`, controlmode.Unknown{Line: `%extended-output %0 1`}},
	{`%extended-output %0 x : a`, controlmode.Unknown{Line: `%extended-output %0 x : a`}},
	{`%extended-output %0`, controlmode.Unknown{Line: `%extended-output %0`}},
	{`%pause %7`, controlmode.Pause{Pane: 7}},
	{`%continue %7`, controlmode.Continue{Pane: 7}},
	{`%window-nonsense @7`, controlmode.Unknown{Line: `%window-nonsense @7`}},
	{`%pane-mode-changed %7`, controlmode.PaneModeChanged{Pane: 7}},
	{`%pane-mode-changed @7`, controlmode.Unknown{Line: `%pane-mode-changed @7`}},
	{`%sessions-changed`, controlmode.SessionsChanged{}},
	{`%session-changed $1 a name`, controlmode.SessionChanged{Session: 1, Name: "a name"}},
	{`%session-changed @1 name`, controlmode.Unknown{Line: `%session-changed @1 name`}},
	{`%client-session-changed /dev/pts/3 $1 a b`, controlmode.ClientSessionChanged{Client: "/dev/pts/3", Session: 1, Name: "a b"}},
	{`%client-session-changed client-77 x`, controlmode.Unknown{Line: `%client-session-changed client-77 x`}},
	{`%client-detached client-77`, controlmode.ClientDetached{Client: "client-77"}},
	{`%session-renamed $2 new name`, controlmode.SessionRenamed{Session: 2, Name: "new name"}},
	{`%session-window-changed $2 @9`, controlmode.SessionWindowChanged{Session: 2, Window: 9}},
	{`%session-window-changed $2 @9 more`, controlmode.SessionWindowChanged{Session: 2, Window: 9}},
	{`%session-window-changed $2`, controlmode.Unknown{Line: `%session-window-changed $2`}},
	{`%window-add @9`, controlmode.WindowAdd{Window: 9}},
	{`%unlinked-window-add @9`, controlmode.WindowAdd{Window: 9, Unlinked: true}},
	{`%window-close @9`, controlmode.WindowClose{Window: 9}},
	{`%unlinked-window-close @9`, controlmode.WindowClose{Window: 9, Unlinked: true}},
	{`%window-renamed @9 a  b `, controlmode.WindowRenamed{Window: 9, Name: "a  b "}},
	{`%window-renamed @9`, controlmode.WindowRenamed{Window: 9}},
	{`%unlinked-window-renamed @9 c`, controlmode.WindowRenamed{Window: 9, Name: "c", Unlinked: true}},
	{`%window-pane-changed @9 %3`, controlmode.WindowPaneChanged{Window: 9, Pane: 3}},
	{`%window-pane-changed @9`, controlmode.Unknown{Line: `%window-pane-changed @9`}},
	{`%unlinked-window-pane-changed @9 %3`, controlmode.Unknown{Line: `%unlinked-window-pane-changed @9 %3`}},
	{`%layout-change @0 b25d,80x24,0,0,0 b25d,80x24,0,0,0 *`, controlmode.LayoutChange{Window: 0, Layout: "b25d,80x24,0,0,0", Visible: "b25d,80x24,0,0,0", Flags: "*"}},
	{`%layout-change @0 b25d,80x24,0,0,0 b25e,80x24,0,0,1 *Z new`, controlmode.LayoutChange{Window: 0, Layout: "b25d,80x24,0,0,0", Visible: "b25e,80x24,0,0,1", Flags: "*Z"}},
	{`%layout-change @0 b25d,80x24,0,0,0 b25d,80x24,0,0,0 `, controlmode.LayoutChange{Window: 0, Layout: "b25d,80x24,0,0,0", Visible: "b25d,80x24,0,0,0"}},
	{`%layout-change @0 b25d,80x24,0,0,0`, controlmode.LayoutChange{Window: 0, Layout: "b25d,80x24,0,0,0"}},
	{`%layout-change @0`, controlmode.Unknown{Line: `%layout-change @0`}},
	{`%subscription-changed s $1 @2 3 %4 : v : w`, controlmode.SubscriptionChanged{Name: "s", Session: ptr(controlmode.SessionID(1)), Window: ptr(controlmode.WindowID(2)), Index: ptr(3), Pane: ptr(controlmode.PaneID(4)), Value: "v : w"}},
	{`%subscription-changed a $1 b $1 - - - : v`, controlmode.SubscriptionChanged{Name: "a $1 b", Session: ptr(controlmode.SessionID(1)), Value: "v"}},
	{`%subscription-changed s $1 @2 3 - new words : `, controlmode.SubscriptionChanged{Name: "s", Session: ptr(controlmode.SessionID(1)), Window: ptr(controlmode.WindowID(2)), Index: ptr(3)}},
	{`%subscription-changed s $1 @2 3 - :`, controlmode.SubscriptionChanged{Name: "s", Session: ptr(controlmode.SessionID(1)), Window: ptr(controlmode.WindowID(2)), Index: ptr(3)}},
	{`%subscription-changed s - - - - : v`, controlmode.SubscriptionChanged{Name: "s", Value: "v"}},
	{`%subscription-changed s $1 x 3 %4 : v`, controlmode.Unknown{Line: `%subscription-changed s $1 x 3 %4 : v`}},
	{`%subscription-changed s $1 @2 x %4 : v`, controlmode.Unknown{Line: `%subscription-changed s $1 @2 x %4 : v`}},
	{`%subscription-changed s $1 @2 3 x : v`, controlmode.Unknown{Line: `%subscription-changed s $1 @2 3 x : v`}},
	{`%subscription-changed s $1 @2 : v`, controlmode.Unknown{Line: `%subscription-changed s $1 @2 : v`}},
	{`%subscription-changed s $1 @2 3 %4`, controlmode.Unknown{Line: `%subscription-changed s $1 @2 3 %4`}},
	{`%paste-buffer-changed buffer0`, controlmode.PasteBufferChanged{Name: "buffer0"}},
	{`%paste-buffer-deleted a b`, controlmode.PasteBufferDeleted{Name: "a b"}},
	{`%message some text`, controlmode.Message{Text: "some text"}},
	{`%config-error /f:1: bad`, controlmode.ConfigError{Text: "/f:1: bad"}},
	{`%exit`, controlmode.Exit{}},
	{`%exit too far behind`, controlmode.Exit{Reason: "too far behind"}},
	{`%brand-new $1 @2`, controlmode.Unknown{Line: `%brand-new $1 @2`}},
	{`%`, controlmode.Unknown{Line: `%`}},
	{`%end 1 2 0`, controlmode.Unknown{Line: `%end 1 2 0`}},
	{``, controlmode.Stray{}},
	{` %exit`, controlmode.Stray{Line: ` %exit`}},
	{`file:2: unknown command: x`, controlmode.Stray{Line: `file:2: unknown command: x`}},
}

func TestNotifications(t *testing.T) {
	for _, tt := range notifications {
		t.Run(tt.line, func(t *testing.T) {
			everySplit(t, controlmode.Parser{}, tt.line+"\n", events{tt.want})
			everySplit(t, controlmode.Parser{}, tt.line+"\r\n", events{tt.want})
		})
	}
}

func block(guard string, failed bool, body string) events {
	var g controlmode.Guard
	fmt.Sscan(guard, &g.Time, &g.Number, &g.Flags)
	end := controlmode.BlockEnd{Guard: g, Error: failed}
	if body != "" {
		end.Body = []byte(body)
	}
	return events{controlmode.BlockBegin{Guard: g}, end}
}

func TestBlocks(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		in   string
		want events
	}{
		"one line":        {"%begin 1 2 1\none\n%end 1 2 1\n", block("1 2 1", false, "one\n")},
		"empty":           {"%begin 1 2 1\n%end 1 2 1\n", block("1 2 1", false, "")},
		"an empty line":   {"%begin 1 2 1\n\n%end 1 2 1\n", block("1 2 1", false, "\n")},
		"error":           {"%begin 1 2 1\nbad\n%error 1 2 1\n", block("1 2 1", true, "bad\n")},
		"flags 0":         {"%begin 1 2 0\n%end 1 2 0\n", block("1 2 0", false, "")},
		"long lines":      {"%begin 1 2 1\n" + long + "\n%end " + long + "\n%end 1 2 1\n", block("1 2 1", false, long+"\n%end "+long+"\n")},
		"other numbers":   {"%begin 1 2 1\n%end 1 2 0\n%end 1 3 1\n%end 2 2 1\n%end 01 2 1\n%end 1 2 1\n", block("1 2 1", false, "%end 1 2 0\n%end 1 3 1\n%end 2 2 1\n%end 01 2 1\n")},
		"not quite":       {"%begin 1 2 1\n%end 1 2 1 \n %end 1 2 1\n%end  1 2 1\n%end 1 2 11\n%END 1 2 1\n%end\n%end 1 2 1\r\n%end 1 2 1\n", block("1 2 1", false, "%end 1 2 1 \n %end 1 2 1\n%end  1 2 1\n%end 1 2 11\n%END 1 2 1\n%end\n%end 1 2 1\r\n")},
		"C01 text":        {"%begin 1 2 1\n%begin 1 2 1\n%output %0 hi\n%exit\n%pause %0\n%end 1 2 1\n", block("1 2 1", false, "%begin 1 2 1\n%output %0 hi\n%exit\n%pause %0\n")},
		"CR in a body":    {"%begin 1 2 1\na\r\n\r\n%end 1 2 1\n", block("1 2 1", false, "a\r\n\r\n")},
		"CR LF":           {"%begin 1 2 1\r\na\r\n\r\nb\r\r\nc\rd\r\n" + long + "\r\n%end 1 2 1\r\n", block("1 2 1", false, "a\n\nb\r\nc\rd\n"+long+"\n")},
		"CR LF, long":     {"%begin 1 2 1\r\n" + long + "\r" + long + "\r\r\n%end 1 2 1\r\n", block("1 2 1", false, long+"\r"+long+"\r\n")},
		"largest numbers": {"%begin 18446744073709551615 4294967295 1\n%end 18446744073709551615 4294967295 1\n", block("18446744073709551615 4294967295 1", false, "")},
		"a fourth field":  {"%begin 1 2 1 x\na\n%end 1 2 1\n%end 1 2 1 x\n", block("1 2 1", false, "a\n%end 1 2 1\n")},
		"notification after a block": {
			"%begin 1 2 1\na\n%end 1 2 1\n%pause %3\n",
			append(block("1 2 1", false, "a\n"), controlmode.Pause{Pane: 3}),
		},
	} {
		t.Run(name, func(t *testing.T) { everySplit(t, controlmode.Parser{}, tt.in, tt.want) })
	}
}

// A body longer than what is kept for the next one belongs to the receiver too.
func TestLargeBodies(t *testing.T) {
	var in strings.Builder
	var want events
	for i, n := range []int{10, 200 << 10, 20, 70 << 10, 0} {
		body := strings.Repeat(string(rune('a'+i)), n) + "\n"
		fmt.Fprintf(&in, "%%begin 1 %d 1\n%s%%end 1 %d 1\n", i, body, i)
		want = append(want, block(fmt.Sprintf("1 %d 1", i), false, body)...)
	}
	for _, size := range []int{100, 4096, 1 << 20} {
		got, err := collect(new(controlmode.Parser), slices.Collect(slices.Chunk([]byte(in.String()), size))...)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("chunks of %d: %v", size, err)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	for in, want := range map[string]controlmode.BlockEnd{
		"1234\n":            {Body: []byte("1234\n")},
		"12345678\n":        {Body: []byte("12345678"), Truncated: 1},
		"123456789abc\nd\n": {Body: []byte("12345678"), Truncated: 7},
		"1\n2\n3\n4\n5\n6":  {Body: []byte("1\n2\n3\n4\n"), Truncated: 4},
	} {
		want.Guard = controlmode.Guard{Time: 1, Number: 2, Flags: 1}
		events := events{controlmode.BlockBegin{Guard: want.Guard}, want}
		in = strings.TrimSuffix(in, "\n") + "\n"
		everySplit(t, controlmode.Parser{MaxBody: 8}, "%begin 1 2 1\n"+in+"%end 1 2 1\n", events)
		crlf := strings.ReplaceAll("%begin 1 2 1\n"+in+"%end 1 2 1\n", "\n", "\r\n")
		everySplit(t, controlmode.Parser{MaxBody: 8}, crlf, events)
	}
}

func TestLineLimit(t *testing.T) {
	limits := controlmode.Parser{MaxLine: 16}
	for in, want := range map[string]controlmode.Event{
		"%message 1234567":   controlmode.Message{Text: "1234567"},
		"%message 12345678":  controlmode.Unknown{Line: "%message 1234567", Cut: 1},
		"%message 123456789": controlmode.Unknown{Line: "%message 1234567", Cut: 2},
		"1234567890123456xx": controlmode.Stray{Line: "1234567890123456", Cut: 2},
	} {
		everySplit(t, limits, in+"\n", events{want})
	}
	for _, in := range []string{"%output %0 123456", "%begin 1 2 3 4567"} {
		for i := range in {
			p := limits
			got, err := collect(&p, []byte(in[:i]), []byte(in[i:]+"\n%exit\n"))
			var perr *controlmode.ProtocolError
			if !errors.As(err, &perr) || perr.Offset != 0 || len(got) != 0 {
				t.Fatalf("%q cut at %d: %v, %v", in, i, got, err)
			}
		}
	}
}

func TestProtocolErrors(t *testing.T) {
	for _, in := range []string{"%end 1 2 1", "%error 1 2 1", "%end", "%error x", "%begin", "%begin 1 2", "%begin 1 x 1", "%begin 1  2 1", "%begin 1 2 -1", "%begin 18446744073709551616 2 1", "%begin 1 2 1 " + strings.Repeat("x", 160)} {
		p := new(controlmode.Parser)
		got, err := collect(p, []byte("%exit\n"+in+"\n%exit\n"), []byte("%exit\n"))
		var perr *controlmode.ProtocolError
		if !errors.As(err, &perr) || perr.Offset != 6 || len(got) != 1 {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}

// flood is what tmux sends while a pane prints lines of text, in lines of about
// the size seen.
func flood(size int) []byte {
	var b []byte
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog and prints a line of 80 columns....\r\n", 14))
	for len(b) < size {
		b = append(b, "%output %12 "...)
		b = controlmode.AppendEscape(b, text)
		b = append(b, '\n')
	}
	return b
}

func TestOutputDoesNotAllocate(t *testing.T) {
	data := flood(1 << 20)
	half := len(data) / 2 // a chunk that ends within a line
	var p controlmode.Parser
	var n int
	emit := func(ev controlmode.Event) { n += len(ev.(*controlmode.Output).Data) }
	run := func() {
		for _, c := range [][]byte{data[:half], data[half:]} {
			if err := p.Feed(c, emit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := testing.AllocsPerRun(10, run); got != 0 {
		t.Fatalf("%v allocations for %d output lines", got, bytes.Count(data, []byte("\n")))
	}
	if n == 0 {
		t.Fatal("no output")
	}
}

func BenchmarkParser(b *testing.B) {
	for name, data := range map[string][]byte{
		"text": flood(1 << 20),
		"yes":  []byte("%output %0 " + strings.Repeat(`y\015\012`, 450) + "\n"),
		"body": []byte("%begin 1 2 1\n" + strings.Repeat(strings.Repeat("x", 80)+"\n", 5000) + "%end 1 2 1\n"),
	} {
		for _, size := range []int{4 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/chunk=%dk", name, size>>10), func(b *testing.B) {
				var p controlmode.Parser
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					for c := range slices.Chunk(data, size) {
						if err := p.Feed(c, func(controlmode.Event) {}); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
