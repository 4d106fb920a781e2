package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

const (
	listResourcesMethod = "resources/list"
	templatesMethod     = "resources/templates/list"
	readResourceMethod  = "resources/read"
	completeMethod      = "completion/complete"
)

// answerResource answers what is asked about resources. The SDK knows of the
// capabilities alone: which others there are depends on the connection and on
// the moment. ok is false for what is not about resources.
func (s *Server) answerResource(ctx context.Context, c *conn, next sdk.MethodHandler, method string, req sdk.Request) (res sdk.Result, ok bool, err error) {
	reg, ok := s.reg.(resourceful)
	if !ok {
		return nil, false, nil
	}
	caller := c.caller
	switch p := req.GetParams().(type) {
	case *sdk.ListResourcesParams:
		res, err = s.listResources(ctx, reg, c, &caller, next, method, req)
	case *sdk.ListResourceTemplatesParams:
		list := &sdk.ListResourceTemplatesResult{}
		list.CacheScope = cachePrivate
		list.ResourceTemplates, err = reg.templates(&caller)
		res = list
	case *sdk.ReadResourceParams:
		if p == nil || p.URI == capabilitiesURI {
			return nil, false, nil
		}
		res, err = s.readResource(ctx, reg, c, &caller, p.URI, req)
	case *sdk.CompleteParams:
		if p == nil || p.Ref == nil || p.Argument.Name == "" {
			return nil, false, nil // the SDK says what is missing
		}
		found := &sdk.CompleteResult{}
		var details *sdk.CompletionResultDetails
		if details, err = reg.complete(ctx, &caller, p); err == nil {
			found.Completion = *details
		}
		res = found
	default:
		return s.answerSubscription(ctx, c, next, method, req)
	}
	if err != nil {
		return nil, true, s.resourceError(ctx, c, method, err)
	}
	return res, true, nil
}

// answerSubscription is answerResource for what is to be told of changes.
func (s *Server) answerSubscription(ctx context.Context, c *conn, next sdk.MethodHandler, method string, req sdk.Request) (res sdk.Result, ok bool, err error) {
	switch p := req.GetParams().(type) {
	case *sdk.SubscribeParams:
		if p != nil {
			res, err = s.answerSubscribe(ctx, c, p.URI, true)
			return res, true, err
		}
	case *sdk.UnsubscribeParams:
		if p != nil {
			res, err = s.answerSubscribe(ctx, c, p.URI, false)
			return res, true, err
		}
	case *sdk.SubscriptionsListenParams:
		res, err = s.listen(ctx, c, next, method, req)
		return res, true, err
	}
	return nil, false, nil
}

// resourceError is the error that a client gets.
func (s *Server) resourceError(ctx context.Context, c *conn, method string, err error) error {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		return err
	case errors.Is(context.Cause(ctx), errShutdown):
		return &jsonrpc.Error{Code: codeRefused, Message: errShutdown.Error()} // a bridge asks again
	case ctx.Err() != nil:
		return &jsonrpc.Error{Code: codeRefused, Message: "cancelled"}
	}
	c.log.Error("resource", zap.String("method", method), zap.Error(err))
	return errInternal
}

// listResources has the SDK list what is the same for all, and adds the rest. Who
// knows the list is told when it is another; newer clients ask for that by itself.
func (s *Server) listResources(ctx context.Context, reg resourceful, c *conn, caller *Caller, next sdk.MethodHandler, method string, req sdk.Request) (sdk.Result, error) {
	p := req.GetParams().(*sdk.ListResourcesParams)
	if p == nil || !stateless(req) {
		if err := s.subscribe(ctx, c, "", nil); err != nil {
			return nil, err
		}
	}
	cursor := ""
	if p != nil {
		cursor, p.Cursor = p.Cursor, ""
	}
	own, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	base, ok := own.(*sdk.ListResourcesResult)
	if !ok {
		return nil, fmt.Errorf("%s gave a %T", method, own)
	}
	list, err := reg.resources(ctx, caller, base.Resources, cursor)
	if err != nil {
		return nil, err
	}
	list.Cacheable = base.Cacheable
	return list, nil
}

// readResource reads one resource, encodes it and logs that it was read.
func (s *Server) readResource(ctx context.Context, reg resourceful, c *conn, caller *Caller, uri string, req sdk.Request) (sdk.Result, error) {
	cl := c.callOf(req.GetExtra())
	if cl == nil {
		return nil, errors.New("resources/read without its call")
	}
	begin := time.Now()
	text, err := reg.read(ctx, caller, uri)
	if err == nil {
		cl.frame, err = encodeResource(cl.id, text, stateless(req), s.impl)
	}
	outcome := "ok"
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errShutdown):
		outcome = "shutdown"
	case ctx.Err() != nil:
		outcome = "cancelled"
	default:
		outcome = "error"
	}
	took := time.Since(begin)
	a, _ := parseAddress(uri)
	c.log.Info("read", zap.String("resource", a.kindName()), zap.Duration("took", took), zap.String("outcome", outcome))
	s.auditResource(c, readResourceMethod, a, text, cl.frame, took, outcome)
	if err != nil {
		return nil, err
	}
	return encoded, nil
}

// encodeResource frames what was read. The SDK leaves an empty text out, and
// clients take contents with neither text nor blob for broken.
func encodeResource(id json.RawMessage, r *resourceText, complete bool, server json.RawMessage) ([]byte, error) {
	b := startFrame(id, `,"result":{`, len(r.text)+len(r.text)/8+len(r.uri)+512)
	b, err := appendMeta(b, r.meta, complete, server)
	if err != nil {
		return nil, fmt.Errorf("encoding _meta: %w", err)
	}
	if complete {
		b = append(b, `"resultType":"complete",`...)
	}
	o := object{b: append(b, `"contents":[`...)}
	o.open()
	o.string("uri", r.uri)
	o.string("mimeType", r.mime)
	o.string("text", r.text)
	o.close()
	b = append(o.b, `],"ttlMs":0,"cacheScope":"`+cachePrivate+`"}`...)
	return endFrame(b), nil
}

// kindName names the kind of a resource in logs; addresses can hold names, and
// names are content.
func (a address) kindName() string {
	if a.resource == nil {
		return "(unknown)"
	}
	return a.name
}

// target is the id in an address, "" for a name.
func (a address) target() string {
	if a.resource == nil {
		return ""
	}
	if a.variable() == varSession {
		if id, ok := idOf('$', a.id); ok {
			return id
		}
		return ""
	}
	return a.id
}

// auditResource is auditCall for a resource.
func (s *Server) auditResource(c *conn, method string, a address, text *resourceText, answer []byte, took time.Duration, outcome string) {
	if s.cfg.Audit == nil {
		return
	}
	fields := append(c.auditFields(),
		zap.String("method", method), zap.String("resource", a.kindName()), zap.String("target", a.target()),
		zap.Int("answerBytes", len(answer)), zap.String("answerDigest", s.auditKey.digest(answer)),
		zap.Float64("durationMs", float64(took.Microseconds())/1000), zap.String("outcome", outcome))
	if text != nil {
		if n, ok := text.meta[metaRedacted].(int); ok {
			fields = append(fields, zap.Int("redacted", n))
		}
	}
	s.cfg.Audit.Info("resource", fields...)
}
