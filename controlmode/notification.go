package controlmode

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseNotification reads a notification's fields, nil if it cannot. Names and
// values are the rest of the line and may hold spaces. Further fields after the
// known ones are ignored, so that a later tmux may add some.
func parseNotification(word string, rest []byte) Event {
	s := string(rest)
	switch word {
	case "%sessions-changed":
		return SessionsChanged{}
	case "%session-changed", "%session-renamed":
		id, name := cut(s)
		n, ok := idNumber('$', id)
		if !ok {
			return nil
		}
		if word == "%session-changed" {
			return SessionChanged{Session: SessionID(n), Name: name}
		}
		return SessionRenamed{Session: SessionID(n), Name: name}
	case "%client-session-changed":
		client, s := cut(s)
		id, name := cut(s)
		n, ok := idNumber('$', id)
		if !ok || client == "" {
			return nil
		}
		return ClientSessionChanged{Client: client, Session: SessionID(n), Name: name}
	case "%client-detached":
		return ClientDetached{Client: s}
	case "%session-window-changed":
		id, s := cut(s)
		win, _ := cut(s)
		n, ok1 := idNumber('$', id)
		w, ok2 := idNumber('@', win)
		if !ok1 || !ok2 {
			return nil
		}
		return SessionWindowChanged{Session: SessionID(n), Window: WindowID(w)}
	case "%pane-mode-changed", "%pause", "%continue":
		id, _ := cut(s)
		n, ok := idNumber('%', id)
		if !ok {
			return nil
		}
		return paneNotification(word, PaneID(n))
	case "%subscription-changed":
		return parseSubscription(s)
	case "%paste-buffer-changed":
		return PasteBufferChanged{Name: s}
	case "%paste-buffer-deleted":
		return PasteBufferDeleted{Name: s}
	case "%message":
		return Message{Text: s}
	case "%config-error":
		return ConfigError{Text: s}
	case "%exit":
		return Exit{Reason: s}
	}
	return parseWindowNotification(word, s)
}

func paneNotification(word string, pane PaneID) Event {
	switch word {
	case "%pause":
		return Pause{Pane: pane}
	case "%continue":
		return Continue{Pane: pane}
	}
	return PaneModeChanged{Pane: pane}
}

func parseWindowNotification(word, s string) Event {
	kind, unlinked := strings.CutPrefix(word, "%unlinked-")
	if !unlinked {
		kind = word[1:]
	}
	id, rest := cut(s)
	n, ok := idNumber('@', id)
	if !ok {
		return nil
	}
	window := WindowID(n)
	switch kind {
	case "window-add":
		return WindowAdd{Window: window, Unlinked: unlinked}
	case "window-close":
		return WindowClose{Window: window, Unlinked: unlinked}
	case "window-renamed":
		return WindowRenamed{Window: window, Name: rest, Unlinked: unlinked}
	}
	if unlinked {
		return nil
	}
	switch kind {
	case "window-pane-changed":
		pane, _ := cut(rest)
		p, ok := idNumber('%', pane)
		if !ok {
			return nil
		}
		return WindowPaneChanged{Window: window, Pane: PaneID(p)}
	case "layout-change":
		e := LayoutChange{Window: window}
		e.Layout, rest = cut(rest)
		e.Visible, rest = cut(rest)
		e.Flags, _ = cut(rest)
		if e.Layout == "" {
			return nil
		}
		return e
	}
	return nil
}

// parseSubscription reads "NAME $S @W IDX %P ... : VALUE". A name may hold
// spaces but no colon; fields that do not apply are "-"; words between the pane
// and the colon are for future use.
func parseSubscription(s string) Event {
	head, value, ok := strings.Cut(s, " : ")
	if !ok {
		// An empty value whose last space was lost is still a value.
		if head, ok = strings.CutSuffix(s, " :"); !ok {
			return nil
		}
	}
	f := strings.Split(head, " ")
	for i := 1; i+4 <= len(f); i++ {
		e := SubscriptionChanged{Name: strings.Join(f[:i], " "), Value: value}
		if n, ok := idNumber('$', f[i]); ok {
			id := SessionID(n)
			e.Session = &id
		} else if f[i] != "-" {
			continue
		}
		if n, ok := idNumber('@', f[i+1]); ok {
			id := WindowID(n)
			e.Window = &id
		} else if f[i+1] != "-" {
			continue
		}
		if n, err := strconv.Atoi(f[i+2]); err == nil {
			e.Index = &n
		} else if f[i+2] != "-" {
			continue
		}
		if n, ok := idNumber('%', f[i+3]); ok {
			id := PaneID(n)
			e.Pane = &id
		} else if f[i+3] != "-" {
			continue
		}
		return e
	}
	return nil
}

// cut splits at the first space.
func cut(s string) (field, rest string) {
	field, rest, _ = strings.Cut(s, " ")
	return field, rest
}

func milliseconds(n uint64) time.Duration {
	if n > uint64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}
