package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// served is the rig's tools on a socket.
func (r *rig) served() *daemon {
	r.Helper()
	return startServer(r.TB, Config{}, r.table)
}

func (r *rig) followers(want int) {
	r.Helper()
	r.until(func() bool { return r.table.mirror.Status().Followers == want })
}

const waitLong = `{"paneId":"%0","patterns":["never"],"timeoutMs":55000}`

// TestW07ClientsThatCancelOrGo: of 100 waits half are cancelled, and the clients
// of the others go away. All are gone then, nothing is answered late, and a later
// wait works.
func TestW07ClientsThatCancelOrGo(t *testing.T) {
	r := newRig(t, nil).start()
	d := r.served()
	r.cursorOf("%0")
	before := runtime.NumGoroutine()
	stays, goes := d.open(t), d.open(t)
	for i := range 50 {
		stays.call(i, "wait_for_text", waitLong)
		goes.call(i, "wait_for_text", waitLong)
	}
	r.followers(100)
	for i := range 50 {
		stays.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
	goes.UnixConn.Close()
	r.followers(0)
	cursor := r.cursorOf("%0")
	r.say("%0", "never") // would end a wait that still runs
	raw, _ := json.Marshal(args{"paneId": "%0", "patterns": []string{"never"}, "cursor": cursor})
	stays.call("later", "wait_for_text", string(raw))
	if m := stays.next(); m["id"] != "later" || !strings.Contains(text(t, m), "matched") {
		t.Errorf("%v", m)
	}
	stays.UnixConn.Close()
	r.until(func() bool { return runtime.NumGoroutine() <= before })
}

// TestWaitProgress: a client that asks for it is told of the newest line while a
// wait runs, and of nothing after the answer.
func TestWaitProgress(t *testing.T) {
	t.Parallel() // it waits for the clock
	r := newRig(t, nil).start()
	w := r.served().open(t)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_text","_meta":{"progressToken":"tok"},` +
		`"arguments":{"paneId":"%0","patterns":["the end"],"timeoutMs":300000}}}`)
	r.followers(1)
	r.say("%0", "half way")
	for n := 1; ; n++ {
		m := w.next()
		p, _ := m["params"].(map[string]any)
		if m["method"] != "notifications/progress" || p["progressToken"] != "tok" {
			t.Fatalf("%v", m)
		}
		if strings.Contains(p["message"].(string), "half way") {
			break
		}
	}
	r.say("%0", "the end")
	for m := w.next(); ; m = w.next() { // one may have been on its way
		if m["id"] != nil {
			if got := text(t, m); !strings.Contains(got, "matched") {
				t.Errorf("%v", got)
			}
			break
		}
	}
	w.alive()
}

// manyWaits starts waits on every pane and comes back when all have begun.
func (r *rig) manyWaits(ctx context.Context, panes []string, each int) (ended chan string, all *sync.WaitGroup) {
	ended, all = make(chan string, len(panes)*each), new(sync.WaitGroup)
	for _, pane := range panes {
		for range each {
			raw := json.RawMessage(fmt.Sprintf(`{"paneId":%q,"patterns":["wake","up [0-9]"],"regex":true,"timeoutMs":600000}`, pane))
			all.Go(func() {
				res, err := r.table.call(ctx, r.caller, "wait_for_text", raw, func(string) {})
				switch {
				case err == nil && !res.IsError:
					ended <- pane
				case !errors.Is(err, context.Canceled):
					r.Errorf("%v, %v", res, err)
				}
			})
		}
	}
	r.until(func() bool { return r.table.mirror.Status().Followers == len(panes)*each || r.Failed() })
	return ended, all
}

// panes makes panes that run cat, one in a window, and has them watched.
func (r *rig) panes(n int) (ids []string) {
	r.Helper()
	for len(ids) < n {
		var cmd []string
		for range min(n-len(ids), 25) {
			cmd = append(cmd, "new-window", "-d", "-P", "-F", "#{pane_id}", "cat", ";")
		}
		ids = append(ids, strings.Fields(r.tmux(cmd[:len(cmd)-1]...))...)
	}
	for _, id := range ids {
		r.cursorOf(id)
	}
	return ids
}

