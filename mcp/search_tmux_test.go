package mcp

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// O04, O13: a search works on logical lines, in watched and in other panes
// alike; the answers differ in nothing but the cursors.
func TestO04SearchFindsWrappedLines(t *testing.T) {
	r := newRig(t, nil).start()
	long := "START-" + strings.Repeat("0123456789", 20) + "-END"
	printed := func(name string) string {
		return r.printed(name, fmt.Sprintf(`'%s\nab\033(0lqk\033(B 漢字\n\033[31mred\033[0m green\n'`, long), "-t", "main:")
	}
	watched, other := printed("a"), printed("b")
	r.ok("capture_since", args{"paneId": watched})
	for pattern, regex := range map[string]bool{
		"START-" + strings.Repeat("0123456789", 10): false, "9-END": false, `^START.*END$`: true, "漢字": false, "┌─┐": false, "red green": false,
	} {
		r.until(func() bool { // a slow machine may leave the transcript out
			v := r.ok("search_panes", args{"pattern": pattern, "regex": regex})
			got := map[any]map[string]any{}
			for _, m := range v["matches"].([]any) {
				m := m.(map[string]any)
				got[m["paneId"]] = m
			}
			if len(v["matches"].([]any)) != 2 || got[watched] == nil || got[other] == nil {
				t.Fatalf("%q: %v", pattern, v["matches"])
			}
			if got[other]["cursor"] != nil {
				t.Errorf("%q: a cursor of a pane that is not watched", pattern)
			}
			same := maps.Clone(got[other])
			for _, key := range []string{"cursor", "paneId", "placements", "windowName"} {
				same[key] = got[watched][key]
			}
			if d := cmp.Diff(same, got[watched]); d != "" {
				t.Errorf("%q (-captured +transcript):\n%s", pattern, d)
			}
			return got[watched]["cursor"] != nil
		})
	}
}

// The cursor of a match is one to read on from: what follows is what the pane
// printed after the line.
func TestO13SearchAnswersCursors(t *testing.T) {
	r := newRig(t, nil).start()
	r.tmux("resize-window", "-t", "%0", "-x", "30", "-y", "24")
	r.ok("capture_since", args{"paneId": "%0"})
	for _, line := range []string{"the needle is in here somewhere", "after"} { // the first is wrapped
		r.tmux("send-keys", "-t", "%0", "-l", line)
		r.tmux("send-keys", "-t", "%0", "Enter")
		r.until(func() bool {
			return strings.Contains(r.tmux("capture-pane", "-p", "-J", "-t", "%0"), line+"\n"+line+"\n")
		})
	}
	var cursor any
	r.until(func() bool {
		v := r.ok("search_panes", args{"pattern": "needle is in here somewhere"})
		found := v["matches"].([]any)
		if len(found) != 2 { // as typed, and as cat says it
			t.Fatal(found)
		}
		cursor = found[1].(map[string]any)["cursor"]
		return cursor != nil
	})
	if text := r.ok("capture_since", args{"paneId": "%0", "cursor": cursor})["text"]; text != "after\nafter\n" {
		t.Errorf("after the match: %q", text)
	}
}

// A pattern that cannot be used is refused with what to do instead.
func TestSearchRefusesPatterns(t *testing.T) {
	r := newRig(t, nil).start()
	r.refused("search_panes", args{"pattern": ""}, "not an empty string")
	r.refused("search_panes", args{"pattern": "(", "regex": true}, "not a regular expression", "Leave regex out")
	r.refused("search_panes", args{"pattern": strings.Repeat("x", maxRegex+1), "regex": true}, "too long", "at most 4096")
	r.refused("search_panes", args{"pattern": strings.Repeat("(x{999})", 11), "regex": true}, "too large", "Repeat less")
	r.refused("search_panes", args{"pattern": strings.Repeat("x", maxRequestText+1)}, "1000000")
	r.ok("search_panes", args{"pattern": strings.Repeat("x", maxRequestText)})
}
