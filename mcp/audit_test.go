package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// Every call leaves one record, however it ends, and none holds what was said.
func TestAudit(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	d := startDaemon(t, Config{Audit: zap.New(core)})
	w := d.open(t)
	calls := []struct{ tool, args, want string }{
		{"echo", `{"text":"secret","paneId":"%12"}`, "echo %12 ok"},
		{"echo", `{"text":"secret","paneId":"%12"}`, "echo %12 ok"},
		{"echo", `{"text":"secret2","window_id":"@3","session":"$4"}`, "echo @3 ok"},
		{"refused", `{"session":"$4"}`, "refused $4 tool error"},
		{"refused", `{"session":"secret"}`, "refused  tool error"},
		{"fault", `{}`, "fault  internal error"},
		{"panic", `{}`, "panic  panic"},
		{"secret words", `{}`, "(unknown)  protocol error"},
	}
	for i, c := range calls {
		w.call(i, c.tool, c.args)
		w.next()
	}
	waitFor(t, "the records", func() bool { return logs.Len() == len(calls) })
	records := make([]map[string]any, len(calls))
	for i, e := range logs.All() {
		m := e.ContextMap()
		records[i] = m
		if got := fmt.Sprint(m["tool"], " ", m["target"], " ", m["outcome"]); got != calls[i].want {
			t.Errorf("record %d: %s, want %s", i, got, calls[i].want)
		}
		if m["uid"] != int64(os.Geteuid()) || m["pid"] != int64(os.Getpid()) || m["socket"] != d.path || m["durationMs"] == nil ||
			m["argumentBytes"] != int64(len(calls[i].args)) {
			t.Errorf("record %d: %v", i, m)
		}
		if s := fmt.Sprint(e.Message, m); strings.Contains(s, "secret") {
			t.Errorf("content in the audit: %s", s)
		}
	}
	if records[0]["argumentDigest"] != records[1]["argumentDigest"] || records[0]["argumentDigest"] == records[2]["argumentDigest"] {
		t.Error("digests do not tell equal arguments from different ones")
	}
	if n := records[0]["answerBytes"]; n == int64(0) || records[0]["answerDigest"] == records[2]["answerDigest"] {
		t.Errorf("answer of %v bytes, digest %v", n, records[0]["answerDigest"])
	}
	// Another daemon has another key.
	other := startDaemon(t, Config{Audit: zap.New(core)}).open(t)
	other.call(1, calls[0].tool, calls[0].args)
	other.next()
	waitFor(t, "the record", func() bool { return logs.Len() == len(calls)+1 })
	if logs.All()[len(calls)].ContextMap()["argumentDigest"] == records[0]["argumentDigest"] {
		t.Error("the key of the digests is always the same")
	}
}

// What redaction took out is counted in the record.
func TestAuditCountsRedactions(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "main", "-n", "w", "cat", ";", "select-pane", "-T", fmt.Sprintf(planted[0].around, planted[0].secret))
	d := startServer(t, Config{Audit: zap.New(core)}, r.table)
	if err := r.table.open.Set(PolicyConfig{Redact: true}); err != nil {
		t.Fatal(err)
	}
	w := d.open(t)
	w.call(1, "list_panes", "{}")
	var answer struct {
		Result struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	line := w.line()
	if err := json.Unmarshal(line, &answer); err != nil || answer.Result.Meta[metaRedacted] != 1.0 || shows(string(line), planted[0].secret) != "" {
		t.Errorf("%s (%v)", line, err)
	}
	waitFor(t, "the record", func() bool { return logs.Len() == 1 })
	if m := logs.All()[0].ContextMap(); m["redacted"] != int64(1) || m["target"] != "" {
		t.Errorf("%v", m)
	}
}
