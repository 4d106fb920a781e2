package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// planted are secrets: what is around them, and the part that must not be seen.
// They are put together here, so that no scanner takes this file for a leak.
var planted = func() []struct{ around, secret string } {
	pem := "MIIEow" + strings.Repeat("Zq9kP4x7Lm2v", 12)
	var key []string
	for at := 0; at < len(pem); at += 60 {
		key = append(key, pem[at:min(at+60, len(pem))])
	}
	return []struct{ around, secret string }{
		{"AKIA%s", "7QX2M4P9K3ZB6WT1"},
		{"id ghp_%s end", "q8Zr5Lw2Kx9Vn4Tj7Hb3Mc6Pd1Fg0SsAyEuWi"},
		{"github_pat_%s", "11QZK7WX93_mLp4RtVb82nHjQs6Yc"},
		{"glpat-%s", "Zk3_9xQw-7LmPv2Rt5Nb"},
		{"xoxb-%s", "8812736450-QzXwVuTsRqPo"},
		{"sk_live_%s", "7QzX2wV9uT4sR6qP"},
		{"key sk-ant-api03-%s!", "QzXwVuTsRqPoNmLkJiHg"},
		{"AIza%s", "SyQ7zXw2VuT9sRq4PoN6mLk1JiHg8FeDcBa"},
		{"npm_%s", "Q7zXw2VuT9sRq4PoN6mLk1JiHg8FeDcBaZyX"},
		{"hvs.%s", "CAESIQ7zXw2VuT9sRq4PoN6mLk"},
		{"eyJ%s", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.Q7zXw2VuT9sRq4PoN6mL"},
		{"Authorization: Bearer %s", "Q7zXw2VuT9sRq4PoN6mLk1"},
		{"https://deploy:%s@host.example/x", "Q7zXw2VuT9sR"},
		{"export DB_PASSWORD=%s", "Tr0ub4dor-Zq9"},
		{"api_key: \"%s\"", "Zq9-4711-Xw2VuT"},
		{"-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----", strings.Join(key, "\n")},
	}
}()

// fragment is the longest part of a secret that may be seen: less than that is
// no help to anybody.
const fragment = 6

// shows finds a fragment of a secret in a text. Wherever it was broken into
// rows does not matter.
func shows(text, secret string) string {
	flat := strings.NewReplacer("\n", "", `\n`, "").Replace(text)
	secret = strings.ReplaceAll(secret, "\n", "")
	for i := range len(secret) - fragment {
		if strings.Contains(flat, secret[i:i+fragment+1]) {
			return secret[i : i+fragment+1]
		}
	}
	return ""
}

func testRedactor(t testing.TB, patterns ...string) *redactor {
	t.Helper()
	r, err := newRedactor(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDetectors(t *testing.T) {
	r := testRedactor(t, `ACME-[0-9]{6}`)
	for _, p := range append(slices.Clone(planted), struct{ around, secret string }{"x %s y", "ACME-471147"}) {
		text := "before\n" + fmt.Sprintf(p.around, p.secret) + "\nafter\n"
		got, n := r.text(text)
		if n != 1 || shows(got, p.secret) != "" || !strings.Contains(got, redacted) || strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q: %d redacted: %q", text, n, got)
		}
		if again, n := r.text(got); n != 0 || again != got {
			t.Errorf("%q is redacted again: %q", got, again)
		}
	}
	for _, plain := range []string{
		"", "hello world", "commit 3e3cbdd0a724fd8c14a3f1d2b9e87650aabbccdd", "/usr/share/doc/very/long/path/that/goes/on/and/on/README", "total 48",
		"sk-ip to the next", "eyJ", "password:", "the token is gone", "https://example.org:8080/path", "user@host:~$ ls", "AKIA is a prefix",
		"drwxr-xr-x 2 me me 4096 Nov 30 20:00 state", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		if got, n := r.text(plain); n != 0 || got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
	for _, bad := range []string{"(", "x*", ""} {
		if CheckPatterns([]string{bad}) == nil {
			t.Errorf("pattern %q is taken", bad)
		}
	}
}

// Of whatever page of whatever wrapped screen, and whatever was printed around
// it, no fragment of a secret is shown.
func TestRedactedRowsProperty(t *testing.T) {
	r := testRedactor(t)
	rapid.Check(t, func(t *rapid.T) {
		p := planted[rapid.IntRange(0, len(planted)-1).Draw(t, "secret")]
		width := rapid.IntRange(20, 100).Draw(t, "width")
		lines := strings.Split(fmt.Sprintf(p.around, p.secret), "\n")
		filler := rapid.SliceOfN(rapid.StringMatching(`[a-z ./$]{0,70}`), 0, 5)
		lines = append(append(filler.Draw(t, "above"), lines...), filler.Draw(t, "below")...)
		var rows []string
		for _, l := range lines {
			for len(l) > width {
				rows = append(rows, l[:width])
				l = l[width:]
			}
			rows = append(rows, l)
		}
		from := rapid.IntRange(0, len(rows)).Draw(t, "from")
		to := rapid.IntRange(from, len(rows)).Draw(t, "to")
		got, _ := r.rows(rows[:from], rows[from:to], rows[to:], width)
		if len(got) != to-from {
			t.Fatalf("%d rows became %d", to-from, len(got))
		}
		if f := shows(strings.Join(got, "\n"), p.secret); f != "" {
			t.Fatalf("rows %d to %d of\n%s\nshow %q:\n%s", from, to, strings.Join(rows, "\n"), f, strings.Join(got, "\n"))
		}
	})
}

// However a stream is cut into deltas, no fragment of a secret is in what they
// say together.
func TestRedactedDeltasProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := newRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := planted[rapid.IntRange(0, len(planted)-1).Draw(t, "secret")]
		text := "$ " + rapid.StringMatching(`[a-z /]{0,10}`).Draw(t, "above") + " " + fmt.Sprintf(p.around, p.secret) + "\n$ "
		r.seen.put("0", "")
		var all strings.Builder
		at, goesOn := 0, false
		for i := 0; at < len(text); i++ {
			n := min(rapid.IntRange(1, 60).Draw(t, "size"), len(text)-at)
			got, _ := r.delta(fmt.Sprint(i), goesOn, text[at:at+n], fmt.Sprint(i+1))
			all.WriteString(got)
			at += n
			goesOn = text[at-1] != '\n'
		}
		if f := shows(strings.ReplaceAll(all.String(), redacted, "\x00"), p.secret); f != "" {
			t.Fatalf("%q shows %q: %q", text, f, all.String())
		}
	})
}

