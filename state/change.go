package state

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"tmux-mcpd/controlmode"
)

// ChangeKind names what happened, in the words of the tool contract, section 11.
type ChangeKind string

// The kinds of changes.
const (
	SessionCreated ChangeKind = "session_created"
	SessionClosed  ChangeKind = "session_closed"
	WindowCreated  ChangeKind = "window_created"
	WindowClosed   ChangeKind = "window_closed"
	PaneCreated    ChangeKind = "pane_created"
	PaneClosed     ChangeKind = "pane_closed"
	PaneDied       ChangeKind = "pane_died"
	PaneRespawned  ChangeKind = "respawned"
	CommandChanged ChangeKind = "command_changed"
	TitleChanged   ChangeKind = "title_changed"
	ModeChanged    ChangeKind = "mode_changed"
	PersonAttached ChangeKind = "person_attached"
	PersonLeft     ChangeKind = "person_left"
	ServerGone     ChangeKind = "server_gone"
	Renamed        ChangeKind = "renamed"
	Moved          ChangeKind = "moved"
	Resized        ChangeKind = "resized"
	Selected       ChangeKind = "selected"
	// Bell is told of watched panes, at most once a second for each.
	Bell ChangeKind = "bell"
	// The commands of a watched pane, by its shell's marks: Before or After is the
	// command line, and after the end "status N" or the state. At most 64 commands
	// at once and 4 a second for each pane; Mirror.Commands has all.
	CommandStarted ChangeKind = "command_started"
	CommandEnded   ChangeKind = "command_ended"
	// Runs: Before or After is the id, and after the end "status N" or the state.
	RunStarted ChangeKind = "run_started"
	RunEnded   ChangeKind = "run_ended"
)

// Change is one difference between two models that were published one after the
// other. Ids that do not apply are nil. Before and After are what people would
// call the two states; "" for none.
type Change struct {
	Seq           uint64
	Time          time.Time
	Kind          ChangeKind
	Session       *controlmode.SessionID
	Window        *controlmode.WindowID
	Pane          *controlmode.PaneID
	Before, After string
	// Was and Is are the placements, before and after, of the window, of the
	// pane's window, or of the session itself.
	Was, Is []Link
}

// Journal keeps the newest 4096 changes. Any goroutine may use it; no method
// blocks on more than the others' short critical sections. A change is in the
// journal before the model that shows it is published.
type Journal struct {
	name [6]byte // random: tells the journal of one daemon from another's

	mu   sync.Mutex // guards the fields that follow
	ring []Change   // oldest first
	next uint64     // sequence number of the next change, from 1
	// Readers, and whether they wait for changes. While any do, what tmux keeps
	// silent about is looked for every second.
	readers map[chan<- struct{}]bool
}

const journalLength = 4096

func (j *Journal) add(changes []Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range changes {
		j.next++
		c.Seq = j.next
		if len(j.ring) == journalLength {
			copy(j.ring, j.ring[1:])
			j.ring = j.ring[:journalLength-1]
		}
		j.ring = append(j.ring, c)
	}
	if len(changes) > 0 {
		j.nudgeLocked()
	}
}

func (j *Journal) nudgeLocked() {
	for r := range j.readers {
		nudge(r)
	}
}

// Join has a channel, which must have room for one, nudged at every change and
// when the connection to tmux comes or goes, until Leave.
func (j *Journal) Join(wake chan struct{}) { j.join(wake, true) }

// Hear is Join for somebody who is content with the changes that others, or
// tmux, bring up: it costs tmux nothing.
func (j *Journal) Hear(wake chan struct{}) { j.join(wake, false) }

func (j *Journal) join(wake chan struct{}, waits bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.readers == nil {
		j.readers = map[chan<- struct{}]bool{}
	}
	j.readers[wake] = waits
}

// Leave ends Join and Hear. It may be called again.
func (j *Journal) Leave(wake chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.readers, wake)
}

func (j *Journal) nudge() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nudgeLocked()
}

func (j *Journal) awaited() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, waits := range j.readers {
		if waits {
			return true
		}
	}
	return false
}

// Journal is the journal of the published models.
func (m *Mirror) Journal() *Journal { return &m.journal }

// JournalCursor is a place in a journal that a caller may keep.
type JournalCursor struct {
	name [6]byte
	seq  uint64
}

// String gives the text form: tmcpe1.<12 hex>.<decimal>.
func (c JournalCursor) String() string {
	return fmt.Sprintf("tmcpe1.%x.%d", c.name[:], c.seq)
}

