package controlmode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/controlmode/controltest"
)

// rig is a client on a scripted tmux.
type rig struct {
	*controlmode.Client
	tmux   *controltest.Tmux
	events *eventLog
	ended  chan error
}

// eventLog notes events as text. Waiting for one needs no clock.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *eventLog) add(ev controlmode.Event) {
	s := fmt.Sprintf("%T%+v", ev, ev)
	if o, ok := ev.(*controlmode.Output); ok {
		s = fmt.Sprintf("output %s %q", o.Pane, o.Data)
	}
	l.note(strings.TrimPrefix(s, "controlmode."))
}

func (l *eventLog) note(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
}

func (l *eventLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// unattached starts a client; the script has said nothing yet.
func unattached(t *testing.T) *rig {
	t.Helper()
	tmux, conn := controltest.New(t)
	r := &rig{tmux: tmux, events: &eventLog{}, ended: make(chan error, 1)}
	r.Client = controlmode.NewClient(conn, controlmode.Options{Event: r.events.add})
	go func() { r.ended <- r.Run(context.Background()) }()
	t.Cleanup(func() {
		r.Close()
		<-r.Done()
	})
	return r
}

func attached(t *testing.T) *rig {
	t.Helper()
	r := unattached(t)
	r.tmux.Attach(1, "main")
	<-r.Ready()
	return r
}

// answer is what a Do on another goroutine came to.
type answer struct {
	reply controlmode.Reply
	err   error
}

func (r *rig) start(ctx context.Context, req controlmode.Request) <-chan answer {
	ch := make(chan answer, 1)
	go func() {
		reply, err := r.Do(ctx, req)
		ch <- answer{reply, err}
	}()
	return ch
}

func (a answer) bodies() string {
	var s []string
	for _, b := range a.reply.Blocks {
		mark := ""
		if b.Error {
			mark = "!"
		}
		s = append(s, mark+strings.TrimSuffix(string(b.Body), "\n"))
	}
	return strings.Join(s, "|")
}

func one(words ...string) controlmode.Request {
	return controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd(words[0], words[1:]...)}}
}

func wantBodies(t *testing.T, a answer, want string) {
	t.Helper()
	if a.err != nil || a.bodies() != want {
		t.Fatalf("got %q, %v; want %q", a.bodies(), a.err, want)
	}
}

func wantViolation(t *testing.T, r *rig) {
	t.Helper()
	var perr *controlmode.ProtocolError
	if err := <-r.ended; !errors.As(err, &perr) {
		t.Fatalf("Run = %v, want a *ProtocolError", err)
	}
}

func TestRequestsWaitForAttach(t *testing.T) {
	r := unattached(t)
	a := r.start(t.Context(), one("list-sessions"))
	g := r.tmux.Guard(0)
	r.tmux.Say("%begin " + g)
	if n := r.Stats().BytesOut; n != 0 {
		t.Fatalf("%d bytes were sent before the attach block ended", n)
	}
	r.tmux.Say("%end "+g, "%session-changed $1 main")
	if line, _ := r.tmux.Line(); line != "list-sessions" {
		t.Fatalf("line %q", line)
	}
	r.tmux.Reply("main: 1 windows")
	wantBodies(t, <-a, "main: 1 windows")
}

// C02: the error of one command drops the rest of its line, and the next
// request still gets its own answer.
func TestC02ErrorEndsGroup(t *testing.T) {
	for _, fence := range []bool{false, true} {
		t.Run(fmt.Sprintf("fence=%v", fence), func(t *testing.T) {
			r := attached(t)
			first := controlmode.Request{Fence: fence, Commands: []controlmode.Command{
				controlmode.Cmd("display-message", "-p", "x"), controlmode.Cmd("kill-pane", "-t", "%99"), controlmode.Cmd("display-message", "-p", "b"),
			}}
			a := r.start(t.Context(), first)
			r.tmux.Commands()
			b := r.start(t.Context(), one("display-message", "-p", "ok"))
			r.tmux.Commands()
			r.tmux.Reply("x")
			r.tmux.Error("can't find pane: %99")
			r.tmux.Reply("ok")
			got := <-a
			wantBodies(t, got, "x|!can't find pane: %99")
			var cerr *controlmode.CommandError
			if err := got.reply.Err(first); !errors.As(err, &cerr) || cerr.Words[0] != "kill-pane" || cerr.Text != "can't find pane: %99" {
				t.Fatalf("Err = %v", err)
			}
			wantBodies(t, <-b, "ok")
		})
	}
}

