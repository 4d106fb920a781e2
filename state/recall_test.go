package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// TestRecall: what was found before a write serves as the first look of the next
// one, until something says that it cannot.
func TestRecall(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-window", "-d", "-t", "main:", "cat")
	m := x.mirror()
	ctx := within(t)
	nothing := controlmode.Cmd("display-message", "-p", "")
	look := func(s Scope, sig Signature) *Preflight {
		p, err := m.Preflight(ctx, s, sig)
		if err == nil {
			err = m.Write(ctx, p, nothing)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if _, err := m.Preflight(ctx, PaneScope(0), InputSignature); err != nil || m.Recall(PaneScope(0), InputSignature) != nil {
		t.Errorf("recalled what nothing was written after: %v", err)
	}
	look(PaneScope(0), EndSignature)
	if m.Recall(PaneScope(0), InputSignature) != nil || m.Recall(PaneScope(0), EndSignature) != nil {
		t.Error("recalled the look of an end")
	}
	first := look(PaneScope(0), InputSignature)
	other := look(PaneScope(1), InputSignature)
	if m.Recall(PaneScope(0), InputSignature) != first || m.Recall(PaneScope(1), InputSignature) != other {
		t.Error("not recalled")
	}
	second := look(PaneScope(0), InputSignature)
	if m.Recall(PaneScope(0), InputSignature) != second || len(m.recall.looks) != 2 {
		t.Error("not the newest is recalled")
	}

	leave := x.person("main")
	if err := m.Write(ctx, m.Recall(PaneScope(0), InputSignature), nothing); !errors.Is(err, ErrChanged) {
		t.Errorf("a person came: %v", err)
	}
	if err := m.Write(ctx, m.Recall(PaneScope(1), InputSignature), nothing); err != nil {
		t.Errorf("a person who looks elsewhere: %v", err)
	}
	leave()

	for i := range 2 * maxRecalled {
		m.recall.keep(&Preflight{scope: PaneScope(controlmode.PaneID(1000 + i)), signature: InputSignature})
	}
	if len(m.recall.looks) != maxRecalled {
		t.Errorf("%d looks are remembered", len(m.recall.looks))
	}
}

// TestRecallNotWithoutOurClients: a client of ours that a look has seen and that
// has ended may have left its name to a person.
func TestRecallNotWithoutOurClients(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	ctx := within(t)
	p, err := m.Preflight(ctx, PaneScope(0), InputSignature)
	if err == nil {
		err = m.Write(ctx, p, controlmode.Cmd("display-message", "-p", ""))
	}
	if err != nil || m.Recall(PaneScope(0), InputSignature) != p || len(p.ours) != 1 {
		t.Fatal(err, len(p.ours))
	}
	old := m.attachedNow().proc
	old.Close()
	m.awaitStatus(t, func(Status) bool { a := m.attachedNow(); return a != nil && a.proc != old })
	if m.Recall(PaneScope(0), InputSignature) != nil {
		t.Error("recalled")
	}
}

// TestPreflightAlone: of a pane that is not synchronised only its own state and
// who looks is compared, of others all of the window's.
func TestPreflightAlone(t *testing.T) {
	x := newTmux(t).start()
	x.run("split-window", "-d", "-t", "%0", "cat")
	m := x.mirror()
	ctx := within(t)
	for _, c := range []struct {
		sync    string
		changed bool
	}{{"off", false}, {"on", true}} {
		x.run("set-option", "-w", "-t", "@0", "synchronize-panes", c.sync)
		p, err := m.Preflight(ctx, PaneScope(0), InputSignature)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(p.format, "#{P:") != c.changed {
			t.Errorf("synchronised %s: %s", c.sync, p.format)
		}
		x.run("copy-mode", "-t", "%1")
		if err := m.Write(ctx, p, controlmode.Cmd("display-message", "-p", "")); errors.Is(err, ErrChanged) != c.changed {
			t.Errorf("synchronised %s, another pane changed: %v", c.sync, err)
		}
		x.run("copy-mode", "-q", "-t", "%1")
	}
}

// TestWriteAt: the place is the one just before the input, however much was
// printed before; and an input that is not followed is not made.
func TestWriteAt(t *testing.T) {
	x := newTmux(t)
	x.run("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", "stty raw -echo; echo ready; exec cat")
	until(t, "the program", func() bool { return strings.Contains(x.run("capture-pane", "-p", "-t", "%0"), "ready") })
	m := x.mirror()
	ctx := within(t)
	type_ := func(text string) (Cursor, error) {
		t.Helper()
		p, err := m.Preflight(ctx, PaneScope(0), InputSignature)
		if err != nil {
			t.Fatal(err)
		}
		return m.WriteAt(ctx, p, 0, controlmode.Cmd("send-keys", "-t", "%0", "-l", "--", text))
	}
	if _, err := type_("never"); !errors.Is(err, ErrNotFollowed) {
		t.Errorf("nobody watches: %v", err)
	}
	from, err := m.Place(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	sofar := ""
	for i := range 20 {
		x.run("send-keys", "-t", "%0", "-l", fmt.Sprintf("<%d>", i)) // by somebody else
		sofar += fmt.Sprintf("<%d>", i)
		m.awaitText(t, from, sofar)
		word := fmt.Sprintf("(%d)", i)
		at, err := type_(word)
		for errors.Is(err, ErrNotFollowed) { // it has just been printing
			at, err = type_(word)
		}
		if err != nil {
			t.Fatal(err)
		}
		sofar += word
		m.awaitText(t, from, sofar)
		if at.Offset != from.Offset+int64(len(sofar)-len(word)) {
			t.Errorf("%d: at %d, want %d", i, at.Offset-from.Offset, len(sofar)-len(word))
		}
	}
	x.run("copy-mode", "-t", "%0")
	p, err := m.Preflight(ctx, PaneScope(0), InputSignature)
	if err != nil {
		t.Fatal(err)
	}
	x.run("copy-mode", "-q", "-t", "%0")
	for err = ErrNotFollowed; errors.Is(err, ErrNotFollowed); {
		_, err = m.WriteAt(ctx, p, 0, controlmode.Cmd("send-keys", "-t", "%0", "-l", "never"))
	}
	if !errors.Is(err, ErrChanged) {
		t.Errorf("something changed: %v", err)
	}
	x.run("new-session", "-d", "-s", "other", "cat")
	p, err = m.Preflight(ctx, PaneScope(0), InputSignature)
	if err != nil {
		t.Fatal(err)
	}
	p.format, p.found = "x", "x" // only the session is another
	x.run("swap-pane", "-d", "-s", "main:.", "-t", "other:.")
	if _, err = m.WriteAt(ctx, p, 0, controlmode.Cmd("send-keys", "-t", "%0", "-l", "never")); !errors.Is(err, ErrNotFollowed) {
		t.Errorf("moved to another session: %v", err)
	}
	x.run("swap-pane", "-d", "-s", "main:.", "-t", "other:.")
	x.run("send-keys", "-t", "%0", "-l", ".")
	if at, err := m.Place(ctx, 0); err != nil || !at.Stream.Of(p.Model.Server.ID) {
		t.Error(err)
	}
	if text := x.run("capture-pane", "-p", "-J", "-t", "%0"); strings.Contains(text, "never") {
		t.Errorf("typed what was not to be: %q", text)
	}
}

// awaitText waits until the pane has printed all of a text, and nothing else,
// since the cursor.
func (m *Mirror) awaitText(t *testing.T, from Cursor, want string) {
	t.Helper()
	ctx := within(t)
	for {
		s, err := m.Since(ctx, from.Stream.Pane(), from, SinceOptions{MaxBytes: 1 << 16, Raw: true})
		if err != nil {
			t.Fatal(err)
		}
		if string(s.Raw) == want {
			return
		}
		if !strings.HasPrefix(want, string(s.Raw)) {
			t.Fatalf("printed %q, want %q", s.Raw, want)
		}
	}
}
