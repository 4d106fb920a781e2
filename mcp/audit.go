package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// auditKey makes digests that tell equal arguments and answers of one life of
// the daemon from different ones, and nothing else: it is stored nowhere, so
// that nobody can try what a digest may be of.
type auditKey [sha256.Size]byte

func newAuditKey() (k auditKey) {
	rand.Read(k[:]) // never fails (crypto/rand)
	return k
}

func (k *auditKey) digest(b []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// auditCall writes one record of a call: who, through which socket, what, about
// what, how much, how long and how it ended. Of what was said there are sizes
// and digests.
func (s *Server) auditCall(c *conn, p *sdk.CallToolParamsRaw, res *toolResult, answer []byte, took time.Duration, outcome string) {
	if s.cfg.Audit == nil {
		return
	}
	fields := append(c.auditFields(),
		zap.String("tool", loggable(p.Name)), zap.String("target", targetOf(p.Arguments)),
		zap.Int("argumentBytes", len(p.Arguments)), zap.String("argumentDigest", s.auditKey.digest(p.Arguments)),
		zap.Int("answerBytes", len(answer)), zap.String("answerDigest", s.auditKey.digest(answer)),
		zap.Float64("durationMs", float64(took.Microseconds())/1000), zap.String("outcome", outcome))
	if res != nil {
		if n, ok := res.Meta[metaRedacted].(int); ok {
			fields = append(fields, zap.Int("redacted", n))
		}
	}
	s.cfg.Audit.Info("call", fields...)
}

// auditFields say who called, and through which socket.
func (c *conn) auditFields() []zap.Field {
	return []zap.Field{
		zap.Uint64("conn", c.caller.Conn), zap.Int("uid", c.caller.UID), zap.Int("pid", c.caller.PID),
		zap.String("socket", c.caller.socket),
	}
}

// targetOf is the id among a call's arguments, of a pane before a window before
// a session; "" for none. Names are content.
func targetOf(args json.RawMessage) string {
	if pane := paneOf(args); pane != "" {
		return pane
	}
	target := ""
	visitMembers(args, func(key string, value []byte) bool {
		text := jsonText(value)
		switch key {
		case "windowId", "window_id", "window":
			if id, err := controlmode.ParseWindowID(text); err == nil {
				target = id.String()
				return false
			}
		case "session", "sessionId", "session_id", "target":
			if id, err := controlmode.ParseSessionID(text); err == nil {
				target = id.String()
			}
		}
		return true
	})
	return target
}
