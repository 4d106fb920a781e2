package state

import (
	"net/url"
	"strconv"
	"strings"
)

// MaxCommandLine is how many bytes of a command line are kept.
const MaxCommandLine = 4096

// lineOf reads the command line that a shell tells with its C mark: cmdline_url
// (fish, kitty) or cmdline (kitty, quoted for bash; the last option, as it may
// hold semicolons). "" for none.
func lineOf(text string) string {
	for text != "" {
		option, rest, _ := strings.Cut(text, ";")
		if v, ok := strings.CutPrefix(option, "cmdline_url="); ok {
			if s, err := url.PathUnescape(v); err == nil {
				return oneLine(s)
			}
			return oneLine(v)
		}
		if v, ok := strings.CutPrefix(text, "cmdline="); ok {
			return oneLine(unquoted(v))
		}
		text = rest
	}
	return ""
}

// lineOfCode reads the command line of 633;E: escaped, and followed by a nonce.
func lineOfCode(text string) string {
	text, _, _ = strings.Cut(text, ";")
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i+3 < len(text) && text[i+1] == 'x' {
				if n, err := strconv.ParseUint(text[i+2:i+4], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 3
					continue
				}
			}
			i++
		}
		b.WriteByte(text[i])
	}
	return oneLine(b.String())
}

// oneLine is a command line as it is kept.
func oneLine(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
	if len(s) > MaxCommandLine {
		s = strings.ToValidUTF8(s[:MaxCommandLine], "")
	}
	return s
}

// unquoted undoes bash's printf %q: backslashes, '...' and $'...'.
func unquoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "$'"):
			i = appendANSI(&b, s, i+2)
		case s[i] == '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				end = len(s) - i - 1
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// appendANSI adds the inside of $'...', which begins at i, and answers where its
// end quote is.
func appendANSI(b *strings.Builder, s string, i int) int {
	for ; i < len(s) && s[i] != '\''; i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if n := strings.IndexByte("abefnrtv", s[i]); n >= 0 {
			b.WriteByte("\a\b\x1b\f\n\r\t\v"[n])
			continue
		}
		if s[i] == 'E' {
			b.WriteByte(0x1b)
			continue
		}
		digits := 0
		for digits < 3 && i+digits < len(s) && s[i+digits] >= '0' && s[i+digits] <= '7' {
			digits++
		}
		if n, err := strconv.ParseUint(s[i:i+digits], 8, 8); err == nil {
			b.WriteByte(byte(n))
			i += digits - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return i
}

// Integration is what makes a shell print the marks that Commands needs, as lines
// for its configuration file; "" for a shell that cannot. bash must be 4.4 or
// later; fish 4 does it by itself.
func Integration(s Shell) string {
	switch s {
	case ShellBash:
		return `PS0='\e]133;C\a'; PS1='\[\e]133;D;$?\a\e]133;A\a\]'"$PS1"'\[\e]133;B\a\]'`
	case ShellZsh:
		return `autoload -Uz add-zsh-hook
mark_prompt() { print -Pn '\e]133;D;%?\a\e]133;A\a' }; add-zsh-hook precmd mark_prompt
mark_start() { print -n '\e]133;C\a' }; add-zsh-hook preexec mark_start
PS1+=$'%{\e]133;B\a%}'`
	case ShellFish:
		return `function mark_prompt --on-event fish_prompt; printf '\e]133;A\a'; end
function mark_start --on-event fish_preexec; printf '\e]133;C;cmdline_url=%s\a' (string escape --style=url -- $argv[1]); end
function mark_end --on-event fish_postexec; printf '\e]133;D;%s\a' $status; end`
	}
	return ""
}
