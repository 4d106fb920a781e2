package transcript

import "fmt"

// Observed is what tmux says of a pane at the transcript's offset.
type Observed struct {
	CursorX, CursorY int // #{cursor_x} #{cursor_y}
	HistorySize      int // #{history_size}
	Alternate        bool
	// Screen is the visible rows of `capture-pane -p`; nil compares none.
	Screen []string
}

// Audit compares the transcript with tmux. It returns nil if they agree, else
// an error that says where they part, without any of the pane's text. The cure
// is a Reseed with Corrected.
func (t *Transcript) Audit(o Observed) error {
	switch {
	case t.cx != o.CursorX || t.cy != o.CursorY:
		return fmt.Errorf("cursor is at %d,%d in tmux, %d,%d here", o.CursorX, o.CursorY, t.cx, t.cy)
	case t.HistorySize() != o.HistorySize:
		return fmt.Errorf("history has %d rows in tmux, %d here", o.HistorySize, t.HistorySize())
	case t.alternate != o.Alternate:
		return fmt.Errorf("alternate screen is %v in tmux, %v here", o.Alternate, t.alternate)
	case o.Screen == nil:
		return nil
	case len(o.Screen) > t.height:
		return fmt.Errorf("screen has %d rows in tmux, %d here", len(o.Screen), t.height)
	}
	for y, have := range t.Screen() {
		want := ""
		if y < len(o.Screen) {
			want = trimBlanks(o.Screen[y])
		}
		if have != want {
			return fmt.Errorf("row %d has %d bytes in tmux, %d here, and differs", y, len(want), len(have))
		}
	}
	return nil
}
