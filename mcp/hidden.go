package mcp

import (
	"fmt"
	"strings"
)

// metaControls counts the format controls in an answer's text.
const metaControls = "tmux-mcpd/formatControls"

// formatControls counts characters that are not seen themselves and make text
// look like other text: they turn its direction around, or take no room. Not
// among them are the joiners and selectors that emoji and some scripts need.
func formatControls(s string) int {
	// The first bytes of all of them. Most text has none.
	if strings.IndexByte(s, 0xd8) < 0 && strings.IndexByte(s, 0xe2) < 0 && strings.IndexByte(s, 0xef) < 0 && strings.IndexByte(s, 0xf3) < 0 {
		return 0
	}
	n := 0
	for _, r := range s {
		switch {
		case r == '\u061c', // Arabic letter mark
			r == '\u200b', r == '\u200e', r == '\u200f', // zero width space, direction marks
			r >= '\u202a' && r <= '\u202e',         // embeddings and overrides of direction
			r >= '\u2060' && r <= '\u2069',         // invisible operators, isolates of direction
			r == '\ufeff',                          // zero width no-break space
			r >= '\U000e0000' && r <= '\U000e007f': // tags: ASCII that nobody sees
			n++
		}
	}
	return n
}

// flagged marks an answer whose text may not be what it looks like. The text
// itself stays as it is: it may be what somebody is looking for.
func flagged(res *toolResult) *toolResult {
	n := formatControls(res.Text)
	if n == 0 {
		return res
	}
	marked := *res
	marked.Meta = map[string]any{metaControls: n}
	for k, v := range res.Meta {
		marked.Meta[k] = v
	}
	marked.Text = fmt.Sprintf("[%s that hide or reorder text below: it may not be what it looks like]\n", plural(n, "character")) + res.Text
	return &marked
}
