package transcript

import "time"

// Limits on the size of a screen. tmux itself allows 10,000 each way.
const (
	maxWidth  = 10000
	maxHeight = 10000
)

// Transcript renders one pane's output bytes into the rows that tmux would
// show. It is not safe for concurrent use; nothing in it blocks, starts a
// goroutine or reads a clock.
type Transcript struct {
	parser
	profile Profile

	width, height int
	rows          []*row // the visible rows
	history       history
	above         int // history rows that tmux has and a seed did not bring

	cx, cy       int // cx may be width: the next character wraps
	upper, lower int // scroll region, inclusive
	tabs         []bool
	pen          pen
	slot         slot // of DECSC and SCOSC

	wrapMode, insertMode, originMode bool

	alternate      bool   // the alternate screen is shown
	saved          []*row // the other screen meanwhile
	savedSpare     []*row
	savedWidth     int // the size when it was saved: in another, tmux wraps it anew
	savedHeight    int
	savedX, savedY int // of mode 1049
	savedSet       bool
	savedPen       pen
	alternateSince int64

	// Window options of tmux, see SetOptions.
	alternateScreen bool
	scrollOnClear   bool

	lastRune  rune // what REP repeats
	canRepeat bool
	joiner    bool // a zero width joiner waits for its character

	args    [maxParameters]int
	argText [maxParameters][2]uint8
	nArgs   int

	clusters clusters
	pool     []*row
	nextID   uint64

	off      int64 // offset after the byte at hand
	base     int64 // where the stream of this transcript began
	changed  int64 // last change of any row
	last     *row  // the row of the last change
	partials partials
	orphans  []orphan
	lost     lost
	entered  int64 // logical lines that have entered history
	stale    bool

	bells             uint64
	title, windowName string
	titles            []string
	marks             marks
	onMark            func(Mark)
	typing            typing

	scratch      []cell
	scratchText  []byte
	scratchLines []line
	scratchTold  []told
	clusterText  []byte
	run          []byte
}

// slot is what DECSC saves.
type slot struct {
	pen    pen
	x, y   int
	origin bool
}

// New makes the transcript of a pane that has printed nothing yet. Sizes are
// in columns and rows; historyLimit is the pane's #{history_limit}, which
// tmux fixes when it makes the pane. Offsets count from 0.
func New(width, height, historyLimit int, p Profile) *Transcript {
	t := &Transcript{
		profile:         p,
		width:           min(max(width, 1), maxWidth),
		height:          min(max(height, 1), maxHeight),
		wrapMode:        true,
		alternateScreen: true,
		scrollOnClear:   true,
	}
	t.history.limit, t.history.budget = max(historyLimit, 0), -1
	t.lower = t.height - 1
	t.resetTabs()
	t.rows = make([]*row, t.height)
	for y := range t.rows {
		t.rows[y] = t.newRow(0)
	}
	return t
}

// Options are the window and pane options of tmux that decide rows.
type Options struct {
	AlternateScreen bool // alternate-screen; off ignores modes 47, 1047, 1049
	ScrollOnClear   bool // scroll-on-clear (3.3 and later); on before that
}

// SetOptions says what tmux's options are. Both are on until told otherwise.
func (t *Transcript) SetOptions(o Options) {
	t.alternateScreen, t.scrollOnClear = o.AlternateScreen, o.ScrollOnClear
}

// Write renders a chunk of output that came at a time. The time only matters
// to tmux's five-second limit on strings; a zero time never expires one.
// Offset advances by len(chunk). Every readable state, and so every offset a
// reader may keep, lies between two calls or at an offset that Since returned.
func (t *Transcript) Write(chunk []byte, at time.Time) {
	if len(chunk) == 0 {
		return
	}
	t.abandon(at)
	t.joiner = false // 3.3a forgets it between two reads
	t.parse(chunk, at)
	t.notePartial()
}

// Offset is the number of bytes of the stream rendered so far.
func (t *Transcript) Offset() int64 { return t.off }

// Size is the screen's size in columns and rows.
func (t *Transcript) Size() (width, height int) { return t.width, t.height }

// Cursor is the cursor's column and row, as #{cursor_x} and #{cursor_y} give
// them: the column may be the width.
func (t *Transcript) Cursor() (x, y int) { return t.cx, t.cy }

// Alternate tells whether the alternate screen is shown.
func (t *Transcript) Alternate() bool { return t.alternate }

// HistorySize is the number of rows above the screen.
func (t *Transcript) HistorySize() int { return t.above + t.history.tmux() }

// Stale tells that tmux has rewrapped rows in a way that is not copied here,
// so that the transcript needs a Reseed: the pane was resized while it showed
// the alternate screen, which has now been left.
func (t *Transcript) Stale() bool { return t.stale }

// Bells counts the bells that the program has rung.
func (t *Transcript) Bells() uint64 { return t.bells }

// Profile is the profile it renders with.
func (t *Transcript) Profile() Profile { return t.profile }

func (t *Transcript) clearHistory() {
	t.trim(t.history.tmux())
	t.forget(t.history.kept)
	t.history.clear()
	t.above = 0
}
