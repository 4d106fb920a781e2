package controlmode

import (
	"fmt"
	"strconv"
)

// SessionID is the number of a tmux session id such as $3. tmux never reuses
// one within the life of a server (tmux 3.3a, session.c next_session_id).
type SessionID uint32

// WindowID is the number of a tmux window id such as @7.
type WindowID uint32

// PaneID is the number of a tmux pane id such as %12.
type PaneID uint32

// String gives tmux's spelling, for example $3.
func (id SessionID) String() string { return "$" + strconv.FormatUint(uint64(id), 10) }

// String gives tmux's spelling, for example @7.
func (id WindowID) String() string { return "@" + strconv.FormatUint(uint64(id), 10) }

// String gives tmux's spelling, for example %12.
func (id PaneID) String() string { return "%" + strconv.FormatUint(uint64(id), 10) }

// ParseSessionID reads "$N"; nothing may follow the digits.
func ParseSessionID(s string) (SessionID, error) {
	n, err := parseID('$', s)
	return SessionID(n), err
}

// ParseWindowID reads "@N"; nothing may follow the digits.
func ParseWindowID(s string) (WindowID, error) {
	n, err := parseID('@', s)
	return WindowID(n), err
}

// ParsePaneID reads "%N"; nothing may follow the digits.
func ParsePaneID(s string) (PaneID, error) {
	n, err := parseID('%', s)
	return PaneID(n), err
}

func parseID(sigil byte, s string) (uint32, error) {
	n, ok := idNumber(sigil, s)
	if !ok {
		return 0, fmt.Errorf("not a tmux id of the form %cN: %q", sigil, s)
	}
	return n, nil
}

// idNumber reads a sigil and a decimal number of at most 32 bits.
func idNumber[T ~string | ~[]byte](sigil byte, s T) (uint32, bool) {
	if len(s) < 2 || len(s) > 11 || s[0] != sigil {
		return 0, false
	}
	var n uint64
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return uint32(n), n <= 1<<32-1
}
