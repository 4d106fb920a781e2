package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"tmux-mcpd/state"
)

// waitTools are the tools that wait.
func waitTools() []*tool {
	return append(channelTools(), waitForText(), waitForAny(), whatChanged())
}

// channelTools are tmux's wait-for.
func channelTools() []*tool {
	channel := param{
		name: "channel", required: true, max: maxInlineText,
		doc: "Name of a channel of tmux's wait-for command; any text.",
	}
	row := func(name, title, doc string, params ...param) tool {
		return tool{
			name: name, title: title, toolset: manage, doc: doc, params: params,
			output: output(map[string]schema{"channel": stringOut(), "signalled": booleanOut()}),
			reach:  reachNone, effects: []string{effectChange}, classes: []string{classMetadata},
		}
	}
	return []*tool{
		define(row("wait_for_channel", "Wait for a channel",
			"Waits until somebody signals a channel: signal_channel, or tmux wait-for -S CHANNEL in a script. A signal that "+
				"came while nobody waited is remembered by tmux and ends the next wait at once. A timeout is an error; call again "+
				"to go on waiting, a signal in between is not lost.", channel, timeoutParam()), waitForChannel),
		define(row("signal_channel", "Signal a channel",
			"Signals a channel: it ends all waits for it, or else the next one.", channel), signalChannel),
	}
}

type channelArgs struct {
	Channel string `arg:"channel"`
}

type waitChannelArgs struct {
	channelArgs
	TimeoutMs *int64 `arg:"timeoutMs"`
}

func waitForChannel(ctx context.Context, c *call, a waitChannelArgs) (*toolResult, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	p := c.clock(a.TimeoutMs)
	defer p.end()
	w, err := c.table.mirror.WaitChannel(c.channel(a.Channel))
	if err != nil {
		return nil, channelProblem(err)
	}
	defer w.Close()
	for {
		select {
		case <-w.Done():
			if err := w.Err(); err != nil {
				return nil, channelProblem(err)
			}
			return channelResult(a.Channel, "signalled"), nil
		case <-p.tick:
			p.tell("")
		case <-p.late:
			return nil, &problem{
				reason: fmt.Sprintf("timed out after %d ms: nobody has signalled channel %s", p.effective.Milliseconds(), quote(a.Channel)),
				hint:   "Call again to go on waiting; a signal in between is not lost.",
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func signalChannel(ctx context.Context, c *call, a channelArgs) (*toolResult, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	err := c.table.mirror.SignalChannel(ctx, c.channel(a.Channel))
	c.wrote = !errors.Is(err, state.ErrNoServer)
	if err != nil {
		return nil, err
	}
	return channelResult(a.Channel, "signalled"), nil
}

// channel is tmux's name for a channel. Channels belong to no session, so on a
// socket with a limited sight they are the socket's own: its clients meet each
// other there and nobody else. The name holds over restarts, as tmux remembers
// signals longer than the daemon lives. Clients are not told of it.
func (c *call) channel(name string) string {
	if !c.policy.restricted() {
		return name
	}
	return ChannelPrefix(c.caller.socket) + name
}

// ChannelPrefix is what stands before the names of channels in tmux that clients
// of a socket with a limited sight wait for and signal: for scripts that want to
// meet them.
func ChannelPrefix(socket string) string {
	sum := sha256.Sum256([]byte(socket))
	return "tmux-mcpd/" + hex.EncodeToString(sum[:6]) + "/"
}

// check refuses what is not fit for a command line of tmux.
func (a *channelArgs) check() error {
	if quotedSize(a.Channel) > maxInlineText {
		return &problem{reason: fmt.Sprintf("channel is longer than the %d bytes that fit on a command line of tmux", maxInlineText)}
	}
	return nil
}

// quotedSize is what a text costs when it is quoted into a command line of tmux
// (contract 1.5).
func quotedSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		if s[i] == '\'' {
			n += 3
		}
	}
	return n
}

func channelProblem(err error) error {
	if errors.Is(err, state.ErrChannels) {
		return &problem{reason: err.Error(), hint: "Wait for fewer channels at once."}
	}
	return err
}

func channelResult(channel, what string) *toolResult {
	var o object
	o.open()
	o.string("channel", clean(channel))
	o.bool("signalled", true)
	o.close()
	return &toolResult{Structured: o.b, Text: "channel " + quote(channel) + " " + what}
}
