package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// asker is a client by hand that asks one thing at a time and keeps what it was
// told meanwhile.
type asker struct {
	*wire
	told []map[string]any // notifications
	n    int
}

// asks serves a rig's tools under a policy and connects.
func (r *rig) asks(cfg PolicyConfig, srv ...Config) *asker {
	r.Helper()
	if err := r.table.open.Set(cfg); err != nil {
		r.Fatal(err)
	}
	c := Config{}
	if len(srv) > 0 {
		c = srv[0]
	}
	r.daemon = startServer(r, c, r.table)
	return &asker{wire: r.daemon.open(r)}
}

// ask gives the whole answer.
func (a *asker) ask(method string, params any) map[string]any {
	a.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	id := fmt.Sprintf("ask %d", a.n)
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, raw))
	for {
		m := a.next()
		if m["id"] == id {
			return m
		}
		a.told = append(a.told, m)
	}
}

// got asks for what must be there, and gives the result.
func (a *asker) got(method string, params any, into any) {
	a.t.Helper()
	m := a.ask(method, params)
	raw, _ := json.Marshal(m["result"])
	if m["result"] == nil || json.Unmarshal(raw, into) != nil {
		a.t.Fatalf("%s %v: %v", method, params, m)
	}
}

// denied asks for what must not be there, and checks code and words of the error.
func (a *asker) denied(method string, params any, code string, want ...string) {
	a.t.Helper()
	m := a.ask(method, params)
	e, _ := m["error"].(map[string]any)
	if e == nil || fmt.Sprint(e["code"]) != code {
		a.t.Errorf("%s %v: %v, want an error %s", method, params, m, code)
		return
	}
	for _, w := range want {
		if !strings.Contains(e["message"].(string), w) {
			a.t.Errorf("%s %v: %v lacks %q", method, params, e["message"], w)
		}
	}
}

type gotRead struct {
	Meta     map[string]any `json:"_meta"`
	Contents []struct {
		URI, MimeType string
		Text          *string
	}
}

// read reads a resource and gives its text.
func (a *asker) read(uri string) (text string, meta map[string]any) {
	a.t.Helper()
	var r gotRead
	a.got("resources/read", args{"uri": uri}, &r)
	if len(r.Contents) != 1 || r.Contents[0].URI != uri || r.Contents[0].Text == nil {
		a.t.Fatalf("%s: %+v", uri, r)
	}
	return *r.Contents[0].Text, r.Meta
}

type gotList struct {
	Meta       map[string]any `json:"_meta"`
	NextCursor string
	Resources  []struct{ URI, Name, Description, MimeType string }
}

func (l *gotList) uris() []string {
	uris := []string{}
	for _, r := range l.Resources {
		uris = append(uris, r.URI)
	}
	return uris
}

type gotCompletion struct {
	Completion struct {
		Values  []string
		HasMore bool
		Total   int
	}
}

func (a *asker) completes(template, variable, typed string) []string {
	a.t.Helper()
	var c gotCompletion
	a.got("completion/complete", args{
		"ref": args{"type": "ref/resource", "uri": template}, "argument": args{"name": variable, "value": typed},
	}, &c)
	return c.Completion.Values
}

