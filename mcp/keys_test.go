package mcp

import (
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	for in, want := range map[string]string{
		"Enter": "Enter", "enter": "Enter", "C-c": "C-c", "c-c": "C-c", "C-C": "C-C", "^C": "C-C", "^[": "C-[", "^^": "C-^",
		"C-M-x": "C-M-x", "M-C-x": "C-M-x", "M-x": "M-x", "M--": "M--", "M-;": "M-;", "S-Up": "S-Up", "S-M-C-F5": "C-M-S-F5",
		"c-enter": "C-Enter", "kp/": "KP/", "M-KP-": "M-KP-", "C-Space": "C-Space", "C-@": "C-@", `C-\`: `C-\`, "pgup": "PgUp", "F12": "F12",
		"C-": "", "^": "", "^^^": "", "^C ": "", "": "", " ": "", "j": "", "-": "", "--": "", "-t": "", ";": "", "C-c C-d": "",
		"echo hi": "", "F13": "", "0x41": "", "MouseDown1Pane": "", "User0": "", "None": "", "ls\n": "", "return": "", "esc": "", "<div>": "",
		"<b>": "", "town": "", "Town": "", "a-b": "", "x+y": "", "foo-bar": "", "ctrl": "", "é": "", "-----BEGIN": "", "^$": "", "^foo": "", "{": "",
	} {
		name, err := key(in)
		if err != nil || name != want {
			t.Errorf("%q: %q %v, want %q", in, name, err, want)
		}
	}
	for in, want := range map[string]string{
		"C-Entr": "C-Enter", "<Esc>": "Escape", "<CR>": "Enter", "<C-c>": "C-c", "<Enter>": "Enter", "Ctrl-C": "C-C", "ctrl+c": "C-c", "Ctrl+Alt+x": "C-M-x",
		"Alt-F4": "M-F4", "Esc": "Escape", "Return": "Enter", "Backspace": "BSpace", "ArrowUp": "Up", "Escpae": "Escape", "C-Esc": "C-Escape",
		"Shift+Tab": "S-Tab", "C--": "C-", "C-1": "C-", "S-a": "S-", "C-{": "C-", "C-style": "C-", "Control-D": "C-D", "PageDwn": "PageDown", "<S-Tab>": "S-Tab",
	} {
		name, err := key(in)
		if err == nil || !strings.Contains(err.hint, want) || !strings.Contains(err.hint, "literal") {
			t.Errorf("%q: %q %v, want a hint of %q", in, name, err, want)
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"C-c", "^[", "<C-M-Del>", "Ctrl+", "C-C-C-x", "\xff-", "S-S-", "M-\x80", strings.Repeat("C-", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := key(s)
		if name != "" && err != nil {
			t.Fatalf("%q is %q and no key: %v", s, name, err)
		}
		if name != "" { // what tmux is sent is itself in the list
			if again, err := key(name); err != nil || again != name {
				t.Fatalf("%q is %q, which is %q: %v", s, name, again, err)
			}
		}
	})
}