func TestParseErrorIsOneBlock(t *testing.T) {
	r := attached(t)
	req := controlmode.Request{Fence: true, Commands: []controlmode.Command{controlmode.Cmd("a"), controlmode.Cmd("b")}}
	a := r.start(t.Context(), req)
	r.tmux.Commands()
	r.tmux.Error("parse error: unknown command: a")
	wantBodies(t, <-a, "!parse error: unknown command: a")
}

func TestFlagsZeroBlocksAreNotAnswers(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), controlmode.Request{Fence: true, Commands: []controlmode.Command{controlmode.Cmd("list-panes"), controlmode.Cmd("list-windows")}})
	cmds := r.tmux.Commands()
	r.tmux.Block(0, "hook\n")
	r.tmux.Reply("panes")
	r.tmux.Block(0, "")
	r.tmux.Reply("windows")
	r.tmux.Block(0, "hook\n")
	r.tmux.Reply(controltest.Nonce(cmds))
	wantBodies(t, <-a, "panes|windows")
}

// C01: lines that look like guards or notifications inside a reply are text.
func TestC01ReplyIsNeverEndedByText(t *testing.T) {
	text := []string{"%end 1700000000 42 1", "%output %0 forged", "%begin 1 2 1", "%exit", "%error 1700000000 42 1", `\033[31m literal backslash`, `100% \\ done`}
	r := attached(t)
	a := r.start(t.Context(), one("capture-pane", "-p"))
	r.tmux.Commands()
	r.tmux.Reply(text...)
	wantBodies(t, <-a, strings.Join(text, "\n"))
	if got := r.events.String(); strings.Contains(got, "forged") || strings.Contains(got, "Exit") {
		t.Fatalf("events forged: %s", got)
	}
}

// C01: even text that guesses the guard of its own reply right forges neither
// an answer nor an event: the connection ends.
func TestC01RightGuessEndsConnection(t *testing.T) {
	for name, script := range map[string]func(g string) []string{
		"end and notification": func(g string) []string {
			return []string{"%begin " + g, "%end " + g, "%output %0 forged", "%begin " + g, "%end " + g}
		},
		"end and stray": func(g string) []string {
			return []string{"%begin " + g, "%end " + g, "forged", "%end " + g}
		},
		"hook's block and output": func(g string) []string {
			return []string{"%begin " + g, "%end " + g, "%begin 1 2 0", "%end 1 2 0", "%output %0 forged", "%begin " + g, "%end " + g}
		},
		"error": func(g string) []string {
			return []string{"%begin " + g, "row", "row", "%error " + g, "%output %0 forged", "%end " + g}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := attached(t)
			req := one("capture-pane", "-p")
			req.Fence = true
			a := r.start(t.Context(), req)
			r.tmux.Commands()
			go r.tmux.Say(script(r.tmux.Guard(1))...)
			if got := <-a; !errors.Is(got.err, controlmode.ErrClosed) {
				t.Fatalf("Do = %v", got.err)
			}
			wantViolation(t, r)
			if got := r.events.String(); strings.Contains(got, "forged") {
				t.Fatalf("an event was forged: %s", got)
			}
		})
	}
}

// tmux 3.8 tells what the hook of a command did before the next block.
func TestHookMayNotifyBetweenBlocks(t *testing.T) {
	r := attached(t)
	req := one("list-clients")
	req.Fence = true
	a := r.start(t.Context(), req)
	cmds := r.tmux.Commands()
	r.tmux.Reply("clients")
	r.tmux.Block(0, "")
	r.tmux.Say("%window-renamed @0 hooked")
	r.tmux.Reply(controltest.Nonce(cmds))
	wantBodies(t, <-a, "clients")
	if got := r.events.String(); !strings.Contains(got, "WindowRenamed{Window:@0 Name:hooked") {
		t.Fatalf("events: %s", got)
	}
}

// tmux 3.8 tells what a command changed before the next block.
func TestChangesMayNotifyBetweenBlocks(t *testing.T) {
	r := attached(t)
	req := controlmode.Request{Fence: true, Commands: []controlmode.Command{controlmode.Cmd("rename-window", "x"), controlmode.Cmd("list-windows")}}
	a := r.start(t.Context(), req)
	cmds := r.tmux.Commands()
	r.tmux.Reply()
	r.tmux.Say("%window-renamed @0 x")
	r.tmux.Reply("windows")
	r.tmux.Say("%window-renamed @0 y")
	r.tmux.Reply(controltest.Nonce(cmds))
	wantBodies(t, <-a, "|windows")
}