// TestThousandWaits: a wait that does not wait for time costs one goroutine,
// waking one wakes no other, and all is gone when they are cancelled.
func TestThousandWaits(t *testing.T) {
	panes, each := 300, 4
	if testing.Short() {
		panes = 60 // the same with less time for starting processes
	}
	r := newRig(t, nil).start()
	ids := r.panes(panes)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, all := r.manyWaits(ctx, ids, each)
	if n := runtime.NumGoroutine() - before; n > panes*each+8 {
		t.Errorf("%d goroutines for %d waits", n, panes*each)
	}
	looks := r.table.mirror.Status().Looks
	r.tmux("send-keys", "-t", ids[7], "wake")
	for range each {
		if id := await(t, ended, "a wait"); id != ids[7] {
			t.Errorf("%s was waked", id)
		}
	}
	if n := r.table.mirror.Status().Looks - looks; n > uint64(10*each) {
		t.Errorf("%d looks to wake %d waits", n, each)
	}
	cancel()
	all.Wait()
	r.followers(0)
	r.until(func() bool { return runtime.NumGoroutine() <= before })
}

// TestChannels: the states of a channel are tmux's, whoever signals and waits.
func TestChannels(t *testing.T) {
	r := newRig(t, nil).start()
	for _, name := range []string{"plain", "-S", "a'b\"c #{pid} ;", ";", "ünï"} {
		if v := r.ok("signal_channel", args{"channel": name}); v["channel"] != name || v["signalled"] != true {
			t.Errorf("%v", v)
		}
		if v := r.ok("wait_for_channel", args{"channel": name}); v["channel"] != name || v["signalled"] != true {
			t.Errorf("a signal that was kept: %v", v)
		}
		r.refused("wait_for_channel", args{"channel": name, "timeoutMs": 1}, "timed out after 1 ms", "Call again")
		word := name
		if front, ok := strings.CutSuffix(name, ";"); ok {
			word = front + `\;`
		}
		r.tmux("wait-for", "-S", "--", word)
		if v := r.ok("wait_for_channel", args{"channel": name}); v["signalled"] != true {
			t.Errorf("a signal between two waits: %v", v)
		}
	}
	r.refused("wait_for_channel", args{"channel": strings.Repeat("'", 2046)}, "longer than the 8182 bytes")
	r.tmux("wait-for", "-S", "kept") // nobody ever waits for it
}

// TestChannelSignalAfterTheWaitIsKept: before tmux 3.8 a waiter that has gone
// would swallow the signal; here tmux's own waiters get it, too.
func TestChannelSignalAfterTheWaitIsKept(t *testing.T) {
	r := newRig(t, nil).start()
	r.cursorOf("%0") // attached: the version is known
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := r.table.call(ctx, r.caller, "wait_for_channel", json.RawMessage(`{"channel":"c","timeoutMs":600000}`), func(string) {})
		gone <- err
	}()
	r.until(func() bool { return r.table.mirror.Status().Channels == 1 })
	cancel()
	if err := await(t, gone, "the cancelled wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for range 20 { // by now tmux knows the process that waits: nothing can tell when
		r.tmux("display-message", "-p", "")
	}
	r.tmux("wait-for", "-S", "c")
	r.tmux("wait-for", "c")
}

// TestW04ChannelOfServerThatEnds: never signalled, and the server ends.
func TestW04ChannelOfServerThatEnds(t *testing.T) {
	r := newRig(t, nil)
	r.refused("wait_for_channel", args{"channel": "c"}, "no tmux server is running")
	r.refused("signal_channel", args{"channel": "c"}, "no tmux server is running")
	r.start()
	r.cursorOf("%0") // attached
	ended := make(chan *toolResult, 1)
	go func() {
		res, err := r.table.call(t.Context(), r.caller, "wait_for_channel", json.RawMessage(`{"channel":"c"}`), nil)
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	r.until(func() bool { return r.table.mirror.Status().Channels == 1 })
	r.tmux("kill-server")
	if res := await(t, ended, "the wait"); !res.IsError || !strings.Contains(res.Text, "no tmux server") {
		t.Errorf("%+v", res)
	}
}
