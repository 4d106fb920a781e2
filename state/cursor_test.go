package state

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
)

func TestCursorText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := ServerID{rapid.Int().Draw(t, "pid"), rapid.Int64().Draw(t, "start")}
		pane := controlmode.PaneID(rapid.Uint32().Draw(t, "pane"))
		c := Cursor{
			newStream(server, pane, maker{1, 2, 3}, [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "salt"))),
			rapid.Int64Range(0, maxSafeInteger).Draw(t, "offset"),
		}
		got, err := ParseCursor(c.String())
		if err != nil || got != c {
			t.Fatalf("%s: %v %v", c, got, err)
		}
		if c.Stream.Pane() != pane || !c.Stream.Of(server) {
			t.Fatalf("%s does not name its pane and server", c)
		}
		if other := (ServerID{server.PID + 1, server.StartTime}); c.Stream.Of(other) {
			t.Fatalf("%s names another server too", c)
		}
	})
}

func TestParseCursorRefuses(t *testing.T) {
	hex := strings.Repeat("0a", 16)
	for _, s := range []string{
		"", "ltxc1", "ltxc1." + hex, "ltxc1." + hex + ".", "ltxc1." + hex + ".01", "ltxc1." + hex + ".-1",
		"ltxc1." + strings.ToUpper(hex) + ".1", "ltxc2." + hex + ".1", "ltxc1." + hex + ".9007199254740992",
		"ltxc1." + hex + ".1\n", " ltxc1." + hex + ".1", "ltxc1." + hex[1:] + ".1",
		"ltxc1." + hex + ".99999999999999999999999999",
	} {
		if c, err := ParseCursor(s); err == nil {
			t.Errorf("%q was read as %v", s, c)
		}
	}
	if _, err := ParseCursor("ltxc1." + hex + ".9007199254740991"); err != nil {
		t.Error(err)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("ltxc1." + strings.Repeat("0a", 16) + ".12")
	f.Add("ltxc1..")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseCursor(s); err == nil && c.String() != s {
			t.Fatalf("%q reads as %s", s, c)
		}
	})
}
