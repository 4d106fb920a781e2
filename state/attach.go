package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

const (
	pollServer  = time.Second      // how often an absent server is looked for
	attachLimit = 5 * time.Second  // from starting a control client to its first answer
	backOffMost = 15 * time.Second // between attempts that keep failing
	ownMemory   = time.Minute      // how long a reaped client's pid counts as ours

	failuresToDegrade = 3 // failed attempts to attach after which reads are answered by processes
)

// stayAttached keeps a structure client attached until ctx is done. It backs
// off when attaching fails, and when somebody keeps throwing us out; a server
// that simply ended is looked for at once.
func (m *Mirror) stayAttached(ctx context.Context) {
	const quick, quickEnds = time.Second, 8
	backOff, ends, failed := time.Duration(0), 0, 0
	for ctx.Err() == nil {
		served, err := m.attachOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		switch stuck := errors.Is(err, controlmode.ErrTimeout); {
		case served > 0, errors.Is(err, ErrNoServer): // absence is no failure
			failed = 0
		case stuck: // a process would get no answer either
		default:
			if failed++; failed >= failuresToDegrade {
				err = &degradedError{err}
			}
		}
		m.setDetached(err)
		if served < quick {
			ends++
		} else {
			ends = 0
		}
		switch {
		case errors.Is(err, errEmpty), errors.Is(err, errUnwelcome):
			backOff, ends = 0, 0
			m.awaitKick(ctx)
		case errors.Is(err, ErrNoServer):
			backOff, ends = 0, 0
			m.awaitServer(ctx)
		case served > 0 && ends < quickEnds, errors.Is(err, controlmode.ErrTimeout):
			backOff = 0 // an attempt that timed out has taken its time
		default:
			backOff = min(max(2*backOff, 50*time.Millisecond), backOffMost)
			m.log.Warn("attach again later", zap.Duration("wait", backOff), zap.Error(err))
			pause(ctx, backOff)
		}
	}
}

// awaitServer waits until something may be listening on the tmux socket. A dial
// is enough to know: tmux leaves the socket file behind when it ends.
func (m *Mirror) awaitServer(ctx context.Context) {
	tick := time.NewTicker(pollServer)
	defer tick.Stop()
	for !m.serverListens() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.kick:
		}
	}
}

// errUnwelcome is a server where being attached would keep alive what tmux is to
// end as soon as nobody is attached to it.
var errUnwelcome = errors.New("attaching would keep an unattached session or server alive")

// errEmpty is a server without sessions (exit-empty off): there is nothing a
// control client could attach to.
var errEmpty = fmt.Errorf("%w: the tmux server has no sessions", ErrNoServer)

// awaitKick waits until a read wants to know, or a while.
func (m *Mirror) awaitKick(ctx context.Context) {
	if !pause(ctx, 20*time.Millisecond) {
		return
	}
	t := time.NewTimer(pollServer)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-m.kick:
	}
}

