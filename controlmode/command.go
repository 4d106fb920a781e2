package controlmode

import "strings"

// Command is one tmux command: its name and its arguments, each taken
// literally by tmux's command parser whatever bytes it holds (NUL excepted,
// which tmux cannot carry). It does not protect an argument from tmux's format
// expansion: see LiteralFormat.
type Command struct {
	words []string
}

// Cmd builds a Command. Options come first, then "--", then free text, as tmux
// reads them with getopt.
func Cmd(name string, args ...string) Command {
	return Command{words: append([]string{name}, args...)}
}

// Words returns the name and arguments, unencoded. The caller must not change
// them.
func (c Command) Words() []string { return c.words }

// AppendLine appends the command encoded for a control-mode line, without a
// newline. The result holds no byte below 0x20 and no raw byte above 0x7e.
func (c Command) AppendLine(dst []byte) []byte {
	for i, w := range c.words {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendWord(dst, w)
	}
	return dst
}

// appendWord is the one encoder of the command-line layer.
func appendWord(dst []byte, w string) []byte {
	plain := len(w) > 0
	for i := 0; i < len(w) && plain; i++ {
		plain = isPlain(w[i])
	}
	if plain {
		return append(dst, w...)
	}
	dst = append(dst, '"')
	for i := 0; i < len(w); i++ {
		if c := w[i]; isPlain(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		}
	}
	return append(dst, '"')
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '.' || c == '/' || c == ':' || c == '@' || c == '+' || c == ',' || c == '-'
}

// LiteralFormat encodes text so that tmux's format expansion yields the text
// itself. It is for arguments that tmux expands once (names, start directories,
// -F); strftime conversion is not covered, see LiteralTimeFormat.
//
// Doubling every # does it, but for a run of them before a [: that is a style,
// which tmux leaves as it is (tmux 3.3a to 3.8, format.c format_expand1). An empty
// expansion in between makes it a run before something else.
func LiteralFormat(s string) string {
	n := strings.Count(s, "#")
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+n)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '#':
			b = append(b, '#')
		case s[i] == '[' && i > 0 && s[i-1] == '#':
			b = append(b, "#{l:}"...)
		}
		b = append(b, s[i])
	}
	return string(b)
}

// LiteralTimeFormat is LiteralFormat for arguments that tmux also gives to
// strftime first (display-message, status formats): it doubles every % too.
func LiteralTimeFormat(s string) string {
	return strings.ReplaceAll(LiteralFormat(s), "%", "%%")
}
