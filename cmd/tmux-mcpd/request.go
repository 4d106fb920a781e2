package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"tmux-mcpd/mcp"
)

// request is one of the client's, until it is answered.
type request struct {
	mcp.Peek
	line    []byte // with its newline; nil once sent, if too long to keep
	number  uint64
	since   time.Time
	tries   int
	link    *link // it was sent on last
	writing bool  // it is being written to link
	lasts   bool  // a daemon has agreed to answer it again and again (subscriptions/listen)
}

// readClient takes the client's messages until they end.
func (r *relay) readClient(stdin io.Reader) {
	held, err := pump(upWriter{r}, stdin, r.fromClient)
	if err == nil && len(held) > 0 {
		r.fromClient(append(held, '\n')) // a last line without newline is one
	}
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	close(r.stdin)
}

// upWriter takes what fromClient does not: pieces of a message that is longer
// than anything the daemon takes. The daemon says so.
type upWriter struct{ r *relay }

func (w upWriter) Write(b []byte) (int, error) {
	w.r.mu.Lock()
	l := w.r.link
	w.r.mu.Unlock()
	if l != nil {
		_ = w.r.write(l, b) // an error shows on the other direction, too
	}
	return len(b), nil
}

// fromClient deals with one message of the client's. It is always false: pump
// has nothing left to do with it.
func (r *relay) fromClient(line []byte) bool {
	p := mcp.PeekMessage(line)
	switch {
	case p.Method != "" && p.ID != nil && validID(p.ID):
		r.requested(bytes.Clone(line))
		return false
	case p.Method == "notifications/initialized":
		r.initialized(bytes.Clone(line))
		return false
	case p.Method == "notifications/cancelled" && !r.cancelled(string(p.Cancels)):
		return false
	}
	// What is no request is of use to one daemon only: that of now, or the first.
	r.mu.Lock()
	l := r.link
	if l == nil {
		l = r.opening // a cancellation of what was just sent there
	}
	if l == nil && !r.used && len(r.held) < maxWaiting && r.heldSize+len(line) <= maxWaitingBytes {
		r.last += 2
		r.holdLocked(&request{line: bytes.Clone(line), number: r.last, since: time.Now()})
	}
	r.mu.Unlock()
	if l != nil {
		_ = r.write(l, line)
	}
	return false
}

// initialized sends the end of the client's handshake, or lets it wait with the
// beginning; while a greeted client waits, it is a part of what is repeated.
func (r *relay) initialized(line []byte) {
	r.mu.Lock()
	r.inited = line
	l := r.link
	if l == nil && r.first != nil && !r.greeted {
		r.holdInitedLocked()
	}
	r.mu.Unlock()
	if l != nil {
		_ = r.write(l, line)
	}
}

// holdInitedLocked lets the end of the handshake wait right behind its beginning.
func (r *relay) holdInitedLocked() {
	r.holdLocked(&request{line: r.inited, number: r.first.number + 1, since: r.first.since})
}

// cancelled forgets a request and tells whether the daemon has to hear of it.
func (r *relay) cancelled(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.asked[id]; q == nil || q != r.first {
		delete(r.asked, id)
	}
	for i, q := range r.held {
		if string(q.ID) == id && q != r.first {
			r.held = slices.Delete(r.held, i, i+1)
			r.heldSize -= len(q.line)
			return false
		}
	}
	return true
}

// requested sends a request or lets it wait for a daemon.
func (r *relay) requested(line []byte) {
	q := &request{Peek: mcp.PeekMessage(line), line: line, since: time.Now()}
	r.mu.Lock()
	r.last += 2 // between two requests there is room for initialized
	q.number = r.last
	if q.Method == "initialize" && !r.greeted {
		r.first = q
	}
	if why := r.refusing; why != nil {
		r.mu.Unlock()
		r.answer(q, why)
		return
	}
	r.noteRepeatLocked(q)
	l := r.link
	if l == nil {
		if len(r.held) >= maxWaiting || r.heldSize+len(line) > maxWaitingBytes {
			r.mu.Unlock()
			r.answer(q, errors.New("too much waits for the daemon already"))
			return
		}
		r.holdLocked(q)
	}
	r.mu.Unlock()
	if l != nil {
		r.send(q, l)
	}
}

