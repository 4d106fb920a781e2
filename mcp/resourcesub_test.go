package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

// fakeChanges has news whenever somebody says so.
type fakeChanges struct {
	wake chan struct{}

	mu     sync.Mutex // guards the fields that follow
	news   int        // not told yet
	total  int
	last   bool
	closed bool
}

func (f *fakeChanges) happen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.news++
	f.total++
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fakeChanges) changed(context.Context) (bool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tell := f.news > 0
	f.news = 0
	return tell || f.last, f.last
}

func (f *fakeChanges) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *fakeChanges) end() {
	f.mu.Lock()
	f.last = true
	f.mu.Unlock()
	f.happen()
}

// coalesced runs a subscription over a program of changes; what it tells is noted
// as the time since the start and the number of changes that had happened.
func coalesced(t *testing.T, slow time.Duration, program func(*fakeChanges)) (told []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeChanges{wake: make(chan struct{}, 1)}
		s := &subscription{frame: []byte("x"), every: updateEvery, wake: f.wake, changes: f, ended: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.run(ctx, func(ctx context.Context, _ []byte, _ *pending) bool {
				f.mu.Lock()
				told = append(told, fmt.Sprint(time.Since(begin), " ", f.total))
				f.mu.Unlock()
				select {
				case <-time.After(slow):
					return true
				case <-ctx.Done():
					return false
				}
			})
		}()
		program(f)
		time.Sleep(time.Hour) // nothing is told that was told
		cancel()
		<-over
		if !f.closed {
			t.Error("not closed")
		}
	})
	return told
}

