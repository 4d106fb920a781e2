package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"tmux-mcpd/state"
)

// user is somebody who does random things to tmux. All chance comes from one
// seed, so that a run can be repeated.
type user struct {
	*rand.Rand
	x      *tmux
	world  *state.Model // as tmux was before the next thing is done
	people []*person
	count  int // names given so far
}

// An op is one thing a user does: the words of a tmux command, or nil if that
// is not possible now. tmux may refuse it: refusals are part of the game.
type op struct {
	weight int
	words  func(u *user) []string
}

var ops = []op{
	{7, func(u *user) []string {
		if len(u.world.Sessions) > 5 {
			return nil
		}
		return []string{"new-session", "-d", "-s", u.name(), "-x", u.size(40, 120), "-y", u.size(12, 40), "exec cat"}
	}},
	{3, func(u *user) []string { // a grouped session
		if len(u.world.Sessions) > 5 {
			return nil
		}
		return []string{"new-session", "-d", "-s", u.name(), "-t", u.session()}
	}},
	{4, func(u *user) []string { return u.unlessLast("kill-session", "-t", u.session()) }},
	{1, func(u *user) []string { return []string{"kill-session", "-a", "-t", u.session()} }},
	{8, func(u *user) []string {
		if len(u.world.Windows) > 11 {
			return nil
		}
		return u.maybe("-d", "new-window", "-n", u.name(), "-t", u.session()+":", "exec cat")
	}},
	{2, func(u *user) []string { // one whose name follows its command
		return []string{"new-window", "-d", "-t", u.session() + ":", "exec cat"}
	}},
	{2, func(u *user) []string {
		return u.maybe("-d", "new-window", "-a", "-t", u.link(), "-n", u.name(), "exec cat")
	}},
	{4, func(u *user) []string { return u.unlessLast("kill-window", "-t", u.link()) }},
	{10, func(u *user) []string {
		if len(u.world.Panes) > 20 {
			return nil
		}
		return u.maybe("-d", "split-window", u.one("-h", "-v", "-hb", "-vf"), "-t", u.pane(), "-c", u.place(), "exec cat")
	}},
	{6, func(u *user) []string { return u.unlessLast("kill-pane", "-t", u.pane()) }},
	{6, func(u *user) []string {
		return u.maybe("-d", u.one("join-pane", "move-pane"), u.one("-h", "-v"), "-s", u.pane(), "-t", u.pane())
	}},
	{5, func(u *user) []string { return u.maybe("-d", "break-pane", "-s", u.pane()) }},
	{3, func(u *user) []string {
		return []string{"break-pane", "-d", "-s", u.pane(), "-t", u.session() + ":", "-n", u.name()}
	}},
	{6, func(u *user) []string { return u.maybe("-d", "swap-pane", "-s", u.pane(), "-t", u.pane()) }},
	{4, func(u *user) []string { return u.maybe("-d", "swap-window", "-s", u.link(), "-t", u.link()) }},
	{5, func(u *user) []string { return u.maybe("-d", "move-window", "-s", u.link(), "-t", u.session()+":") }},
	{2, func(u *user) []string { return u.maybe("-k", "move-window", "-d", "-s", u.link(), "-t", u.link()) }},
	{2, func(u *user) []string {
		s := u.world.Sessions[u.IntN(len(u.world.Sessions))]
		if s.Group != "" || u.twice(s.ID.String()) {
			return nil
		}
		return []string{"move-window", "-r", "-t", s.ID.String()}
	}},
	{6, func(u *user) []string { return u.maybe("-d", "link-window", "-s", u.link(), "-t", u.session()+":") }},
	{5, func(u *user) []string { return u.maybe("-k", "unlink-window", "-t", u.link()) }},
	{5, func(u *user) []string { return []string{"rename-window", "-t", u.window(), u.name()} }},
	{3, func(u *user) []string { return []string{"rename-session", "-t", u.session(), u.name()} }},
	{3, func(u *user) []string {
		return []string{"resize-window", "-t", u.window(), "-x", u.size(20, 150), "-y", u.size(8, 60)}
	}},
	{4, func(u *user) []string {
		return []string{"resize-pane", "-t", u.pane(), u.one("-x", "-y"), u.size(2, 60)}
	}},
	{6, func(u *user) []string { return []string{"resize-pane", "-Z", "-t", u.pane()} }},
	{6, func(u *user) []string { return []string{"select-window", "-t", u.link()} }},
	{6, func(u *user) []string { return u.maybe("-Z", "select-pane", "-t", u.pane()) }},
	{2, func(u *user) []string {
		return []string{u.one("last-window", "next-window", "previous-window"), "-t", u.session()}
	}},
	{2, func(u *user) []string { return []string{u.one("last-pane", "rotate-window"), "-t", u.window()} }},
	{4, func(u *user) []string {
		return []string{"select-layout", "-t", u.pane(), u.one("even-horizontal", "even-vertical", "main-horizontal", "tiled", "-n", "-o", "-E")}
	}},
	{4, func(u *user) []string {
		return []string{"respawn-pane", "-k", "-t", u.pane(), "-c", u.place(), "exec cat"}
	}},
	{1, func(u *user) []string { return []string{"respawn-window", "-k", "-t", u.link(), "exec cat"} }},
	{3, func(u *user) []string { // on the alternate screen
		return []string{"respawn-pane", "-k", "-t", u.pane(), `printf '\033[?1049h'; exec cat`}
	}},
	{2, func(u *user) []string {
		return []string{"set-option", "-w", "-t", u.window(), "remain-on-exit", u.one("on", "off")}
	}},
	{4, func(u *user) []string {
		return []string{"respawn-pane", "-k", "-t", u.pane(), u.one("exit 3", "kill -9 $$", "true")}
	}},
	{3, func(u *user) []string {
		return []string{"set-option", "-w", "-t", u.window(), "synchronize-panes", u.one("on", "off")}
	}},
	{3, func(u *user) []string { return []string{"select-pane", "-t", u.pane(), u.one("-d", "-e", "-m")} }},
	{4, func(u *user) []string { return []string{"select-pane", "-t", u.pane(), "-T", u.name()} }},
	{4, func(u *user) []string { return []string{u.one("copy-mode", "clock-mode"), "-t", u.pane()} }},
	{3, func(u *user) []string { return []string{"copy-mode", "-q", "-t", u.pane()} }},
	{2, func(u *user) []string {
		if len(u.people) > 1 {
			return nil
		}
		u.people = append(u.people, u.x.person(u.session(), uint16(40+u.IntN(80)), uint16(12+u.IntN(30))))
		return []string{"select-window", "-t", u.link()}
	}},
	{2, func(u *user) []string {
		if len(u.people) == 0 {
			return nil
		}
		u.people[0].leave()
		u.people = u.people[1:]
		return []string{"select-pane", "-t", u.pane()}
	}},
	{2, func(u *user) []string {
		if len(u.people) == 0 {
			return nil
		}
		return []string{"switch-client", "-c", u.people[0].name, "-t", u.session()}
	}},
	{1, func(u *user) []string { return []string{"kill-server"} }},
}

