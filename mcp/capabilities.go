package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// capabilitiesURI is the contract's one resource (1.9): what this connection may
// do, and through which tmux server.
const capabilitiesURI = "tmux://capabilities"

// capable is a registry that can say what a connection may do. The answer is
// one JSON object.
type capable interface {
	capabilities(c *Caller) (json.RawMessage, error)
}

// addCapabilities makes the resource known, if the registry has it.
func (s *Server) addCapabilities() {
	reg, ok := s.reg.(capable)
	if !ok {
		return
	}
	s.sdk.AddResource(&sdk.Resource{
		URI: capabilitiesURI, Name: "capabilities", Title: "Capabilities", MIMEType: "application/json",
		Description: "What the tools of this connection can do, one row for each, and which tmux server they serve.",
	}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		caller := connOf(ctx).caller
		text, err := reg.capabilities(&caller)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
			URI: capabilitiesURI, MIMEType: "application/json", Text: string(text),
		}}}, nil
	})
}

// capabilities is the content of the resource. All but serverState stays the
// same for the life of a connection.
type capabilities struct {
	SchemaVersion   int  `json:"schemaVersion"`
	ContractVersion int  `json:"contractVersion"`
	Frozen          bool `json:"frozen"`

	ExecutionAuthority      string `json:"executionAuthority"`
	OperatingSystemBoundary string `json:"operatingSystemBoundary"`
	ToolFilteringBoundary   string `json:"toolFilteringBoundary"`
	HostCommandTools        int    `json:"hostCommandTools"`

	SelectedToolsets []toolset    `json:"selectedToolsets"`
	ExcludeTools     []string     `json:"excludeTools"`
	ToolCount        int          `json:"toolCount"`
	EffectiveTools   []string     `json:"effectiveTools"`
	Tools            []capability `json:"tools"`

	Boundary   boundary   `json:"boundary"`
	Connection connection `json:"connection"`
	Socket     socketInfo `json:"socket"`
}

type boundary struct {
	OneSocketPerProcess    bool `json:"oneSocketPerProcess"`
	PerCallSocketSelection bool `json:"perCallSocketSelection"`
	HostCommandExecution   bool `json:"hostCommandExecution"`
	DynamicResources       bool `json:"dynamicResources"`
}

type connection struct {
	AttachCommand           string `json:"attachCommand"`
	ConfigurationProvenance string `json:"configurationProvenance"`
	ResolvedSocketPath      string `json:"resolvedSocketPath"`
	ServerState             string `json:"serverState"`
	SocketProvenance        string `json:"socketProvenance"`
	SocketSelector          string `json:"socketSelector"`
}

type socketInfo struct {
	ConfigurationProvenance string `json:"configurationProvenance"`
	NamespaceBoundary       string `json:"namespaceBoundary"`
	SelectionProvenance     string `json:"selectionProvenance"`
	Selector                string `json:"selector"`
	ServerState             string `json:"serverState"`
}

// capabilities implements capable.
func (t *table) capabilities(c *Caller) (json.RawMessage, error) {
	sel, err := t.policyOf(c).picks.of(c)
	if err != nil {
		return nil, err
	}
	all := capabilities{
		SchemaVersion: 1, ContractVersion: 1, Frozen: true,
		ExecutionAuthority: "tmux-user", OperatingSystemBoundary: "none",
		ToolFilteringBoundary: "interface-shaping-not-authorization",
		SelectedToolsets:      append([]toolset{}, sel.toolsets...), // [] rather than null
		ExcludeTools:          append([]string{}, slices.Sorted(maps.Keys(sel.excluded))...),
		ToolCount:             len(sel.tools),
		EffectiveTools:        append([]string{}, slices.Sorted(maps.Keys(sel.tools))...),
		Tools:                 []capability{},
		Boundary:              boundary{OneSocketPerProcess: true, DynamicResources: len(kindsFor(sel)) > 0},
		Connection:            t.connection(),
	}
	for _, name := range all.EffectiveTools {
		all.Tools = append(all.Tools, sel.tools[name].capability())
	}
	all.Socket = socketInfo{
		ConfigurationProvenance: all.Connection.ConfigurationProvenance,
		NamespaceBoundary:       "tmux-objects-only",
		SelectionProvenance:     all.Connection.SocketProvenance,
		Selector:                all.Connection.SocketSelector,
		ServerState:             all.Connection.ServerState,
	}
	return encodeOnce(all), nil
}

// connection describes the tmux server without asking it: unprobed says that we
// are not attached.
func (t *table) connection() connection {
	s := t.cfg.Socket
	c := connection{
		AttachCommand:           "tmux " + strings.Join(append(shellWords(s.Args()), "attach-session"), " "),
		ConfigurationProvenance: "operator-current",
		ResolvedSocketPath:      clean(s.Abs(os.Getenv, os.Getuid())),
		ServerState:             "unprobed",
		SocketProvenance:        "operator-current",
		SocketSelector:          "name:default",
	}
	switch {
	case s.Path != "":
		c.SocketProvenance, c.SocketSelector = "operator-path", "path:"+clean(s.Path)
	case s.Name != "":
		c.SocketProvenance, c.SocketSelector = "operator-name", "name:"+clean(s.Name)
	}
	if status := t.mirror.Status(); status.Attached || status.Degraded {
		c.ServerState = "running"
	}
	if t.cfg.Dedicated {
		c.ConfigurationProvenance, c.SocketProvenance, c.ServerState = "none", "default-dedicated", "created"
	}
	return c
}

// shellWords quotes words for a POSIX shell, for a person to paste.
func shellWords(words []string) []string {
	quoted := make([]string, len(words))
	for i, w := range words {
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:@%+=", r)
		}
		if quoted[i] = w; w == "" || strings.TrimFunc(w, plain) != "" {
			quoted[i] = "'" + strings.ReplaceAll(clean(w), "'", `'\''`) + "'"
		}
	}
	return quoted
}

// encodeOnce encodes a value of ours, which always encodes, as the other
// answers are: without escapes for HTML.
func encodeOnce(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("%T does not encode: %v", v, err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