// A delta whose beginning nobody remembers does not begin with what may be the
// rest of a secret.
func TestRedactedUnknownBeginning(t *testing.T) {
	r := testRedactor(t)
	if got, n := r.delta("unknown", true, "9Vn4Tj7Hb3Mc6Pd1\nnext\n", "1"); n != 1 || got != redacted+"\nnext\n" {
		t.Errorf("%d, %q", n, got)
	}
	if got, n := r.delta("unknown", false, "a line of its own\n", "2"); n != 0 || got != "a line of its own\n" {
		t.Errorf("%d, %q", n, got)
	}
}

// TestNoSecretLeaves: secrets in every place that tools read come back from none
// of them.
func TestNoSecretLeaves(t *testing.T) {
	r := newRig(t, nil)
	dir := shortDir(t)
	file := filepath.Join(dir, "text")
	var text strings.Builder
	for _, p := range planted {
		fmt.Fprintf(&text, "padding that lets the row wrap: "+p.around+"\n", p.secret)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	name, title, value, option, hook := planted[0], planted[1], planted[2], planted[3], planted[4]
	said := func(i int) string { return fmt.Sprintf(planted[i].around, planted[i].secret) }
	r.tmux("new-session", "-d", "-s", "main", "-n", said(0), "-x", "50", "-y", "30", "-e", "SOME_TOKEN="+value.secret,
		fmt.Sprintf("stty -echo; cat %s; %s -S %s wait-for -S shown; exec cat", file, r.bin, r.sock), ";",
		"set-option", "-g", "allow-rename", "off", ";", "set-option", "-g", "automatic-rename", "off", ";",
		"select-pane", "-t", "main:", "-T", said(1), ";", "set-option", "-t", "main", "@hostile", said(3), ";",
		"set-hook", "-t", "main", "client-attached", "display-message '"+said(4)+"'", ";", "set-environment", "-g", "OTHER_TOKEN", value.secret)
	r.tmux("wait-for", "shown")
	_ = []any{name, title, option, hook}
	p, err := newPolicy(r.table, PolicyConfig{Redact: true, Toolsets: []string{"inspect"}})
	if err != nil {
		t.Fatal(err)
	}
	r.caller = &Caller{policy: p}
	check := func(name string, a args, frame []byte) {
		t.Helper()
		for _, p := range planted {
			if f := shows(string(frame), p.secret); f != "" {
				t.Errorf("%s %v shows %q of %q:\n%.1500s", name, a, f, p.around, frame)
			}
		}
	}
	calls := callsOf("%0", "@0", "main", "nothing")
	calls["capture_pane"] = append(calls["capture_pane"], args{"paneId": "%0", "history": true}, args{"paneId": "%0", "history": true, "joinWrapped": true})
	for first := -30; first < 30; first += 3 {
		for _, n := range []int{0, 1, 4} {
			calls["capture_pane"] = append(calls["capture_pane"], args{"paneId": "%0", "start": first, "end": first + n})
		}
	}
	calls["snapshot_pane"] = append(calls["snapshot_pane"], args{"paneId": "%0", "history": true})
	for i := range planted {
		s := strings.ReplaceAll(planted[i].secret, "\n", "")
		calls["search_panes"] = append(calls["search_panes"], args{"pattern": s[:4], "scrollbackLines": 100})
	}
	calls["show_environment"] = append(calls["show_environment"], args{"session": "main"}, nil)
	counted := 0
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if r.table.byName[name] == nil || r.table.byName[name].toolset != inspect {
			continue
		}
		for _, a := range calls[name] {
			frame := r.frameOf(name, a)
			check(name, a, frame)
			if strings.Contains(string(frame), `"`+metaRedacted+`":`) {
				counted++
			} else if strings.Contains(string(frame), redacted) && name != batchName {
				t.Errorf("%s %v does not count what it took out:\n%.500s", name, a, frame)
			}
		}
	}
	if counted < 20 {
		t.Errorf("only %d answers were changed", counted)
	}
	r.refused("capture_since", args{"paneId": "%0", "cursor": r.ok("capture_since", args{"paneId": "%0"})["cursor"], "raw": true}, "raw is not available")

	// In pieces, as it is printed, from the cursor of a snapshot on.
	var shot struct {
		Result struct {
			Meta map[string]any `json:"_meta"`
		} `json:"result"`
	}
	if err := json.Unmarshal(r.frameOf("snapshot_pane", args{"paneId": "%0"}), &shot); err != nil {
		t.Fatal(err)
	}
	cursor, all := shot.Result.Meta[metaCursor], ""
	secret := planted[1]
	line := fmt.Sprintf(secret.around, secret.secret)
	for _, piece := range []string{line[:9], line[9:20], line[20:30], line[30:] + "\n"} {
		for b := range slices.Chunk([]byte(piece), 64) {
			r.tmux("send-keys", "-l", "-t", "%0", string(b)) // cat gets it with the newline
		}
		in := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})
		cursor, all = in["cursor"], all+in["text"].(string)
	}
	r.until(func() bool {
		in := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor, "waitMs": 1000})
		cursor, all = in["cursor"], all+in["text"].(string)
		return strings.Contains(all, redacted)
	})
	if f := shows(all, secret.secret); f != "" {
		t.Errorf("the deltas show %q: %q", f, all)
	}
	// A socket that does not redact shows it all.
	r.caller = &Caller{}
	if frame := r.frameOf("capture_pane", args{"paneId": "%0", "history": true}); shows(string(frame), planted[5].secret) == "" {
		t.Errorf("nothing was there to be redacted:\n%.2000s", frame)
	}
}
