package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"tmux-mcpd/controlmode"
)

const (
	// drainLimit is how long replies are waited for after standard input
	// ended: longer than the longest wait a tool does by default.
	drainLimit = 60 * time.Second
	// chunk is the size of a read, and with it what an idle bridge holds.
	chunk = 16 << 10
	// maxHeld is how much of an unfinished line is held back. Longer ones, of
	// any length, are passed on as they come.
	maxHeld = 1 << 20
)

// stdio is the bridge. Standard output carries protocol and nothing else,
// whatever happens; what there is to say goes to stderr.
func stdio(ctx context.Context, in *invocation) error {
	ctx, stop := clientContext(ctx, in.stdout)
	defer stop()
	conn, err := connect(ctx, in.cfg)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		defer conn.Close()
		_, err = conn.Write(hello(os.LookupEnv, in.cfg))
	}
	if err != nil {
		refuse(ctx, in.stdin, in.stdout, err)
		return err
	}
	dropImage()
	return forward(ctx, in.stdin, in.stdout, conn)
}

// clientContext ends when the client does: a signal, the end of the parent, or
// nobody left to read standard output. The end of standard input is not among
// them, since replies may be due.
func clientContext(ctx context.Context, stdout *os.File) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	// SIGPIPE is caught, not ignored: a write error then ends the bridge in
	// order, and a daemon started here does not inherit the ignoring. It stays
	// caught to the end of the process, as a write may still be under way when
	// everything else has stopped.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	watch := watchClient(stdout)
	go func() {
		defer signal.Stop(signals)
		defer watch.close()
		defer cancel()
		select {
		case <-signals:
		case <-watch.gone:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// hello is the line that tells the daemon whom the bridge speaks for. The
// daemon's transport consumes it: servers that do not know it ignore a
// notification.
func hello(lookup env, c *config) []byte {
	type params struct {
		Version    string            `json:"version"`
		Env        map[string]string `json:"env"`
		TMUX       string            `json:"tmux"`
		TMUXPane   string            `json:"tmuxPane"`
		TMUXSocket string            `json:"tmuxSocket,omitempty"`
	}
	p := params{Version: versionText(), Env: map[string]string{}}
	if !c.listenGiven || c.tmux != (controlmode.Socket{}) {
		p.TMUXSocket = c.tmuxSocket // else whatever is served there is meant
	}
	p.TMUX, _ = lookup("TMUX")
	p.TMUXPane, _ = lookup("TMUX_PANE")
	for _, name := range passed {
		// Set but empty is not unset: LIBTMUX_TOOLSETS="" selects none.
		if s, ok := lookup(name); ok {
			p.Env[name] = s
		}
	}
	line, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": "notifications/tmux-mcpd/hello", "params": p,
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return append(line, '\n')
}

// forward copies lines both ways until the daemon closes the connection or ctx
// ends. It returns nil if the client was the one to end.
func forward(ctx context.Context, stdin io.Reader, stdout io.Writer, conn *net.UnixConn) error {
	// Both goroutines may be left blocked on the client's streams: the process
	// ends when this returns.
	up, down := make(chan struct{}), make(chan error, 1)
	var ended atomic.Bool // standard input has; set before the daemon can know
	go func() {
		defer close(up)
		held, err := pump(conn, stdin)
		if err == nil && len(held) > 0 {
			conn.Write(append(held, '\n')) // a last line without newline is one
		}
		// A failure to write shows on the other direction, too; replies that
		// came before it are still worth delivering.
		ended.Store(true)
		conn.CloseWrite()
	}()
	go func() {
		held, err := pump(stdout, conn)
		if err == nil && len(held) > 0 {
			err = fmt.Errorf("the connection ended within a message: %w", io.ErrUnexpectedEOF)
		}
		down <- err
	}()
	var drained <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-up:
			up, drained = nil, time.After(drainLimit)
		case <-drained:
			return nil
		case err := <-down:
			if ended.Load() || errors.Is(err, syscall.EPIPE) {
				return nil
			}
			if err == nil {
				err = io.EOF
			}
			return coded(exitUnreachable, "the daemon closed the connection: %w", err)
		}
	}
}

// pump copies src to dst in whole lines, so that an end in the middle of a
// message leaves no half of it on the other side. It returns that half.
func pump(dst io.Writer, src io.Reader) (held []byte, err error) {
	buf := make([]byte, 0, chunk)
	for {
		if len(buf) == cap(buf) {
			if buf, err = makeRoom(dst, buf); err != nil {
				return nil, err
			}
		}
		n, rerr := src.Read(buf[len(buf):cap(buf)])
		fresh := len(buf)
		buf = buf[:len(buf)+n]
		if i := bytes.LastIndexByte(buf[fresh:], '\n'); i >= 0 {
			end := fresh + i + 1
			if _, err := dst.Write(buf[:end]); err != nil {
				return nil, err
			}
			rest := copy(buf, buf[end:])
			if buf = buf[:rest]; cap(buf) > chunk && rest < chunk {
				buf = append(make([]byte, 0, chunk), buf...) // a long line is rare
			}
		}
		if rerr != nil {
			if errors.Is(rerr, io.EOF) {
				rerr = nil
			}
			return buf, rerr
		}
	}
}

// makeRoom doubles a full buffer or, at maxHeld, passes on what it holds.
func makeRoom(dst io.Writer, buf []byte) ([]byte, error) {
	if cap(buf) < maxHeld {
		return append(make([]byte, 0, 2*cap(buf)), buf...), nil
	}
	// The last byte stays, so that an end here still counts as within a line.
	last := len(buf) - 1
	if _, err := dst.Write(buf[:last]); err != nil {
		return nil, err
	}
	buf[0] = buf[last]
	return buf[:1], nil
}

// Bounds on answering a client that cannot be served.
const (
	refuseIdle  = 10 * time.Second // without any request
	refuseAfter = time.Second      // from the first answer on
	maxRefused  = 1 << 20          // bytes of a request looked at
)

// refuse answers requests with the reason why there is no daemon, because MCP
// clients show that, while many hide what a server prints on stderr.
func refuse(ctx context.Context, stdin io.Reader, stdout io.Writer, reason error) {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		r := &lineReader{src: stdin, max: maxRefused}
		for {
			line, err := r.next()
			if line != nil {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	limit := time.NewTimer(refuseIdle)
	defer limit.Stop()
	answered := false
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			reply := refusal(line, reason)
			if reply == nil {
				continue
			}
			if _, err := stdout.Write(reply); err != nil {
				return
			}
			if !answered {
				answered = true
				limit.Reset(refuseAfter)
			}
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// refusal is the answer to one line, nil if none is due.
func refusal(line []byte, reason error) []byte {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &req) != nil || req.Method == "" || !validID(req.ID) {
		return nil
	}
	reply, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": req.ID,
		"error": map[string]any{"code": -32000, "message": "tmux-mcpd: " + strings.ToValidUTF8(reason.Error(), "?")},
	})
	if err != nil {
		return nil
	}
	return append(reply, '\n')
}

// validID tells the ids that MCP allows: strings and integers.
func validID(id json.RawMessage) bool {
	var s string
	var n json.Number
	return len(id) > 0 && (json.Unmarshal(id, &s) == nil && id[0] == '"' ||
		json.Unmarshal(id, &n) == nil && id[0] != '"' && !bytes.ContainsAny(id, ".eEn"))
}