// JournalCursorPattern is the grammar of the text form.
const JournalCursorPattern = `^tmcpe1\.[0-9a-f]{12}\.(?:0|[1-9][0-9]{0,15})$`

var journalCursorRE = regexp.MustCompile(JournalCursorPattern)

// ParseJournalCursor reads the text form. ErrCursor.
func ParseJournalCursor(s string) (c JournalCursor, err error) {
	if !journalCursorRE.MatchString(s) {
		return c, ErrCursor
	}
	hex.Decode(c.name[:], []byte(s[7:19])) // the pattern has made sure
	c.seq, _ = strconv.ParseUint(s[20:], 10, 64)
	return c, nil
}

// At is the cursor after a change.
func (j *Journal) At(seq uint64) JournalCursor { return JournalCursor{j.name, seq} }

// After is Since a cursor. One of another daemon's journal has a gap before all
// that is kept.
func (j *Journal) After(c JournalCursor) (changes []Change, gap bool) {
	if c.name != j.name {
		changes, _ = j.Since(0)
		return changes, true
	}
	if changes, gap = j.Since(c.seq); gap && changes == nil {
		changes, _ = j.Since(0)
	}
	return changes, gap
}

// Seq is the sequence number of the newest change, 0 before the first.
func (j *Journal) Seq() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Since answers the changes after sequence number seq, oldest first, and whether
// some between them were forgotten or seq is not of this journal (gap). The
// number to go on from is that of the last change, or Seq.
func (j *Journal) Since(seq uint64) (changes []Change, gap bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if seq > j.next {
		return nil, true
	}
	oldest := j.next - uint64(len(j.ring)) // the last one forgotten
	if seq < oldest {
		seq, gap = oldest, true
	}
	return append([]Change(nil), j.ring[seq-oldest:]...), gap
}

// changes lists what is different in next, a model of the same kind published
// after old. Both must be Full. Another life of the server closes everything of
// the old one.
func changes(old, next *Model) []Change {
	d := changeList{at: next.Asked}
	if old.Server.ID != next.Server.ID {
		d.sessions(old.Sessions, nil)
		d.windows(old.Windows, nil)
		d.panes(old.Panes, nil)
		if old.Server.ID != (ServerID{}) {
			d.add(Change{Kind: ServerGone, Before: strconv.Itoa(old.Server.ID.PID)})
		}
		old = &Model{}
	}
	d.sessions(old.Sessions, next.Sessions)
	d.windows(old.Windows, next.Windows)
	d.panes(old.Panes, next.Panes)
	d.people(old, next)
	return d.all
}

// changeList collects the changes between two models.
type changeList struct {
	at  time.Time
	all []Change
}

func (d *changeList) add(c Change) {
	c.Time = d.at
	d.all = append(d.all, c)
}

// merge walks two lists sorted by id and pairs the entries.
func merge[T any](old, next []*T, id func(*T) uint32, f func(was, is *T)) {
	for len(old) > 0 || len(next) > 0 {
		switch {
		case len(next) == 0 || len(old) > 0 && id(old[0]) < id(next[0]):
			f(old[0], nil)
			old = old[1:]
		case len(old) == 0 || id(next[0]) < id(old[0]):
			f(nil, next[0])
			next = next[1:]
		default:
			f(old[0], next[0])
			old, next = old[1:], next[1:]
		}
	}
}

func (d *changeList) sessions(old, next []*Session) {
	merge(old, next, func(s *Session) uint32 { return uint32(s.ID) }, func(was, is *Session) {
		switch {
		case is == nil:
			d.add(Change{Kind: SessionClosed, Session: &was.ID, Before: was.Name, Was: itself(was)})
		case was == nil:
			d.add(Change{Kind: SessionCreated, Session: &is.ID, After: is.Name, Is: itself(is)})
		case was.Name != is.Name:
			d.add(Change{Kind: Renamed, Session: &is.ID, Before: was.Name, After: is.Name, Was: itself(was), Is: itself(is)})
		}
	})
}

