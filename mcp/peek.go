package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Peek is what somebody in between has to know of a message that he passes on.
// Its fields refer to the line that was looked at.
type Peek struct {
	ID      json.RawMessage // as spelled, nil if absent
	Method  string          // "" for a response
	Tool    string          // named by a tools/call
	Pane    string          // given to that tool
	Run     string          // the runId given to it
	Params  json.RawMessage // of a request or notification
	Cancels json.RawMessage // the id that notifications/cancelled names
	URI     string          // of a resource that is subscribed to, or not any more
	// Complete: the sender wants the type of a result told in it (from protocol
	// 2026-07-28 on).
	Complete bool
}

// PeekMessage looks at a line without a newline. It does not check it: what it
// finds in anything but a JSON-RPC message means nothing. An answer of this
// daemon is recognised by its first bytes, however long it is. It may be called
// by any goroutine.
func PeekMessage(line []byte) Peek {
	if id, ok := ownAnswer(line); ok {
		return Peek{ID: id}
	}
	var p Peek
	visitMembers(line, func(key string, value []byte) bool {
		switch key {
		case "id":
			p.ID = value
		case "method":
			p.Method = jsonText(value)
		case "params":
			p.Params = value
		}
		return true
	})
	switch p.Method {
	case callMethod, cancelledMethod, subscribeMethod, unsubscribeMethod:
		p.peekParams()
	}
	p.Complete = bytes.Contains(p.Params, []byte(sdk.MetaKeyProtocolVersion))
	return p
}

func (p *Peek) peekParams() {
	visitMembers(p.Params, func(key string, value []byte) bool {
		switch key {
		case "name":
			p.Tool = jsonText(value)
		case "requestId":
			p.Cancels = value
		case "arguments":
			p.Pane, p.Run = paneOf(value), runOf(value)
		case "uri":
			p.URI = jsonText(value)
		}
		return true
	})
	if p.Method != cancelledMethod {
		p.Cancels = nil
	}
}

// runOf finds the id of a run among the arguments.
func runOf(args json.RawMessage) (run string) {
	visitMembers(args, func(key string, value []byte) bool {
		if key == "runId" {
			run = jsonText(value)
		}
		return run == ""
	})
	return run
}

// ownAnswer reads the id of a response as startFrame writes it.
func ownAnswer(line []byte) (id json.RawMessage, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(frameStart))
	if !ok {
		return nil, false
	}
	end := skipValue(rest, 0)
	if end > len(rest) {
		return nil, false
	}
	after := rest[end:]
	return rest[:end:end], bytes.HasPrefix(after, []byte(`,"result":`)) || bytes.HasPrefix(after, []byte(`,"error":`))
}

// jsonText is a JSON string's text, "" for anything else.
func jsonText(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return keyText(value)
}

// reading are the names of the tools that change nothing.
var reading = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	t, err := newTable(nil, ToolConfig{})
	if err != nil {
		return names // nothing is known to be harmless then
	}
	for name, row := range t.byName {
		names[name] = row.toolset == inspect
	}
	return names
})

// Reads tells whether a request changes nothing, so that it may be sent again if
// nobody knows whether it has been served. Everything but a call of a tool that
// is not in the inspect toolset does.
func (p Peek) Reads() bool { return p.Method != callMethod || reading()[p.Tool] }

// handshakes are the protocol versions that begin with initialize.
var handshakes = []string{"2024-11-05", "2025-03-26", "2025-06-18", lastHandshake}

// Initialized is the answer to an initialize that a bridge gives when there is no
// daemon to ask: what every daemon of this version offers. It ends in a newline.
func Initialized(id, params json.RawMessage, version string) ([]byte, error) {
	var p sdk.InitializeParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if !slices.Contains(handshakes, p.ProtocolVersion) {
		p.ProtocolVersion = lastHandshake
	}
	result, err := json.Marshal(&sdk.InitializeResult{
		ProtocolVersion: p.ProtocolVersion,
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{ListChanged: true}, Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Completions: &sdk.CompletionCapabilities{},
		},
		ServerInfo:   &sdk.Implementation{Name: "tmux-mcpd", Title: "tmux", Version: version},
		Instructions: (*table)(nil).instructions(),
	})
	if err != nil {
		return nil, err
	}
	return resultFrame(id, result), nil
}

// Refused tells whether a response of the daemon is an error.
func Refused(line []byte) bool {
	id, ok := ownAnswer(line)
	return ok && bytes.HasPrefix(line[len(frameStart)+len(id):], []byte(`,"error":`))
}

// Updated is the notification that a resource may have changed, with an empty uri
// that the list of them has. listen is the id of the request that asked to be
// told, nil for none. It ends in a newline.
func Updated(uri string, listen json.RawMessage) []byte {
	if listen == nil {
		return updateFrame(uri, nil)
	}
	return updateFrame(uri, &pending{id: listen})
}

// RefusedAtEnd tells whether a response of the daemon says that it took the
// request in no more, because it was ending: nothing was done.
func RefusedAtEnd(line []byte) bool {
	id, ok := ownAnswer(line)
	return ok && bytes.HasPrefix(line[len(frameStart)+len(id):], refusedAtEnd)
}

var refusedAtEnd = fmt.Appendf(nil, `,"error":{"code":%d,"message":%q`, codeRefused, errShutdown)