// noteRepeatLocked keeps what the next daemon has to hear again.
func (r *relay) noteRepeatLocked(q *request) {
	switch q.Method {
	case "logging/setLevel":
		r.repeat[q.Method] = q.line
	case "resources/list":
		r.repeat[q.Method] = q.line // a daemon tells those of changes who have listed
	case "resources/subscribe":
		r.repeat[repeatOf(q.URI)] = q.line
	case "resources/unsubscribe":
		delete(r.repeat, repeatOf(q.URI))
	}
	if len(r.repeat) > maxWaiting { // no client has so many; the rest is not repeated
		clear(r.repeat)
	}
}

// repeatOf is under which key a subscription is kept.
func repeatOf(uri string) string { return "resources/subscribe " + uri }

// holdLocked lets a request wait, in the order of arrival.
func (r *relay) holdLocked(q *request) {
	i, _ := slices.BinarySearchFunc(r.held, q.number, func(h *request, n uint64) int {
		if h.number < n {
			return -1
		}
		return 1
	})
	r.held = slices.Insert(r.held, i, q)
	r.heldSize += len(q.line)
}

// open lets requests through: first those that have waited, in their order.
func (r *relay) open(l *link) {
	for {
		r.mu.Lock()
		if r.used { // else everything waits, to keep its order
			r.opening = l
		}
		if len(r.held) == 0 {
			r.link, r.opening, r.used = l, nil, true
			close(r.linked)
			r.linked = make(chan struct{})
			r.mu.Unlock()
			return
		}
		q := r.held[0]
		r.held = r.held[1:]
		r.heldSize -= len(q.line)
		r.mu.Unlock()
		if !r.send(q, l) {
			return // it has ended
		}
	}
}

// send sends a request and tells whether the link still lives. A request of
// which not all has left can be sent on the next link, whatever it does: half a
// line is no message.
func (r *relay) send(q *request, l *link) bool {
	line := q.line
	if q.ID == nil {
		return r.write(l, line) == nil
	}
	r.mu.Lock()
	q.link, q.writing = l, true
	q.tries++
	r.asked[string(q.ID)] = q
	r.mu.Unlock()
	r.upMu.Lock()
	n, err := l.Write(line)
	r.upMu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	q.writing = false
	switch {
	case r.asked[string(q.ID)] != q: // answered or cancelled meanwhile
	case err != nil && n < len(line)-1:
		delete(r.asked, string(q.ID))
		q.tries--
		r.holdLocked(q)
	case l.dead:
		r.settleLocked(q)
	case len(line) > maxKept && q != r.first:
		q.line = nil
	}
	return err == nil && !l.dead
}

// fromDaemon deals with one message of the daemon's and tells whether it is for
// the client.
func (r *relay) fromDaemon(line []byte) bool {
	p := mcp.PeekMessage(line)
	if p.Method == acknowledged {
		return r.heard(p.Params)
	}
	if p.Method != "" || p.ID == nil {
		return true
	}
	id := string(p.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer := r.own[id]; answer != nil {
		delete(r.own, id)
		answer <- bytes.Clone(line)
		return false
	}
	q := r.asked[id]
	delete(r.asked, id)
	switch {
	case q == nil:
	case mcp.RefusedAtEnd(line) && q.line != nil && !r.ended:
		r.holdLocked(q) // for the next daemon
		return false
	case q.lasts && !mcp.Refused(line) && !r.ended:
		r.holdLocked(q) // ended with the daemon, not for the client
		return false
	case q == r.first:
		r.greeted = true
		r.noteVersionLocked(line)
	case q.Method == "resources/subscribe" && mcp.Refused(line):
		delete(r.repeat, repeatOf(q.URI))
	}
	return true
}

// noteVersion tells of a daemon that is not of this bridge's version.
func (r *relay) noteVersion(initialized []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteVersionLocked(initialized)
}

func (r *relay) noteVersionLocked(initialized []byte) {
	var answer struct {
		Result struct {
			ServerInfo struct {
				Version string `json:"version"`
			} `json:"serverInfo"`
		} `json:"result"`
	}
	if json.Unmarshal(initialized, &answer) != nil || answer.Result.ServerInfo.Version == "" {
		return
	}
	v := answer.Result.ServerInfo.Version
	if v != r.version && v != versionText() {
		r.say("the daemon is version %s, this bridge %s: restart the one that is older", v, versionText())
	}
	r.version = v
}
