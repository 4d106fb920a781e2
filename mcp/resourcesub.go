package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	subscribeMethod   = "resources/subscribe"
	unsubscribeMethod = "resources/unsubscribe"
	updatedMethod     = "notifications/resources/updated"
	listedMethod      = "notifications/resources/list_changed"

	// maxSubscriptions is how many resources a connection may subscribe to.
	maxSubscriptions = 64
	// updateEvery and listedEvery are the shortest times between two updates of a
	// resource, and between two of the list. The first comes at once.
	updateEvery = 250 * time.Millisecond
	listedEvery = time.Second
)

// subscription tells a client that a resource, or the list of them, may have
// changed: the first change at once, more of them together, and never nothing
// after the last. It has one goroutine, which waits where the client does not
// read; what changes meanwhile becomes one update.
type subscription struct {
	frame   []byte        // the update, always the same
	of      *pending      // the request it lives with; nil if it ends by itself
	every   time.Duration // between two updates
	wake    chan struct{}
	changes changes
	stop    context.CancelFunc
	ended   chan struct{}
}

// run tells until ctx ends, there is nobody to tell, or nothing more to tell.
// offer sends an update; see conn.offer.
func (s *subscription) run(ctx context.Context, offer func(context.Context, []byte, *pending) bool) {
	defer s.changes.close()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		tell, last := s.changes.changed(ctx)
		if tell && !offer(ctx, s.frame, s.of) || last {
			return
		}
		if !tell {
			continue
		}
		pause.Reset(s.every)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// subKey names a subscription of a connection.
type subKey struct {
	listen string // id of the request it lives with, as spelled; "" for none
	uri    string // "" for the list
}

// subscriptions are those of one connection.
type subscriptions struct {
	mu     sync.Mutex // guards the fields that follow
	all    map[subKey]*subscription
	closed bool
	wg     sync.WaitGroup
}

// errSubscribed refuses one more.
var errSubscribed = &jsonrpc.Error{
	Code: codeRefused,
	Message: fmt.Sprintf("%d resources are subscribed to on this connection, the most allowed: unsubscribe from one, or subscribe to a list",
		maxSubscriptions),
}

// reserve makes room for a subscription. It reports false if there is one.
func (s *subscriptions) reserve(key subKey, sub *subscription) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for k := range s.all {
		if k.uri != "" {
			n++
		}
	}
	switch {
	case s.all[key] != nil:
		return false, nil
	case s.closed:
		return false, errors.New("the connection has ended")
	case key.uri != "" && n >= maxSubscriptions:
		return false, errSubscribed
	}
	if s.all == nil {
		s.all = map[subKey]*subscription{}
	}
	s.all[key] = sub
	s.wg.Add(1)
	return true, nil
}

// forget gives the place of a subscription back, if it has not been given to
// another one since.
func (s *subscriptions) forget(key subKey, sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == sub {
		delete(s.all, key)
	}
}

// end ends a subscription, if there is one. No update is sent after it.
func (s *subscriptions) end(key subKey) {
	s.mu.Lock()
	sub := s.all[key]
	delete(s.all, key)
	s.mu.Unlock()
	if sub != nil {
		sub.stop()
		<-sub.ended
	}
}

// close ends all of them for good.
func (s *subscriptions) close() {
	s.mu.Lock()
	s.closed = true
	for _, sub := range s.all {
		sub.stop()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// nudge has all of them look.
func (s *subscriptions) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.all {
		select {
		case sub.wake <- struct{}{}:
		default:
		}
	}
}

// subscribe makes a connection hear of a resource, or with an empty uri of the
// list of them. of is the request it lives with, nil for none. Whoever has
// subscribed already, is.
func (s *Server) subscribe(ctx context.Context, c *conn, uri string, of *pending) error {
	reg := s.reg.(resourceful)
	key := keyOf(uri, of)
	running, stop := context.WithCancel(context.Background())
	sub := &subscription{
		frame: updateFrame(uri, of), of: of, every: updateEvery, wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{}),
	}
	fresh, err := c.subs.reserve(key, sub)
	if !fresh {
		stop()
		return err
	}
	end := func() {
		c.subs.forget(key, sub)
		stop()
		close(sub.ended)
		c.subs.wg.Done()
	}
	began := false
	defer func() {
		if !began {
			end()
		}
	}()
	caller := c.caller
	if uri == "" {
		sub.every, sub.changes = listedEvery, reg.listFollower(&caller, sub.wake)
	} else if sub.changes, err = reg.resourceFollower(ctx, &caller, uri, sub.wake); err != nil {
		return err
	}
	began = true
	go func() {
		defer end()
		defer func() {
			if p := recover(); p != nil {
				s.panicked(c, "a subscription", p)
			}
		}()
		sub.run(running, c.offer)
	}()
	return nil
}

