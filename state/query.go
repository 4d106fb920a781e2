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
//	word,word,...,length,length|text|text
//
// Words are numbers, flags and ids, which cannot hold a comma; texts are what
// users and programs choose (names, titles, paths), so they come last and are
// cut out by the byte lengths before the bar (#{n:...}, tmux 3.2 on), not by
// any separator: a newline in a path cannot start a row and a bar in a title
// cannot end a field.
type listing struct {
	words, texts int
	format       string
}

func newListing(words, texts []string) listing {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("#{" + w + "}")
	}
	for _, t := range texts {
		b.WriteString(",#{n:" + t + "}")
	}
	for _, t := range texts {
		b.WriteString("|#{" + t + "}")
	}
	return listing{len(words), len(texts), b.String()}
}

var (
	serverListing = newListing(
		[]string{"pid", "start_time"},
		[]string{"version", "socket_path"})
	sessionListing = newListing(
		[]string{"session_id", "session_windows", "session_attached", "session_created", "session_activity"},
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
		"pane_synchronized", "alternate_on",
	}
	paneTexts = []string{
		"session_name", "window_name", "pane_tty", "pane_mode", "pane_current_command", "pane_current_path", "pane_title",
	}
	paneListing = newListing(paneWords, paneTexts)
	// onePaneListing also asks for the placements of the window: they are more
	// than one exactly when the list is not just the session's name
	// (window_linked and window_linked_sessions cannot be relied on).
	onePaneListing = newListing(paneWords, append(slices.Clone(paneTexts), "window_linked_sessions_list"))
	clientListing  = newListing(
		[]string{"client_pid", "client_control_mode", "session_id", "window_id", "pane_id", "window_zoomed_flag"},
		[]string{"client_name", "client_flags"})
	gridListing = newListing(
		[]string{
			"pane_id", "pane_width", "pane_height", "history_size", "cursor_x", "cursor_y", "scroll_position",
			"alternate_on", "pane_pid", "pane_dead", "history_limit",
		}, nil)
)

// row is one parsed row; its fields point into the reply.
type row struct {
	words [][]byte
	texts [][]byte
	err   error
}

// each parses every row of a reply body and calls f. A body that does not parse
// to its very end is an error: an empty list and an unreadable one are
// different answers.
//
// vis tells that this tmux prints control characters and bytes that are not
// UTF-8 escaped: see escapesPrints.
func (l listing) each(body []byte, vis bool, f func(r *row)) error {
	r := row{words: make([][]byte, l.words), texts: make([][]byte, l.texts)}
	lens := make([]int, l.texts)
	for len(body) > 0 {
		var err error
		if body, err = l.cut(body, vis, &r, lens); err != nil {
			return err
		}
		if f(&r); r.err != nil {
			return r.err
		}
	}
	return nil
}

func (l listing) cut(body []byte, vis bool, r *row, lens []int) (rest []byte, err error) {
	for i := range l.words + l.texts {
		end := bytes.IndexAny(body, ",|\n")
		last := i == l.words+l.texts-1
		if end < 0 {
			end = len(body)
		}
		sep := byte('\n')
		if end < len(body) {
			sep = body[end]
		}
		want := byte(',')
		if last && l.texts > 0 {
			want = '|'
		} else if last {
			want = '\n'
		}
		if sep != want {
			return nil, fmt.Errorf("listing row: field %d ends in %q, want %q", i, sep, want)
		}
		if i < l.words {
			r.words[i] = body[:end]
		} else {
			n, ok := decimal(body[:end])
			if !ok {
				return nil, fmt.Errorf("listing row: text length %d is not a number", i-l.words)
			}
			lens[i-l.words] = int(n)
		}
		body = body[min(end+1, len(body)):]
	}
	for i, n := range lens {
		end := byte('|')
		if i == l.texts-1 {
			end = '\n'
		}
		text, rest, ok := cutText(body, n, end, vis)
		if !ok {
			return nil, fmt.Errorf("listing row: text %d does not end where its length says", i)
		}
		r.texts[i], body = text, rest
	}
	return body, nil
}

// escapesPrints tells whether a tmux of that version prints control characters
// and bytes that are not UTF-8 escaped (\001, \r), though #{n:} counts each as
// one: 3.5a does; 3.3a, 3.7c and 3.8 print them as they are.
func escapesPrints(version string) bool {
	v, err := controlmode.ParseVersion(version)
	return err == nil && v.AtLeast("3.4") && !v.AtLeast("3.7")
}

