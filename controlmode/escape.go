package controlmode

import "bytes"

// AppendUnescape appends the decoded form of %output data to dst. tmux writes
// the bytes 0x00 to 0x1f and the backslash as a backslash and exactly three
// octal digits and everything else as it is (tmux 3.2a to 3.8, control.c
// control_append_data). A backslash that does not begin such an escape is kept,
// so that nothing is lost should tmux ever write one.
func AppendUnescape(dst, src []byte) []byte {
	for {
		i := bytes.IndexByte(src, '\\')
		if i < 0 {
			return append(dst, src...)
		}
		dst = append(dst, src[:i]...)
		src = src[i:]
		// Escapes come in runs (CR LF, escape sequences next to each other):
		// this loop saves the search for the next backslash.
		for len(src) > 0 && src[0] == '\\' {
			b, ok := octal(src)
			if !ok {
				dst = append(dst, '\\')
				src = src[1:]
				continue
			}
			dst = append(dst, b)
			src = src[4:]
		}
	}
}

// octal reads a backslash and three octal digits up to 377 at the front of s.
func octal(s []byte) (byte, bool) {
	if len(s) < 4 {
		return 0, false
	}
	a, b, c := s[1]-'0', s[2]-'0', s[3]-'0'
	if a > 3 || b > 7 || c > 7 {
		return 0, false
	}
	return a<<6 | b<<3 | c, true
}

// AppendEscape appends data the way tmux writes it in %output: the inverse of
// AppendUnescape, for tests and for scripted peers.
func AppendEscape(dst, data []byte) []byte {
	for _, c := range data {
		if c < 0x20 || c == '\\' {
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
