package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"tmux-mcpd/controlmode"
)

// placesOf is where every pane is, in one text.
func placesOf(mod *Model) string {
	var b strings.Builder
	for _, p := range mod.Panes {
		fmt.Fprintf(&b, "%s in %s %q", p.ID, p.Window, p.WindowName)
		for _, l := range p.Links {
			fmt.Fprintf(&b, " %s %q:%d", l.Session, l.SessionName, l.Index)
			if l.Active {
				b.WriteByte('*')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (x *testTmux) places(t *testing.T, m *Mirror, tables Tables) string {
	t.Helper()
	mod, err := m.Arrive(tables).Model(within(t), tables)
	if err != nil {
		t.Fatal(err)
	}
	return placesOf(mod)
}

// read is how many bytes the structure client has read.
func (m *Mirror) read() uint64 { return m.attachedNow().proc.Stats().BytesIn }

func TestNumbersChanges(t *testing.T) {
	for version, want := range map[string]bool{
		"3.2a": true, "3.3a": true, "3.5a": true, "3.7c": true, "3.8": false, "next-3.8": false, "3.7-rc": false,
		"3.9": false, "master": false, "openbsd-7.4": false, "?": false, "": false,
	} {
		if got := numbersChanges(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// The places of panes are not listed again while nothing has changed.
func TestPlacesAreListedOnce(t *testing.T) {
	x := newTmux(t).start()
	for range 20 {
		x.run("new-window", "-d", "cat")
	}
	m := x.mirror()
	x.places(t, m, Places)
	if !numbersChanges(m.Model().Server.Version) {
		t.Skipf("tmux %s does not number changes", m.Model().Server.Version)
	}
	want := x.places(t, m, Places) // by now attaching is over
	until(t, "answered without a list", func() bool {
		before := m.read()
		if got := x.places(t, m, Places); got != want {
			t.Fatalf("places:\n%s\nwere\n%s", got, want)
		}
		return m.read()-before < 300
	})
	for _, c := range []controlmode.Command{
		controlmode.Cmd("send-keys", "-t", "%3", "-l", "--", "text"), controlmode.Cmd("send-keys", "-t", "%3", "-H", "0d"),
	} {
		if _, err := m.Do(within(t), controlmode.Request{Commands: []controlmode.Command{c}, Fence: true}); err != nil {
			t.Fatal(err)
		}
		before := m.read()
		x.places(t, m, Places)
		if n := m.read() - before; n > 300 {
			t.Errorf("%d bytes read after input", n)
		}
	}
	x.run("rename-window", "-t", "main:3", "other")
	before := m.read()
	if got := x.places(t, m, Places); !strings.Contains(got, `"other"`) {
		t.Errorf("places after a change:\n%s", got)
	}
	if n := m.read() - before; n < 300 {
		t.Errorf("a change, and %d bytes read", n)
	}
}

// Places are current after every kind of change that tmux can be made to do by a
// command, asked for right after it.
func TestPlacesAreCurrentAfterCommands(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
	m := x.mirror()
	for _, c := range [][]string{
		{"rename-window", "-t", "main:0", "w"},
		{"rename-session", "-t", "other", "o"},
		{"split-window", "-d", "-t", "o:0", "cat"},
		{"split-window", "-d", "-t", "main:0", "cat"},
		{"new-window", "-d", "-t", "main:5", "cat"},
		{"new-window", "-t", "o:7", "-n", "seven", "cat"},
		{"swap-window", "-d", "-s", "main:0", "-t", "o:7"},
		{"link-window", "-d", "-s", "main:5", "-t", "o:9"},
		{"select-window", "-t", "o:9"},
		{"unlink-window", "-t", "o:9"},
		{"move-window", "-d", "-s", "main:5", "-t", "main:6"},
		{"break-pane", "-d", "-s", "o:0.1", "-t", "main:"},
		{"join-pane", "-d", "-s", "o:0.0", "-t", "main:6"},
		{"swap-pane", "-d", "-s", "main:6.0", "-t", "main:0.0"},
		{"kill-pane", "-t", "main:6.1"},
		{"new-session", "-d", "-s", "third", "-t", "main"},
		{"set-option", "-g", "automatic-rename-format", "x"},
		{"kill-session", "-t", "third"},
		{"kill-window", "-t", "main:6"},
	} {
		x.run(c...)
		got, want := x.places(t, m, Places), x.places(t, m, Panes)
		if got != want {
			t.Errorf("after %q:\n%s\nwant\n%s", c, got, want)
		}
		if again := x.places(t, m, Places); again != want { // after a list of ours
			t.Errorf("again after %q:\n%s\nwant\n%s", c, again, want)
		}
	}
}

// Changes that no command of anybody makes are seen as well: nothing but the
// Mirror asks tmux anything until they are.
func TestPlacesAreCurrentAfterSilentChanges(t *testing.T) {
	x := newTmux(t).start()
	x.run("set-option", "-g", "allow-rename", "on")
	x.run("set-option", "-g", "automatic-rename", "on")
	dir := filepath.Dir(x.sock)
	waits := func(name string) (command string, goOn func()) {
		fifo := filepath.Join(dir, name)
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		return "read x < " + fifo, func() {
			if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	ends, end := waits("ends")
	becomes, become := waits("becomes")
	names, name := waits("names")
	x.run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "cat")
	x.run("split-window", "-d", "-t", "other:", ends)
	x.run("new-window", "-d", "-t", "other:5", "sh -c '"+becomes+"; echo; exec tail -f /dev/null'")
	x.run("new-window", "-d", "-t", "other:6", "-n", "x", names+"; printf '\\033ktold\\033\\\\'; exec cat")
	m := x.mirror()

	cmd := x.command("attach-session", "-t", "main")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for b := make([]byte, 4096); ; {
			if _, err := terminal.Read(b); err != nil {
				return
			}
		}
	}()
	defer func() {
		cmd.Process.Signal(syscall.SIGHUP)
		cmd.Wait()
		terminal.Close()
		<-read
	}()
	m.awaitModel(t, "a person attached", func(mod *Model) bool {
		return slices.ContainsFunc(mod.Clients, func(c *Client) bool { return !c.Control })
	})
	for _, c := range []struct {
		what string
		do   func()
		seen func(places string) bool
	}{
		{"a pane's process ended", end, func(p string) bool { return !strings.Contains(p, "%2 ") }},
		{"a program became another", become, func(p string) bool { return strings.Contains(p, `"tail"`) }},
		{"a program named its window", name, func(p string) bool { return strings.Contains(p, `"told"`) }},
		{"a person pressed keys", func() { terminal.WriteString("\x02c") }, func(p string) bool { return strings.Contains(p, "%5 ") }},
		{"a delayed command ran", func() { x.run("run-shell", "-b", "-d", "1", "-C", "rename-window -t other:0 later") }, func(p string) bool { return strings.Contains(p, `"later"`) }},
	} {
		x.places(t, m, Places)
		x.places(t, m, Places)
		c.do()
		until(t, c.what, func() bool { return c.seen(x.places(t, m, Places)) })
	}
}

// What Shown answers is what a capture shows also when the panes have been
// compared before, whatever has happened since.
func TestShownAgainIsWhatACaptureShows(t *testing.T) {
	x := newTmux(t).quiet("40", "10")
	x.run("new-session", "-d", "-s", "other", "-x", "40", "-y", "10", "cat >/dev/null")
	m := x.mirror()
	var all []controlmode.PaneID
	var printers []*printer
	for range 6 {
		id := x.window("cat >/dev/null")
		all, printers = append(all, id), append(printers, x.printer(m, id))
		printers[len(printers)-1].watch()
	}
	id := all[0]
	pane := id.String()
	compare := func(t *testing.T, must bool) {
		t.Helper()
		s := m.Shown(within(t), all)
		for _, id := range all {
			lines, ok := s.Lines(id, 0)
			switch {
			case !ok && must:
				t.Errorf("%s cannot be read", id)
			case ok && !slices.Equal(texts(lines), captured(t, m, id, 0)):
				t.Errorf("%s shows %q, and tmux %q", id, texts(lines), captured(t, m, id, 0))
			}
		}
	}
	settled := func(t *testing.T) {
		t.Helper()
		until(t, "all can be read", func() bool {
			s := m.Shown(within(t), all)
			for _, id := range all {
				if !s.Has(id) {
					m.Since(within(t), id, printers[0].watch(), SinceOptions{}) // as a reader: it mends the transcript
					return false
				}
			}
			return true
		})
		compare(t, true)
	}
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"Nothing", func() {}},
		{"Output", func() { printers[0].print("some text\r\n") }},
		{"OutputOfAll", func() {
			for _, p := range printers {
				p.print("text\r\n")
			}
		}},
		{"Cleared", func() { x.run("send-keys", "-R", "-t", pane); x.run("clear-history", "-t", pane) }},
		{"Resized", func() { x.run("resize-window", "-t", pane, "-x", "30", "-y", "14") }},
		{"Split", func() { x.run("split-window", "-d", "-l", "2", "-t", pane, "cat >/dev/null") }},
		{"CopyMode", func() { x.run("copy-mode", "-t", pane); x.run("send-keys", "-X", "-t", pane, "cancel") }},
		{"Moved", func() { x.run("move-window", "-d", "-s", pane, "-t", "other:") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			settled(t)
			for range 3 {
				c.do()
				compare(t, false)
				compare(t, false)
			}
		})
	}
	t.Run("Random", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			switch p := printers[r.IntN(len(printers))]; r.IntN(6) {
			case 0:
				x.run("resize-window", "-t", p.pane.String(), "-x", fmt.Sprint(20+r.IntN(30)), "-y", fmt.Sprint(5+r.IntN(10)))
			case 1:
				x.run("clear-history", "-t", p.pane.String())
			case 2:
				x.run("send-keys", "-R", "-t", p.pane.String())
			case 3, 4:
				p.print(strings.Repeat("line of text\r\n", r.IntN(20)))
			}
			compare(t, false)
		}
	})
}

// A search again costs no list of what has not changed.
func TestShownAsksForChangesOnly(t *testing.T) {
	x := newTmux(t).quiet("80", "24")
	m := x.mirror()
	p := x.printer(m, controlmode.PaneID(0))
	all := []controlmode.PaneID{0}
	for range 20 {
		all = append(all, x.window("cat >/dev/null"))
	}
	for _, id := range all {
		if _, _, err := m.StartWatch(within(t), id, CaptureRange{}); err != nil {
			t.Fatal(err)
		}
	}
	if !numbersChanges(m.Model().Server.Version) {
		t.Skipf("tmux %s does not number changes", m.Model().Server.Version)
	}
	s, _ := m.watches.liveStream(0)
	cost := func() (read uint64, readable bool) {
		before := s.proc.Stats().BytesIn
		shown := m.Shown(within(t), all)
		return s.proc.Stats().BytesIn - before, !slices.ContainsFunc(all, func(id controlmode.PaneID) bool { return !shown.Has(id) })
	}
	until(t, "all read without a list", func() bool { n, ok := cost(); return ok && n < 300 })
	p.print("x")
	until(t, "all read, with one pane's row", func() bool { n, ok := cost(); return ok && n > 300 || n > 20*40 })
	if n, ok := cost(); !ok || n > 300 {
		t.Errorf("%d bytes again for what is known, %v", n, ok)
	}
}