// TestResources: what is listed can be read, in every spelling, and is what the
// tools say.
func TestResources(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "work", "-x", "80", "-y", "24", "-n", "ed", "cat", ";",
		"split-window", "-d", "-t", "work:", "cat", ";", "new-window", "-d", "-t", "work:", "-n", "more", "cat", ";",
		"new-session", "-d", "-s", "a b/50%", "-n", "x", "cat")
	a := r.asks(PolicyConfig{})
	r.say("%0", "hello there")

	var list gotList
	a.got("resources/list", nil, &list)
	if d := cmp.Diff([]string{
		capabilitiesURI, "tmux://sessions", "tmux://windows", "tmux://panes",
		"tmux://panes/0/content", "tmux://panes/1/content", "tmux://panes/2/content", "tmux://panes/3/content",
	}, list.uris()); d != "" || list.NextCursor != "" {
		t.Errorf("listed (-want +got):\n%s", d)
	}
	if first := list.Resources[4]; first.Name != "work:0.0 cat" || first.MimeType != "text/plain" || !strings.HasPrefix(first.Description, "Screen of %0, 80x") {
		t.Errorf("%+v", first)
	}
	for _, uri := range list.uris() {
		a.read(uri)
	}
	var templates struct {
		ResourceTemplates []struct{ URITemplate, Name, MimeType string }
	}
	a.got("resources/templates/list", nil, &templates)
	if len(templates.ResourceTemplates) != 7 {
		t.Errorf("%+v", templates)
	}

	for _, c := range []struct {
		uris       []string
		tool, only string
		args       args
	}{
		{[]string{"tmux://sessions"}, "list_sessions", "", nil},
		{[]string{"tmux://windows"}, "list_windows", "", nil},
		{[]string{"tmux://panes"}, "list_panes", "", nil},
		{[]string{"tmux://sessions/work", "tmux://sessions/0", "tmux://sessions/$0", "tmux://sessions/%240"}, "get_session_info", "", args{"session": "work"}},
		{[]string{"tmux://sessions/a%20b%2F50%25", "tmux://sessions/1"}, "get_session_info", "", args{"session": "a b/50%"}},
		{[]string{"tmux://sessions/work/windows", "tmux://sessions/%240/windows"}, "list_windows", "", args{"session": "work"}},
		{[]string{"tmux://sessions/work/panes"}, "list_panes", "", args{"session": "work"}},
		{[]string{"tmux://windows/0", "tmux://windows/@0", "tmux://windows/%400"}, "get_window_info", "", args{"windowId": "@0"}},
		{[]string{"tmux://windows/0/panes"}, "list_panes", "", args{"window": "@0"}},
		{[]string{"tmux://panes/1", "tmux://panes/%1", "tmux://panes/%251"}, "get_pane_info", "", args{"paneId": "%1"}},
		{[]string{"tmux://panes/0/content", "tmux://panes/%0/content", "tmux://panes/%250/content"}, "snapshot_pane", "content", args{"paneId": "%0"}},
	} {
		want := r.ok(c.tool, c.args)
		for _, uri := range c.uris {
			text, _ := a.read(uri)
			if c.only != "" {
				if text != want[c.only] || !strings.Contains(text, "hello there") {
					t.Errorf("%s: %q, want %q", uri, text, want[c.only])
				}
				continue
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-tool +resource):\n%s", uri, d)
			}
		}
	}

	const absent = "-32602"
	a.denied("resources/read", args{"uri": "tmux://panes/9/content"}, absent, "pane %9 does not exist", "%0 (work:ed cat)")
	a.denied("resources/read", args{"uri": "tmux://windows/9/panes"}, absent, "window @9 does not exist", "@0 (work:ed)")
	a.denied("resources/read", args{"uri": "tmux://sessions/wrk/windows"}, absent, `session "wrk" does not exist`, "$0 (work)")
	a.denied("resources/read", args{"uri": "tmux://panes/0/nonsense"}, absent, "there is no resource", "tmux://panes/{paneId}/content")
	a.denied("resources/list", args{"cursor": "x"}, absent, "resources/list")
	a.alive()
}

