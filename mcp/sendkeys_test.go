package mcp

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
)

// typist is a pane whose program keeps every byte it gets.
type typist struct {
	*rig
	id   string
	file string
	read int // bytes looked at so far
}

// typist opens a pane that keeps what it gets, its terminal set by stty.
func (r *rig) typist(name, stty string) *typist {
	r.Helper()
	file := filepath.Join(filepath.Dir(r.sock), name)
	id := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-n", name, "-t", "main:", "--",
		fmt.Sprintf("stty %s; %s -S %s wait-for -S %s; exec cat >%s", stty, r.bin, r.sock, name, file))
	r.tmux("wait-for", name)
	r.until(func() bool { _, err := os.Stat(file); return err == nil })
	return &typist{rig: r, id: id, file: file}
}

// raw opens a pane whose program gets every byte as it is.
func (r *rig) raw(name string) *typist { r.Helper(); return r.typist(name, "raw -echo") }

// got gives what has come since the last look, when it is n bytes or more.
func (y *typist) got(n int) string {
	y.Helper()
	var all []byte
	y.until(func() bool {
		y.tmux("display-message", "-p", "") // a round trip: what was written is on its way
		all, _ = os.ReadFile(y.file)
		return len(all) >= y.read+n
	})
	text := string(all[y.read:])
	y.read = len(all)
	return text
}

// gets checks that what comes next is exactly that and nothing more.
func (y *typist) gets(want string) {
	y.Helper()
	const fence = "\x01fence\x02"
	keys := []string{"send-keys", "-t", y.id, "-H"} // as it is, to whatever program
	for i := range len(fence) {
		keys = append(keys, hexBytes[fence[i]])
	}
	y.tmux(keys...)
	if got := y.got(len(want) + len(fence)); got != want+fence {
		y.Errorf("%s received %q, want %q", y.id, brief(got), brief(want+fence))
	}
}

func brief(s string) string {
	if len(s) > 200 {
		return s[:100] + "..." + s[len(s)-100:]
	}
	return s
}

// types calls send_keys on the pane and checks what it answers.
func (y *typist) types(a args) *toolResult {
	y.Helper()
	a["paneId"] = y.id
	v := y.ok("send_keys", a)
	if v["sent"] != true || v["attended"] != false || v["paneId"] != y.id {
		y.Errorf("%v", v)
	}
	return nil
}

// awkward are texts that some layer on the way could take for something else.
var awkward = []string{
	";", "a;", `a\;`, ";;", "a; b", `;\`, "-", "--", "-t", "-l x", "-----BEGIN", "-H 41", "!", `echo "hi!there"`, "$HOME ${x} `id`", "~", "~/x",
	"#", "##", "#{pane_id}", "#(touch x)", "#[fg=red]", "%", "%1", "%%", `"`, "'", `\`, `\n`, "{", "}", "{ x }", "a\tb", "\x00", "\x1b[A", "\x7f",
	"\u0080", "é", "e\u0301", "漢字", "👩‍💻", "\u202e", "\ufeff", "\U0010ffff", "\ufffd", "Enter ", " Enter", "C-c ", "line one\nline two\n", "a\r\nb\rc", "\n", "\r",
	"  two blanks  ", "\u2028", "\x03\x04\x1a\x1c", strings.Repeat("x", 5000), "^x ", "=x", ",a,", "(a)", "[b]", "*?", "a=b", "&& ||", "<a >b", "|",
}

// TestSendKeysTextIsExact: what is typed is what the program gets, byte for
// byte, whatever it is.
func TestSendKeysTextIsExact(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		y := r.raw("raw")
		for _, text := range awkward {
			y.types(args{"keys": text, "literal": true, "enter": false})
			y.gets(text)
		}
		all := strings.Join(awkward, "")
		y.types(args{"keys": all, "literal": true})
		y.gets(all + "\r")
		for _, keys := range []string{"", "x"} {
			y.types(args{"keys": keys, "literal": true})
			y.gets(keys + "\r")
		}
		y.types(args{"keys": "", "enter": false})
		y.gets("")
	})
}

