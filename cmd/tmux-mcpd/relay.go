package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"tmux-mcpd/mcp"
)

const (
	// initWait is how long initialize waits for a daemon before the bridge
	// answers it by itself: a client that gets no answer, or an error, takes the
	// server for broken and never comes back.
	initWait = 5 * time.Second
	// heldWait is how long any other request waits for a daemon.
	heldWait = 10 * time.Second
	// cursorWait is how long the answer to a request that was lost waits for a
	// daemon that can say where to go on from.
	cursorWait = 5 * time.Second
	// handshakeLimit bounds what a new daemon may take for a replayed handshake.
	handshakeLimit = 10 * time.Second
	// redialMost is the longest pause between two attempts to reach a daemon.
	redialMost = 2 * time.Second
	// stable is for how long a connection must have lasted for the next loss to
	// be met without a pause.
	stable = 5 * time.Second
	// maxWaiting and maxWaitingBytes bound what waits for a daemon; maxKept is
	// the longest request that is kept to be sent again.
	maxWaiting      = 1000
	maxWaitingBytes = 32 << 20
	maxKept         = 64 << 10
	// mostTries is how often a request that changes nothing is sent. More often
	// and one that kills daemons would go on doing so.
	mostTries = 2
)

// relay passes messages between one client and the daemon, and outlives the
// daemon: when the connection ends it dials again, repeats the client's
// handshake and goes on. What was asked and not answered is asked again if it
// changes nothing; else its answer says that nobody knows. Nothing that could
// change something is ever sent twice.
//
// Three goroutines: one reads the client, one the daemon, and run dials. They
// live until run returns, but for the reader of the client, which can only be
// ended with the process.
type relay struct {
	dial   func(context.Context) (*net.UnixConn, error)
	hello  []byte
	stderr io.Writer
	stdin  chan struct{}  // closed at the end of the client's messages
	late   sync.WaitGroup // answers of the bridge's own under way

	outMu sync.Mutex // held while a message is written to the client
	out   io.Writer
	upMu  sync.Mutex // held while a message is written to the daemon

	mu       sync.Mutex // guards the fields that follow
	link     *link      // nil while nothing can be sent
	opening  *link      // what has waited is being sent there
	last     uint64     // number of the newest request
	held     []*request // to be sent as soon as there is a connection, in order
	heldSize int
	asked    map[string]*request      // sent and not answered, by id
	own      map[string]chan<- []byte // asked by the bridge itself
	ownLast  int
	first    *request          // the client's initialize
	greeted  bool              // it has been answered
	alone    bool              // by the bridge
	inited   []byte            // the client's notifications/initialized
	repeat   map[string][]byte // more of the handshake: requests by what they set or subscribe to
	linked   chan struct{}     // closed when link is set, then replaced
	used     bool              // there has been a link
	refusing error             // why no daemon will be reached any more
	refused  chan struct{}     // closed with the first answer to say so
	ended    bool              // the client sends nothing more
	version  string            // of the daemon, "" while unknown
}

// link is one connection to a daemon.
type link struct {
	*net.UnixConn
	dead bool // guarded by relay.mu: what was asked on it has been dealt with
}

func newRelay(out, stderr io.Writer, hello []byte, dial func(context.Context) (*net.UnixConn, error)) *relay {
	return &relay{
		dial: dial, hello: hello, out: out, stderr: stderr, stdin: make(chan struct{}), refused: make(chan struct{}), linked: make(chan struct{}),
		asked: map[string]*request{}, own: map[string]chan<- []byte{}, repeat: map[string][]byte{},
	}
}

// run serves the client until it ends, or until no daemon can ever be reached.
func (r *relay) run(ctx context.Context, stdin io.Reader) error {
	go r.readClient(stdin)
	wait := time.Duration(0)
	for n := 0; ; n++ {
		conn, err := r.reach(ctx, wait)
		if err != nil || conn == nil {
			return err
		}
		if n == 0 {
			dropImage()
		}
		begin := time.Now()
		err = r.serve(ctx, conn)
		if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
			return nil
		}
		if r.hasEnded() { // what is still due will not come
			r.refuseAll(errors.New("the daemon went away before it answered"))
			r.late.Wait()
			return nil
		}
		r.say("the daemon closed the connection (%v); dialling again", err)
		wait = min(max(2*wait, 20*time.Millisecond), redialMost)
		if time.Since(begin) >= stable {
			wait = 0
		}
	}
}

// hasEnded tells whether the client sends nothing more.
func (r *relay) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// reach dials until there is a connection, first after wait. It answers nil, nil
// when the client is gone. While it tries, what waits too long is answered.
func (r *relay) reach(ctx context.Context, wait time.Duration) (*net.UnixConn, error) {
	for said := false; ; said = true {
		if !r.pause(ctx, wait) {
			return nil, nil
		}
		conn, err := r.dial(ctx)
		if err == nil {
			return conn, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil
		case exitCode(err) != exitUnreachable:
			r.refuse(ctx, err)
			return nil, err
		case r.hasEnded():
			r.refuseAll(err)
			return nil, err
		case !said:
			r.say("%v; trying again", err)
		}
		r.expire(err, time.Now())
		wait = min(max(2*wait, 50*time.Millisecond), redialMost/4)
	}
}

