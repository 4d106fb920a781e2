package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Answer makes the server answer a method of its own, outside of MCP's, with
// what answer returns encoded as JSON, which must be an object. It is for
// methods of the daemon's own commands, named tmux-mcpd/..., and must be called
// before Serve. answer runs on the goroutine of the request.
func (s *Server) Answer(method string, answer func(context.Context) (any, error)) error {
	return sdk.AddReceivingCustomMethod(s.sdk, method,
		func(ctx context.Context, _ *sdk.ServerSession, _ *answerParams) (*answerResult, error) {
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