// TestSendKeysAnyText: text of any characters and of many lengths.
func TestSendKeysAnyText(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	y := r.raw("raw")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), hostileText(), rapid.SampledFrom(awkward)).Draw(t, "text")
		text = strings.ToValidUTF8(strings.Repeat(text, rapid.SampledFrom([]int{1, 1, 1, 7, 300}).Draw(t, "times")), "")
		text = head(text, 100_000)
		a := args{"keys": text, "literal": true, "paneId": y.id}
		want := text
		if rapid.Bool().Draw(t, "enter") {
			want += "\r"
		} else {
			a["enter"] = false
		}
		if rapid.Bool().Draw(t, "suppress") && text != "" && text[0] != ' ' {
			a["suppressHistory"] = true
			want = " " + want
		}
		y.ok("send_keys", a)
		y.gets(want)
	})
}

// TestSendKeysPieces: a text of more than one line of control mode is one text.
func TestSendKeysPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for _, n := range []int{1, hexRun, literalRun, lineCost, 64 << 10} {
		var b bytes.Buffer
		for b.Len() < n {
			fmt.Fprintf(&b, "%d é%c%s", b.Len(), rune(b.Len()%0xd000), strings.Repeat("x", b.Len()%100))
		}
		text := head(b.String(), n)
		y.types(args{"keys": text, "literal": true})
		y.gets(text + "\r")
	}
	for _, text := range []string{strings.Repeat("x", maxTyped), strings.Repeat("漢", 64<<10)} {
		y.types(args{"keys": text, "enter": false})
		y.gets(text)
	}
	r.refused("send_keys", args{"paneId": y.id, "keys": strings.Repeat("x", maxTyped+1)}, "the limit is")
}

// TestSendKeysNames: a name of the list is a key, anything else is typed, and the
// answer says which; what only looks like a name is refused and nothing is sent.
func TestSendKeysNames(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	sent := map[string]string{
		"Enter": "\r", "Escape": "\x1b", "Tab": "\t", "Space": " ", "BSpace": "\x7f", "C-c": "\x03", "^C": "\x03", "c-C": "\x03", "C-@": "\x00",
		"C-[": "\x1b", "C-_": "\x1f", "C-?": "\x7f", "C-Space": "\x00", "M-x": "\x1bx", "M-;": "\x1b;", "M--": "\x1b-", "C-M-a": "\x1b\x01",
		"M-C-a": "\x1b\x01", "Up": "\x1b[A", "S-Up": "\x1b[1;2A", "F1": "\x1bOP", "Home": "\x1b[1~", "End": "\x1b[4~", "DC": "\x1b[3~", "PgUp": "\x1b[5~",
		"BTab": "\x1b[Z", "KP0": "0", "KP/": "/", "KPEnter": "\n",
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		res := r.call("send_keys", args{"paneId": y.id, "keys": name})
		in, _ := res.Meta[metaInput].(map[string]any)
		if res.IsError || in["as"] != "key" || in["enter"] != false || !strings.Contains(res.Text, "Pressed the key ") {
			t.Errorf("%s: %v %v", name, res.Text, in)
		}
		want := sent[name]
		if name == "KPEnter" { // CR from 3.5 on, LF before
			if got := y.got(1); got != "\n" && got != "\r" {
				t.Errorf("%s: %q", name, got)
			}
			want = ""
		}
		y.gets(want)
	}
	for _, text := range []string{"Entr y", "end of it", "j", "return", "0x41", "User0"} {
		res := r.call("send_keys", args{"paneId": y.id, "keys": text, "enter": false})
		if in, _ := res.Meta[metaInput].(map[string]any); in["as"] != "text" || !strings.Contains(res.Text, "of text, and no Enter") {
			t.Errorf("%s: %v", text, res.Text)
		}
		y.gets(text)
	}
	for _, keys := range []string{"C-Entr", "<Esc>", "Ctrl-C", "Return"} {
		r.refused("send_keys", args{"paneId": y.id, "keys": keys}, "looks like", "nothing was sent", "literal")
		y.gets("")
		y.types(args{"keys": keys, "literal": true, "enter": false})
		y.gets(keys)
	}
	y.types(args{"keys": "C-c", "literal": true})
	y.gets("C-c\r")
}