// pause waits, not beyond the client's last message, and tells whether the
// client is there at all.
func (r *relay) pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	stdin := r.stdin
	if r.hasEnded() {
		stdin = nil
	}
	select {
	case <-t.C:
	case <-stdin:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// serve uses one connection until it ends, and says why it did.
func (r *relay) serve(ctx context.Context, conn *net.UnixConn) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	l := &link{UnixConn: conn}
	down := make(chan error, 1)
	go func() {
		held, err := pump(clientWriter{r}, conn, r.fromDaemon)
		if err == nil && len(held) > 0 {
			err = fmt.Errorf("it ended within a message: %w", io.ErrUnexpectedEOF)
		}
		if err == nil {
			err = io.EOF
		}
		conn.Close()
		r.hangUp()
		down <- err
	}()
	if err := r.shakeHands(ctx, l); err == nil {
		r.open(l)
	} else {
		r.say("%v", err)
		conn.Close()
	}
	var drained <-chan time.Time
	stdin := r.stdin
	for {
		select {
		case <-stdin:
			stdin, drained = nil, time.After(drainLimit)
			conn.CloseWrite()
		case <-drained:
			conn.Close()
		case err := <-down:
			r.lost(l)
			return err
		}
	}
}

// shakeHands says who we are and, to a daemon that takes the place of another,
// what the client has said before.
func (r *relay) shakeHands(ctx context.Context, l *link) error {
	if err := r.write(l, r.hello); err != nil {
		return err
	}
	r.mu.Lock()
	var first json.RawMessage
	if r.greeted {
		first = r.first.Params
	}
	inited, alone, before := r.inited, r.alone, r.version
	repeat := make([][]byte, 0, len(r.repeat))
	for _, key := range slices.Sorted(maps.Keys(r.repeat)) {
		repeat = append(repeat, r.repeat[key])
	}
	r.mu.Unlock()
	if first == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	answer, err := r.ask(ctx, l, "initialize", first)
	if err != nil {
		return fmt.Errorf("its handshake could not be repeated: %w", err)
	}
	r.noteVersion(answer)
	if mcp.Refused(answer) { // the client's next request fails; here stands why
		r.say("the daemon refuses the handshake: %s", printable(string(answer)))
	}
	if inited == nil {
		return nil
	}
	if err := r.write(l, inited); err != nil {
		return err
	}
	for _, line := range repeat {
		p := mcp.PeekMessage(line)
		if _, err := r.ask(ctx, l, p.Method, p.Params); err != nil && ctx.Err() != nil {
			return err
		}
		// Nobody knows what has changed while there was no daemon.
		if p.Method == "resources/list" || p.Method == "resources/subscribe" {
			if err := r.tell(mcp.Updated(p.URI, nil)); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	changed := alone || r.version != before
	r.alone = false
	r.mu.Unlock()
	if changed { // another daemon may have other tools
		return r.tell([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"))
	}
	return nil
}

// ask sends a request of the bridge's own and waits for its answer, a whole
// message. The answer may be an error.
func (r *relay) ask(ctx context.Context, l *link, method string, params json.RawMessage) ([]byte, error) {
	answer := make(chan []byte, 1)
	r.mu.Lock()
	r.ownLast++
	id := fmt.Sprintf(`"tmux-mcpd bridge %d"`, r.ownLast)
	r.own[id] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.own, id)
		r.mu.Unlock()
	}()
	if params == nil {
		params = json.RawMessage("{}")
	}
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params)
	if err := r.write(l, line); err != nil {
		return nil, err
	}
	select {
	case a, ok := <-answer:
		if !ok {
			return nil, io.EOF
		}
		return a, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// write sends one message to a daemon.
func (r *relay) write(l *link, line []byte) error {
	r.upMu.Lock()
	defer r.upMu.Unlock()
	_, err := l.Write(line)
	return err
}

// hangUp ends the waits for answers to the bridge's own requests.
func (r *relay) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, ch := range r.own {
		delete(r.own, id)
		close(ch)
	}
}

// say tells the person who reads the client's log something.
func (r *relay) say(format string, args ...any) {
	fmt.Fprintf(r.stderr, "tmux-mcpd: "+format+"\n", args...)
}

// tell writes a message of the bridge's own to the client.
func (r *relay) tell(line []byte) error {
	_, err := clientWriter{r}.Write(line)
	return err
}

// clientWriter writes whole messages to the client, one writer at a time.
type clientWriter struct{ r *relay }

func (w clientWriter) Write(b []byte) (int, error) {
	w.r.outMu.Lock()
	defer w.r.outMu.Unlock()
	return w.r.out.Write(b)
}