// The first change is told at once, a chatty one every 250 ms, the last one
// always.
func TestUpdatesCoalesce(t *testing.T) {
	for _, c := range []struct {
		name    string
		slow    time.Duration // until the client has room again
		program func(*fakeChanges)
		want    []string
	}{
		{"one", 0, func(f *fakeChanges) { f.happen() }, []string{"0s 1"}},
		{"two at once", 0, func(f *fakeChanges) { f.happen(); synctest.Wait(); f.happen() }, []string{"0s 1", "250ms 2"}},
		{"far apart", 0, func(f *fakeChanges) { f.happen(); time.Sleep(time.Second); f.happen() }, []string{"0s 1", "1s 2"}},
		{"chatty", 0, func(f *fakeChanges) {
			for range 70 {
				f.happen()
				time.Sleep(9 * time.Millisecond)
			}
		}, []string{"0s 1", "250ms 28", "500ms 56", "750ms 70"}},
		{"a slow client", 2 * time.Second, func(f *fakeChanges) {
			for range 300 {
				f.happen()
				time.Sleep(11 * time.Millisecond)
			}
		}, []string{"0s 1", "2.25s 205", "4.5s 300"}},
		{"its end", 0, func(f *fakeChanges) { f.happen(); time.Sleep(time.Second); f.end() }, []string{"0s 1", "1s 2"}},
	} {
		got := coalesced(t, c.slow, c.program)
		if d := diff.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestUpdateFrames(t *testing.T) {
	of := &pending{id: []byte(`"listen:1"`)}
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"tmux://panes/%5\""}}`:                                               updateFrame(`tmux://panes/%5"`, nil),
		`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`:                                                                               updateFrame("", nil),
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:1"},"uri":"u"}}`: updateFrame("u", of),
		`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:1"}}}`:      updateFrame("", of),
	} {
		if string(got) != want+"\n" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

const (
	screenOf0 = "tmux://panes/0/content"
	updated   = "notifications/resources/updated"
)

// heard waits for an update of a resource, "" for the list.
func (a *asker) heard(uri string) {
	a.t.Helper()
	for {
		for i, m := range a.told {
			p, _ := m["params"].(map[string]any)
			if uri == "" && m["method"] == listedMethod || m["method"] == updated && p["uri"] == uri {
				a.told = append(a.told[:i:i], a.told[i+1:]...)
				return
			}
		}
		a.told = append(a.told, a.next())
	}
}

// silent drops what has been told, asks something, and expects nothing meanwhile.
func (a *asker) silent(what string) {
	a.t.Helper()
	if len(a.told) > 0 {
		a.t.Errorf("%s: told %v", what, a.told)
	}
	a.told = nil
}

// TestSubscribedScreen: a subscribed pane is watched, every spelling is told as
// it was asked for, and nothing after unsubscribing.
func TestSubscribedScreen(t *testing.T) {
	r := newRig(t, nil).start()
	a := r.asks(PolicyConfig{})
	for _, uri := range []string{screenOf0, "tmux://panes/%250/content"} {
		a.got("resources/subscribe", args{"uri": uri}, new(struct{}))
		a.got("resources/subscribe", args{"uri": uri}, new(struct{})) // is one
	}
	if st := r.table.mirror.Status(); st.WatchedPanes != 1 {
		t.Errorf("%d panes watched", st.WatchedPanes)
	}
	r.tmux("send-keys", "-t", "%0", "first", "Enter")
	a.heard(screenOf0)
	a.heard("tmux://panes/%250/content")
	r.until(func() bool { text, _ := a.read(screenOf0); return strings.Count(text, "first") == 2 })
	if _, meta := a.read(screenOf0); meta[metaCursor] == nil {
		t.Error("a subscribed pane is watched, and its content has no cursor")
	}
	for _, uri := range []string{"tmux://panes/%250/content", screenOf0, "tmux://panes/77/content"} {
		a.got("resources/unsubscribe", args{"uri": uri}, new(struct{}))
	}
	a.told = nil
	r.say("%0", "second")
	a.read(screenOf0)
	a.alive()
	a.silent("after unsubscribing")
	for _, uri := range []string{"tmux://panes/77/content", "tmux://nonsense", "tmux://windows/77"} {
		a.denied("resources/subscribe", args{"uri": uri}, "-32602")
	}
}

// TestSubscribedEnds: the end of a pane is told, and then nothing more.
func TestSubscribedEnds(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	a := r.asks(PolicyConfig{})
	for _, uri := range []string{"tmux://panes/1/content", "tmux://panes/1", "tmux://windows/1", "tmux://windows"} {
		a.got("resources/subscribe", args{"uri": uri}, new(struct{}))
	}
	r.tmux("kill-pane", "-t", "%1")
	for _, uri := range []string{"tmux://panes/1/content", "tmux://panes/1", "tmux://windows/1", "tmux://windows"} {
		a.heard(uri)
	}
	a.denied("resources/read", args{"uri": "tmux://panes/1/content"}, "-32602", "%0")
	r.until(func() bool { return r.subscribed() == 1 })
	gone := r.daemon.open(t)
	(&asker{wire: gone}).got("resources/subscribe", args{"uri": screenOf0}, new(struct{}))
	gone.Close()
	r.until(func() bool { return r.subscribed() == 1 && len(r.conns()) == 1 })
}

// subscribed is how many subscriptions to resources all connections have.
func (r *rig) subscribed() (n int) {
	for _, c := range r.conns() {
		c.subs.mu.Lock()
		for k := range c.subs.all {
			if k.uri != "" {
				n++
			}
		}
		c.subs.mu.Unlock()
	}
	return n
}

// conns are the connections to the rig's daemon, the oldest first.
func (r *rig) conns() []*conn {
	r.daemon.mu.Lock()
	defer r.daemon.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.daemon.conns), func(a, b *conn) int { return cmp.Compare(a.caller.Conn, b.caller.Conn) })
}

// TestSubscribedLists: what tmux changes is told of the resources that show it.
func TestSubscribedLists(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	a := r.asks(PolicyConfig{})
	all := []string{
		"tmux://sessions", "tmux://windows", "tmux://panes", "tmux://sessions/main", "tmux://sessions/0/windows", "tmux://sessions/main/panes",
		"tmux://windows/0", "tmux://windows/0/panes", "tmux://panes/0", "tmux://windows/1", "tmux://panes/1", capabilitiesURI,
	}
	for _, uri := range all {
		a.got("resources/subscribe", args{"uri": uri}, new(struct{}))
	}
	for _, c := range []struct {
		command []string
		want    []string
	}{
		{[]string{"rename-window", "-t", "@0", "new"}, []string{"tmux://windows", "tmux://sessions/0/windows", "tmux://windows/0", "tmux://windows/0/panes", "tmux://panes/0"}},
		{[]string{"rename-session", "-t", "main", "other"}, []string{"tmux://sessions", "tmux://sessions/main", "tmux://sessions/0/windows", "tmux://panes"}},
		{[]string{"select-pane", "-t", "%1", "-T", "a title"}, []string{"tmux://panes", "tmux://panes/1", "tmux://sessions/main/panes"}},
		{[]string{"split-window", "-d", "-t", "@1", "cat"}, []string{"tmux://panes", "tmux://windows/1", "tmux://windows", "tmux://sessions/0/windows"}},
	} {
		r.tmux(c.command...)
		for _, uri := range c.want {
			a.heard(uri)
		}
	}
	for _, m := range a.told {
		if uri := m["params"].(map[string]any)["uri"]; uri == capabilitiesURI {
			t.Errorf("told %v", m)
		}
	}
}

