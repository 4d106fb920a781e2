package main

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"tmux-mcpd/mcp"
)

// listener is what the configuration says of one socket.
type listener struct {
	path    string
	mode    fs.FileMode
	policy  mcp.PolicyConfig
	origins map[string]string // setting to where its value stood
}

// further is the start of a [[listen]] table: what the top level says holds for
// it too, but for the place and who may connect.
func (l *listener) further() *listener {
	n := &listener{mode: socketMode, policy: l.policy, origins: map[string]string{}}
	n.policy.AllowUIDs = nil
	for _, s := range settings {
		if from, ok := l.origins[s.flag]; ok && s.of != nil && !s.own {
			n.origins[s.flag] = from
		}
	}
	return n
}

// socketMode is the mode of a socket unless configured.
const socketMode fs.FileMode = 0o600

func setMode(l *listener, v []string) error {
	n, err := strconv.ParseUint(v[0], 8, 32)
	if err != nil || n > 0o777 {
		return fmt.Errorf("%q is not a mode such as 0660", v[0])
	}
	if n&0o600 != 0o600 {
		return fmt.Errorf("%q keeps our own user out", v[0])
	}
	l.mode = fs.FileMode(n)
	return nil
}

func setUIDs(l *listener, v []string) error {
	l.policy.AllowUIDs = make([]int, len(v))
	for i, word := range v {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a user id", word)
		}
		l.policy.AllowUIDs[i] = int(n)
	}
	return nil
}

// setSessions keeps an empty list apart from none: it shows nothing.
func setSessions(l *listener, v []string) error {
	for _, word := range v {
		if err := cleanText(word); err != nil {
			return err
		}
	}
	l.policy.Sessions = v
	return nil
}

func whole(field func(*listener) *int, low, high int) func(*listener, []string) error {
	return func(l *listener, v []string) error {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a whole number within %d and %d", v[0], low, high)
		}
		*field(l) = n
		return nil
	}
}

// split makes the items of a list given in one word. An empty word is an empty
// list.
func split(v string) []string {
	if v == "" {
		return []string{}
	}
	items := strings.Split(v, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// The forms of LIBTMUX_ variables. What they cannot read they take as unset, as
// the contract has it (1.7).

func asItIs(v string) (string, bool) { return v, true }

func positive(v string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	// A number that is too large is the largest.
	return n, n > 0 && (err == nil || n == 1<<63-1)
}

func clampedNumber(low, high int64) func(string) (string, bool) {
	return func(v string) (string, bool) {
		n, ok := positive(v)
		return strconv.FormatInt(max(low, min(n, high)), 10), ok
	}
}

func millis(low, high time.Duration) func(string) (string, bool) {
	return func(v string) (string, bool) {
		n, ok := positive(v)
		d := time.Duration(min(n, high.Milliseconds())) * time.Millisecond
		return max(low, d).String(), ok
	}
}
