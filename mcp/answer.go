package mcp

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Answer makes the server answer a method of its own, outside of MCP's, with
// what answer returns encoded as JSON, which must be an object. It is for
// methods of the daemon's own commands, named tmux-mcpd/..., and must be called
// before Serve. It is refused where only some sessions exist: the daemon's own
// numbers are of all. answer runs on the goroutine of the request.
func (s *Server) Answer(method string, answer func(context.Context) (any, error)) error {
	return sdk.AddReceivingCustomMethod(s.sdk, method,
		func(ctx context.Context, _ *sdk.ServerSession, _ *answerParams) (*answerResult, error) {
			if p := connOf(ctx).caller.policy; p != nil && p.now.Load().restricted() {
				return nil, &jsonrpc.Error{
					Code: jsonrpc.CodeMethodNotFound, Message: "this socket is limited to some sessions and does not tell this",
				}
			}
			v, err := answer(ctx)
			if err != nil {
				return nil, err
			}
			b, err := json.Marshal(v)
			return &answerResult{body: b}, err
		})
}

type answerParams struct{ sdk.ParamsBase }

// answerResult is a result that is encoded already.
type answerResult struct {
	sdk.ResultBase
	body []byte
}

// MarshalJSON gives the body as it is.
func (r *answerResult) MarshalJSON() ([]byte, error) { return r.body, nil }
