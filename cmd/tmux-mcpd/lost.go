package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tmux-mcpd/mcp"
)

// lost deals with what was asked on a link that has ended.
func (r *relay) lost(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.dead = true
	r.link, r.opening = nil, nil
	for _, q := range r.asked {
		if q.link == l && !q.writing {
			r.settleLocked(q)
		}
	}
}

// settleLocked deals with a request that was sent and not answered. What changes
// nothing is sent again; of the rest nobody knows what became of it, and it is
// answered when there is a daemon that can tell the place to look from.
func (r *relay) settleLocked(q *request) {
	delete(r.asked, string(q.ID))
	if q.Reads() && q.line != nil && q.tries < mostTries && !r.ended {
		r.holdLocked(q)
		if q == r.first && r.inited != nil {
			r.holdInitedLocked()
		}
		return
	}
	last := r.ended
	r.late.Go(func() { r.answerLost(q, last) })
}

// answerLost says that the answer of a request is lost.
func (r *relay) answerLost(q *request, last bool) {
	if q.Reads() {
		r.answer(q, errors.New("the daemon went away before it answered; ask again"))
		return
	}
	where := "look at what it was to change"
	var cursor any
	switch of := q.panes(); {
	case q.Run != "":
		where = "look at the run (get_run)"
		cursor = r.cursorOf(last, "get_run", fmt.Sprintf(`{"runId":%q,"maxLines":1}`, q.Run))
	case q.Pane != "":
		where = "look at pane " + q.Pane + " (snapshot_pane)"
		if q.Tool == "run_shell_command" {
			where = "look at the runs of pane " + q.Pane + " (list_runs)"
		}
		cursor = r.cursorOf(last, "capture_since", fmt.Sprintf(`{"paneId":%q,"maxLines":1}`, q.Pane))
	case len(of) > 0:
		where = "look at the panes (snapshot_pane)"
		all := map[string]any{}
		for _, pane := range of {
			all[pane] = r.cursorOf(last, "capture_since", fmt.Sprintf(`{"paneId":%q,"maxLines":1}`, pane))
		}
		cursor = all
	}
	text := fmt.Sprintf("unknown: the daemon went away before it answered, and nobody knows whether %s was carried out. "+
		"It was not sent again: %s before you call it again.", q.Tool, where)
	result := map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}}, "isError": true,
	}
	if cursor != nil {
		result["_meta"] = map[string]any{"tmux-mcpd/cursor": cursor}
	}
	if q.Complete {
		result["resultType"] = "complete"
	}
	r.reply(q, result, nil)
}

// panes are the panes that a batch of inputs names, each once and not too many.
func (q *request) panes() (all []string) {
	const most = 8
	var p struct {
		Arguments struct {
			Operations []struct {
				Pane string `json:"pane_id"`
			}
		}
	}
	if json.Unmarshal(q.Params, &p) != nil {
		return nil
	}
	for _, o := range p.Arguments.Operations {
		if o.Pane != "" && !slices.Contains(all, o.Pane) && len(all) < most {
			all = append(all, o.Pane)
		}
	}
	return all
}

// cursorOf asks a tool of the next daemon for a place in the output of a pane to
// go on from, nil if there is none in time or the client has gone.
func (r *relay) cursorOf(gone bool, tool, args string) any {
	if gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cursorWait)
	defer cancel()
	r.mu.Lock()
	l, linked := r.link, r.linked
	r.mu.Unlock()
	if l == nil {
		select {
		case <-linked:
		case <-ctx.Done():
			return nil
		}
		r.mu.Lock()
		l = r.link
		r.mu.Unlock()
	}
	if l == nil {
		return nil
	}
	params := fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, args)
	line, err := r.ask(ctx, l, "tools/call", params)
	var answer struct {
		Result struct {
			StructuredContent struct {
				Cursor string `json:"cursor"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err != nil || json.Unmarshal(line, &answer) != nil || answer.Result.StructuredContent.Cursor == "" {
		return nil
	}
	return answer.Result.StructuredContent.Cursor
}

// answer refuses a request.
func (r *relay) answer(q *request, why error) {
	r.reply(q, nil, &rpcError{codeGone, "tmux-mcpd: " + strings.ToValidUTF8(why.Error(), "?")})
}

// codeGone is the code of every error of the bridge's own: there is no daemon.
const codeGone = -32000

func (r *relay) reply(q *request, result map[string]any, failure *rpcError) {
	line, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  map[string]any  `json:"result,omitempty"`
		Error   *rpcError       `json:"error,omitempty"`
	}{"2.0", q.ID, result, failure})
	if err != nil {
		return // its id is no JSON: then there is nothing that it could be told by
	}
	_ = r.tell(append(line, '\n')) // who does not read will be noticed as gone
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.refused:
	default:
		if r.refusing != nil {
			close(r.refused)
		}
	}
}

// expire answers what has waited too long for a daemon.
func (r *relay) expire(why error, now time.Time) {
	r.mu.Lock()
	var late []*request
	r.held = slices.DeleteFunc(r.held, func(q *request) bool {
		switch waited := now.Sub(q.since); {
		case q == r.first && waited >= initWait:
		case q != r.first && waited >= heldWait && q.ID != nil:
		default:
			return false
		}
		late = append(late, q)
		r.heldSize -= len(q.line)
		return true
	})
	r.mu.Unlock()
	for _, q := range late {
		if q == r.first {
			r.greetAlone(q)
		} else {
			r.answer(q, why)
		}
	}
}

// greetAlone answers initialize without a daemon. When there is one, it hears
// the same initialize, and the client that the list of tools has changed.
func (r *relay) greetAlone(q *request) {
	line, err := mcp.Initialized(q.ID, q.Params, versionText())
	if err != nil {
		r.answer(q, err)
		return
	}
	r.mu.Lock()
	r.greeted, r.alone = true, true
	r.held = slices.DeleteFunc(r.held, func(h *request) bool { return h.ID == nil }) // comes with the handshake
	r.mu.Unlock()
	_ = r.tell(line)
}

// refuseAll answers everything that waits.
func (r *relay) refuseAll(why error) {
	r.mu.Lock()
	all := r.held
	for _, q := range r.asked {
		all = append(all, q)
	}
	r.held, r.heldSize = nil, 0
	clear(r.asked)
	r.mu.Unlock()
	for _, q := range all {
		if q.ID != nil {
			r.answer(q, why)
		}
	}
}

// Bounds on answering a client that cannot be served.
const (
	refuseIdle  = 10 * time.Second // without any request
	refuseAfter = time.Second      // from the first answer on
)

// refuse answers requests with the reason why there will be no daemon, because
// MCP clients show that, while many hide what a server prints on stderr.
func (r *relay) refuse(ctx context.Context, why error) {
	r.mu.Lock()
	r.refusing = why
	r.mu.Unlock()
	r.refuseAll(why)
	limit := time.NewTimer(refuseIdle)
	defer limit.Stop()
	for refused := r.refused; ; {
		select {
		case <-refused:
			refused = nil
			limit.Reset(refuseAfter)
		case <-r.stdin:
			return
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