func TestAliasShiftIsNoticedByFence(t *testing.T) {
	r := attached(t)
	req := one("list-panes")
	req.Fence = true
	a := r.start(t.Context(), req)
	cmds := r.tmux.Commands()
	b := r.start(t.Context(), one("display-message", "-p", "ok"))
	r.tmux.Commands()
	r.tmux.Reply("alias 1")
	r.tmux.Reply("alias 2")
	r.tmux.Reply(controltest.Nonce(cmds))
	r.tmux.Reply("ok")
	if got := <-a; !errors.Is(got.err, controlmode.ErrBlocks) {
		t.Fatalf("Do = %v, want ErrBlocks", got.err)
	}
	wantBodies(t, <-b, "ok")
}

func TestUnexpectedReplyEndsConnection(t *testing.T) {
	r := attached(t)
	r.tmux.Say("%begin 1 2 1")
	wantViolation(t, r)
	if _, err := r.Do(t.Context(), one("list-panes")); !errors.Is(err, controlmode.ErrClosed) || !errors.Is(err, controlmode.ErrNotSent) {
		t.Fatalf("Do = %v", err)
	}
}

func TestLateFenceEndsConnection(t *testing.T) {
	r := attached(t)
	req := one("list-panes")
	req.Fence = true
	a := r.start(t.Context(), req)
	nonce := controltest.Nonce(r.tmux.Commands())
	r.tmux.Error("bad")
	wantBodies(t, <-a, "!bad")
	b := r.start(t.Context(), one("display-message", "-p", "ok"))
	r.tmux.Commands()
	go r.tmux.Reply(nonce)
	if got := <-b; !errors.Is(got.err, controlmode.ErrClosed) {
		t.Fatalf("Do = %v", got.err)
	}
	wantViolation(t, r)
}

// C04: no byte of an argument ever ends a line or starts another command.
func TestC04NoRawControlByteInALine(t *testing.T) {
	for c := 1; c < 256; c++ {
		line := string(controlmode.Cmd("send-keys", "-l", "--", "p"+string([]byte{byte(c)})+"kill-server").AppendLine(nil))
		for i := 0; i < len(line); i++ {
			if line[i] < 0x20 || line[i] > 0x7e || strings.IndexByte(";{}#$~'", line[i]) >= 0 {
				t.Fatalf("byte %#x: raw %q in %q", c, line[i], line)
			}
		}
	}
	r := attached(t)
	for _, bad := range []string{"a\x00b", "\x00"} {
		if _, err := r.Do(t.Context(), one("send-keys", bad)); !errors.Is(err, controlmode.ErrNUL) || !errors.Is(err, controlmode.ErrNotSent) {
			t.Fatalf("Do = %v", err)
		}
	}
	for _, req := range []controlmode.Request{{}, one(""), {Commands: make([]controlmode.Command, 1)}} {
		if _, err := r.Do(t.Context(), req); !errors.Is(err, controlmode.ErrEmpty) {
			t.Fatalf("Do = %v", err)
		}
	}
	for _, n := range []int{controlmode.MaxLine, 10 << 20} {
		if _, err := r.Do(t.Context(), one("set-buffer", strings.Repeat("a", n))); !errors.Is(err, controlmode.ErrTooLong) {
			t.Fatalf("Do = %v", err)
		}
	}
	// A line of exactly the limit is sent, one byte more is not.
	fits := one("a", strings.Repeat("a", controlmode.MaxLine-len("a \n")))
	if err := fits.Check(); err != nil {
		t.Fatal(err)
	}
	fits.Commands[0].Words()[1] += "a"
	if err := fits.Check(); !errors.Is(err, controlmode.ErrTooLong) {
		t.Fatal(err)
	}
}

// C14: lines outside blocks that are no notifications are counted and passed on.
func TestC14StrayLines(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), one("source-file", "bad.conf"))
	r.tmux.Commands()
	r.tmux.Block(1, "")
	r.tmux.Say("bad.conf:2: unknown command: wibble")
	wantBodies(t, <-a, "")
	b := r.start(t.Context(), one("list-panes"))
	r.tmux.Commands()
	r.tmux.Say("%brand-new-thing 1 2")
	r.tmux.Reply("ok")
	wantBodies(t, <-b, "ok")
	if s := r.Stats(); s.Stray != 1 || s.Unknown != 1 {
		t.Fatalf("%+v", s)
	}
	if got := r.events.String(); !strings.Contains(got, "bad.conf:2: unknown command: wibble") || !strings.Contains(got, "%brand-new-thing 1 2") {
		t.Fatalf("events: %s", got)
	}
}