// cutText cuts a text of n bytes that is followed by end, or ends the body if
// end is a newline. A text that does not fit in the one form is tried in the
// other: a backslash that the user wrote is not doubled.
func cutText(body []byte, n int, end byte, vis bool) (text, rest []byte, ok bool) {
	for _, escaped := range []bool{vis, !vis} {
		if escaped {
			text, rest, ok = cutVis(body, n, end)
		} else if n <= len(body) && endsWith(body[n:], end) {
			text, rest, ok = body[:n], body[min(n+1, len(body)):], true
		}
		if ok {
			return text, rest, true
		}
	}
	return nil, nil, false
}

func cutVis(body []byte, n int, end byte) (text, rest []byte, ok bool) {
	rest = body
	for len(text) < n && len(rest) > 0 {
		c, size := unvis(rest)
		text, rest = append(text, c), rest[size:]
	}
	if len(text) != n || !endsWith(rest, end) {
		return nil, nil, false
	}
	return text, rest[min(1, len(rest)):], true
}

func endsWith(b []byte, end byte) bool {
	return len(b) > 0 && b[0] == end || len(b) == 0 && end == '\n'
}

// unvis reads one character as vis(3) writes it with VIS_OCTAL|VIS_CSTYLE|
// VIS_NOSLASH.
func unvis(b []byte) (c byte, size int) {
	if b[0] != '\\' || len(b) < 2 {
		return b[0], 1
	}
	if i := strings.IndexByte("abfnrstv0", b[1]); i >= 0 && (b[1] != '0' || len(b) < 4 || !octal(b[1:4])) {
		return "\a\b\f\n\r \t\v\x00"[i], 2
	}
	if len(b) >= 4 && octal(b[1:4]) {
		return (b[1]-'0')<<6 | (b[2]-'0')<<3 | (b[3] - '0'), 4
	}
	return b[0], 1
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
	const vis = false // neither text can need it
	n := 0
	err = serverListing.each(body, vis, func(r *row) {
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

func readSessions(body []byte, vis bool) ([]*Session, error) {
	var all []*Session
	err := sessionListing.each(body, vis, func(r *row) {
		all = append(all, &Session{
			ID: controlmode.SessionID(r.id(0, '$')), Windows: r.num(1), Attached: r.num(2),
			Created: r.num64(3), Activity: r.num64(4), Name: r.text(0), Group: r.text(1),
		})
	})
	slices.SortFunc(all, func(a, b *Session) int { return int(a.ID) - int(b.ID) })
	return all, err
}

func readWindows(body []byte, vis bool) ([]*Window, error) {
	byID := map[controlmode.WindowID]*Window{}
	err := windowListing.each(body, vis, func(r *row) {
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
func readPanes(body []byte, one, vis bool) (all []*Pane, elsewhere bool, err error) {
	byID := map[controlmode.PaneID]*Pane{}
	l := paneListing
	if one {
		l = onePaneListing
	}
	err = l.each(body, vis, func(r *row) {
		id := controlmode.PaneID(r.id(0, '%'))
		p := byID[id]
		if p == nil {
			p = &Pane{
				ID: id, Window: controlmode.WindowID(r.id(1, '@')), Index: r.num(4), Width: r.num(5), Height: r.num(6),
				Active: r.flag(7), Zoomed: r.flag(8), AtTop: r.flag(9), AtBottom: r.flag(10), AtLeft: r.flag(11),
				AtRight: r.flag(12), PID: r.num(13), Dead: r.flag(14), DeadStatus: string(r.words[15]),
				DeadSignal: string(r.words[16]), InMode: r.num(17), InputOff: r.flag(18), Synced: r.flag(19),
				Alternate: r.flag(20), WindowName: r.text(1), TTY: r.text(2), Mode: r.text(3), Command: r.text(4),
				Path: r.text(5), Title: r.text(6),
			}
			byID[id] = p
		}
		p.Links = append(p.Links, Link{
			Session: controlmode.SessionID(r.id(2, '$')), SessionName: r.text(0), Index: r.num(3),
		})
		elsewhere = elsewhere || one && !bytes.Equal(r.texts[7], r.texts[0])
	})
	all = make([]*Pane, 0, len(byID))
	for _, p := range byID {
		sortLinks(p.Links)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Pane) int { return int(a.ID) - int(b.ID) })
	return all, elsewhere, err
}

func sortLinks(l []Link) {
	slices.SortFunc(l, func(a, b Link) int {
		if a.Session != b.Session {
			return int(a.Session) - int(b.Session)
		}
		return a.Index - b.Index
	})
}

func readClients(body []byte, vis bool, own func(pid int) bool) ([]*Client, error) {
	var all []*Client
	err := clientListing.each(body, vis, func(r *row) {
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
	const vis = false // it has no texts
	err = gridListing.each(body, vis, func(r *row) {
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
