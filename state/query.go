package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"tmux-mcpd/controlmode"
)

// A listing is a format and the way to read its rows. A row is
//
//	word,word,...,text|text|...
//
// with every field followed by its mark. Words are numbers, flags and ids,
// which cannot hold a comma. Texts are what users and programs choose (names,
// titles, paths); they come quoted (#{q:...}), which puts a backslash before
// every bar and backslash in them (tmux 3.2 to 3.8, format.c
// format_quote_shell), so the first bare bar ends the text: a newline in a path
// cannot start a row and a bar in a title cannot end a field.
//
// Lengths (#{n:...}) would not do: tmux asks the kernel for a pane's command and
// path each time they are named, so that length and text of a process that
// starts just then can be those of two different names.
type listing struct {
	words, texts int
	format       string
}

func newListing(words, texts []string) listing {
	var b strings.Builder
	for _, w := range words {
		b.WriteString("#{" + w + "},")
	}
	for _, t := range texts {
		b.WriteString("#{q:" + t + "}|")
	}
	return listing{len(words), len(texts), b.String()}
}

var (
	serverListing = newListing(
		[]string{"pid", "start_time"},
		[]string{"version", "socket_path"})
	sessionListing = newListing(
		[]string{
			"session_id", "session_windows", "session_attached", "session_created", "session_activity",
			"destroy-unattached", "exit-unattached",
		},
		[]string{"session_name", "session_group"})
	windowListing = newListing(
		[]string{
			"window_id", "session_id", "window_index", "window_active", "window_zoomed_flag", "window_panes",
			"window_width", "window_height", "pane_id",
		},
		[]string{"session_name", "window_name", "window_layout"})
	paneWords = []string{
		"pane_id", "window_id", "session_id", "window_index", "pane_index", "pane_width", "pane_height",
		"pane_active", "window_zoomed_flag", "pane_at_top", "pane_at_bottom", "pane_at_left", "pane_at_right",
		"pane_pid", "pane_dead", "pane_dead_status", "pane_dead_signal", "pane_in_mode", "pane_input_off",
		"pane_synchronized", "alternate_on", "window_active", "pane_dead_time",
	}
	paneTexts = []string{
		"session_name", "window_name", "pane_tty", "pane_mode", "pane_current_command", "pane_current_path", "pane_title",
	}
	paneListing = newListing(paneWords, paneTexts)
	// onePaneListing also asks for the placements of the window: they are more
	// than one exactly when the list is not just the session's name
	// (window_linked and window_linked_sessions cannot be relied on).
	onePaneListing = newListing(paneWords, append(slices.Clone(paneTexts), "window_linked_sessions_list"))
	// seedListing is what a transcript must know besides captures.
	seedListing = newListing(
		[]string{
			"pane_id", "pane_width", "pane_height", "cursor_x", "cursor_y", "scroll_region_upper", "scroll_region_lower",
			"wrap_flag", "insert_flag", "origin_flag", "alternate_on", "alternate_saved_x", "alternate_saved_y",
			"history_size", "history_limit", "pane_pid", "pane_dead", "alternate-screen", "scroll-on-clear",
			"window_activity", "pane_dead_time",
		},
		[]string{"pane_tabs"})
	clientListing = newListing(
		[]string{"client_pid", "client_control_mode", "session_id", "window_id", "pane_id", "window_zoomed_flag"},
		[]string{"client_name", "client_flags"})
	gridListing = newListing(
		[]string{
			"pane_id", "pane_width", "pane_height", "history_size", "cursor_x", "cursor_y", "scroll_position",
			"alternate_on", "pane_pid", "pane_dead", "history_limit",
		}, nil)
)

// row is one parsed row; its words point into the reply.
type row struct {
	words [][]byte
	texts [][]byte
	err   error
}

// each parses every row of a reply body and calls f. A body that does not parse
// to its very end is an error: an empty list and an unreadable one are
// different answers.
func (l listing) each(body []byte, f func(r *row)) error {
	r := row{words: make([][]byte, l.words), texts: make([][]byte, l.texts)}
	for len(body) > 0 {
		var err error
		if body, err = l.cut(body, &r); err != nil {
			return err
		}
		if f(&r); r.err != nil {
			return r.err
		}
	}
	return nil
}

