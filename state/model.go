package state

import (
	"time"

	"tmux-mcpd/controlmode"
)

// ServerID identifies one life of a tmux server. Ids of sessions, windows and
// panes, cursors and runs are void under another ServerID. The zero value means
// no server.
type ServerID struct {
	PID       int
	StartTime int64 // seconds, #{start_time}
}

// Server is what the model knows of the tmux server.
type Server struct {
	ID         ServerID
	Version    string // as tmux prints it, for example "3.3a"
	SocketPath string
}

// Tables says which parts of a Model were asked for. A read asks only for what
// it needs; lookups in a part that was not asked for find nothing.
type Tables uint8

// The tables of a Model. Windows and panes carry the placements of their
// windows, so either can be had alone.
const (
	Sessions Tables = 1 << iota
	Windows
	Panes
	Clients
	// Places is panes of which only id, window, window name and Links are
	// known. It costs tmux a small part of what Panes does, which covers it.
	Places
	Full = Sessions | Windows | Panes | Clients
)

// Model is one immutable picture of a tmux server, of one instant: everything
// in it was answered by one control-mode line. Nothing reachable from it may be
// changed. Any goroutine may read it.
type Model struct {
	Rev    uint64    // grows with every published model; 0 for a read's own view
	Asked  time.Time // tmux was asked at or after this moment
	Have   Tables
	Server Server

	// Sorted by id.
	Sessions []*Session
	Windows  []*Window
	Panes    []*Pane
	Clients  []*Client

	superseded chan struct{} // closed when a newer model is published; nil in a read's own view
}

// Superseded is closed when a newer model has been published. It is nil, and
// blocks for ever, for a read's own view.
func (m *Model) Superseded() <-chan struct{} { return m.superseded }

// Session is a tmux session.
type Session struct {
	ID       controlmode.SessionID
	Name     string
	Group    string // session group name, "" for none
	Windows  int    // number of links
	Attached int    // tmux's own count, control clients included
	Created  int64
	Activity int64

	EndsUnattached       bool // destroy-unattached: tmux ends it when nobody is attached
	ServerEndsUnattached bool // exit-unattached, the same of all sessions: tmux exits then
}

// Link is one placement of a window: an index in a session.
type Link struct {
	Session     controlmode.SessionID
	SessionName string
	Index       int
	Active      bool // current window of that session
}

// Window is a tmux window. A window linked into several sessions is one Window
// with several Links.
type Window struct {
	ID         controlmode.WindowID
	Name       string
	Layout     string
	Zoomed     bool
	PaneCount  int
	Width      int
	Height     int
	ActivePane controlmode.PaneID
	Links      []Link // sorted by session id, then index
}

// Pane is a tmux pane.
type Pane struct {
	ID         controlmode.PaneID
	Window     controlmode.WindowID
	WindowName string
	Index      int
	Width      int
	Height     int
	Active     bool // active pane of its window
	Zoomed     bool // its window is zoomed
	AtTop      bool
	AtBottom   bool
	AtLeft     bool
	AtRight    bool
	PID        int // identifies the process generation
	TTY        string
	Dead       bool
	DeadStatus string // exit status, "" while alive or ended by a signal
	DeadSignal string // tmux 3.3 on
	DeadTime   int64  // when it ended, seconds; 0 while alive
	InMode     int    // number of modes on the pane's stack
	Mode       string // name of the newest mode
	InputOff   bool
	Synced     bool // synchronize-panes is in effect
	Alternate  bool // alternate screen is on
	Command    string
	Path       string
	Title      string
	Links      []Link // placements of its window, sorted as in Window
}

// Client is a client attached to the tmux server.
type Client struct {
	Name    string
	PID     int
	Control bool
	Own     bool // started by this daemon
	Flags   string
	Session controlmode.SessionID // meaningful if Attached
	Window  controlmode.WindowID  // current window of that session
	Pane    controlmode.PaneID    // active pane of that window
	Zoomed  bool                  // that window is zoomed
}

// Person tells whether the client counts as a person looking at a screen:
// every client that is not a control client, and every control client that this
// daemon did not start (iTerm2 shows tmux windows through one).
func (c *Client) Person() bool { return !c.Own }