// TestResourceIsCurrent: what is read was there when it was asked for (P1), an
// empty screen is text, and the cursor of a watched pane goes on from it.
func TestResourceIsCurrent(t *testing.T) {
	r := newRig(t, nil).start()
	blank := r.printed("blank", "''")
	a := r.asks(PolicyConfig{})
	if text, meta := a.read("tmux://panes/" + blank[1:] + "/content"); text != "" || meta[metaCursor] != nil {
		t.Errorf("a blank pane: %q, %v", text, meta)
	}
	r.ok("capture_since", args{"paneId": "%0"})
	for i := range 5 {
		r.tmux("rename-window", "-t", "%0", fmt.Sprint("n", i))
		if text, _ := a.read("tmux://windows/0"); !strings.Contains(text, fmt.Sprintf(`"name":"n%d"`, i)) {
			t.Errorf("%d: %s", i, text)
		}
	}
	r.say("%0", "before")
	text, meta := a.read("tmux://panes/0/content")
	cursor, _ := meta[metaCursor].(string)
	if !strings.Contains(text, "before") || cursor == "" {
		t.Fatalf("%q, %v", text, meta)
	}
	r.say("%0", "after")
	if got := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})["text"].(string); strings.Contains(got, "before") || !strings.Contains(got, "after") {
		t.Errorf("from the cursor on: %q", got)
	}
}

// TestResourcePages: pages hold every pane once, whatever goes meanwhile.
func TestResourcePages(t *testing.T) {
	r := newRig(t, nil).start()
	const panes = 2*resourcePage + 3
	for i := range 4 {
		words := []string{}
		for range (panes - 1) / 4 {
			words = append(words, "new-window", "-d", "-t", "main:", "cat", ";")
		}
		if i == 0 {
			for range (panes - 1) % 4 {
				words = append(words, "new-window", "-d", "-t", "main:", "cat", ";")
			}
		}
		r.tmux(words...)
	}
	a := r.asks(PolicyConfig{})
	var all []string
	for cursor, page := "", 0; ; page++ {
		var l gotList
		p := args{}
		if page > 0 {
			p["cursor"] = cursor
		}
		a.got("resources/list", p, &l)
		for _, uri := range l.uris() {
			if strings.HasSuffix(uri, "/content") {
				all = append(all, uri)
			} else if page > 0 {
				t.Errorf("page %d has %s", page, uri)
			}
		}
		if page == 0 {
			r.tmux("kill-pane", "-t", "%5", ";", "swap-pane", "-d", "-s", "%7", "-t", "%150")
		}
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if len(all) != panes || len(slices.Compact(slices.Sorted(slices.Values(all)))) != panes {
		t.Errorf("%d panes listed of %d", len(all), panes)
	}
	if values := a.completes("tmux://panes/{paneId}", varPane, ""); len(values) != maxCompletions {
		t.Errorf("%d completions", len(values))
	}
}

// TestResourceCompletion: ids, and names that lead to them.
func TestResourceCompletion(t *testing.T) {
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "work", "-n", "ed", "cat", ";", "new-window", "-d", "-t", "work:", "-n", "logs", "cat", ";",
		"new-session", "-d", "-s", "7", "-n", "x", "cat", ";", "select-pane", "-t", "%1", "-T", "the title")
	a := r.asks(PolicyConfig{})
	for _, c := range []struct {
		template, variable, typed string
		want                      []string
	}{
		{"tmux://sessions/{session}", varSession, "", []string{"work", "1"}},
		{"tmux://sessions/{session}/windows", varSession, "wo", []string{"work"}},
		{"tmux://sessions/{session}/windows", varSession, "$", []string{"$0", "$1"}},
		{"tmux://windows/{windowId}", varWindow, "lo", []string{"1"}},
		{"tmux://windows/{windowId}/panes", varWindow, "@", []string{"@0", "@1", "@2"}},
		{"tmux://panes/{paneId}/content", varPane, "work:1", []string{"1"}},
		{"tmux://panes/{paneId}/content", varPane, "TITLE", []string{"1"}},
		{"tmux://panes/{paneId}", varPane, "%2", []string{"%2"}},
		{"tmux://panes/{paneId}", varPane, "cat", []string{"0", "1", "2"}},
	} {
		got := a.completes(c.template, c.variable, c.typed)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s, %q (-want +got):\n%s", c.template, c.typed, d)
		}
		for _, v := range got {
			a.read(strings.Replace(c.template, "{"+c.variable+"}", strings.ReplaceAll(strings.ReplaceAll(v, "%", "%25"), "$", "%24"), 1))
		}
	}
	for _, p := range []args{
		{"ref": args{"type": "ref/prompt", "name": "x"}, "argument": args{"name": "x", "value": ""}},
		{"ref": args{"type": "ref/resource", "uri": "tmux://nonsense/{x}"}, "argument": args{"name": "x", "value": ""}},
		{"ref": args{"type": "ref/resource", "uri": "tmux://panes/{paneId}"}, "argument": args{"name": "windowId", "value": ""}},
		{"argument": args{"name": "x", "value": ""}},
	} {
		a.denied("completion/complete", p, "-32602")
	}
}

