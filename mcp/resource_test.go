package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yosida95/uritemplate/v3"

	"tmux-mcpd/controlmode"
)

// The three spellings of an id, and names.
func TestResourceAddresses(t *testing.T) {
	for uri, want := range map[string]string{ // kind and id, "" for none
		"tmux://sessions":               "sessions ",
		"tmux://windows":                "windows ",
		"tmux://panes":                  "panes ",
		"tmux://panes/5":                "pane %5",
		"tmux://panes/%5":               "pane %5",
		"tmux://panes/%255":             "pane %5",
		"tmux://panes/5/content":        "pane-content %5",
		"tmux://panes/%5/content":       "pane-content %5",
		"tmux://panes/%255/content":     "pane-content %5",
		"tmux://panes/%25%35/content":   "pane-content %5",
		"tmux://panes/%25":              "pane %25",
		"tmux://panes/%2525":            "pane %25",
		"tmux://panes/%25255":           "pane %255",
		"tmux://panes/255":              "pane %255",
		"tmux://panes/%30":              "pane %30", // no encoded 0
		"tmux://panes/%41":              "pane %41", // no A
		"tmux://panes/4294967295":       "pane %4294967295",
		"tmux://panes/4294967296":       "",
		"tmux://panes/-1":               "",
		"tmux://panes/":                 "",
		"tmux://panes/%":                "",
		"tmux://panes/@5":               "",
		"tmux://panes/5/":               "",
		"tmux://panes/5/content/":       "",
		"tmux://panes/5/contents":       "",
		"tmux://panes//content":         "",
		"tmux://panes/5?x":              "",
		"tmux://panes/5#x":              "",
		"tmux://panes/ 5":               "",
		"tmux://windows/3":              "window @3",
		"tmux://windows/@3":             "window @3",
		"tmux://windows/%403":           "window @3",
		"tmux://windows/%403/panes":     "window-panes @3",
		"tmux://windows/%3":             "",
		"tmux://windows/5/content":      "",
		"tmux://sessions/$1":            "session $1",
		"tmux://sessions/%241":          "session $1",
		"tmux://sessions/1/windows":     "session-windows 1",
		"tmux://sessions/work/panes":    "session-panes work",
		"tmux://sessions/my%20work%2Fx": "session my work/x",
		"tmux://sessions/50%":           "session 50%",
		"tmux://sessions/":              "",
		"tmux://capabilities":           "",
		"tmux:/panes/5":                 "",
		"TMUX://panes/5":                "",
		"":                              "",
		"tmux://":                       "",
		"tmux://sessions/" + strings.Repeat("x", maxAddress): "",
	} {
		got := ""
		if a, ok := parseAddress(uri); ok {
			got = a.name + " " + a.id
		}
		if got != want {
			t.Errorf("%.80s: %q, want %q", uri, got, want)
		}
	}
}

// What templates are expanded to is read as what was put in, and so is what is
// listed.
func TestResourceTemplatesComeBack(t *testing.T) {
	for i := range resources {
		r := &resources[i]
		tmpl, err := uritemplate.New(r.template())
		if err != nil {
			t.Fatal(err)
		}
		values := map[string][]string{"": {""}, varPane: {"%5", "5"}, varWindow: {"@5", "5"}, varSession: {"$5", "5", "work", "a b/c", "50%", "%255", "a?#"}}
		for _, v := range values[r.variable()] {
			uri, err := tmpl.Expand(uritemplate.Values{r.variable(): uritemplate.String(v)})
			if err != nil {
				t.Fatal(err)
			}
			want := v
			if r.variable() == varPane || r.variable() == varWindow {
				want = map[string]string{varPane: "%5", varWindow: "@5"}[r.variable()]
			}
			a, ok := parseAddress(uri)
			if !ok || a.resource != r || a.id != want {
				t.Errorf("%s of %q: %+v", uri, v, a)
			}
			if back := tmpl.Match(uri); v == "5" && back.Get(r.variable()).String() != v {
				t.Errorf("%s matches as %v", uri, back)
			}
		}
	}
	for _, id := range []controlmode.PaneID{0, 5, 25, 255, 1<<32 - 1} {
		if a, ok := parseAddress(addressOf(id)); !ok || a.id != id.String() || !a.content() {
			t.Errorf("%s: %+v", addressOf(id), a)
		}
	}
}

// FuzzAddress: an address that is read names an object of its kind, and all
// spellings of that are the same.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"tmux://panes/%5/content", "tmux://panes/%255", "tmux://sessions/%241/windows", "tmux://windows/@3/panes", "tmux://sessions/a%2Fb",
		"tmux://panes/%25%32%35", "tmux://panes//", "tmux://sessions/%", "tmux://panes/00005",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		a, ok := parseAddress(uri)
		if !ok {
			return
		}
		sigil := map[string]string{varPane: "%", varWindow: "@"}[a.variable()]
		if sigil == "" {
			if (a.variable() == "") != (a.id == "") {
				t.Fatalf("%q: %q", uri, a.id)
			}
			return
		}
		number := strings.TrimPrefix(a.id, sigil)
		for _, spelled := range []string{number, a.id, map[string]string{"%": "%25", "@": "%40"}[sigil] + number} {
			if strings.HasPrefix(spelled, "%25") && spelled == a.id && len(number) > 2 {
				continue // %25N is N
			}
			again := strings.Replace(a.template(), "{"+a.variable()+"}", spelled, 1)
			if b, ok := parseAddress(again); !ok || b.id != a.id || b.resource != a.resource {
				t.Fatalf("%q is %s, but %q is %+v", uri, a.id, again, b)
			}
		}
	})
}

func TestCompletionOrder(t *testing.T) {
	all := func() []completion {
		list := []completion{
			{id: "%2", words: "vim\nwork:1.0"},
			{id: "%10", words: "sh\nwork:2.0"},
			{id: "%12", words: "nvim\nplay:1.0"},
			{id: "%1", words: "Work\nplay:2.0"},
		}
		return list
	}
	for typed, want := range map[string][]string{
		"":       {"1", "2", "10", "12"},
		"1":      {"1", "10", "12", "2"},
		"%1":     {"%1", "%10", "%12"},
		"%":      {"%1", "%2", "%10", "%12"},
		"vi":     {"2", "12"},
		"WORK":   {"1", "2", "10"},
		"work:2": {"10"},
		":1":     {"2", "12"},
		"none":   {},
	} {
		if d := cmp.Diff(want, chosen(all(), typed)); d != "" {
			t.Errorf("%q (-want +got):\n%s", typed, d)
		}
	}
	named := []completion{{id: "$3", name: "work", words: "work"}, {id: "$4", words: "7"}}
	for typed, want := range map[string][]string{"": {"work", "4"}, "w": {"work"}, "$": {"$3", "$4"}, "3": {"3"}, "7": {"4"}} {
		if d := cmp.Diff(want, chosen(append([]completion(nil), named...), typed)); d != "" {
			t.Errorf("%q (-want +got):\n%s", typed, d)
		}
	}
}

func TestPageCursors(t *testing.T) {
	for _, id := range []controlmode.PaneID{0, 7, 1<<32 - 1} {
		if after, err := pageAfter(pageCursor(id)); err != nil || after != int64(id) {
			t.Errorf("%s: %d, %v", id, after, err)
		}
	}
	for _, bad := range []string{"x", "!", "YWZ0ZXI", pageCursor(1)[1:]} {
		if _, err := pageAfter(bad); err == nil || !strings.Contains(fmt.Sprint(err), "resources/list") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