// Everything tmux wrote before an answer has been handed to Event when Begin
// runs and when Do returns.
func TestOrderOfEventsBeginAndReply(t *testing.T) {
	r := attached(t)
	req := controlmode.Request{
		Fence:    true,
		Begin:    func(i int) { r.events.note(fmt.Sprintf("begin %d", i)) },
		Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "s"), controlmode.Cmd("capture-pane", "-p")},
	}
	a := r.start(t.Context(), req)
	cmds := r.tmux.Commands()
	r.tmux.Output(7, "one\r\n")
	r.tmux.Output(7, "two")
	r.tmux.Reply("s")
	r.tmux.Reply("row")
	r.tmux.Reply(controltest.Nonce(cmds))
	wantBodies(t, <-a, "s|row")
	want := strings.Join([]string{`SessionChanged{Session:$1 Name:main}`, `output %7 "one\r\n"`, `output %7 "two"`, "begin 0", "begin 1"}, "\n")
	if got := r.events.String(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

// tmux 3.2a to 3.7c writes %pause and %continue inside the block of our own
// refresh-client -A.
func TestPauseLinesInsideTheirBlock(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), one("refresh-client", "-A", "%0:continue"))
	r.tmux.Commands()
	r.tmux.Reply("%continue %0", "%pause %5")
	wantBodies(t, <-a, "%pause %5")
	// The same text in the answer of anything else stays text.
	b := r.start(t.Context(), one("capture-pane", "-p", "-t", "%0"))
	r.tmux.Commands()
	r.tmux.Reply("%pause %0")
	wantBodies(t, <-b, "%pause %0")
	want := "SessionChanged{Session:$1 Name:main}\nContinue{Pane:%0}"
	if got := r.events.String(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAbandonedRequestKeepsItsPlace(t *testing.T) {
	r := attached(t)
	ctx, cancel := context.WithCancel(t.Context())
	req := one("list-panes")
	req.Begin = func(int) { t.Error("Begin of an abandoned request") }
	a := r.start(ctx, req)
	r.tmux.Commands()
	b := r.start(t.Context(), one("list-windows"))
	r.tmux.Commands()
	cancel()
	if got := <-a; !errors.Is(got.err, context.Canceled) || errors.Is(got.err, controlmode.ErrNotSent) {
		t.Fatalf("Do = %v", got.err)
	}
	r.tmux.Reply("panes")
	r.tmux.Reply("windows")
	wantBodies(t, <-b, "windows")
}

func TestUnsentRequestIsWithdrawn(t *testing.T) {
	r := unattached(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Do(ctx, one("kill-server")); !errors.Is(err, context.Canceled) || !errors.Is(err, controlmode.ErrNotSent) {
		t.Fatalf("Do = %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	a := r.start(ctx, one("kill-server"))
	for r.Stats().InFlight == 0 {
		runtime.Gosched()
	}
	cancel()
	if got := <-a; !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, controlmode.ErrNotSent) {
		t.Fatalf("Do = %v", got.err)
	}
	b := r.start(t.Context(), one("list-panes"))
	r.tmux.Attach(1, "main")
	if line, _ := r.tmux.Line(); line != "list-panes" {
		t.Fatalf("line %q", line)
	}
	r.tmux.Reply("ok")
	wantBodies(t, <-b, "ok")
}

func TestTooManyInFlight(t *testing.T) {
	r := unattached(t)
	var all []<-chan answer
	for range 4096 {
		all = append(all, r.start(t.Context(), one("list-panes")))
	}
	for r.Stats().InFlight < 4096 {
		runtime.Gosched()
	}
	if _, err := r.Do(t.Context(), one("list-panes")); !errors.Is(err, controlmode.ErrBusy) {
		t.Fatalf("Do = %v", err)
	}
	r.Close()
	for _, a := range all {
		if got := <-a; !errors.Is(got.err, controlmode.ErrClosed) || !errors.Is(got.err, controlmode.ErrNotSent) {
			t.Fatalf("Do = %v", got.err)
		}
	}
}

func TestDeadlineClosesConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := attached(t)
		req := one("list-panes")
		req.Timeout = 2 * time.Second
		began := time.Now()
		a := r.start(t.Context(), req)
		r.tmux.Commands()
		b := r.start(t.Context(), one("list-windows"))
		r.tmux.Commands()
		got := <-a
		if !errors.Is(got.err, controlmode.ErrTimeout) || errors.Is(got.err, controlmode.ErrClosed) {
			t.Fatalf("Do = %v", got.err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Fatalf("deadline after %v", d)
		}
		if got := <-b; !errors.Is(got.err, controlmode.ErrTimeout) || !errors.Is(got.err, controlmode.ErrClosed) {
			t.Fatalf("other Do = %v", got.err)
		}
		if err := <-r.ended; !errors.Is(err, controlmode.ErrTimeout) {
			t.Fatalf("Run = %v", err)
		}
	})
}

// An abandoned request still guards the connection.
func TestDeadlineOfAbandonedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := attached(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := r.start(ctx, one("list-panes"))
		r.tmux.Commands()
		if got := <-a; !errors.Is(got.err, context.DeadlineExceeded) {
			t.Fatalf("Do = %v", got.err)
		}
		if err := <-r.ended; !errors.Is(err, controlmode.ErrTimeout) {
			t.Fatalf("Run = %v", err)
		}
	})
}

func TestAttachNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := unattached(t)
		if err := <-r.ended; !errors.Is(err, controlmode.ErrTimeout) {
			t.Fatalf("Run = %v", err)
		}
	})
}

func TestAttachRefused(t *testing.T) {
	r := unattached(t)
	g := r.tmux.Guard(0)
	r.tmux.Say("%begin "+g, "can't find session: $9", "%error "+g, "%exit")
	var cerr *controlmode.CommandError
	if err := <-r.ended; !errors.As(err, &cerr) || cerr.Text != "can't find session: $9" {
		t.Fatalf("Run = %v", err)
	}
	if _, err := r.Do(t.Context(), one("list-panes")); !errors.As(err, &cerr) || !errors.Is(err, controlmode.ErrClosed) {
		t.Fatalf("Do = %v", err)
	}
}

func TestExit(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), one("list-panes"))
	r.tmux.Commands()
	r.tmux.Say("%exit server exited unexpectedly")
	if got := <-a; !errors.Is(got.err, controlmode.ErrClosed) || !strings.Contains(got.err.Error(), "server exited unexpectedly") {
		t.Fatalf("Do = %v", got.err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("Run = %v", err)
	}
	if reason, ok := r.Exit(); !ok || reason != "server exited unexpectedly" {
		t.Fatalf("Exit = %q, %v", reason, ok)
	}
}

func TestEndOfFile(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), one("list-panes"))
	r.tmux.Commands()
	r.tmux.Write("%begin 1 2 1\nhalf an ans")
	r.tmux.Close()
	if got := <-a; !errors.Is(got.err, controlmode.ErrClosed) || errors.Is(got.err, controlmode.ErrNotSent) {
		t.Fatalf("Do = %v", got.err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("Run = %v", err)
	}
	if _, ok := r.Exit(); ok {
		t.Fatal("Exit where tmux said none")
	}
}

func TestContextEndsRun(t *testing.T) {
	tmux, conn := controltest.New(t)
	c := controlmode.NewClient(conn, controlmode.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	tmux.Attach(1, "main")
	<-c.Ready()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("Run = %v", err)
	}
	if c.Run(t.Context()) == nil {
		t.Fatal("Run twice")
	}
}

// Many callers at once: every answer reaches the one who asked.
func TestManyCallers(t *testing.T) {
	r := attached(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.tmux.Serve(func(words []string) (string, bool) { return words[2], strings.HasPrefix(words[2], "#bad") })
	}()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 20 {
				text := fmt.Sprintf("#%d.%d", i, j)
				if j%5 == 4 {
					text = "#bad" + text
				}
				req := one("display-message", "-p", text)
				req.Fence = i%2 == 0
				reply, err := r.Do(t.Context(), req)
				if err != nil || len(reply.Blocks) != 1 || !bytes.Equal(reply.Blocks[0].Body, []byte(text+"\n")) || reply.Blocks[0].Error != (j%5 == 4) {
					t.Errorf("asked %q, got %+v, %v", text, reply, err)
				}
			}
		})
	}
	wg.Wait()
	r.Close()
	<-served
}

func TestDumpMasksText(t *testing.T) {
	r := attached(t)
	a := r.start(t.Context(), one("send-keys", "-t", "%3", "-l", "--", "hunter2"))
	r.tmux.Commands()
	r.tmux.Say(`%output %0 p4ss\033[1mword`, "%window-renamed @2 topsecret")
	r.tmux.Reply("body secret 42", "%secret 1234", "% 1234 x")
	<-a
	dump := string(r.Dump())
	for _, secret := range []string{"hunter2", "p4ss", "word", "topsecret", "secret", "42 ", "1234"} {
		if strings.Contains(dump, secret) {
			t.Errorf("%q is in the dump:\n%s", secret, dump)
		}
	}
	for _, kept := range []string{`%output %0 x0xx\033[0xxxxx`, "%window-renamed @2 xxxxxxxxx", "%begin 1796038274 102 1", "send-keys -t %3 -l -- xxxxxx0"} {
		if !strings.Contains(dump, kept) {
			t.Errorf("%q is not in the dump:\n%s", kept, dump)
		}
	}
}
