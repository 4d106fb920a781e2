package controlmode

import (
	"path/filepath"
	"strconv"
)

// Abs is the absolute path of the server's socket, as tmux makes it: the path
// given, or $TMUX_TMPDIR (if set, else /tmp), "tmux-UID", and the name given or
// "default" (tmux.c make_label, 3.2a to 3.8). $TMUX is not looked at: being
// started inside a pane must not choose another server. Unlike tmux it does not
// resolve symbolic links in $TMUX_TMPDIR.
func (s Socket) Abs(getenv func(string) string, uid int) string {
	if s.Path != "" {
		return s.Path
	}
	dir := getenv("TMUX_TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	name := s.Name
	if name == "" {
		name = "default"
	}
	return filepath.Join(dir, "tmux-"+strconv.Itoa(uid), name)
}