// TestListedIsTold: who has listed resources is told when others are there, and
// not when a command, a title or a window's name changes.
func TestListedIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	a := r.asks(PolicyConfig{})
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	r.ok("what_changed", nil) // what is new is in the journal
	a.silent("before listing")
	a.got("resources/list", nil, new(gotList))
	r.tmux("rename-window", "-t", "@0", "x", ";", "select-pane", "-t", "%1", "-T", "y")
	r.ok("what_changed", nil)
	a.alive2()
	a.silent("names and titles")
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	a.heard("")
	r.tmux("rename-session", "-t", "main", "other")
	a.heard("")
	r.tmux("kill-pane", "-t", "%1")
	a.heard("")
	if err := r.table.open.Set(PolicyConfig{Toolsets: []string{"manage"}}); err != nil {
		t.Fatal(err)
	}
	r.daemon.ToolsChanged()
	a.heard("")
}

// TestSubscriptionLimit: the 65th is refused, and one more fits when one has gone.
func TestSubscriptionLimit(t *testing.T) {
	r := newRig(t, nil).start()
	a := r.asks(PolicyConfig{})
	uris := []string{}
	for i := range resources { // every spelling of an address is one
		path := resources[i].template()
		for _, v := range []string{"0", "00", "000", "0000", "00000", "000000", "0000000", "00000000"} {
			if name := resources[i].variable(); name == varPane || name == varWindow {
				uris = append(uris, strings.Replace(path, "{"+name+"}", v, 1))
				uris = append(uris, strings.Replace(path, "{"+name+"}", map[string]string{varPane: "%25", varWindow: "%40"}[name]+v, 1))
			}
		}
	}
	if len(uris) != maxSubscriptions {
		t.Fatalf("%d addresses", len(uris))
	}
	for _, uri := range uris {
		a.got("resources/subscribe", args{"uri": uri}, new(struct{}))
	}
	a.got("resources/list", nil, new(gotList)) // does not count
	a.denied("resources/subscribe", args{"uri": "tmux://panes"}, "-32000", "64 resources")
	a.got("resources/subscribe", args{"uri": uris[3]}, new(struct{}))
	a.got("resources/unsubscribe", args{"uri": uris[3]}, new(struct{}))
	a.got("resources/subscribe", args{"uri": "tmux://panes"}, new(struct{}))
}

