package mcp

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// pastes calls paste_text and checks the count.
func (y *typist) pastes(text string, a args) {
	y.Helper()
	all := args{"paneId": y.id, "text": text}
	for k, v := range a {
		all[k] = v
	}
	want := len(strings.ReplaceAll(text, "\r\n", "\n"))
	if v := y.ok("paste_text", all); v["bytes"] != float64(want) || v["paneId"] != y.id {
		y.Errorf("%v, want %d bytes", v, want)
	}
}

// noBuffers checks that none of ours is left.
func (r *rig) noBuffers() {
	r.Helper()
	if got := r.tmux("list-buffers", "-F", "#{buffer_name}"); strings.Contains(got, state.BufferPrefix) {
		r.Errorf("buffers left: %s", got)
	}
}

// bracketed opens a pane whose program asks for bracketed paste.
func (r *rig) bracketed(name string) *typist {
	r.Helper()
	return r.typist(name, `raw -echo; printf '\033[?2004h'`)
}

// TestPasteIsExact: what is pasted is what the program gets, byte for byte, of
// any length, and no buffer is left.
func TestPasteIsExact(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		y := r.raw("raw")
		for _, text := range awkward {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "\r\n", "\n")
			y.pastes(text, nil)
			y.gets(text)
		}
		y.pastes("with enter", args{"enter": true})
		y.gets("with enter\r")
		y.pastes("", args{"enter": true})
		y.gets("\r")
		y.pastes("", nil)
		y.gets("")
		for _, text := range []string{strings.Repeat("x", pasteCost), strings.Repeat("é;", pasteCost), strings.Repeat("line\n", 200_000), strings.Repeat("漢字", 1<<20/6)} {
			y.pastes(text, args{"enter": true})
			y.gets(text + "\r")
		}
		r.noBuffers()
		r.refused("paste_text", args{"paneId": y.id, "text": strings.Repeat("x", maxPasted+1)}, "the limit is")
	})
}

func TestPasteAnyText(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	y, b := r.raw("raw"), r.bracketed("bracketed")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), hostileText(), rapid.SampledFrom(awkward)).Draw(t, "text")
		text = strings.ToValidUTF8(strings.Repeat(text, rapid.SampledFrom([]int{1, 1, 7, 3000}).Draw(t, "times")), "")
		text = head(strings.NewReplacer("\x00", "", "\r\n", "\n", pasteEnd, "").Replace(text), 200_000)
		text = strings.ReplaceAll(text, "\r\n", "\n")
		y.pastes(text, nil)
		y.gets(text)
		b.pastes(text, nil)
		if text != "" {
			text = "\x1b[200~" + text + "\x1b[201~"
		}
		b.gets(text)
	})
	r.noBuffers()
}

// S05: a paste is one paste where the program wants it so; line ends are as
// documented, and a text cannot end the paste that it is in.
func TestS05PasteKeepsLinesTogether(t *testing.T) {
	r := newRig(t, nil).start()
	b := r.bracketed("bracketed")
	b.pastes("one\r\ntwo\nthree\r", args{"enter": true})
	b.gets("\x1b[200~one\ntwo\nthree\r\x1b[201~\r")
	if res := r.call("paste_text", args{"paneId": b.id, "text": "a\r\nb\r\n"}); !strings.Contains(res.Text, "[2 line ends CR LF became LF]") {
		t.Error(res.Text)
	}
	b.gets("\x1b[200~a\nb\n\x1b[201~")
	r.refused("paste_text", args{"paneId": b.id, "text": "harmless\x1b[201~rm -rf\n"}, "ends a bracketed paste")
	r.refused("paste_text", args{"paneId": b.id, "text": "a\x00b"}, "NUL")
	b.gets("")
}

