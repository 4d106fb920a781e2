package controlmode

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version is a tmux version that can be compared.
type Version struct {
	Text         string // as tmux says it, without a leading "tmux "
	Major, Minor int
	Letter       byte // 'a' in 3.3a, 0 for none
	// Before tells a version before the release of that number: next-3.8,
	// 3.6-rc. It compares as older than 3.8 and newer than every 3.7.
	Before bool
}

var (
	versionRE    = regexp.MustCompile(`^(?:tmux )?((next-)?(\d{1,4})\.(\d{1,4})([a-z]?)(-rc\d*)?(?:[-+~].*)?)$`)
	unnumberedRE = regexp.MustCompile(`^(?:tmux )?(master|openbsd-\d+\.\d+)$`)
)

// ParseVersion reads the output of tmux -V or the format #{version}. "master" and
// "openbsd-7.4" do not tell which tmux they are; they count as 3.2a, the oldest
// that is served, so that nothing newer is taken for granted.
func ParseVersion(s string) (Version, error) {
	if m := unnumberedRE.FindStringSubmatch(s); m != nil {
		return Version{Text: m[1], Major: 3, Minor: 2, Letter: 'a'}, nil
	}
	m := versionRE.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("not a tmux version: %q", s)
	}
	v := Version{Text: m[1], Before: m[2] != "" || m[6] != ""}
	v.Major, _ = strconv.Atoi(m[3])
	v.Minor, _ = strconv.Atoi(m[4])
	if m[5] != "" {
		v.Letter = m[5][0]
	}
	return v, nil
}

// String is the version as tmux says it.
func (v Version) String() string { return v.Text }

// Compare is negative if v is older than w, positive if it is newer.
func (v Version) Compare(w Version) int {
	for _, d := range [...]int{v.Major - w.Major, v.Minor - w.Minor, released(v) - released(w), int(v.Letter) - int(w.Letter)} {
		if d != 0 {
			return d
		}
	}
	return 0
}

func released(v Version) int {
	if v.Before {
		return 0
	}
	return 1
}

// AtLeast tells whether v is the version s or newer. s must be a version, such
// as "3.2a"; anything else panics.
func (v Version) AtLeast(s string) bool {
	w, err := ParseVersion(s)
	if err != nil {
		panic(err)
	}
	return v.Compare(w) >= 0
}
