package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

const (
	// lastHandshake is the newest protocol version that begins with
	// initialize; firstStateless the oldest that carries its version in
	// every request.
	lastHandshake  = "2025-11-25"
	firstStateless = "2026-07-28"
)

var (
	// errShutdown is why calls are cancelled, and new ones refused, at the end.
	errShutdown = errors.New("tmux-mcpd is shutting down")
	errInternal = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
)

type connKey struct{}

// connOf finds the connection a request came through.
func connOf(ctx context.Context) *conn { return ctx.Value(connKey{}).(*conn) }

// protect is the outermost middleware. The SDK does not recover, so without it
// a panic in one call ends the daemon; and the SDK passes no shutdown on.
func (s *Server) protect(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		c := connOf(ctx)
		defer func() {
			if p := recover(); p != nil {
				s.panicked(c, method, p)
				res, err = nil, errInternal
			}
		}()
		roomy()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		c.begun(req.GetExtra(), cancel)
		return next(ctx, method, req)
	}
}

// roomy has the stack of the goroutine of a call grow once, to what calls need,
// while there is little on it to move. Deeper down it would grow in several steps,
// each dearer.
//
//go:noinline
func roomy() byte {
	var room [4 << 10]byte
	return room[time.Now().Nanosecond()&1]
}

// panicked counts and logs a panic. Its value may hold anything, so only its
// type and an error of the runtime's own are told; the stack holds no text.
func (s *Server) panicked(c *conn, where string, p any) {
	s.panics.Add(1)
	what := fmt.Sprintf("%T", p)
	if r, ok := p.(interface {
		error
		RuntimeError()
	}); ok {
		what = r.Error()
	}
	c.log.Error("panic", zap.String("in", where), zap.String("what", what), zap.ByteString("stack", debug.Stack()))
}

// clamp answers an initialize for a version that has no initialize with the
// newest that has. The SDK answers so too, but stores what the client asked
// for and then treats its session as new-style: no list-changed (v1.8.0).
func clamp(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, ok := req.GetParams().(*sdk.InitializeParams); ok && p != nil && p.ProtocolVersion > lastHandshake {
			p.ProtocolVersion = lastHandshake
		}
		return next(ctx, method, req)
	}
}

// selector is a registry that can find fault with a connection's selection of
// tools. The fault is told at the first opportunity, in plain words.
type selector interface {
	selection(c *Caller) error
}

var _ selector = (*table)(nil)

// intercept answers from the registry what is the registry's to answer.
func (s *Server) intercept(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		c := connOf(ctx)
		cl := c.callOf(req.GetExtra())
		if method == plainMethod && cl != nil && cl.plain {
			method = callMethod
		}
		switch method {
		case initMethod, "server/discover", "tools/list", callMethod:
			if err := s.checkSelection(c); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
		}
		switch method {
		case "tools/list":
			return s.listTools(ctx, c, cl, next, method, req)
		case callMethod:
			return s.callTool(ctx, c, cl, next, req)
		}
		if res, ok, err := s.answerResource(ctx, c, next, method, req); ok {
			return res, err
		}
		return next(ctx, method, req)
	}
}

// checkSelection asks once per connection: the hello cannot change any more.
func (s *Server) checkSelection(c *conn) error {
	c.selectOnce.Do(func() {
		if sel, ok := s.reg.(selector); ok {
			caller := c.caller
			c.selectErr = sel.selection(&caller)
		}
	})
	return c.selectErr
}

// encodedLister is a registry that keeps its tools encoded, for tools/list.
type encodedLister interface {
	toolsJSON(c *Caller) []json.RawMessage
}

// stateless reports whether a request is of a version without a handshake.
func stateless(req sdk.Request) bool {
	p, ok := req.GetParams().(interface{ GetMeta() map[string]any })
	if !ok {
		return false
	}
	version, _ := p.GetMeta()[sdk.MetaKeyProtocolVersion].(string)
	return version >= firstStateless
}

