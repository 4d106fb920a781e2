package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Caller is who makes a call: what the socket told about the peer and what a bridge said in its hello.
type Caller struct {
	Conn      uint64 // our own connection number, for logs
	UID       int
	PID       int             // peer process, 0 if unknown
	Ancestors []int           // pids from the peer upward (peer first), read when the connection was made
	Hello     Hello           // zero for raw clients
	RequestID json.RawMessage // set per call
	socket    string          // path of the listener it came through
	policy    *Policy         // of that listener, nil for the daemon's own

	known *knownLife // of the connection; nil if it remembers nothing
}

// Hello is what a bridge says once, first, in notifications/tmux-mcpd/hello.
type Hello struct {
	Version  string            `json:"version"`
	Env      map[string]string `json:"env"` // LIBTMUX_* selection variables that were set
	TMUX     string            `json:"tmux"`
	TMUXPane string            `json:"tmuxPane"`
	// TMUXSocket is the socket of the tmux server that the client means. One
	// default.sock can be reached with different TMUX_TMPDIRs.
	TMUXSocket string `json:"tmuxSocket"`
}

// toolResult is one answer, encoded late so that it can be bounded by the whole response line.
type toolResult struct {
	Text       string          // the readable half
	Structured json.RawMessage // the structured half, one line of JSON; nil for errors
	IsError    bool
	absent     bool // an error: what was named does not exist
	Meta       map[string]any
	// encode, if set, replaces the ordinary encoding: the complete result object for the request id
	// with that JSON spelling (the batch's cap counts the id).
	encode func(id json.RawMessage) []byte
}

// registry is what the connection side needs of the tool table.
type registry interface {
	tools(c *Caller) []*sdk.Tool // advertised, in order, for that caller's selection; nil error rules are the registry's
	// call runs one tool. A returned error is a *jsonrpc.Error (protocol error) or an internal fault; everything a
	// caller can mend is a toolResult with IsError.
	call(ctx context.Context, c *Caller, name string, args json.RawMessage, progress func(message string)) (*toolResult, error)
	// selection checks the hello's environment; an error is answered to initialize in plain words.
	instructions() string
}