func (d *changeList) windows(old, next []*Window) {
	merge(old, next, func(w *Window) uint32 { return uint32(w.ID) }, func(was, is *Window) {
		switch {
		case is == nil:
			d.add(Change{Kind: WindowClosed, Window: &was.ID, Session: firstSession(was.Links), Before: was.Name, Was: was.Links})
			return
		case was == nil:
			d.add(Change{Kind: WindowCreated, Window: &is.ID, Session: firstSession(is.Links), After: is.Name, Is: is.Links})
			return
		}
		change := func(kind ChangeKind, before, after string) {
			if before != after {
				d.add(Change{
					Kind: kind, Window: &is.ID, Session: firstSession(is.Links), Before: before, After: after,
					Was: was.Links, Is: is.Links,
				})
			}
		}
		change(Renamed, was.Name, is.Name)
		change(Moved, Placements(was.Links), Placements(is.Links))
		change(Resized, size(was.Width, was.Height), size(is.Width, is.Height))
		change(Selected, was.ActivePane.String(), is.ActivePane.String())
		d.selected(was, is)
	})
}

// selected tells sessions whose current window became this one.
func (d *changeList) selected(was, is *Window) {
	for _, l := range is.Links {
		before := false
		for _, o := range was.Links {
			before = before || o.Session == l.Session && o.Active
		}
		if l.Active && !before {
			here := []Link{l}
			d.add(Change{Kind: Selected, Window: &is.ID, Session: &l.Session, After: is.ID.String(), Was: here, Is: here})
		}
	}
}

func (d *changeList) panes(old, next []*Pane) {
	merge(old, next, func(p *Pane) uint32 { return uint32(p.ID) }, func(was, is *Pane) {
		switch {
		case is == nil:
			d.add(Change{Kind: PaneClosed, Pane: &was.ID, Window: &was.Window, Session: firstSession(was.Links), Before: was.Command, Was: was.Links})
			return
		case was == nil:
			d.add(Change{Kind: PaneCreated, Pane: &is.ID, Window: &is.Window, Session: firstSession(is.Links), After: is.Command, Is: is.Links})
			return
		}
		change := func(kind ChangeKind, before, after string) {
			if before != after {
				d.add(Change{
					Kind: kind, Pane: &is.ID, Window: &is.Window, Session: firstSession(is.Links), Before: before, After: after,
					Was: was.Links, Is: is.Links,
				})
			}
		}
		if is.Dead && !was.Dead {
			change(PaneDied, "", Death(is))
		}
		if was.PID != is.PID {
			change(PaneRespawned, strconv.Itoa(was.PID), strconv.Itoa(is.PID))
		}
		change(CommandChanged, was.Command, is.Command)
		change(TitleChanged, was.Title, is.Title)
		change(ModeChanged, was.Mode, is.Mode)
		change(Moved, was.Window.String(), is.Window.String())
		change(Resized, size(was.Width, was.Height), size(is.Width, is.Height))
	})
}

func (d *changeList) people(was, is *Model) {
	old, next := was.Clients, is.Clients
	in := func(m *Model, c *Client) []Link {
		if s, ok := m.Session(c.Session); ok {
			return itself(s)
		}
		return nil
	}
	find := func(in []*Client, c *Client) bool {
		for _, x := range in {
			if x.Person() && x.PID == c.PID && x.Name == c.Name && x.Session == c.Session {
				return true
			}
		}
		return false
	}
	for _, c := range old {
		if c.Person() && !find(next, c) {
			d.add(Change{Kind: PersonLeft, Session: &c.Session, Window: &c.Window, Before: c.Name, Was: in(was, c)})
		}
	}
	for _, c := range next {
		if c.Person() && !find(old, c) {
			d.add(Change{Kind: PersonAttached, Session: &c.Session, Window: &c.Window, After: c.Name, Is: in(is, c)})
		}
	}
}

func firstSession(l []Link) *controlmode.SessionID {
	if len(l) == 0 {
		return nil
	}
	return &l[0].Session
}

// itself is a session as the placement of everything in it.
func itself(s *Session) []Link { return []Link{{Session: s.ID, SessionName: s.Name}} }

// Placements names placements by session id and index: "$0:1 $2:3".
func Placements(links []Link) string {
	var s string
	for i, l := range links {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s:%d", l.Session, l.Index)
	}
	return s
}

func size(w, h int) string { return fmt.Sprintf("%dx%d", w, h) }

// Death says how a dead pane's process ended, as far as tmux knows.
func Death(p *Pane) string {
	switch {
	case p.DeadSignal != "":
		return "signal " + p.DeadSignal
	case p.DeadStatus != "":
		return "status " + p.DeadStatus
	}
	return "dead"
}

// Back is the cursor after an earlier change of the same journal.
func (c JournalCursor) Back(seq uint64) JournalCursor {
	c.seq = seq
	return c
}