// TestResourcesFollowTheSelection: a resource is there for those who may call the
// tool that tells the same.
func TestResourcesFollowTheSelection(t *testing.T) {
	r := newRig(t, nil).start()
	for _, c := range []struct {
		cfg       PolicyConfig
		listed    int
		readable  []string
		forbidden []string
	}{
		{PolicyConfig{Toolsets: []string{"manage"}}, 1, nil, []string{"tmux://sessions", "tmux://panes/0", "tmux://panes/0/content"}},
		{PolicyConfig{Exclude: []string{"snapshot_pane", "list_windows"}}, 3, []string{"tmux://panes/0", "tmux://sessions/main"}, []string{"tmux://panes/0/content", "tmux://windows", "tmux://sessions/0/windows"}},
		{PolicyConfig{Toolsets: []string{"manage"}, Tools: []string{"snapshot_pane"}}, 2, []string{"tmux://panes/0/content"}, []string{"tmux://panes/0"}},
	} {
		a := r.asks(c.cfg)
		var l gotList
		a.got("resources/list", nil, &l)
		if len(l.Resources) != c.listed || l.Resources[0].URI != capabilitiesURI {
			t.Errorf("%+v: %v", c.cfg, l.uris())
		}
		for _, uri := range c.readable {
			a.read(uri)
		}
		for _, uri := range c.forbidden {
			a.denied("resources/read", args{"uri": uri}, "-32602", "not selected")
		}
		a.denied("completion/complete", args{
			"ref": args{"type": "ref/resource", "uri": "tmux://windows/{windowId}/panes"}, "argument": args{"name": "paneId", "value": ""},
		}, "-32602")
		text, _ := a.read(capabilitiesURI)
		if dynamic := strings.Contains(text, `"dynamicResources":true`); dynamic != (c.listed > 1) {
			t.Errorf("%+v: dynamicResources %v", c.cfg, dynamic)
		}
	}
}

// TestResourceLimits: reads, lists and completions count like calls.
func TestResourceLimits(t *testing.T) {
	r := newRig(t, nil).start()
	for _, c := range []struct {
		method string
		params any
	}{
		{"resources/read", args{"uri": "tmux://panes/0/content"}},
		{"resources/list", nil},
		{"completion/complete", args{"ref": args{"type": "ref/resource", "uri": "tmux://panes/{paneId}"}, "argument": args{"name": "paneId", "value": ""}}},
	} {
		a := r.asks(PolicyConfig{Rate: 1})
		a.got(c.method, c.params, new(map[string]any))
		a.denied(c.method, c.params, "-32000", "1 call a second")
	}
}