// TestEveryKeyIsSent: for every key of the list with any modifiers tmux sends
// something that is not its name, or we refuse it.
func TestEveryKeyIsSent(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		y := r.raw("raw")
		version := r.tmux("display-message", "-p", "#{version}")
		var names []string
		for _, mods := range []string{"", "C-", "M-", "S-", "C-M-", "C-S-", "M-S-", "C-M-S-"} {
			for _, name := range keyNames {
				if hasBytes(mods+name, version) == nil {
					names = append(names, mods+name)
				}
			}
			for c := '!'; c <= '~'; c++ {
				if _, ok := keyName(mods + string(c)); ok && mods != "" {
					names = append(names, mods+string(c))
				}
			}
		}
		slices.Sort(names)
		for part := range slices.Chunk(names, 50) {
			var ops []string
			for _, name := range part {
				if before, ok := strings.CutSuffix(name, ";"); ok {
					name = before + `\;` // of the command line
				}
				ops = append(ops, "send-keys", "-t", y.id, "-H", "01", ";", "send-keys", "-t", y.id, "--", name, ";", "send-keys", "-t", y.id, "-H", "02", ";")
			}
			r.tmux(ops[:len(ops)-1]...)
		}
		y.tmux("send-keys", "-t", y.id, "-l", "--", "end")
		y.until(func() bool { b, _ := os.ReadFile(y.file); return bytes.HasSuffix(b, []byte("\x02end")) })
		all, err := os.ReadFile(y.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			var sent []byte
			if name == "C-a" || name == "C-A" || name == "C-b" || name == "C-B" { // are themselves what stands around them
				sent, all = all[1:2], all[3:]
			} else {
				end := bytes.IndexByte(all[1:], 2) + 1
				sent, all = all[1:end], all[end+1:]
			}
			if len(sent) == 0 || len(name) > 1 && bytes.HasSuffix(sent, []byte(name)) {
				t.Errorf("%s: tmux %s sends %q", name, version, sent)
			}
		}
		if string(all) != "end" {
			t.Errorf("left over: %q", all)
		}
		if len(names) < 400 {
			t.Errorf("%d keys", len(names))
		}
		if version == "3.3a" {
			r.refused("send_keys", args{"paneId": y.id, "keys": "S-Enter"}, "tmux 3.3a has nothing to send for the key S-Enter")
			r.refused("send_keys", args{"paneId": y.id, "keys": "S-Tab"}, "BTab is that key")
		}
		r.refused("send_keys", args{"paneId": y.id, "keys": "C-KP5"}, "nothing was sent")
		y.read += len("end")
	})
}

// S01: a semicolon is text, wherever it stands.
func TestS01SemicolonsAreText(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for _, text := range []string{";", "a;", `a\;`, ";;", "a; b", "echo c;"} {
		for _, literal := range []bool{false, true} {
			y.types(args{"keys": text, "literal": literal})
			y.gets(text + "\r")
		}
	}
}

// S02: text that begins with a dash is no option.
func TestS02LeadingDash(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for _, text := range []string{"-", "--", "-t", "-l x", "-----BEGIN", "-X", "-R", "-N 3"} {
		y.types(args{"keys": text})
		y.gets(text + "\r")
	}
}

// S04: Enter follows text unless it is not wanted, and a key only if it is.
func TestS04EnterOnRequest(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"keys": "j"}, "j\r"},
		{args{"keys": "j", "enter": false}, "j"},
		{args{"keys": "C-c"}, "\x03"},
		{args{"keys": "C-c", "enter": false}, "\x03"},
		{args{"keys": "C-c", "enter": true}, "\x03\r"},
		{args{"keys": "Up", "enter": true}, "\x1b[A\r"},
		{args{"keys": "Enter"}, "\r"},
	} {
		y.types(c.a)
		y.gets(c.want)
	}
	for _, p := range r.table.byName["send_keys"].params {
		if p.name == "enter" && !strings.Contains(p.doc, "Default true after text, false after a key") {
			t.Errorf("the default is not stated: %s", p.doc)
		}
	}
}