// next chooses what is done.
func (u *user) next() []string {
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	for {
		n := u.IntN(total)
		i := slices.IndexFunc(ops, func(o op) bool { n -= o.weight; return n < 0 })
		if words := ops[i].words(u); words != nil {
			return words
		}
	}
}

// foreign tells the clients of people: all that the daemon did not start.
func (u *user) foreign(pid int) bool {
	return slices.ContainsFunc(u.people, func(p *person) bool { return p.cmd.Process.Pid == pid })
}

func (u *user) one(of ...string) string { return of[u.IntN(len(of))] }

// maybe puts an option behind the command's name, or not.
func (u *user) maybe(option string, words ...string) []string {
	if u.IntN(2) == 0 {
		return words
	}
	return slices.Insert(words, 1, option)
}

// unlessLast is for what can end the last session and thus the server, which
// has to stay rare.
func (u *user) unlessLast(words ...string) []string {
	if len(u.world.Sessions) == 1 && u.IntN(6) > 0 {
		return nil
	}
	return words
}

func (u *user) size(least, most int) string { return fmt.Sprint(least + u.IntN(most-least)) }

func (u *user) session() string { return u.world.Sessions[u.IntN(len(u.world.Sessions))].ID.String() }

func (u *user) window() string { return u.world.Windows[u.IntN(len(u.world.Windows))].ID.String() }

func (u *user) pane() string { return u.world.Panes[u.IntN(len(u.world.Panes))].ID.String() }

// twice tells whether a session holds a window more than once. Neither such a
// session nor one of a group may be renumbered here: tmux does not survive it,
// without any help of ours.
//
// In a group the other sessions keep the old numbers until windows change next,
// and can be left without a current window then; a little later the server
// crashes (3.3a, 3.5a, 3.7c; not 3.8). Sessions a and b of one group, windows 0,
// 5 and 7: select-window b:5, b:7; move-window -r -t a; new-window -t a:.
//
// A window that is in the session twice is entered twice into its list of last
// windows, which thereby becomes a ring: 3.3a loops for ever at a later
// select-window (session_renumber_windows). new-window -t m:1; link-window
// -s m:0 -t m:5; new-window -t m:7; select-window 0, 5, 1, 7; move-window -r;
// select-window 0.
func (u *user) twice(session string) bool {
	for _, w := range u.world.Windows {
		n := 0
		for _, l := range w.Links {
			if l.Session.String() == session {
				n++
			}
		}
		if n > 1 {
			return true
		}
	}
	return false
}

// link is a placement of a window.
func (u *user) link() string {
	w := u.world.Windows[u.IntN(len(u.world.Windows))]
	l := w.Links[u.IntN(len(w.Links))]
	return fmt.Sprintf("%v:%d", l.Session, l.Index)
}

// name is a new name, mostly a nasty one. A # is doubled: tmux expands names.
func (u *user) name() string {
	u.count++
	return u.one("plain", "two words", "a|b,c|", "%end 1 2 1", "$0", "@1", "%2", "=x", "tail ", " head", "-d", "{}[]()",
		"##{pane_id}", `q"uo'te`, `back\slash`, "semi;", "é中🔨", "~$HOME`", "3,3", "colon:dot.") + fmt.Sprint(u.count)
}

// place is a folder whose name a listing can trip over.
func (u *user) place() string {
	dir := u.x.dir + "/" + u.one("plain", "sp ace", "new\nline", "bar|,", "é中", `a\b\001`, "t\tab")
	os.Mkdir(dir, 0o700) // it may be there
	return dir
}