// listTools has the SDK answer, for the members around the list, and puts the
// caller's own tools in. There is one page.
func (s *Server) listTools(ctx context.Context, c *conn, cl *pending, next sdk.MethodHandler, method string, req sdk.Request) (sdk.Result, error) {
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	list, ok := res.(*sdk.ListToolsResult)
	if !ok {
		return nil, fmt.Errorf("%w: tools/list gave a %T", errInternal, res)
	}
	own := *list
	caller := c.caller
	if lister, ok := s.reg.(encodedLister); ok && !s.ordinary && cl != nil {
		own.Tools = []*sdk.Tool{}
		cl.frame, err = encodeListing(cl.id, &own, lister.toolsJSON(&caller), stateless(req), s.impl)
		return encoded, err
	}
	own.Tools = s.reg.tools(&caller)
	if own.Tools == nil {
		own.Tools = []*sdk.Tool{} // an empty list is not null
	}
	return &own, nil
}

// callTool runs one tool and logs that it ran: who, what, where and how it
// ended, never what was said.
func (s *Server) callTool(ctx context.Context, c *conn, cl *pending, next sdk.MethodHandler, given sdk.Request) (sdk.Result, error) {
	if cl == nil {
		return nil, fmt.Errorf("%w: tools/call without its call", errInternal)
	}
	req := cl.toolRequest(given)
	p := req.Params
	caller := c.caller
	caller.RequestID = cl.id
	progress, end := s.progress(ctx, req.Session, cl)
	begin := time.Now()
	res, outcome, err := s.run(ctx, c, &caller, p, progress)
	end()
	var answer sdk.Result
	if err == nil {
		answer, err = s.respond(ctx, cl, req, res, next)
		if err != nil {
			c.log.Error("result not encoded", zap.String("tool", p.Name), zap.Error(err))
			outcome, err = "internal error", errInternal
		}
	}
	s.calls.Add(1)
	took := time.Since(begin)
	if outcome != outcomeProtocol { // the name may be anybody's invention
		s.latencies.add(p.Name, took)
	}
	s.logCall(c, p, took, outcome)
	s.auditCall(c, p, res, cl.frame, took, outcome)
	return answer, err
}

// outcomeProtocol is how a call ends that was none.
const outcomeProtocol = "protocol error"

// run calls the registry. A fault of ours reaches the caller as a tool error
// with its message; only what the registry calls a protocol error is one.
func (s *Server) run(ctx context.Context, c *conn, caller *Caller, p *sdk.CallToolParamsRaw, progress func(string)) (res *toolResult, outcome string, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(c, callMethod, v)
			res, outcome, err = nil, "panic", errInternal
		}
	}()
	res, err = s.reg.call(ctx, caller, p.Name, p.Arguments, progress)
	var wire *jsonrpc.Error
	switch {
	case err == nil && res == nil:
		c.log.Error("tool returned nothing", zap.String("tool", p.Name))
		return nil, "internal error", errInternal
	case errors.As(err, &wire):
		return nil, outcomeProtocol, err
	case err != nil && errors.Is(context.Cause(ctx), errShutdown):
		return &toolResult{IsError: true, Text: errShutdown.Error() + "; call again in a moment"}, "shutdown", nil
	case err != nil && ctx.Err() != nil:
		return &toolResult{IsError: true, Text: "cancelled"}, "cancelled", nil
	case err != nil:
		c.log.Error("tool failed", zap.String("tool", p.Name), zap.Error(err))
		return &toolResult{IsError: true, Text: err.Error()}, "internal error", nil
	case ctx.Err() != nil:
		return res, "cancelled", nil
	case res.IsError:
		return res, "tool error", nil
	}
	return res, "ok", nil
}

// logCall writes the call's line in the log.
func (s *Server) logCall(c *conn, p *sdk.CallToolParamsRaw, took time.Duration, outcome string) {
	e := c.log.Check(zap.InfoLevel, "call")
	if e == nil {
		return
	}
	fields := []zap.Field{zap.String("tool", loggable(p.Name)), zap.Duration("took", took), zap.String("outcome", outcome)}
	if pane := paneOf(p.Arguments); pane != "" {
		fields = append(fields, zap.String("pane", pane))
	}
	e.Write(fields...)
}

// loggable keeps what is no tool name out of the log.
func loggable(name string) string {
	if len(name) > 64 {
		return "(unknown)"
	}
	for _, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return "(unknown)"
		}
	}
	return name
}