// serverListens tells whether a server may be there. Only a socket that refuses
// or does not exist says no: a server that is stopped takes no connection either
// once its backlog is full, and is there all the same.
func (m *Mirror) serverListens() bool {
	c, err := net.DialTimeout("unix", m.path, time.Second)
	if err == nil {
		c.Close()
		return true
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// attachOnce attaches a structure client and serves until it ends. The error
// says why it ended and is never nil; served is for how long it was attached, 0
// if it never was.
func (m *Mirror) attachOnce(ctx context.Context) (served time.Duration, err error) {
	m.awaitCalm(ctx) // the session we were on may be the first of several to go
	leave, err := m.door.pass(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	session, err := m.someSession(ctx) // the last thing before: see open
	if err != nil {
		return 0, emptyServer(err)
	}
	var ours atomic.Pointer[items] // nil until it is known of which server
	proc, err := m.startClient(session, "no-output", m.cfg.Timeout, m.structureEvent, func(item uint64) {
		if t := ours.Load(); t != nil {
			t.add(item)
		}
	})
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- m.runClient(ctx, proc) }()
	fail := func(err error) (time.Duration, error) {
		proc.Close()
		if why := <-ended; why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return 0, emptyServer(err)
	}
	limit := time.NewTimer(attachLimit)
	defer limit.Stop()
	select {
	case <-proc.Ready():
		leave()
	case <-proc.Done():
		return fail(fmt.Errorf("attach to %s", session))
	case <-limit.C:
		return fail(fmt.Errorf("attach to %s: %w", session, controlmode.ErrTimeout))
	}
	reply, err := proc.Do(ctx, controlmode.Request{
		Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", serverListing.format)}, Fence: true,
		Timeout: attachLimit,
	})
	if err != nil || len(reply.Blocks) != 1 {
		return fail(fmt.Errorf("ask %s for the server's identity: %w", session, err))
	}
	server, err := readServer(reply.Blocks[0].Body)
	if err != nil {
		return fail(err)
	}
	ours.Store(m.itemsOf(server.ID))
	m.setAttached(&attachment{proc, server})
	m.log.Info("attached", zap.Int("server", server.ID.PID), zap.String("version", server.Version),
		zap.Stringer("session", session))
	nudge(m.hint)
	begin := time.Now()
	m.detachStale(ctx, proc)
	m.deleteLeftBuffers(ctx, proc, server.ID)
	err = <-ended
	if err == nil {
		err = errors.New("tmux ended the control client")
	}
	if fragile(server.Version) {
		m.stirred.Store(time.Now().UnixNano())
	}
	return max(time.Since(begin), 1), err
}

// emptyServer knows a server without sessions by tmux's words.
func emptyServer(err error) error {
	if errors.Is(err, controlmode.ErrNoSessions) {
		return errEmpty
	}
	return err
}

// someSession chooses a session to attach to, without attaching: the oldest
// that does not live only as long as somebody is attached to it.
func (m *Mirror) someSession(ctx context.Context) (controlmode.SessionID, error) {
	out, err := m.binary().Output(ctx, controlmode.Cmd("list-sessions", "-F", sessionListing.format))
	if err != nil {
		return 0, err
	}
	all, err := readSessions(out)
	if err != nil {
		return 0, fmt.Errorf("choose a session: %w", err)
	}
	if len(all) == 0 {
		return 0, errEmpty
	}
	others := false
	for _, s := range all {
		others = others || s.Attached > 0
	}
	for _, s := range all {
		if s.Attached > 0 || !s.EndsUnattached && (others || !s.ServerEndsUnattached) {
			return s.ID, nil
		}
	}
	return 0, errUnwelcome
}

func (m *Mirror) binary() controlmode.Binary {
	return controlmode.Binary{Path: m.cfg.Bin, Socket: m.cfg.Socket, Timeout: m.cfg.Timeout}
}

// startClient starts a control client that can never resize, nor write to the
// environment of, what it looks at (P6).
func (m *Mirror) startClient(
	s controlmode.SessionID, flag string, timeout time.Duration, event func(controlmode.Event), harmless func(item uint64),
) (*controlmode.Process, error) {
	proc, err := controlmode.Attach(controlmode.AttachConfig{
		Bin: m.cfg.Bin, Socket: m.cfg.Socket, Session: s, Flags: []string{"ignore-size", flag},
		Transport: m.cfg.Transport, Env: clientMark(),
		Options: controlmode.Options{Event: event, Harmless: harmless, Timeout: timeout},
	})
	if err != nil {
		return nil, fmt.Errorf("start control client: %w", err)
	}
	m.mu.Lock()
	m.own[proc.PID()] = ownClient{proc: proc}
	m.mu.Unlock()
	return proc, nil
}

// ownClient is a client that this Mirror started.
type ownClient struct {
	proc   *controlmode.Process // nil once reaped
	reaped time.Time
}

// runClient runs a client to its end. If tmux broke the protocol, the log gets
// the last bytes of the conversation, masked: they will not come again. The
// caller replaces the client; nothing of what it knew is used further.
func (m *Mirror) runClient(ctx context.Context, proc *controlmode.Process) error {
	err := proc.Run(ctx)
	if broken := (*controlmode.ProtocolError)(nil); errors.As(err, &broken) {
		m.log.Error("control client replaced", zap.Error(err), zap.Int("client", proc.PID()),
			zap.ByteString("conversation", proc.Dump()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.own[proc.PID()] = ownClient{reaped: now}
	for pid, o := range m.own {
		if o.proc == nil && now.Sub(o.reaped) > ownMemory {
			delete(m.own, pid)
		}
	}
	return err
}

// isOwn tells whether a client's process was started by this Mirror. A reaped
// one counts for a while: tmux lists it until it has noticed.
func (m *Mirror) isOwn(pid int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.own[pid]
	return ok
}

// structureEvent takes every notification as a hint that something changed: it
// runs on the reader goroutine and must not wait.
func (m *Mirror) structureEvent(e controlmode.Event) {
	m.noteStir(e)
	switch e.(type) {
	case *controlmode.Output, controlmode.BlockBegin, controlmode.BlockEnd, controlmode.Stray, controlmode.Message,
		controlmode.PasteBufferChanged, controlmode.PasteBufferDeleted:
		return
	case controlmode.Unknown:
		m.unknown.Add(1)
	}
	nudge(m.hint)
}

func (m *Mirror) setAttached(a *attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.att, m.reason, m.since, m.lastLife = a, nil, time.Now(), a.server.ID
	close(m.changed)
	m.changed = make(chan struct{})
	m.journal.nudge()
}

func (m *Mirror) setDetached(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.att != nil || m.reason == nil {
		m.since = time.Now()
	}
	m.att, m.reason = nil, why
	if why != nil {
		m.lastErr = why.Error()
	}
	close(m.changed)
	m.changed = make(chan struct{})
	m.journal.nudge()
	nudge(m.hint) // tmux may have ended
}

func (m *Mirror) attachedNow() *attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.att
}

// attached answers the attachment to use now. While detached it answers
// ErrNoServer if nothing listens on the socket (which a dial tells at once), and
// else waits a while for the re-attachment that is under way.
func (m *Mirror) attached(ctx context.Context) (*attachment, error) {
	limit := time.NewTimer(attachLimit)
	defer limit.Stop()
	for tries := 0; ; tries++ {
		m.mu.Lock()
		att, changed, reason, ended := m.att, m.changed, m.reason, m.ended
		m.mu.Unlock()
		if tries > 0 && errors.Is(reason, errEmpty) {
			return nil, errEmpty
		}
		if att != nil {
			select {
			case <-att.proc.Done(): // ended, and not yet noticed
			default:
				return att, nil
			}
		}
		if ended {
			return nil, ErrDetached
		}
		if att == nil && !m.serverListens() {
			return nil, ErrNoServer
		}
		nudge(m.kick)
		if degraded(reason) {
			return nil, fmt.Errorf("%w: %w", ErrDetached, reason)
		}
		if tries == 0 && errors.Is(reason, controlmode.ErrTimeout) {
			limit.Reset(min(attachLimit, m.cfg.Timeout)) // tmux is known not to answer
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			if reason == nil {
				return nil, ErrDetached
			}
			return nil, fmt.Errorf("%w: %w", ErrDetached, reason)
		}
	}
}

// Do is DoOn whatever server there is.
func (m *Mirror) Do(ctx context.Context, req controlmode.Request) (controlmode.Reply, error) {
	return m.DoOn(ctx, ServerID{}, req)
}

// query runs a request that only reads, again on the next attachment if the
// connection ended meanwhile (the session it was attached to was killed). Every
// command must succeed.
func (m *Mirror) query(ctx context.Context, req controlmode.Request) (Server, []controlmode.BlockEnd, error) {
	const tries = 4
	for try := 1; ; try++ {
		att, err := m.attached(ctx)
		if errors.Is(err, ErrDetached) && !errors.Is(err, controlmode.ErrTimeout) && m.alive() {
			return m.byProcess(ctx, req)
		}
		if err != nil {
			return Server{}, nil, err
		}
		reply, err := att.proc.Do(ctx, req)
		if err == nil {
			err = reply.Err(req)
		}
		if err == nil {
			return att.server, reply.Blocks, nil
		}
		lost := errors.Is(err, controlmode.ErrClosed) && !errors.Is(err, controlmode.ErrTimeout)
		if !lost && !orphaned(err) || try == tries {
			return Server{}, nil, err
		}
		select {
		case <-att.proc.Done():
		case <-time.After(attachLimit):
			return Server{}, nil, err
		case <-ctx.Done():
			return Server{}, nil, context.Cause(ctx)
		}
	}
}

// orphaned tells the answer of a tmux that has destroyed the session our client
// was on and has not told it to go yet: even list-panes -a wants a session to
// start from.
func orphaned(err error) bool {
	var refused *controlmode.CommandError
	return errors.As(err, &refused) && refused.Text == "no current target"
}
