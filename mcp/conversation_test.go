package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestConversations plays the files of testdata/conversations. Lines:
//
//	> TEXT     is sent, with a newline
//	>> "TEXT"  is sent as it is, a Go string
//	< JSON     is the next line received; {"...":0} in an object allows other
//	           members, the string "*" matches any value
//	# TEXT     is a comment
//
// After each the session must be alive. Every conversation is also played with
// its bytes arriving one at a time.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		for _, bytewise := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/bytewise=%t", name, bytewise), func(t *testing.T) {
				w := startDaemon(t, Config{}).dial(t)
				w.bytewise = bytewise
				for i, l := range strings.Split(string(b), "\n") {
					w.play(t, f+":"+strconv.Itoa(i+1), l)
				}
				w.alive()
			})
		}
	}
}

func (w *wire) play(t *testing.T, where, l string) {
	t.Helper()
	mark, rest, _ := strings.Cut(l, " ")
	switch mark {
	case "", "#":
	case ">":
		w.send(rest)
	case ">>":
		s, err := strconv.Unquote(rest)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		w.raw(s)
	case "<":
		got := w.line()
		if !matches(decode(t, []byte(rest)), decode(t, got)) {
			t.Fatalf("%s:\n got %s\nwant %s", where, got, rest)
		}
	default:
		t.Fatalf("%s: unknown mark %q", where, mark)
	}
}

// matches compares decoded JSON with a pattern.
func matches(want, got any) bool {
	if want == "*" {
		return got != nil
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		_, open := w["..."]
		if !ok || !open && len(g) != len(w) {
			return false
		}
		for k, v := range w {
			if k == "..." {
				continue
			}
			if x, ok := g[k]; !ok || !matches(v, x) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !matches(w[i], g[i]) {
				return false
			}
		}
		return true
	case json.Number:
		return w == got
	}
	return want == got
}
