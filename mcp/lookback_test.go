package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// printer is a pane that prints what it is told to, a piece at a time.
type printer struct {
	*rig
	shown string
}

func newPrinter(t *testing.T, change ...func(*state.Config)) *printer {
	t.Helper()
	p := &printer{rig: newRigOn(t, "", nil, change...)}
	p.rig.tmux("new-session", "-d", "-s", "main", "-x", "70", "-y", "12", "stty -icanon -echo; echo ready; exec cat")
	p.shows("ready")
	return p
}

func (p *printer) shows(end string) {
	p.Helper()
	p.until(func() bool {
		return strings.HasSuffix(strings.TrimRight(p.rig.tmux("capture-pane", "-p", "-J", "-t", "%0"), "\n "), end)
	})
}

// prints has the pane print a text, and returns when tmux has it.
func (p *printer) prints(text string) {
	p.Helper()
	p.rig.tmux("set-buffer", "-b", "piece", "--", text, ";", "paste-buffer", "-r", "-d", "-b", "piece", "-t", "%0")
	p.shown += text
	lines := strings.Split(strings.TrimRight(p.shown, "\n"), "\n")
	p.shows(lines[len(lines)-1])
}

// under is a caller of a socket that takes secrets out, with a memory of its own.
func (p *printer) under() {
	pol, err := newPolicy(p.table, PolicyConfig{Redact: true})
	if err != nil {
		p.Fatal(err)
	}
	p.caller = &Caller{policy: pol}
}

func (p *printer) since(cursor any) (text string, next any) {
	p.Helper()
	a := args{"paneId": "%0"}
	if cursor != nil {
		a["cursor"] = cursor
	}
	m := p.ok("capture_since", a)
	return m["text"].(string), m["cursor"]
}

// A delta from a cursor that the redactor did not give out begins with what may be
// the rest of a secret: what the pane shows before it is looked at.
func TestNoSecretAfterAnUnknownCursor(t *testing.T) {
	p := newPrinter(t)
	key := planted[len(planted)-1]
	last := len(key.secret) - 1 - strings.LastIndexByte(key.secret, '\n')
	for _, tt := range []struct {
		plant
		rest []int // the lengths of what comes after the cursors
	}{
		{key, []int{len("\n-----END RSA PRIVATE KEY-----") + last}},                                       // a whole line, and the end
		{key, []int{len("\n-----END RSA PRIVATE KEY-----") + last, len("-----END RSA PRIVATE KEY-----")}}, // the line, then the end
		{key, []int{len("\n-----END RSA PRIVATE KEY-----") + last + 30}},                                  // in the middle of a line
		{key, []int{len("\n-----END RSA PRIVATE KEY-----") + 7}},                                          // in the last one
		{planted[0], []int{9}},
		{planted[1], []int{20}},
		{planted[13], []int{8}},
	} {
		text := "$ " + fmt.Sprintf(tt.around, tt.secret)
		p.under()
		_, cursor := p.since(nil)
		p.prints(text[:len(text)-tt.rest[0]])
		_, cursor = p.since(cursor)
		all := ""
		for i, n := range tt.rest {
			p.under() // one that has not seen what there was
			to := len(text)
			if i+1 < len(tt.rest) {
				to -= tt.rest[i+1]
			}
			p.prints(text[len(text)-n : to])
			var got string
			got, cursor = p.since(cursor)
			all += got
		}
		if f := shows(all, tt.secret); f != "" || !strings.Contains(all, redacted) {
			t.Errorf("%q in %v: %q is told: %q", tt.around, tt.rest, f, all)
		}
		p.prints("\nplain text\n")
		if got, _ := p.since(cursor); !strings.Contains(got, "plain text") {
			t.Errorf("after it: %q", got)
		}
		p.under()
		if got, _ := p.since(cursor); !strings.Contains(got, "plain text") {
			t.Errorf("after it, from an unknown cursor: %q", got)
		}
	}
}

// The daemon is restarted while a key is printed.
func TestNoSecretAfterARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cursors")
	p := newPrinter(t)
	ends := func(m *state.Mirror) func() {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		return func() { cancel(); <-ended }
	}
	next := func() func() {
		m := state.New(state.Config{Bin: p.bin, Socket: controlmode.Socket{Path: p.sock}, CursorFile: file})
		table, err := newTable(m, ToolConfig{})
		if err != nil {
			t.Fatal(err)
		}
		p.table = table
		p.under()
		return ends(m)
	}
	key := planted[len(planted)-1]
	text := fmt.Sprintf(key.around, key.secret) + "\nplain text\n"
	first := strings.LastIndexByte(key.secret, '\n') - 30 // into the last but one line
	first += strings.Index(text, key.secret)
	second := strings.LastIndex(text, "\n-----END") + 1
	end := next()
	_, cursor := p.since(nil)
	p.prints(text[:first])
	_, cursor = p.since(cursor)
	end()
	end = next()
	_, cursor = p.since(cursor) // from here on it is heard
	p.prints(text[first:second])
	one, cursor := p.since(cursor)
	end()
	end = next()
	defer func() { end() }()
	_, cursor = p.since(cursor)
	p.prints(text[second:])
	two, _ := p.since(cursor)
	if f := shows(one+two, key.secret); f != "" || !strings.Contains(one, redacted) || !strings.Contains(two, "plain text") {
		t.Errorf("%q of the key is told: %q, %q", f, one, two)
	}
}