func keyOf(uri string, of *pending) subKey {
	key := subKey{uri: uri}
	if of != nil {
		key.listen = string(of.id)
	}
	return key
}

// updateFrame is the notification of a subscription.
func updateFrame(uri string, of *pending) []byte {
	method, p := updatedMethod, object{}
	if uri == "" {
		method = listedMethod
	}
	p.open()
	if of != nil {
		var meta object
		meta.open()
		meta.raw(sdk.MetaKeySubscriptionID, of.id)
		meta.close()
		p.raw("_meta", meta.b)
	}
	if uri != "" {
		p.string("uri", uri)
	}
	p.close()
	var o object
	o.open()
	o.string("jsonrpc", "2.0")
	o.string("method", method)
	if len(p.b) > len("{}") {
		o.raw("params", p.b)
	}
	o.close()
	return append(o.b, '\n')
}

// answerSubscribe subscribes and unsubscribes, for clients of before 2026-07-28.
func (s *Server) answerSubscribe(ctx context.Context, c *conn, uri string, subscribe bool) (sdk.Result, error) {
	method, begin := unsubscribeMethod, time.Now()
	if subscribe {
		method = subscribeMethod
		if err := s.subscribe(ctx, c, uri, nil); err != nil {
			s.auditSubscribe(c, method, uri, begin, "error")
			return nil, s.resourceError(ctx, c, method, err)
		}
	} else {
		c.subs.end(keyOf(uri, nil))
	}
	s.auditSubscribe(c, method, uri, begin, "ok")
	return nothing, nil
}

func (s *Server) auditSubscribe(c *conn, method, uri string, begin time.Time, outcome string) {
	a, _ := parseAddress(uri)
	s.auditResource(c, method, a, nil, nil, time.Since(begin), outcome)
}

// nothing is a result that says no more than that it was done.
var nothing = &answerResult{body: json.RawMessage("{}")}

type listenKey struct{}

// listen serves a request that asks to be told of changes as long as it lasts
// (2026-07-28). The SDK answers it and asks us to subscribe; the updates are
// sent by us, because the SDK writes to one client after the other.
func (s *Server) listen(ctx context.Context, c *conn, next sdk.MethodHandler, method string, req sdk.Request) (sdk.Result, error) {
	cl := c.callOf(req.GetExtra())
	p, ok := req.GetParams().(*sdk.SubscriptionsListenParams)
	if cl == nil || !ok {
		return nil, errInternal
	}
	if p != nil && p.Notifications != nil && p.Notifications.ResourcesListChanged {
		if err := s.subscribe(ctx, c, "", cl); err != nil {
			return nil, s.resourceError(ctx, c, method, err)
		}
		defer c.subs.end(keyOf("", cl))
	}
	return next(context.WithValue(ctx, listenKey{}, cl), method, req)
}

// listened and unlistened are what the SDK asks for on behalf of a listen.
func (s *Server) listened(ctx context.Context, req *sdk.SubscribeRequest) error {
	c, begin := connOf(ctx), time.Now()
	of, _ := ctx.Value(listenKey{}).(*pending)
	if err := s.subscribe(ctx, c, req.Params.URI, of); err != nil {
		s.auditSubscribe(c, listenMethod, req.Params.URI, begin, "error")
		return s.resourceError(ctx, c, listenMethod, err)
	}
	s.auditSubscribe(c, listenMethod, req.Params.URI, begin, "ok")
	return nil
}

func (s *Server) unlistened(ctx context.Context, req *sdk.UnsubscribeRequest) error {
	of, _ := ctx.Value(listenKey{}).(*pending)
	connOf(ctx).subs.end(keyOf(req.Params.URI, of))
	return nil
}
