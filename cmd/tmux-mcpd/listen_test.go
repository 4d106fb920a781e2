package main

import (
	"fmt"
	"testing"
)

// D07: a daemon that takes the place of another is subscribed to the same
// resources, and the client is told that they may have changed meanwhile. What
// was refused, or given up, is not asked for again.
func TestBridgeD07Subscriptions(t *testing.T) {
	b := bridge(t)
	a := b.greet()
	ask := func(id int, method, uri, result string) {
		t.Helper()
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":%q,"_meta":{"progressToken":%d}}}`, id, method, uri, id)
		b.say(line)
		a.gets(line)
		a.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, result) + "\n")
		b.hears(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, result))
	}
	const done = `"result":{}`
	ask(1, "subscribe", "tmux://panes/1", done)
	ask(2, "subscribe", "tmux://panes/2/content", done)
	ask(3, "subscribe", "tmux://panes/3", `"error":{"code":-32602,"message":"pane %3 does not exist"}`)
	ask(4, "unsubscribe", "tmux://panes/1", done)
	list := `{"jsonrpc":"2.0","id":5,"method":"resources/list"}`
	b.say(list)
	a.gets(list)
	a.say(answer("5", `{"resources":[]}`))
	b.hears(`{"jsonrpc":"2.0","id":5,"result":{"resources":[]}}`)
	const told = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"tmux://panes/2/content"}}`
	a.say(told + "\n")
	b.hears(told)
	for range 2 {
		a.Close()
		a = b.greeted(versionText())
		id, _ := a.request("resources/list")
		a.say(answer(id, `{"resources":[]}`))
		b.hears(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		id, params := a.request("resources/subscribe")
		if got := params.(map[string]any)["uri"]; got != "tmux://panes/2/content" {
			t.Errorf("subscribed to %v", got)
		}
		a.say(answer(id, "{}"))
		b.hears(told)
	}
	ping := `{"jsonrpc":"2.0","id":6,"method":"ping"}`
	b.say(ping)
	a.gets(ping)
	a.say(answer("6", "{}"))
	b.hears(`{"jsonrpc":"2.0","id":6,"result":{}}`)
	b.end(a)
}

// D07: a request that stays open is asked of every daemon, and the client learns
// of none but the first; one of which a daemon says that it is over at once, is.
func TestBridgeD07Listen(t *testing.T) {
	b := bridge(t)
	a := b.daemon()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{` + meta + `,"notifications":{"resourceSubscriptions":["tmux://panes/1"],"resourcesListChanged":true}}}`
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},` +
		`"notifications":{"resourceSubscriptions":["tmux://panes/1"],"resourcesListChanged":true}}}`
	b.say(listen)
	a.gets(listen)
	a.say(ack + "\n")
	b.hears(ack)
	for i := range 4 {
		if i%2 == 0 {
			a.say(answer(`"l"`, `{"resultType":"complete"}`)) // a daemon that ends in order
		}
		a.Close()
		a = b.daemon()
		a.gets(listen)
		a.say(ack + "\n")
		b.hears(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"uri":"tmux://panes/1"}}`)
		b.hears(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`)
	}
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`
	nothing := `{"jsonrpc":"2.0","id":"n","method":"subscriptions/listen","params":{` + meta + `,"notifications":{}}}`
	b.say(cancel, nothing)
	a.gets(cancel)
	a.gets(nothing)
	a.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"n"},"notifications":{}}}` + "\n")
	a.say(answer(`"n"`, `{}`))
	b.hears(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"n"},"notifications":{}}}`)
	b.hears(`{"jsonrpc":"2.0","id":"n","result":{}}`)
	b.end(a)
}