// paneOf finds the pane id among the arguments, in either spelling.
func paneOf(args json.RawMessage) string {
	var pane string
	visitMembers(args, func(key string, value []byte) bool {
		if key != "paneId" && key != "pane_id" {
			return true
		}
		if len(value) < 4 || len(value) > 16 || value[0] != '"' || value[1] != '%' {
			return false
		}
		for _, d := range value[2 : len(value)-1] {
			if d < '0' || d > '9' {
				return false
			}
		}
		pane = string(value[1 : len(value)-1])
		return false
	})
	return pane
}

// progress returns the function with which a tool reports, nil if the client
// did not ask for reports, and one that ends the reports: none may follow the
// answer.
func (s *Server) progress(ctx context.Context, ss *sdk.ServerSession, cl *pending) (report func(string), end func()) {
	token := progressToken(cl.meta)
	if token == nil {
		return nil, func() {}
	}
	var n atomic.Int64
	var ended atomic.Bool
	report = func(message string) {
		if ended.Load() || ctx.Err() != nil {
			return
		}
		// Lost with the connection or not at all: the call need not know.
		_ = ss.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(n.Add(1)), Message: message,
		})
	}
	return report, func() { ended.Store(true) }
}

// progressToken reads the token of a _meta as it was spelled; the SDK decodes a
// number to a float64. Nil if it is neither a string nor a number.
func progressToken(meta json.RawMessage) json.RawMessage {
	var token json.RawMessage
	visitMembers(meta, func(key string, value []byte) bool {
		if key == "progressToken" {
			token = value
		}
		return true
	})
	if len(token) == 0 || token[0] != '"' && token[0] != '-' && (token[0] < '0' || token[0] > '9') {
		return nil
	}
	return token
}

// respond turns a tool's answer into what the SDK is to send. It is the one
// place that chooses between our encoding and the SDK's.
func (s *Server) respond(ctx context.Context, cl *pending, req *sdk.CallToolRequest, r *toolResult, next sdk.MethodHandler) (sdk.Result, error) {
	if s.ordinary {
		res, err := ordinaryResult(cl.id, r)
		if err != nil {
			return nil, err
		}
		req.Params.Name = ordinaryTool.Name
		return next(context.WithValue(ctx, ordinaryKey{}, res), callMethod, req)
	}
	frame, err := encodeResult(cl.id, r, stateless(req), s.impl)
	if err != nil {
		return nil, err
	}
	cl.frame = frame
	return encoded, nil
}

// encodedResult stands in for an answer whose bytes wait in its call. The
// SDK marshals it to next to nothing; conn.writeResponse sends the bytes.
type encodedResult struct{ sdk.ResultBase }

func (*encodedResult) MarshalJSON() ([]byte, error) { return []byte("0"), nil }

// encoded serves all calls. It claims to name the server already, so the SDK
// does not try to write to it.
var encoded = &encodedResult{sdk.ResultBase{Meta: sdk.Meta{sdk.MetaKeyServerInfo: true}}}

// ordinaryTool is the only tool the SDK knows of. It is never listed; through
// it an answer takes the SDK's own way.
var ordinaryTool = &sdk.Tool{Name: "answer", InputSchema: json.RawMessage(`{"type":"object"}`)}

type ordinaryKey struct{}

func answerOrdinary(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	res, ok := ctx.Value(ordinaryKey{}).(*sdk.CallToolResult)
	if !ok {
		return nil, errInternal
	}
	return res, nil
}

// ordinaryResult is the SDK's form of an answer.
func ordinaryResult(id json.RawMessage, r *toolResult) (*sdk.CallToolResult, error) {
	if r.encode != nil {
		res := new(sdk.CallToolResult)
		return res, json.Unmarshal(r.encode(id), res)
	}
	res := &sdk.CallToolResult{
		Meta: sdk.Meta(r.Meta), IsError: r.IsError,
		Content: []sdk.Content{&sdk.TextContent{Text: r.Text}},
	}
	if len(r.Structured) > 0 {
		res.StructuredContent = r.Structured
	}
	return res, nil
}
