package transcript

import (
	"strconv"
	"strings"
)

// Profile names a set of tmux's rendering rules by the first release that had
// it: 33 is tmux 3.3, 36 is tmux 3.6. Rules that no profile knows are caught by
// the audit (Agrees), not guessed.
type Profile int

// The profiles. Versions between two of them use the lower one.
const (
	Profile33 Profile = 33 // 3.3, 3.3a; also the nearest for 3.2a
	Profile34 Profile = 34 // 3.4: variation selectors widen, unassigned is one column
	Profile35 Profile = 35 // 3.5, 3.5a: REP repeats any character
	Profile36 Profile = 36 // 3.6, 3.7: stored tabs, U+FFFD, larger cells
	Profile38 Profile = 38 // 3.8: overwriting a stored tab leaves blanks

	// ProfileNewest is for versions that nobody has compared with yet.
	ProfileNewest = Profile38
)

// ProfileFor chooses the profile for what tmux answers to #{version}, such as
// "3.3a", "3.8" or "next-3.9"; "tmux 3.3a", as -V prints, works too. A text
// that names no version gets the newest profile.
func ProfileFor(version string) Profile {
	v := strings.TrimPrefix(version, "tmux ")
	v = strings.TrimPrefix(v, "next-")
	v = strings.TrimPrefix(v, "openbsd-") // OpenBSD counts its own releases
	major, rest, ok := strings.Cut(v, ".")
	if !ok || v != version && strings.Contains(version, "openbsd") {
		return ProfileNewest
	}
	digits := len(rest)
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			digits = i
			break
		}
	}
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(rest[:digits])
	switch {
	case err1 != nil || err2 != nil:
		return ProfileNewest
	case a < 3 || a == 3 && b <= 3:
		return Profile33
	case a == 3 && b == 4:
		return Profile34
	case a == 3 && b == 5:
		return Profile35
	case a == 3 && b <= 7:
		return Profile36
	}
	return Profile38
}

// clusterBytes is how many bytes of text fit into one cell.
func (p Profile) clusterBytes() int {
	if p >= Profile36 {
		return clusterBytes36
	}
	return clusterBytes33
}

// width is how many columns tmux gives a character on its own, -1 where it
// drops it (utf8.c, utf8_width).
func (p Profile) width(r rune) int {
	w := wcwidth(r)
	if p < Profile34 {
		return w
	}
	if forcedWide(p, r) {
		return 2
	}
	if isRegional(r) {
		return 1
	}
	if w < 0 {
		// From 3.4 on an unassigned character takes one column; C1 controls none.
		if r >= 0x80 && r <= 0x9f {
			return 0
		}
		return 1
	}
	return w
}