// S13: a paste reaches the pane named only, Enter too; the others are checked all
// the same.
func TestS13PasteReachesOnePane(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	other := r.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", y.id, "cat >"+y.file+"2")
	window := r.tmux("display-message", "-p", "-t", y.id, "#{window_id}")
	r.tmux("set-option", "-w", "-t", window, "synchronize-panes", "on")
	y.pastes("alone", args{"enter": true})
	if got := y.got(6); got != "alone\r" {
		t.Errorf("%q", got)
	}
	r.tmux("copy-mode", "-t", other)
	r.refused("paste_text", args{"paneId": y.id, "text": "x"}, "pane "+other+" is in copy-mode")
	r.tmux("copy-mode", "-q", "-t", other)
	r.tmux("send-keys", "-t", other, "-l", "last")
	r.tmux("send-keys", "-t", other, "Enter")
	r.until(func() bool { b, _ := os.ReadFile(y.file + "2"); return strings.HasSuffix(string(b), "last\n") })
	if b, _ := os.ReadFile(y.file + "2"); string(b) != "last\n" {
		t.Errorf("the other pane got %q", b)
	}
	r.noBuffers()
}

// TestPasteIsGuarded: what refuses keys refuses a paste, and no buffer is left.
func TestPasteIsGuarded(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	long := strings.Repeat("long ", pasteCost)
	r.tmux("copy-mode", "-t", y.id)
	for _, text := range []string{"x", long} {
		r.refused("paste_text", args{"paneId": y.id, "text": text, "force": true}, "copy-mode")
	}
	r.tmux("copy-mode", "-q", "-t", y.id)
	var pid int
	fmt.Sscan(r.tmux("display-message", "-p", "-t", y.id, "#{pane_pid}"), &pid)
	r.caller = &Caller{Ancestors: []int{pid}}
	r.refused("paste_text", args{"paneId": y.id, "text": long}, "is your own")
	y.pastes(long, args{"force": true})
	y.gets(long)
	r.refused("paste_text", args{"paneId": "%99", "text": "x"}, "pane %99 does not exist")
	r.noBuffers()
}

// TestPasteCleansUp: a buffer that could not be pasted is deleted.
func TestPasteCleansUp(t *testing.T) {
	r := newRig(t, nil).start()
	policy := r.table.policyOf(r.caller)
	c := &call{table: r.table, caller: r.caller, policy: policy, arrival: policy.arrive(r.table.mirror, 0)}
	p, err := newPaste(0, pasteArgs{Text: strings.Repeat("long ", pasteCost)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.fill(t.Context(), c, "part"); err != nil {
		t.Fatal(err)
	}
	if got := r.tmux("list-buffers", "-F", "#{buffer_name}"); got != p.buffer {
		t.Fatalf("%q", got)
	}
	p.filled = true
	r.tmux("copy-mode", "-t", "%0")
	if err := p.run(t.Context(), c); err == nil {
		t.Error("pasted into a mode")
	}
	r.noBuffers()
	if err := p.clean(t.Context(), c); err != nil {
		t.Errorf("a buffer that is not there: %v", err)
	}
	var refused *controlmode.CommandError
	if errors.As(err, &refused) {
		t.Error(err)
	}
}

// S07: a paste whose line the terminal would cut is not reported as if nothing
// was.
func TestS07LongLinesPasted(t *testing.T) {
	r := newRig(t, nil).start()
	cooked := r.typist("cooked", "sane -echo")
	res := r.call("paste_text", args{"paneId": cooked.id, "text": strings.Repeat("a", 5000) + "\n"})
	if res.IsError || !strings.Contains(res.Text, "not safe") {
		t.Error(res.Text)
	}
}

// W01: the cursor of a paste lies before it.
func TestPasteCursor(t *testing.T) {
	r := newRig(t, nil).start()
	r.say("%0", "before")
	res := r.call("paste_text", args{"paneId": "%0", "text": "one\ntwo\n"})
	cursor, _ := res.Meta[metaCursor].(string)
	r.until(func() bool {
		return r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})["text"] == "one\ntwo\none\ntwo\n"
	})
}