// S05: send_keys sends a text of several lines as it is, and says what shells do
// with that.
func TestS05LineBreaksAreTold(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for text, want := range map[string]string{"echo one\necho two": "1 line break", "a\r\nb\r\nc": "2 line breaks", "a\rb": "1 line break"} {
		res := r.call("send_keys", args{"paneId": y.id, "keys": text})
		if res.IsError || !strings.Contains(res.Text, want+":") || !strings.Contains(res.Text, "paste_text") {
			t.Errorf("%q: %s", text, res.Text)
		}
		y.gets(text + "\r")
	}
	if res := r.call("send_keys", args{"paneId": y.id, "keys": "one"}); strings.Contains(res.Text, "line break") {
		t.Error(res.Text)
	}
}

// S07: a line that the terminal would cut is not reported as if nothing was.
func TestS07LongLines(t *testing.T) {
	r := newRig(t, nil).start()
	cooked, raw := r.typist("cooked", "sane -echo"), r.raw("raw")
	long := strings.Repeat("a", 5000)
	for _, c := range []struct {
		y    *typist
		text string
		warn bool
	}{
		{cooked, long, true},
		{cooked, "short\n" + strings.Repeat("b", longLine+1) + "\nshort", true},
		{cooked, strings.Repeat("ab\n", 2000), false},
		{cooked, strings.Repeat("c", longLine), false},
		{raw, long, false},
	} {
		res := r.call("send_keys", args{"paneId": c.y.id, "keys": c.text})
		in, _ := res.Meta[metaInput].(map[string]any)
		if res.IsError || in["lineTooLong"] != c.warn || strings.Contains(res.Text, "not safe") != c.warn ||
			c.warn && !strings.Contains(res.Text, "here-document") {
			t.Errorf("%s, %d bytes: %s %v", c.y.id, len(c.text), res.Text, in)
		}
	}
	raw.gets(long + "\r")
	if got := cooked.got(4096); !strings.HasPrefix(got, long[:1000]) {
		t.Errorf("%q", brief(got))
	}
}

// S08: a mode swallows nothing, and is left to whoever is in it. (Input half.)
func TestS08ModesSwallowNothing(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for _, mode := range [][]string{{"copy-mode", "-t", y.id}, {"clock-mode", "-t", y.id}, {"choose-tree", "-t", y.id}} {
		r.tmux(mode...)
		for _, a := range []args{{"keys": "echo swallowed"}, {"keys": "q"}, {"keys": "C-c", "force": true}} {
			a["paneId"] = y.id
			r.refused("send_keys", a, "pane "+y.id+" is in ", "would swallow")
		}
		if in := r.tmux("display-message", "-p", "-t", y.id, "#{pane_in_mode}"); in != "1" {
			t.Errorf("%s: the mode was left", mode[0])
		}
		r.tmux("copy-mode", "-q", "-t", y.id)
	}
	y.gets("")
	y.types(args{"keys": "after"})
	y.gets("after\r")
}

// S10: many senders to one pane never mix their letters, each with its Enter, and
// many panes are no matter to each other.
func TestS10ParallelSenders(t *testing.T) {
	r := newRig(t, nil).start()
	one := r.raw("one")
	others := []*typist{r.raw("b"), r.raw("c"), r.raw("d")}
	line := func(i int) string { return strings.Repeat(string(rune('a'+i)), 200) }
	var wg sync.WaitGroup
	for i := range 20 {
		for _, y := range append(others, one) {
			wg.Go(func() { y.types(args{"keys": line(i)}) })
		}
	}
	wg.Wait()
	for _, y := range append(others, one) {
		lines := strings.Split(strings.TrimSuffix(y.got(20*201), "\r"), "\r")
		slices.Sort(lines)
		for i, got := range lines {
			if len(lines) != 20 || got != line(i) {
				t.Fatalf("%s: %d lines, line %d is %q", y.id, len(lines), i, got)
			}
		}
	}
}

