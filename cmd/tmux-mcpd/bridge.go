package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
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
	// maxHeld is how much of an unfinished line is held back: more than the
	// longest message the daemon takes. Longer ones, of any length, are passed on
	// as they come.
	maxHeld = 32 << 20
)

// stdio is the bridge. Standard output carries protocol and nothing else,
// whatever happens; what there is to say goes to stderr.
func stdio(ctx context.Context, in *invocation) error {
	sparing(10) // it holds next to nothing
	ctx, stop := clientContext(ctx, in.stdout)
	defer stop()
	r := newRelay(in.stdout, in.stderr, hello(os.LookupEnv, in.cfg), func(ctx context.Context) (*net.UnixConn, error) {
		return connect(ctx, in.cfg)
	})
	return r.run(ctx, in.stdin)
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

// pump copies src to dst in whole lines, so that an end in the middle of a
// message leaves no half of it on the other side. It returns that half. Lines
// that keep, unless nil, does not want are left out; it sees each with its
// newline, but none longer than maxHeld.
func pump(dst io.Writer, src io.Reader, keep func(line []byte) bool) (held []byte, err error) {
	buf := make([]byte, 0, chunk)
	pieces := false // the line that buf starts with has been passed on in part
	for {
		if len(buf) == cap(buf) {
			pieces = pieces || cap(buf) >= maxHeld
			if buf, err = makeRoom(dst, buf); err != nil {
				return nil, err
			}
		}
		n, rerr := src.Read(buf[len(buf):cap(buf)])
		fresh := len(buf)
		buf = buf[:len(buf)+n]
		if i := bytes.LastIndexByte(buf[fresh:], '\n'); i >= 0 {
			end := fresh + i + 1
			if wanted := sift(buf[:end], &pieces, keep); len(wanted) > 0 {
				if _, err := dst.Write(wanted); err != nil {
					return nil, err
				}
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

// sift moves the lines to keep together, in lines itself, and answers them.
func sift(lines []byte, pieces *bool, keep func([]byte) bool) []byte {
	if keep == nil {
		*pieces = false
		return lines
	}
	end := 0
	for rest := lines; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if *pieces || keep(rest[:n]) {
			end += copy(lines[end:], rest[:n])
		}
		*pieces = false
		rest = rest[n:]
	}
	return lines[:end]
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

// validID tells the ids that MCP allows: strings and integers.
func validID(id json.RawMessage) bool {
	var s string
	var n json.Number
	return len(id) > 0 && (json.Unmarshal(id, &s) == nil && id[0] == '"' ||
		json.Unmarshal(id, &n) == nil && id[0] != '"' && !bytes.ContainsAny(id, ".eEn"))
}
