package state

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// Errors callers branch on.
var (
	// ErrNotFound: the named session, window or pane does not exist on this server.
	ErrNotFound = errors.New("not found")
	// ErrNoServer: no tmux server is running on the socket.
	ErrNoServer = errors.New("no tmux server is running")
	// ErrOtherServer: the cursor or id belongs to another life of the tmux server.
	ErrOtherServer = errors.New("the tmux server was restarted")
	// ErrOtherPane: the cursor names another pane.
	ErrOtherPane = errors.New("the cursor belongs to another pane")
	// ErrDetached: the daemon is not attached to tmux at the moment.
	ErrDetached = errors.New("not attached to tmux")
)

// WatchMode is when panes are watched (their output received).
type WatchMode string

// The watch modes of the design, section 4.
const (
	WatchAuto   WatchMode = "auto"
	WatchAll    WatchMode = "all"
	WatchDemand WatchMode = "demand"
)

// Config configures a Mirror. The zero value serves the user's default server.
type Config struct {
	Bin       string // tmux binary, "" for tmux from PATH
	Socket    controlmode.Socket
	Transport controlmode.Transport
	Watch     WatchMode
	Timeout   time.Duration // per tmux command, 0 for 10 s
	PaneBytes int           // byte log per watched pane, 0 for 1 MiB
	AllBytes  int64         // all byte logs together, 0 for 256 MiB
	Log       *zap.Logger   // nil for none
}

// Mirror keeps in step with one tmux server. All methods may be called by any
// goroutine once Run has been started.
type Mirror struct{}

// New makes a Mirror. It starts nothing.
func New(cfg Config) *Mirror { panic("skeleton") }

// Run attaches, stays attached, re-attaches, and returns when ctx is done and
// everything it started has ended. It never starts a tmux server.
func (m *Mirror) Run(ctx context.Context) error { panic("skeleton") }

// Model is the newest published model; one atomic load. It can be stale: reads
// go through Arrive.
func (m *Mirror) Model() *Model { panic("skeleton") }

// Arrive marks the moment a call arrived (promise P1) and the tables it will
// ask for. It starts nothing. All reads of one batch share one Arrival.
func (m *Mirror) Arrive(t Tables) *Arrival { panic("skeleton") }

// Arrival is one call's look at tmux.
type Arrival struct{}

// Model answers the tables t of a refresh that started after the Arrival was
// made. Tables declared in Arrive come with one shared refresh; others cost
// their own. Without a tmux server the model is empty (Server.ID zero).
func (a *Arrival) Model(ctx context.Context, t Tables) (*Model, error) { panic("skeleton") }

// Pane answers a model with that one pane, its Links, and all clients: one round
// trip whatever the number of panes, unless the pane's window has several
// placements. ErrNotFound or ErrNoServer otherwise.
func (a *Arrival) Pane(ctx context.Context, id controlmode.PaneID) (*Model, error) { panic("skeleton") }

// Do runs a request on the structure client. Writes are never repeated: after
// a lost connection the caller cannot know whether the request was executed.
func (m *Mirror) Do(ctx context.Context, req controlmode.Request) (controlmode.Reply, error) {
	panic("skeleton")
}

// CaptureRange says what of a pane's grid to capture. Rows are tmux's: 0 is the
// top of the visible screen, negative rows are history.
type CaptureRange struct {
	Start, End *int // nil: the visible screen's end of the range
	Join       bool // join wrapped rows
	// MaxRows shortens the range before tmux is asked, keeping its end; 0 for
	// no limit. RowBytes > 0 limits it also to RowBytes/(width*32+1) rows.
	MaxRows  int
	RowBytes int
}

// Capture is captured grid text.
type Capture struct {
	Lines          []string // valid UTF-8, no control characters but TAB
	Start, End     *int     // range sent to tmux, nil where none was given
	RangeClamped   bool     // MaxRows or RowBytes shortened the range
	ByteClamped    bool     // RowBytes did
	Width, Height  int
	HistorySize    int
	CursorX        int
	CursorY        int
	ScrollPosition int
	Alternate      bool
}

// Capture captures a pane, one round trip in the common case. The screen is
// always tmux's own. ErrNotFound, ErrNoServer.
func (m *Mirror) Capture(ctx context.Context, id controlmode.PaneID, r CaptureRange) (*Capture, error) {
	panic("skeleton")
}

// Snapshot is a pane's screen, its metadata and, if it is watched, the cursor
// that continues exactly where the screen ends; all of one instant (P2).
type Snapshot struct {
	Capture
	Model  *Model  // as Arrival.Pane
	Pane   *Pane   // the pane in it
	Cursor *Cursor // nil if the pane is not watched
}

// Snapshot takes a Snapshot of the visible screen with wrapped rows joined. It
// never starts a watch.
func (m *Mirror) Snapshot(ctx context.Context, id controlmode.PaneID) (*Snapshot, error) {
	panic("skeleton")
}

// GapReason names why output is missing.
type GapReason string

// The gap reasons of the tool contract, section 11.
const (
	GapAttached     GapReason = "attached"
	GapOwnerChanged GapReason = "owner_changed"
	GapPaused       GapReason = "paused"
	GapPaneDied     GapReason = "pane_died"
	GapRespawned    GapReason = "respawned"
	GapEvicted      GapReason = "evicted"
	GapNotWatched   GapReason = "not_watched"
	GapRestarted    GapReason = "daemon_restarted"
)

// Gap is output that a reader will not get. Bytes is nil when nobody knows how
// much it was.
type Gap struct {
	Reason GapReason
	Bytes  *int64
}

// Since is what a pane printed after a cursor.
type Since struct {
	Data   []byte // raw bytes, in order; parts before and after a gap are joined
	Missed int64  // known number of bytes lost
	Gap    *Gap   // the newest gap between the cursor and Cursor, nil for none
	Cursor Cursor // continues after Data
}

// StartWatch starts (or joins) the watch of a pane and captures its screen and
// up to history rows above it, with the cursor that continues exactly after it.
func (m *Mirror) StartWatch(ctx context.Context, id controlmode.PaneID, r CaptureRange) (*Capture, Cursor, error) {
	panic("skeleton")
}

// Since answers what the pane printed after the cursor. With wait > 0 it waits
// for the first byte at most that long; a timeout is an empty answer.
// ErrOtherServer, ErrOtherPane, ErrNotFound, ErrNoServer.
func (m *Mirror) Since(ctx context.Context, id controlmode.PaneID, from Cursor, wait time.Duration) (*Since, error) {
	panic("skeleton")
}

// Status is what `tmux-mcpd status` shows of a Mirror.
type Status struct {
	Attached     bool
	Since        time.Time // of the present attachment, or of being detached
	Reason       string    // why not attached, "" while attached
	Server       Server
	Refreshes    uint64
	StreamsOpen  int
	WatchedPanes int
	LogBytes     int64 // bytes held in byte logs
	Unknown      uint64
	LastError    string
}

// Status reports the state of the Mirror without asking tmux.
func (m *Mirror) Status() Status { panic("skeleton") }
