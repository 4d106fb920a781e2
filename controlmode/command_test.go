package controlmode_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/controlmode/controltest"
)

var awkward = []string{
	"", ";", ";;", "a;", "a; b", `\;`, `a\;`, "-", "--", "-t", "-l x", "-----BEGIN", "%0", "%0:pause", "%if", "%%", "$HOME", "${HOME}", "~", "~root",
	"#", "##", "#{pane_id}", "#(touch PWN)", "#[fg=red]", "a#", "it's", `say "hi"`, "a b", " ", "\t", "a\nkill-server", "a\r\nb", "{ x }", "}", "{", "A=b",
	`\`, `\\`, `\n`, `\101`, `\u0041`, "`ls`", "$(ls)", "!!", "\u00e4\u4e2d\U0001F528", "\xff\xfe", "caf\xe9", "\x1b[31m", "\x7f", "@1", "=x", "$0", "a\\",
	strings.Repeat("\x01", 10000),
}

func allBytes() string {
	var b []byte
	for c := 1; c < 256; c++ {
		b = append(b, byte(c))
	}
	return string(b)
}

// Whatever bytes an argument holds, tmux receives them.
func TestTmuxArgumentsAreLiteral(t *testing.T) {
	s := startServer(t)
	c := s.attach(t, controlmode.AttachConfig{})
	dir := t.TempDir()
	texts := append([]string{allBytes()}, awkward...)
	for i := 1; i < 256; i++ {
		b := string([]byte{byte(i)})
		texts = append(texts, b, "a"+b, b+"a", "-"+b)
	}
	for i, text := range texts {
		if text == "" {
			continue // an empty buffer cannot be made
		}
		file := filepath.Join(dir, fmt.Sprint(i))
		req := controlmode.Request{Fence: true, Commands: []controlmode.Command{
			controlmode.Cmd("set-buffer", "-b", "x", "--", text), controlmode.Cmd("save-buffer", "-b", "x", file),
		}}
		reply, err := c.Do(t.Context(), req)
		if err == nil {
			err = reply.Err(req)
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != text {
			t.Fatalf("sent %q, tmux has %q, %v", text, got, err)
		}
		os.Remove(file)
	}
}

// The same through the arguments of a process.
func TestTmuxProcessArgumentsAreLiteral(t *testing.T) {
	s := startServer(t)
	file := filepath.Join(t.TempDir(), "f")
	for _, text := range append([]string{allBytes()}, awkward...) {
		if text == "" {
			continue
		}
		_, err := s.Output(t.Context(), controlmode.Cmd("set-buffer", "-b", "x", "--", text), controlmode.Cmd("save-buffer", "-b", "x", file))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Fatalf("sent %q, tmux has %q, %v", text, got, err)
		}
	}
}

// M07, C04: text that is doubled for the format layer comes through as itself
// and runs nothing.
func TestM07FormatsAreLiteral(t *testing.T) {
	s := startServer(t)
	c := s.attach(t, controlmode.AttachConfig{})
	dir := t.TempDir()
	mark := filepath.Join(dir, "PWN")
	texts := []string{"a#{pane_id}b#(touch " + mark + ")", "#", "##", "###", "a#", "#[fg=red]", "##[x", "###[x]", "#{", "#}", "#,", "#{l:x}", "}#{", "#:", "[#[#["}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteByte("###[]{}(),:?=~!ab%;'\"$"[rnd.IntN(22)])
		}
		texts = append(texts, b.String())
	}
	for _, text := range texts {
		req := controlmode.Request{Fence: true, Commands: []controlmode.Command{
			controlmode.Cmd("set-option", "-F", "@x", "<"+controlmode.LiteralFormat(text)+">"),
			controlmode.Cmd("rename-window", "--", controlmode.LiteralFormat(text)),
			controlmode.Cmd("display-message", "-p", "#{@x}\n#{window_name}\n"+controlmode.LiteralTimeFormat(text)),
		}}
		reply, err := c.Do(t.Context(), req)
		if err == nil {
			err = reply.Err(req)
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// tmux 3.3a puts a backslash before a $ that could begin a variable when
		// it stores a window's name (utf8.c utf8_strvis); 3.5a does not.
		got := strings.ReplaceAll(string(reply.Blocks[2].Body), `\$`, "$")
		if want := fmt.Sprintf("<%s>\n%s\n%s\n", text, text, text); got != want {
			t.Errorf("sent %q, tmux has %q", want, got)
		}
	}
	if got := c.run(t, "rename-session", "--", controlmode.LiteralFormat(texts[0])); got != "" {
		t.Error(got)
	}
	c.run(t, "new-window", "-d", "-n", controlmode.LiteralFormat(texts[0]), "cat")
	if got := c.run(t, "display-message", "-p", "-t", ":{end}", "#{session_name} #{window_name}"); !strings.HasSuffix(got, " "+texts[0]) || !strings.HasPrefix(got, "a#{pane_id}b#(touch ") {
		t.Errorf("names %q", got)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("text of a name was run")
	}
}

func FuzzCommand(f *testing.F) {
	for _, s := range awkward {
		f.Add("set-buffer", s)
	}
	f.Add(allBytes(), allBytes())
	f.Fuzz(func(t *testing.T, a, b string) {
		line := string(controlmode.Cmd("x", a, b).AppendLine(nil))
		for i := 0; i < len(line); i++ {
			if line[i] < 0x20 || line[i] > 0x7e {
				t.Fatalf("raw byte %#x in %q", line[i], line)
			}
		}
		got := controltest.Decode(line)
		if len(got) != 1 || len(got[0]) != 3 || got[0][1] != a || got[0][2] != b {
			t.Fatalf("%q, %q became %q and then %q", a, b, line, got)
		}
	})
}

// C04: text for send-keys reaches the program byte for byte and no line of it
// becomes a command of tmux.
func TestC04SendKeysIsLiteral(t *testing.T) {
	dir := t.TempDir()
	var ascii []byte
	for b := byte(1); b < 0x80; b++ {
		ascii = append(ascii, b)
	}
	texts := []string{string(ascii), "echo p\nkill-server\nset-option -s exit-empty on\n"}
	for _, text := range awkward {
		if utf8.ValidString(text) && text != "" && len(text) < 1000 { // a key is a character
			texts = append(texts, text)
		}
	}
	file := filepath.Join(dir, "got")
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	// The terminal passes everything on; head ends by itself.
	s := startServer(t, "new-session", "-d", "-s", "main", "-x", "80", "-y", "24",
		fmt.Sprintf("stty raw -echo; echo ready; head -c %d >%s; echo done; exec cat", total, file))
	c := s.attach(t, controlmode.AttachConfig{})
	shows := func(text string) {
		end := time.Now().Add(20 * time.Second)
		for !strings.Contains(c.run(t, "capture-pane", "-p", "-t", "%0"), text) {
			if time.Now().After(end) {
				t.Fatalf("the pane never showed %q", text)
			}
		}
	}
	shows("ready")
	for _, text := range texts {
		c.run(t, "send-keys", "-t", "%0", "-l", "--", text)
	}
	shows("done")
	got, err := os.ReadFile(file)
	if want := strings.Join(texts, ""); err != nil || string(got) != want {
		t.Errorf("the program read\n%q, %v, sent was\n%q", got, err, want)
	}
}