// S10: two long texts of many pieces each do not mix either.
func TestS10LongTextsDoNotMix(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	texts := []string{strings.Repeat("a", 5*lineCost), strings.Repeat("b", 5*lineCost), strings.Repeat("c", 5*lineCost)}
	var wg sync.WaitGroup
	for _, text := range texts {
		wg.Go(func() { y.types(args{"keys": text}) })
	}
	wg.Wait()
	got := strings.Split(strings.TrimSuffix(y.got(3*(5*lineCost+1)), "\r"), "\r")
	slices.Sort(got)
	if !slices.Equal(got, texts) {
		t.Errorf("%d texts, mixed", len(got))
	}
}

// S11: an exclamation mark is typed as it is; what a shell makes of it is the
// shell's. (run_shell_command's half is its own.)
func TestS11TypesAsAsked(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	y.types(args{"keys": `echo "hi!there" !! !$`})
	y.gets("echo \"hi!there\" !! !$\r")
}

// S13: what reaches other panes too is checked in all of them, and told. The
// contract permits it.
func TestS13SynchronizedPanesAreTold(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	other := r.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", y.id, "cat >"+y.file+"2")
	window := r.tmux("display-message", "-p", "-t", y.id, "#{window_id}")
	r.tmux("set-option", "-w", "-t", window, "synchronize-panes", "on")
	res := r.call("send_keys", args{"paneId": y.id, "keys": "SYNC"})
	v := checkAnswer(t, r.table, "send_keys", res)
	if fmt.Sprint(v["resolvedPaneIds"]) != fmt.Sprintf("[%s %s]", y.id, other) ||
		!strings.Contains(res.Text, fmt.Sprintf("synchronize-panes is on: %s, %s are sent the same", y.id, other)) {
		t.Errorf("%v %s", v, res.Text)
	}
	r.until(func() bool { b, _ := os.ReadFile(y.file + "2"); return string(b) == "SYNC\n" })
	if got := y.got(5); got != "SYNC\r" {
		t.Errorf("%q", got)
	}
	r.tmux("copy-mode", "-t", other)
	r.refused("send_keys", args{"paneId": y.id, "keys": "x"}, "pane "+other+" is in copy-mode", "synchronize-panes")
	r.tmux("copy-mode", "-q", "-t", other)
	r.tmux("set-option", "-w", "-t", window, "synchronize-panes", "off")
	if v := r.ok("send_keys", args{"paneId": y.id, "keys": "alone"}); fmt.Sprint(v["resolvedPaneIds"]) != "["+y.id+"]" {
		t.Errorf("%v", v)
	}
	y.gets("alone\r")
}

// S14: input to a dead pane is an error that says of what it died, and when.
func TestS14DeadPanes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil).start()
	r.tmux("set-option", "-g", "remain-on-exit", "on")
	id := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "cat")
	r.exits(id, 7)
	r.refused("send_keys", args{"paneId": id, "keys": "x"}, "pane "+id+" is dead", "status 7", " at 20", "respawn_pane")
	r.refused("send_keys", args{"paneId": "%99", "keys": "x"}, "pane %99 does not exist", "%0 (main:w cat)")
	r.refused("send_keys", args{"paneId": "%99999999999", "keys": "x"}, "does not exist")
}

