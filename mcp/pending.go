package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pending is one accepted request until its answer has left.
type pending struct {
	extra  sdk.RequestExtra // its address names the call through the SDK
	id     json.RawMessage  // as spelled
	method string
	params json.RawMessage // of a tools/call without its arguments, nil if plain
	args   json.RawMessage // of a tools/call, nil if absent
	meta   json.RawMessage // of a tools/call, nil if absent
	plain  bool            // the SDK need not see the params of this tools/call
	name   string          // of the tool of a plain call
	// frame is the complete encoded answer, if a tool call has one. It is set
	// by the goroutine that then writes the answer.
	frame []byte
	// cancelled and cancel are guarded by conn.mu.
	cancelled bool
	cancel    context.CancelCauseFunc // for shutdown, nil until the call runs
}

// stream reports whether the call stays open by nature: nobody waits for it to
// end, neither at a half-close nor at shutdown.
func (c *pending) stream() bool { return c.method == listenMethod }

// begun notes how a call that begins to run is cancelled at shutdown. What is no
// call, and so is not among them, does not wait for anything.
func (c *conn) begun(extra *sdk.RequestExtra, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.byExtra[extra]; cl != nil {
		cl.cancel = cancel
	}
	if c.stop.Err() != nil {
		cancel(context.Cause(c.stop))
	}
}

// cancelCalls cancels what runs, at shutdown.
func (c *conn) cancelCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range c.inflight {
		if cl.cancel != nil {
			cl.cancel(context.Cause(c.stop))
		}
	}
}

// callOf finds the call that a request the SDK hands around belongs to.
func (c *conn) callOf(extra *sdk.RequestExtra) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byExtra[extra]
}

// plainMethod is what the SDK knows a plain call by. It decodes the params of a
// request twice, through a reader that makes a buffer of 32 KiB for itself each
// time (v1.8.0, segmentio/encoding v0.5.4): nine tenths of all that a call with a
// small answer allocates, collected hundreds of times a second under many clients.
// We have read a tools/call by the time the SDK gets it, so a plain one is handed
// over as a method of our own without params. All else that the SDK does for a
// request, its place in the session, its cancellation, its end, is the same.
const plainMethod = "tmux-mcpd/call"

// plainParams are the params of plainMethod: always nil.
type plainParams struct{ sdk.ParamsBase }

// plainResult is never made: intercept answers first.
type plainResult struct{ sdk.ResultBase }

// refusePlain answers a client that calls our method by its name, as the SDK
// answers for a method that does not exist.
func refusePlain(context.Context, *sdk.ServerSession, *plainParams) (*plainResult, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", plainMethod)}
}

// takeCall reads the params of a tools/call. The arguments are kept apart from
// the rest: the SDK quotes params in its errors, and what a caller has to say to
// a tool need not go through that.
//
// The call is plain if its params are a name, arguments, and a _meta without a
// protocol version, at most, and it comes through an opened session: a request
// with a version of its own is the SDK's to judge, and so are faults.
func (cl *pending) takeCall(params json.RawMessage, opened bool) {
	var name json.RawMessage
	cl.plain = opened
	visitMembers(params, func(key string, value []byte) bool {
		switch key {
		case "arguments":
			cl.args = value
		case "name":
			name = value
		case "_meta":
			cl.meta = value
		default:
			cl.plain = false
		}
		return true
	})
	cl.plain = cl.plain && len(name) > 0 && name[0] == '"' && unversioned(cl.meta)
	if cl.plain {
		cl.params, cl.name = nil, keyText(name)
	} else {
		cl.params = withoutArguments(params)
	}
}

// unversioned reports whether a _meta, nil for none, says nothing of the version
// of the protocol.
func unversioned(meta json.RawMessage) bool {
	plain := meta == nil || meta[0] == '{'
	visitMembers(meta, func(key string, _ []byte) bool {
		plain = plain && key != sdk.MetaKeyProtocolVersion
		return plain
	})
	return plain
}

// withoutArguments is params without the member arguments.
func withoutArguments(params json.RawMessage) json.RawMessage {
	rest := append(make(json.RawMessage, 0, 64), '{')
	visitMembers(params, func(key string, value []byte) bool {
		if key == "arguments" {
			return true
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = appendQuoted(rest, key)
		rest = append(append(rest, ':'), value...)
		return true
	})
	return append(rest, '}')
}

// request is what the SDK gets to see of the call.
func (cl *pending) request(key jsonrpc.ID) *jsonrpc.Request {
	r := &jsonrpc.Request{ID: key, Method: cl.method, Params: cl.params, Extra: &cl.extra}
	if cl.plain {
		r.Method, r.Params = plainMethod, nil
	}
	return r
}

// toolRequest is the request of a call as the SDK decodes it.
func (cl *pending) toolRequest(given sdk.Request) *sdk.CallToolRequest {
	r, ok := given.(*sdk.CallToolRequest)
	if !ok { // a plain call
		r = &sdk.CallToolRequest{
			Session: given.GetSession().(*sdk.ServerSession), Extra: given.GetExtra(),
			Params: &sdk.CallToolParamsRaw{Name: cl.name},
		}
	}
	if r.Params.Arguments = cl.args; cl.args == nil || string(cl.args) == "null" {
		r.Params.Arguments = json.RawMessage("{}")
	}
	return r
}
