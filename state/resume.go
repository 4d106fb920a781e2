package state

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"tmux-mcpd/controlmode"
)

// savedPanes is what the daemon writes down so that cursors outlive it: where
// each watched pane's stream stood, and nothing of what it said.
type savedPanes struct {
	PID       int         `json:"pid"` // of the tmux server
	StartTime int64       `json:"startTime"`
	Panes     []savedPane `json:"panes"`
}

type savedPane struct {
	Pane   controlmode.PaneID `json:"pane"`
	PID    int                `json:"pid"` // process generation
	Width  int                `json:"width"`
	Height int                `json:"height"`
	Stream string             `json:"stream"` // hex
	From   int64              `json:"from"`   // where the stream began
	End    int64              `json:"end"`
	Saved  int64              `json:"saved"` // seconds; End is after all that was read before this second
}

// resumable are the panes that may be gone on with, of the life that was saved.
type resumable struct {
	life  ServerID
	panes map[controlmode.PaneID]savedPane
}

// loadResumable reads what an earlier daemon saved. No file is no error.
func loadResumable(path string) (resumable, error) {
	r := resumable{panes: map[controlmode.PaneID]savedPane{}}
	if path == "" {
		return r, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("saved cursors: %w", err)
	}
	var s savedPanes
	if err := json.Unmarshal(b, &s); err != nil {
		return r, fmt.Errorf("saved cursors in %s: %w", path, err)
	}
	r.life = ServerID{PID: s.PID, StartTime: s.StartTime}
	for _, p := range s.Panes {
		if b, err := hex.DecodeString(p.Stream); err == nil && len(b) == len(Stream{}) && p.From >= 0 && p.End >= p.From {
			r.panes[p.Pane] = p
		}
	}
	return r, nil
}

// save writes down where the watched panes stand. What tmux had read from them
// in seconds before the one in which it is asked has been delivered by the time
// it answers. The file is replaced whole.
func (w *watches) save(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	w.mu.Lock()
	s := savedPanes{PID: w.life.PID, StartTime: w.life.StartTime, Panes: []savedPane{}}
	panes, streams := maps.Clone(w.panes), maps.Clone(w.streams)
	w.mu.Unlock()
	for _, st := range streams {
		asked := time.Now()
		if _, err := st.ask(ctx, controlmode.Request{
			Commands: []controlmode.Command{controlmode.Cmd("display-message", "-p", "")}, Fence: true,
		}); err != nil {
			continue // its panes are not saved: their cursors will be told of a gap
		}
		for _, p := range panes {
			if saved, ok := p.out.saved(asked); ok && p.stream == st {
				s.Panes = append(s.Panes, saved)
			}
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save cursors: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save cursors: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save cursors: %w", err)
	}
	return nil
}

// saved is where the log stands, if its stream can be gone on with: only what is
// being delivered, as its screen is known there.
func (o *Output) saved(asked time.Time) (savedPane, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open || o.text == nil || o.held >= 0 || o.stale {
		return savedPane{}, false
	}
	e := o.epochs[len(o.epochs)-1]
	width, height := o.text.Size()
	return savedPane{
		Pane: o.pane, PID: o.pid, Width: width, Height: height, Stream: hex.EncodeToString(e.stream[:]),
		From: e.from, End: o.ring.end, Saved: asked.Unix(),
	}, true
}

// goneOn remembers that a stream of an earlier daemon is one of this one's now.
func (w *watches) goneOn(was savedPane) {
	s, err := hex.DecodeString(was.Stream)
	if err != nil || len(s) != len(Stream{}) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resumed[Stream(s)] = struct{}{}
}

// resume makes the stream that has just begun the one an earlier daemon was
// delivering, if the pane has provably not printed since: it is the same process
// in the same size, and tmux saw the last activity of its window in a second
// before the one of which the daemon knew that all before it had come.
func (o *Output) resume(s *paneSeed, was savedPane) bool {
	if was.PID != s.pid || was.Width != s.Width || was.Height != s.Height || s.activity >= was.Saved {
		return false
	}
	stream, err := hex.DecodeString(was.Stream)
	if err != nil || len(stream) != len(Stream{}) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.epochs) != 1 || o.ring.end != 0 || o.text != nil {
		return false // it has printed meanwhile, or is not new
	}
	o.epochs[0] = epoch{Stream(stream), was.From, GapRestarted}
	o.ring.start, o.ring.end = was.End, was.End
	o.held, o.resumed = was.End, was.End
	return true
}