// S16: for a program that takes what comes at once for one paste, Enter can come
// later; the answer says what was seen before it.
func TestS16EnterLater(t *testing.T) {
	t.Parallel() // it waits
	r := newRig(t, nil).start()
	y := r.typist("echoing", "-icanon echo -icrnl")
	// The echo has this long to come. A machine that was too slow gets another try.
	delays := []int{300, 2_000, 10_000}
	for _, c := range []struct {
		y    *typist
		want string
	}{{y, echoText}, {r.raw("raw"), echoNothing}} {
		for n, ms := range delays {
			res := r.call("send_keys", args{"paneId": c.y.id, "keys": "some text to be echoed", "enterDelayMs": ms})
			c.y.gets("some text to be echoed\r")
			in, _ := res.Meta[metaInput].(map[string]any)
			if in["shownBeforeEnter"] == echoNothing && c.want == echoText && n < len(delays)-1 {
				continue
			}
			if res.IsError || in["shownBeforeEnter"] != c.want || !strings.Contains(res.Text, "before Enter the pane had") {
				t.Errorf("%s: %s %v", c.y.id, res.Text, in)
			}
			break
		}
	}
	// What comes between stops Enter, and that is told.
	for _, ms := range delays {
		begun := time.Now()
		done := make(chan *toolResult)
		go func() {
			done <- r.call("send_keys", args{"paneId": y.id, "keys": "half", "enterDelayMs": ms})
		}()
		got := y.got(4)
		r.tmux("copy-mode", "-t", y.id)
		inTime := time.Since(begun) < time.Duration(ms)*time.Millisecond
		res := <-done
		r.tmux("copy-mode", "-q", "-t", y.id)
		if !inTime && !res.IsError { // Enter came first
			if got == "half" {
				got += y.got(1)
			}
			if got != "half\r" {
				t.Errorf("%q", got)
			}
			continue
		}
		if got != "half" || !res.IsError || !strings.Contains(res.Text, "4 of 4 bytes were typed into pane "+y.id+", then Enter was not pressed") {
			t.Errorf("%q, %s", got, res.Text)
		}
		y.gets("")
		break
	}
}

// S19: an answer that tmux gives to a terminal query does not come into a text.
func TestS19QueryAnswersDoNotSplitText(t *testing.T) {
	r := newRig(t, nil).start()
	file := filepath.Join(filepath.Dir(r.sock), "queries")
	id := r.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "--", fmt.Sprintf(
		`stty raw -echo; %s -S %s wait-for -S queries; (for i in $(seq 3000); do printf '\033[6n\033[c'; done) & exec dd bs=65536 of=%s 2>/dev/null`, r.bin, r.sock, file))
	r.tmux("wait-for", "queries")
	text := strings.Repeat("0123456789", 500)
	for range 20 {
		r.ok("send_keys", args{"paneId": id, "keys": text, "literal": true})
	}
	r.until(func() bool {
		b, _ := os.ReadFile(file)
		return bytes.Count(b, []byte(text+"\r")) == 20 && bytes.Contains(b, []byte("\x1b[?"))
	})
	r.tmux("kill-pane", "-t", id)
}

// W01, W02: the answer's cursor lies before the input, and after what was there:
// who waits from it sees what the input brings, and nothing of before.
func TestSendKeysCursor(t *testing.T) {
	r := newRig(t, nil).start()
	r.say("%0", "before")
	for i := range 3 { // unwatched at first, watched then
		text := fmt.Sprintf("number %d", i)
		res := r.call("send_keys", args{"paneId": "%0", "keys": text})
		cursor, ok := res.Meta[metaCursor].(string)
		if !ok || !strings.Contains(res.Text, "[cursor "+cursor+"]") {
			t.Fatalf("no cursor: %v %s", res.Meta, res.Text)
		}
		r.until(func() bool {
			return r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})["text"] == text+"\n"+text+"\n"
		})
	}
}

// M07: nothing of a text is a format. (Input half.)
func TestM07TextIsNoFormat(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	trap := filepath.Join(filepath.Dir(r.sock), "trap")
	text := "a#{pane_id}b#(touch " + trap + ")"
	for range 2 {
		for _, literal := range []bool{false, true} {
			y.types(args{"keys": text, "literal": literal})
			y.gets(text + "\r")
		}
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("the text was run")
	}
}

// C04: no byte of a text ends the line on which it travels, or starts another
// command.
func TestC04NoByteIsACommand(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	for b := range 32 {
		text := "echo p" + string(rune(b)) + "set-option -g @pwned yes" + string(rune(b))
		y.types(args{"keys": text, "literal": true, "enter": false})
		y.gets(text)
	}
	if got := r.tmux("show-options", "-gqv", "@pwned"); got != "" {
		t.Error("a text was a command")
	}
}

