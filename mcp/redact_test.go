package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plant is a secret and what is around it.
type plant struct{ around, secret string }

// planted are secrets: what is around them, and the part that must not be seen.
// They are put together here, so that no scanner takes this file for a leak.
var planted = func() []plant {
	pem := "MIIEow" + strings.Repeat("Zq9kP4x7Lm2v", 10) + "Wk7Rt2Vb9" // its last line alone looks like nothing
	var key []string
	for at := 0; at < len(pem); at += 60 {
		key = append(key, pem[at:min(at+60, len(pem))])
	}
	return []plant{
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
	flat := unbroken.Replace(text)
	secret = strings.ReplaceAll(secret, "\n", "")
	for i := range len(secret) - fragment {
		if strings.Contains(flat, secret[i:i+fragment+1]) {
			return secret[i : i+fragment+1]
		}
	}
	return ""
}

// unbroken takes out newlines, also as JSON spells them.
var unbroken = strings.NewReplacer("\n", "", `\n`, "")

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
	for _, p := range append(slices.Clone(planted), plant{"x %s y", "ACME-471147"}) {
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

// A secret may begin where the terminal wrapped, after a row that ends in a letter.
func TestRedactedAfterAFullRow(t *testing.T) {
	r := testRedactor(t)
	const width = 20
	for _, p := range append(slices.Clone(planted), plant{"Bearer %s", "Q7zXw2VuT9sRq4PoN6mLk1"},
		plant{"471108150:AA%s", "Zk39xQw7LmPv2Rt5NbHc8Yd1Fg6Sj4TuW"}) {
		if strings.Contains(p.secret, "\n") {
			continue // a key, which is of whole lines
		}
		rows := []string{strings.Repeat("-", width-1) + "a"}
		for line := fmt.Sprintf(p.around, p.secret); line != ""; line = line[min(width, len(line)):] {
			rows = append(rows, line[:min(width, len(line))])
		}
		got, n := r.rows(nil, rows, []string{"after"}, width)
		if f := shows(strings.Join(got, "\n"), p.secret); f != "" || n != 1 || got[0] != rows[0] {
			t.Errorf("%d redacted, %q is shown of\n%s:\n%s", n, f, strings.Join(rows, "\n"), strings.Join(got, "\n"))
		}
	}
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
			got, _ := r.delta(fmt.Sprint(i), text[at:at+n], fmt.Sprint(i+1), around{goesOn: goesOn})
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
	if got, n := r.delta("unknown", "9Vn4Tj7Hb3Mc6Pd1\nnext\n", "1", around{goesOn: true}); n != 1 || got != redacted+"\nnext\n" {
		t.Errorf("%d, %q", n, got)
	}
	if got, n := r.delta("unknown", "a line of its own\n", "2", around{}); n != 0 || got != "a line of its own\n" {
		t.Errorf("%d, %q", n, got)
	}
}
