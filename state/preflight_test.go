package state

import (
	"errors"
	"strings"
	"testing"

	"tmux-mcpd/controlmode"
)

// TestWriteOnlyIfNothingChanged: a write is done in the instant of its second
// look, and not at all when anything has changed that the look is for.
func TestWriteOnlyIfNothingChanged(t *testing.T) {
	x := newTmux(t).start()
	x.run("split-window", "-d", "-t", "%0", "cat")
	m := x.mirror()
	ctx := within(t)
	touch := func() []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("set-option", "-g", "@written", "yes")}
	}
	written := func() bool {
		out := x.run("show-options", "-gqv", "@written")
		x.run("set-option", "-gu", "@written")
		return out == "yes"
	}
	for _, c := range []struct {
		what    string
		sig     Signature
		change  []string
		changed bool
	}{
		{"nothing", InputSignature, nil, false},
		{"nothing of an end", EndSignature, nil, false},
		{"a name", InputSignature, []string{"rename-window", "-t", "@0", "a,b#{pid}"}, false},
		{"a mode", InputSignature, []string{"copy-mode", "-t", "%0"}, true},
		{"a mode, which matters to no end", EndSignature, []string{"copy-mode", "-q", "-t", "%0"}, false},
		{"input off", InputSignature, []string{"select-pane", "-d", "-t", "%0"}, true},
		{"input on", InputSignature, []string{"select-pane", "-e", "-t", "%0"}, true},
		{"synchronised", InputSignature, []string{"set-option", "-w", "-t", "@0", "synchronize-panes", "on"}, true},
		{"another active pane", EndSignature, []string{"select-pane", "-t", "%1"}, true},
		{"zoomed", EndSignature, []string{"resize-pane", "-Z", "-t", "%0"}, true},
		{"another process", EndSignature, []string{"respawn-pane", "-k", "-t", "%0", "cat"}, true},
		{"one pane more", EndSignature, []string{"split-window", "-d", "-t", "%1", "cat"}, true},
		{"the pane is gone", InputSignature, []string{"kill-pane", "-t", "%0"}, true},
	} {
		p, err := m.Preflight(ctx, PaneScope(0), c.sig)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if c.change != nil {
			x.run(c.change...)
		}
		err = m.Write(ctx, p, touch()...)
		if errors.Is(err, ErrChanged) != c.changed || !c.changed && err != nil || written() == c.changed {
			t.Errorf("%s changed: %v", c.what, err)
		}
	}
	if _, err := m.Preflight(ctx, PaneScope(0), InputSignature); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pane that is gone: %v", err)
	}
}

// TestWriteSeesWhoLooks: somebody who begins to look at a window stops a write.
func TestWriteSeesWhoLooks(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-window", "-d", "-t", "main:", "cat")
	m := x.mirror()
	ctx := within(t)
	for i, scope := range []Scope{PaneScope(0), WindowScope(0), SessionScope(0)} {
		p, err := m.Preflight(ctx, scope, EndSignature)
		if err != nil {
			t.Fatal(err)
		}
		// A client that looks somewhere else is no change for a window.
		other, err := m.Preflight(ctx, WindowScope(1), EndSignature)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(p.Model.Panes); n != 1+i/2 {
			t.Errorf("%d panes", n)
		}
		defer x.person("main")()
		if err := m.Write(ctx, p, controlmode.Cmd("display-message", "-p", "x")); !errors.Is(err, ErrChanged) {
			t.Errorf("%v: %v", scope, err)
		}
		if err := m.Write(ctx, other, controlmode.Cmd("display-message", "-p", "x")); err != nil {
			t.Errorf("another window: %v", err)
		}
	}
}

// TestSecondLookAlone: where one line cannot hold the second look and the write,
// the look is a request of its own.
func TestSecondLookAlone(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	ctx := within(t)
	p, err := m.Preflight(ctx, SessionScope(0), EndSignature)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.lookAgain(ctx, p); err != nil {
		t.Error(err)
	}
	x.run("split-window", "-d", "-t", "%0", "cat")
	if err := m.lookAgain(ctx, p); !errors.Is(err, ErrChanged) {
		t.Errorf("one pane more: %v", err)
	}
	p.found += strings.Repeat("x", controlmode.MaxLine)
	if err := m.Write(ctx, p, controlmode.Cmd("display-message", "-p", "x")); !errors.Is(err, ErrChanged) {
		t.Errorf("a line too long: %v", err)
	}
}

// TestM01WriteToAnotherServer: what was found on one life of the server permits
// nothing on the next (M01).
func TestM01WriteToAnotherServer(t *testing.T) {
	x := newTmux(t).start()
	m := x.mirror()
	ctx := within(t)
	p, err := m.Preflight(ctx, PaneScope(0), InputSignature)
	if err != nil {
		t.Fatal(err)
	}
	x.stop()
	x.start()
	full(t, m)
	err = m.Write(ctx, p, controlmode.Cmd("set-option", "-g", "@written", "yes"))
	if !errors.Is(err, ErrChanged) || x.run("show-options", "-gqv", "@written") != "" {
		t.Errorf("%v", err)
	}
}