// M11: every answer of a tool that changes something names the server it changed
// it on. (Input half.)
func TestM11AnswersNameTheServer(t *testing.T) {
	r := newRig(t, nil).start()
	res := r.call("send_keys", args{"paneId": "%0", "keys": "x"})
	server, _ := res.Meta[metaServer].(map[string]any)
	if server["socketPath"] != r.sock || fmt.Sprint(server["pid"]) != r.tmux("display-message", "-p", "#{pid}") {
		t.Errorf("%v", res.Meta)
	}
}

// The caller's own pane takes force, and the guards hold for the tool.
func TestSendKeysIsGuarded(t *testing.T) {
	r := newRig(t, nil).start()
	var pid int
	fmt.Sscan(r.tmux("display-message", "-p", "-t", "%0", "#{pane_pid}"), &pid)
	r.caller = &Caller{Ancestors: []int{pid}}
	r.refused("send_keys", args{"paneId": "%0", "keys": "x"}, "pane %0 is your own", "set force to true")
	r.ok("send_keys", args{"paneId": "%0", "keys": "x", "force": true})
	r.tmux("new-window", "-d", "-t", "main:", "cat")
	defer r.attach("main")()
	r.refused("send_keys", args{"paneId": "%0", "keys": "x", "force": true}, "is attended", "force does not change that")
	r.ok("send_keys", args{"paneId": "%1", "keys": "x"})
}

// A cancelled call leaves nothing behind that keeps others from the pane.
func TestSendKeysCancelled(t *testing.T) {
	r := newRig(t, nil).start()
	y := r.raw("raw")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		res, err := r.table.call(ctx, r.caller, "send_keys", encodeOnce(args{"paneId": y.id, "keys": "text", "enterDelayMs": 10_000}), nil)
		if err == nil && strings.HasPrefix(res.Text, "unknown: ") { // before tmux had said that the text is typed
			err = context.Canceled
		}
		ended <- err
	}()
	if got := y.got(4); got != "text" {
		t.Errorf("%q", got)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call answers")
	}
	y.types(args{"keys": "next"})
	y.gets("next\r")
}

// TestTypeText: the lines hold every byte once and in order, each within its
// bounds, and cut no character.
func TestTypeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringN(0, 60, 3000), rapid.SampledFrom(awkward)), 0, 60).Draw(t, "text"), "")
		var got strings.Builder
		for _, line := range typeText(7, text) {
			before := got.Len()
			req := controlmode.Request{Commands: line.cmds, Fence: true}
			if err := req.Check(); len(line.cmds) > 0 && err != nil {
				t.Fatal(err)
			}
			for _, cmd := range line.cmds {
				words := cmd.Words()
				if words[3] == "-l" {
					got.WriteString(words[5])
					continue
				}
				for _, w := range words[4:] {
					got.WriteByte(byte(slices.Index(hexBytes[:], w)))
				}
				if len(words) > hexRun+4 {
					t.Fatalf("%d arguments", len(words))
				}
			}
			if got.Len()-before != line.bytes || !utf8.ValidString(got.String()) {
				t.Fatalf("%d bytes of %d, or half a character", got.Len()-before, line.bytes)
			}
		}
		if got.String() != text {
			t.Fatalf("%q, want %q", got.String(), text)
		}
	})
}

// TestSendKeysToExtendedKeys: a program that has keys reported in an extended form
// gets text as it is all the same.
func TestSendKeysToExtendedKeys(t *testing.T) {
	eachRelease(t, func(t *testing.T, bin string) {
		r := newRigOn(t, bin, nil).start()
		r.tmux("set-option", "-s", "extended-keys", "always")
		y := r.typist("extended", `raw -echo; printf '\033[>4;2m'`)
		var all strings.Builder
		for b := range 128 {
			all.WriteByte(byte(b))
		}
		text := all.String() + strings.Repeat("Mixed Case, 0-9! ", 20) + all.String()
		y.types(args{"keys": text, "literal": true, "enter": false})
		y.gets(text)
	})
}