// TestResourceAudit: a record for each read, without content.
func TestResourceAudit(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	r := newRig(t, nil)
	r.tmux("new-session", "-d", "-s", "zqsecret", "-n", "w", "cat", ";", "select-pane", "-T", fmt.Sprintf(planted[0].around, planted[0].secret))
	a := r.asks(PolicyConfig{Redact: true}, Config{Audit: zap.New(core)})
	a.read("tmux://panes/0")
	a.read("tmux://sessions/zqsecret/windows")
	a.denied("resources/read", args{"uri": "tmux://panes/9/content"}, "-32602")
	a.denied("resources/read", args{"uri": "tmux://zqsecret"}, "-32602")
	waitFor(t, "the records", func() bool { return logs.Len() == 4 })
	want := []string{"pane %0 ok 1", "session-windows  ok <nil>", "pane-content %9 error <nil>", "(unknown)  error <nil>"}
	for i, e := range logs.All() {
		m := e.ContextMap()
		if got := fmt.Sprint(m["resource"], " ", m["target"], " ", m["outcome"], " ", m["redacted"]); got != want[i] || m["uid"] != int64(os.Geteuid()) {
			t.Errorf("record %d: %q, want %q (%v)", i, got, want[i], m)
		}
		if s := fmt.Sprint(m); strings.Contains(s, "zq") || strings.Contains(s, planted[0].secret) {
			t.Errorf("content in the audit: %s", s)
		}
	}
}

// TestNoSecretLeavesByResources is TestNoSecretLeaves for lists, reads and
// completions.
func TestNoSecretLeavesByResources(t *testing.T) {
	r := newRig(t, nil)
	file := filepath.Join(shortDir(t), "text")
	var text strings.Builder
	for _, p := range planted {
		fmt.Fprintf(&text, "padding that lets the row wrap: "+p.around+"\n", p.secret)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(i int) string { return fmt.Sprintf(planted[i].around, planted[i].secret) }
	long := "zzs" + strings.Repeat("q", 57) // is shortened where it is shown
	r.tmux("new-session", "-d", "-s", long, "-n", said(0), "-x", "50", "-y", "60",
		fmt.Sprintf("stty -echo; cat %s; %s -S %s wait-for -S shown; exec cat", file, r.bin, r.sock), ";",
		"set-option", "-g", "allow-rename", "off", ";", "select-pane", "-T", said(1))
	r.tmux("wait-for", "shown")
	a := r.asks(PolicyConfig{Redact: true, Patterns: []string{"zzsq{57}"}})
	check := func(method string, params any) string {
		t.Helper()
		raw, _ := json.Marshal(a.ask(method, params))
		for _, p := range planted {
			if f := shows(string(raw), p.secret); f != "" {
				t.Errorf("%s %v shows %q of %q:\n%.1500s", method, params, f, p.around, raw)
			}
		}
		if strings.Contains(string(raw), long[:8]) {
			t.Errorf("%s %v shows the session's name:\n%.1500s", method, params, raw)
		}
		return string(raw)
	}
	counted := []string{check("resources/list", nil)}
	for _, uri := range []string{
		"tmux://sessions", "tmux://windows", "tmux://panes", "tmux://sessions/0", "tmux://sessions/0/windows", "tmux://sessions/0/panes",
		"tmux://windows/0", "tmux://windows/0/panes", "tmux://panes/0", "tmux://panes/0/content",
	} {
		counted = append(counted, check("resources/read", args{"uri": uri}))
	}
	for _, answer := range counted {
		if !strings.Contains(answer, `"`+metaRedacted+`":`) || !strings.Contains(answer, redacted) {
			t.Errorf("not counted: %.500s", answer)
		}
	}
	for i := range resources {
		v := resources[i].variable()
		if v == "" {
			continue
		}
		complete := func(typed string) string {
			return check("completion/complete", args{
				"ref": args{"type": "ref/resource", "uri": resources[i].template()}, "argument": args{"name": v, "value": typed},
			})
		}
		if all := complete(""); !strings.Contains(all, `["0"]`) {
			t.Errorf("%s: %s", resources[i].template(), all)
		}
		for _, typed := range []string{planted[0].secret[:9], planted[1].secret[:9], long[:9]} { // nobody finds a secret out so
			if found := complete(typed); !strings.Contains(found, "[]") {
				t.Errorf("%s: %s", resources[i].template(), found)
			}
		}
	}
	a = r.asks(PolicyConfig{})
	if raw, _ := json.Marshal(a.ask("resources/list", nil)); shows(string(raw), planted[1].secret) == "" {
		t.Errorf("nothing was there to be redacted: %s", raw)
	}
}