// TestListen: from 2026-07-28 on a request that stays open subscribes, and is told
// by its id; nothing comes after it was cancelled.
func TestListen(t *testing.T) {
	r := newRig(t, nil).start()
	a := r.asks(PolicyConfig{})
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	r.ok("what_changed", nil) // what is new is in the journal
	w := r.daemon.dial(t)
	w.send(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["` + screenOf0 + `"]}}}`)
	b := &asker{wire: w}
	of := func(m map[string]any) string {
		p, _ := m["params"].(map[string]any)
		pm, _ := p["_meta"].(map[string]any)
		return fmt.Sprint(pm["io.modelcontextprotocol/subscriptionId"])
	}
	if ack := b.next(); ack["method"] != "notifications/subscriptions/acknowledged" || of(ack) != "7" {
		t.Fatalf("%v", ack)
	}
	r.tmux("send-keys", "-t", "%0", "x", "Enter")
	if m := b.next(); m["method"] != updated || of(m) != "7" {
		t.Errorf("%v", m)
	}
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	a.read("tmux://panes")
	for {
		m := b.next()
		if of(m) != "7" {
			t.Errorf("%v", m)
		}
		if m["method"] == listedMethod {
			break
		}
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	r.until(func() bool { return r.subscribed() == 0 })
	r.say("%0", "later")
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	a.read("tmux://panes")
	w.send(`{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"resourceSubscriptions":["tmux://panes/99/content"]}}}`)
	for {
		m := b.next()
		if fmt.Sprint(m["id"]) == "8" {
			if e, _ := m["error"].(map[string]any); e == nil || !strings.Contains(fmt.Sprint(e["message"]), "%99 does not exist") {
				t.Errorf("%v", m)
			}
			break
		}
		if len(b.told) > 0 {
			t.Errorf("after cancelling: %v", m)
		}
		b.told = append(b.told, m) // one may have been on its way
	}
}

// TestP9StalledSubscriber: a client that does not read costs the others nothing,
// is not closed for updates, and learns the end.
func TestP9StalledSubscriber(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a peer has not read")
	}
	r := newRig(t, nil).start()
	a := r.asks(PolicyConfig{}, Config{WriteTimeout: 200 * time.Millisecond})
	stalled := &asker{wire: r.daemon.open(t)}
	c := r.conns()[1]
	for _, who := range []*asker{a, stalled} {
		who.got("resources/subscribe", args{"uri": screenOf0}, new(struct{}))
	}
	// What it does not read is as much as updates of an hour.
	fill := []byte(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x"}}`+"\n", 8))
	filled := 0
	for unread(c.nc) <= unreadMost && filled < 10_000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		took := c.offer(ctx, fill, nil)
		cancel()
		if !took {
			break
		}
		filled++
	}
	if unread(c.nc) <= unreadMost {
		t.Fatalf("%d bytes unread after %d frames", unread(c.nc), filled)
	}
	for i := range 4 {
		a.told = nil
		r.tmux("send-keys", "-t", "%0", fmt.Sprint("line", i), "Enter")
		a.heard(screenOf0)
	}
	c.mu.Lock()
	queued, closed := c.queued, c.closed
	c.mu.Unlock()
	if queued > offerRoom || closed {
		t.Errorf("%d bytes queued, closed: %v", queued, closed)
	}
	stalled.heard(screenOf0)
	stalled.alive2()
}

// alive2 is alive for a client that may be told something meanwhile.
func (a *asker) alive2() {
	a.t.Helper()
	a.got("ping", args{}, new(struct{}))
}

// TestBoundarySubscriptions: what happens beyond a socket's sessions is not told
// on it, and neither is what a pane prints that has left them.
func TestBoundarySubscriptions(t *testing.T) {
	t.Parallel()
	b := newBoundary(t)
	a := &asker{wire: b.limited}
	a.SetDeadline(time.Now().Add(patience))
	near := b.near[0]
	screen := scheme + "panes/" + near[1:] + "/content"
	lists := []string{"tmux://sessions", "tmux://windows", "tmux://panes", "tmux://sessions/agent-1/panes", "tmux://panes/" + near[1:], screen}
	b.ok("what_changed", nil)
	a.got("resources/list", nil, new(gotList))
	for _, uri := range lists {
		a.got("resources/subscribe", args{"uri": uri}, new(struct{}))
	}
	for _, uri := range slices.Concat(addresses("panes", b.far.panes[0]), addresses("windows", b.far.windows[0]), addresses("sessions", "zqbefore")) {
		a.denied("resources/subscribe", args{"uri": uri}, "-32602", "does not exist")
	}
	b.tmux("new-window", "-d", "-t", "zqbefore:", "-n", "zqnew", "cat", ";", "rename-session", "-t", "zqlater", "zqother", ";",
		"select-pane", "-t", b.far.panes[0], "-T", "zqchanged", ";", "send-keys", "-t", b.far.panes[0], "zqprinted", "Enter", ";",
		"kill-window", "-t", "zqbefore:zqnew", ";", "unlink-window", "-t", "zqbefore:7")
	b.ok("what_changed", nil)
	a.alive2()
	a.silent("the other side")

	b.tmux("send-keys", "-t", near, "hello", "Enter", ";", "select-pane", "-t", near, "-T", "title")
	a.heard(screen)
	a.heard("tmux://panes")

	b.tmux("move-window", "-s", near, "-t", "zqbefore:9")
	a.heard("")
	b.until(func() bool { return b.subscribed() == len(lists)-2 }) // the pane's two have ended
	a.alive2()
	a.told = nil
	b.tmux("send-keys", "-t", near, "zqlate", "Enter")
	b.until(func() bool { return strings.Contains(b.tmux("capture-pane", "-p", "-t", near), "zqlate") })
	b.ok("what_changed", nil)
	a.alive2()
	for _, m := range a.told {
		if p, _ := m["params"].(map[string]any); p["uri"] == screen {
			t.Errorf("of a pane that has left: %v", m)
		}
	}
}
