package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxReply bounds a reply. Tools bound theirs at about 1 MB; this is only to
// keep a broken daemon from filling memory.
const maxReply = 64 << 20

// client speaks just enough MCP for one request at a time. It is used by one
// goroutine.
type client struct {
	conn  stream
	lines lineReader
	next  int
}

// stream is what a client talks over: a socket, or a bridge's standard streams.
type stream interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// rpcError is an error of the protocol, as against one of a tool.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// openClient connects, starting a daemon if c allows it, and shakes hands.
func openClient(ctx context.Context, c *config) (*client, error) {
	conn, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return newClient(ctx, conn, c)
}

// newClient says who we are and shakes hands over conn, which it owns from then
// on. With a nil c it leaves the first to the bridge that it talks to. Everything
// done with the client ends with ctx, for which ctx needs a deadline.
func newClient(ctx context.Context, conn stream, c *config) (*client, error) {
	cl := &client{conn: conn, lines: lineReader{src: conn, max: maxReply}}
	context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	if c != nil {
		if _, err := conn.Write(hello(os.LookupEnv, c)); err != nil {
			cl.close()
			return nil, unreachable(ctx, err)
		}
	}
	_, err := cl.request(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "tmux-mcpd", "version": versionText()},
	})
	if err == nil {
		err = cl.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err != nil {
		cl.close()
		return nil, err
	}
	return cl, nil
}

func (cl *client) close() error { return cl.conn.Close() }

func (cl *client) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = cl.conn.Write(append(line, '\n'))
	return err
}

// request asks and waits for the answer. A *rpcError is the daemon's own word.
func (cl *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	cl.next++
	err := cl.send(map[string]any{"jsonrpc": "2.0", "id": cl.next, "method": method, "params": params})
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	want := fmt.Sprint(cl.next)
	for {
		line, err := cl.lines.next()
		if err != nil {
			return nil, unreachable(ctx, err)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, coded(exitUnreachable, "the daemon does not speak JSON-RPC: %w", err)
		}
		switch {
		case m.Method != "" && m.ID != nil:
			// We offer nothing, so whatever it asks has one answer.
			err = cl.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": rpcError{-32601, "method not found"}})
			if err != nil {
				return nil, unreachable(ctx, err)
			}
		case string(m.ID) != want: // a notification, or somebody else's answer
		case m.Error != nil:
			return nil, m.Error
		default:
			return m.Result, nil
		}
	}
}

// unreachable explains why the connection ended.
func unreachable(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return coded(exitUnreachable, "the daemon did not answer in time")
	case ctx.Err() != nil:
		return coded(exitFailure, "interrupted")
	case errors.Is(err, io.EOF):
		return coded(exitUnreachable, "the daemon closed the connection")
	}
	return coded(exitUnreachable, "the connection to the daemon broke: %w", err)
}
