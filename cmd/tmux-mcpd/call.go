package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"strings"
	"syscall"
)

// maxArguments bounds the arguments read from standard input.
const maxArguments = 16 << 20

// call runs one tool.
func call(ctx context.Context, in *invocation) error {
	if len(in.args) == 0 {
		return coded(exitUsage, "call wants the name of a tool (see tmux-mcpd help call)")
	}
	args, err := callArguments(in.args[1:], in.stdin)
	if err != nil {
		return coded(exitUsage, "%w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, in.cfg.timeout)
	defer cancel()
	cl, err := openClient(ctx, in.cfg)
	if err != nil {
		return err
	}
	defer cl.close()
	raw, err := cl.request(ctx, "tools/call", map[string]any{"name": in.args[0], "arguments": args})
	var rpc *rpcError
	if errors.As(err, &rpc) {
		return coded(exitToolError, "%s: %w", in.args[0], err)
	}
	if err != nil {
		return err
	}
	return printResult(in, raw)
}

// toolAnswer is the part of a tools/call result that a shell wants.
type toolAnswer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

func printResult(in *invocation, raw json.RawMessage) error {
	var answer toolAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return coded(exitUnreachable, "the daemon's answer is not a tool result: %w", err)
	}
	var text strings.Builder
	for _, c := range answer.Content {
		if c.Type == "text" {
			text.WriteString(strings.TrimSuffix(c.Text, "\n") + "\n")
		}
	}
	if answer.IsError {
		return coded(exitToolError, "%s", strings.TrimSuffix(text.String(), "\n"))
	}
	if in.cfg.json {
		if answer.Structured == nil {
			answer.Structured = raw // a tool without a structured half
		}
		var line bytes.Buffer
		if err := json.Compact(&line, answer.Structured); err != nil {
			return err
		}
		text.Reset()
		text.WriteString(line.String() + "\n")
	}
	_, err := io.WriteString(in.stdout, text.String())
	return err
}

// callArguments makes a tool's arguments of words: a JSON object, - for one on
// standard input, KEY=VALUE. Later words win.
func callArguments(words []string, stdin io.Reader) (map[string]json.RawMessage, error) {
	args := map[string]json.RawMessage{}
	for _, w := range words {
		text := []byte(w)
		if w == "-" {
			var err error
			text, err = io.ReadAll(io.LimitReader(stdin, maxArguments+1))
			if err != nil {
				return nil, fmt.Errorf("reading arguments: %w", err)
			}
			if len(text) > maxArguments {
				return nil, fmt.Errorf("arguments longer than %d bytes", maxArguments)
			}
		} else if !strings.HasPrefix(strings.TrimSpace(w), "{") {
			key, value, ok := strings.Cut(w, "=")
			if !ok || key == "" {
				return nil, fmt.Errorf("argument %q is neither a JSON object nor KEY=VALUE", w)
			}
			args[key] = looseValue(value)
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("arguments are not a JSON object: %w", err)
		}
		maps.Copy(args, object)
	}
	return args, nil
}

// looseValue reads a value as a person types it: JSON if it is JSON, else text.
// A number that is meant as text is written with its quotes, as '"5"'.
func looseValue(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always encode
	}
	return b
}
