package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Caller is who makes a call: one connection of one process.
type Caller struct {
	Conn      uint64 // connection number of this daemon's life, for logs
	UID       int
	PID       int
	Ancestors []int // pids from the peer upward, the peer first
	Hello     Hello
	RequestID json.RawMessage
}

// Hello is what a bridge says of its client: its version, the selection
// variables and the tmux variables of its environment. A raw client may leave
// it out.
type Hello struct {
	Version  string            `json:"version"`
	Env      map[string]string `json:"env"` // LIBTMUX_* selection variables that were set
	TMUX     string            `json:"tmux"`
	TMUXPane string            `json:"tmuxPane"`
}

// toolResult is the answer of a tool before it is framed.
type toolResult struct {
	Text       string
	Structured json.RawMessage // one line of JSON; nil for errors
	IsError    bool
	Meta       map[string]any
	// encode, if set, gives the complete result object for that request id: the
	// cap of a batch counts the id.
	encode func(id json.RawMessage) []byte
}

// registry is the tool table as connections see it.
type registry interface {
	// tools lists what this caller may call, in a stable order.
	tools(c *Caller) []*sdk.Tool
	// call runs a tool. A returned error is a *jsonrpc.Error or an internal
	// fault; everything a caller can mend is a toolResult with IsError.
	call(ctx context.Context, c *Caller, name string, args json.RawMessage, progress func(message string)) (*toolResult, error)
	instructions() string
}