func (l listing) cut(body []byte, r *row) (rest []byte, err error) {
	for i := range r.words {
		end := bytes.IndexAny(body, ",|\n")
		if end < 0 || body[end] != ',' {
			return nil, fmt.Errorf("listing row: word %d does not end in a comma", i)
		}
		r.words[i], body = body[:end], body[end+1:]
	}
	for i := range r.texts {
		text, rest, ok := cutText(body)
		if !ok {
			return nil, fmt.Errorf("listing row: text %d does not end", i)
		}
		r.texts[i], body = text, rest
	}
	if len(body) > 0 && body[0] != '\n' {
		return nil, fmt.Errorf("listing row: goes on after its last field")
	}
	return body[min(1, len(body)):], nil
}

// cutText reads a quoted text up to its bar.
//
// Between quoting and printing, tmux 3.5a escapes control characters and bytes
// that are not UTF-8 as vis(3) does (\001, \r); 3.3a, 3.7c and 3.8 print them as
// they are. Both are read alike: quoting puts no backslash before a digit or a
// letter, so one that stands there is vis's.
func cutText(body []byte) (text, rest []byte, ok bool) {
	plain := bytes.IndexAny(body, `|\`)
	if plain < 0 {
		return nil, nil, false
	}
	if body[plain] == '|' { // most are: no copy
		return body[:plain:plain], body[plain+1:], true
	}
	text = append(make([]byte, 0, plain+32), body[:plain]...)
	for i := plain; i < len(body); i++ {
		switch c := body[i]; {
		case c == '|':
			return text, body[i+1:], true
		case c != '\\':
			text = append(text, c)
		case i+3 < len(body) && octal(body[i+1:i+4]):
			text = append(text, (body[i+1]-'0')<<6|(body[i+2]-'0')<<3|(body[i+3]-'0'))
			i += 3
		case i+1 < len(body):
			i++
			if k := strings.IndexByte("abfnrtv", body[i]); k >= 0 {
				text = append(text, "\a\b\f\n\r\t\v"[k])
			} else {
				text = append(text, body[i])
			}
		}
	}
	return nil, nil, false
}

func octal(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '7' {
			return false
		}
	}
	return true
}

// num reads a word as a number; tmux leaves what does not apply empty, which
// counts as 0.
func (r *row) num(i int) int { return int(r.num64(i)) }

func (r *row) num64(i int) int64 {
	if len(r.words[i]) == 0 {
		return 0
	}
	n, ok := decimal(r.words[i])
	if !ok {
		r.fail(i)
	}
	return n
}

func (r *row) flag(i int) bool { return len(r.words[i]) > 0 && r.words[i][0] != '0' }

// on reads an option: a flag, which formats show as 0 or 1, or since 3.4 a
// choice (destroy-unattached: off, on, keep-last, keep-group).
func (r *row) on(i int) bool {
	w := string(r.words[i])
	return w != "" && w != "0" && w != "off"
}

func (r *row) id(i int, sigil byte) uint32 {
	w := r.words[i]
	if len(w) < 2 || w[0] != sigil {
		r.fail(i)
		return 0
	}
	n, ok := decimal(w[1:])
	if !ok || n > 1<<32-1 {
		r.fail(i)
	}
	return uint32(n)
}

func (r *row) has(i int) bool { return len(r.words[i]) > 0 }

func (r *row) text(i int) string { return string(r.texts[i]) }

func (r *row) fail(i int) {
	if r.err == nil {
		r.err = fmt.Errorf("listing row: word %d is not what was asked for", i)
	}
}

func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func readServer(body []byte) (s Server, err error) {
	n := 0
	err = serverListing.each(body, func(r *row) {
		s = Server{
			ID:      ServerID{PID: r.num(0), StartTime: r.num64(1)},
			Version: r.text(0), SocketPath: r.text(1),
		}
		n++
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("server identity: %d rows", n)
	}
	return s, err
}

func readSessions(body []byte) ([]*Session, error) {
	var all []*Session
	err := sessionListing.each(body, func(r *row) {
		all = append(all, &Session{
			ID: controlmode.SessionID(r.id(0, '$')), Windows: r.num(1), Attached: r.num(2),
			Created: r.num64(3), Activity: r.num64(4), Name: r.text(0), Group: r.text(1),
			EndsUnattached: r.on(5), ServerEndsUnattached: r.on(6),
		})
	})
	slices.SortFunc(all, func(a, b *Session) int { return int(a.ID) - int(b.ID) })
	return all, err
}

func readWindows(body []byte) ([]*Window, error) {
	byID := map[controlmode.WindowID]*Window{}
	err := windowListing.each(body, func(r *row) {
		id := controlmode.WindowID(r.id(0, '@'))
		w := byID[id]
		if w == nil {
			w = &Window{
				ID: id, Zoomed: r.flag(4), PaneCount: r.num(5), Width: r.num(6), Height: r.num(7),
				ActivePane: controlmode.PaneID(r.id(8, '%')), Name: r.text(1), Layout: r.text(2),
			}
			byID[id] = w
		}
		w.Links = append(w.Links, Link{
			Session: controlmode.SessionID(r.id(1, '$')), SessionName: r.text(0), Index: r.num(2), Active: r.flag(3),
		})
	})
	all := make([]*Window, 0, len(byID))
	for _, w := range byID {
		sortLinks(w.Links)
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Window) int { return int(a.ID) - int(b.ID) })
	return all, err
}

// readPanes reads rows of paneListing or, with one set, of onePaneListing.
// elsewhere tells whether a row's window has placements that this one row
// cannot show.
func readPanes(body []byte, one bool) (all []*Pane, elsewhere bool, err error) {
	byID := map[controlmode.PaneID]*Pane{}
	l := paneListing
	if one {
		l = onePaneListing
	}
	err = l.each(body, func(r *row) {
		id := controlmode.PaneID(r.id(0, '%'))
		p := byID[id]
		if p == nil {
			p = &Pane{
				ID: id, Window: controlmode.WindowID(r.id(1, '@')), Index: r.num(4), Width: r.num(5), Height: r.num(6),
				Active: r.flag(7), Zoomed: r.flag(8), AtTop: r.flag(9), AtBottom: r.flag(10), AtLeft: r.flag(11),
				AtRight: r.flag(12), PID: r.num(13), Dead: r.flag(14), DeadStatus: string(r.words[15]),
				DeadSignal: string(r.words[16]), InMode: r.num(17), InputOff: r.flag(18), Synced: r.flag(19),
				Alternate: r.flag(20), DeadTime: r.num64(22), WindowName: r.text(1), TTY: r.text(2), Mode: r.text(3), Command: r.text(4),
				Path: r.text(5), Title: r.text(6),
			}
			byID[id] = p
		}
		p.Links = append(p.Links, Link{
			Session: controlmode.SessionID(r.id(2, '$')), SessionName: r.text(0), Index: r.num(3), Active: r.flag(21),
		})
		elsewhere = elsewhere || one && !bytes.Equal(r.texts[7], r.texts[0])
	})
	return sortPanes(byID), elsewhere, err
}

func sortPanes(byID map[controlmode.PaneID]*Pane) []*Pane {
	all := make([]*Pane, 0, len(byID))
	for _, p := range byID {
		sortLinks(p.Links)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Pane) int { return int(a.ID) - int(b.ID) })
	return all
}

func sortLinks(l []Link) {
	slices.SortFunc(l, func(a, b Link) int {
		if a.Session != b.Session {
			return int(a.Session) - int(b.Session)
		}
		return a.Index - b.Index
	})
}

func readClients(body []byte, own func(pid int) bool) ([]*Client, error) {
	var all []*Client
	err := clientListing.each(body, func(r *row) {
		if !r.has(2) || !r.has(3) {
			return // not attached to a session yet, or any more: looks at nothing
		}
		all = append(all, &Client{
			PID: r.num(0), Control: r.flag(1), Own: own(r.num(0)), Session: controlmode.SessionID(r.id(2, '$')),
			Window: controlmode.WindowID(r.id(3, '@')), Pane: controlmode.PaneID(r.id(4, '%')), Zoomed: r.flag(5),
			Name: r.text(0), Flags: r.text(1),
		})
	})
	return all, err
}

// grid is the state of one pane's grid.
type grid struct {
	found                                               bool
	pane                                                controlmode.PaneID
	width, height, history, cursorX, cursorY, scrollPos int
	alternate, dead                                     bool
	pid, limit                                          int
}

// readGrid reads gridListing. tmux answers display-message -t %99 for a pane
// that does not exist with empty fields, not with an error (cmd-display-message.c,
// CMD_FIND_CANFAIL, 3.2a to 3.8).
func readGrid(body []byte) (g grid, err error) {
	err = gridListing.each(body, func(r *row) {
		if !r.has(0) {
			return
		}
		g = grid{
			found: true, pane: controlmode.PaneID(r.id(0, '%')), width: r.num(1), height: r.num(2), history: r.num(3),
			cursorX: r.num(4), cursorY: r.num(5), scrollPos: r.num(6), alternate: r.flag(7), pid: r.num(8),
			dead: r.flag(9), limit: r.num(10),
		}
	})
	return g, err
}

// fields splits a body of one-word lines.
func fields(body []byte) []string { return strings.Fields(string(body)) }
