package mcp

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// view is one entity in both halves of an answer: its JSON and its line of text.
type view struct {
	json []byte
	text string
}

func (v view) fits() bool { return len(v.json) <= viewCeiling && len(v.text) <= viewCeiling }

// views makes the views of one answer, all of one model.
type views struct {
	model  *state.Model
	policy *policy
	// Panes the caller runs in are known by process ancestry, or by the tmux
	// variables of its environment where they prove right.
	ancestors []int
	context   *Hello
	hello     controlmode.PaneID
	helloOK   bool
}

func (c *call) views(m *state.Model) *views {
	v := &views{model: m, policy: c.policy, ancestors: c.caller.Ancestors, context: &c.caller.Hello}
	v.hello, v.helloOK = helloPane(&c.caller.Hello, m.Server)
	return v
}

// helloPane reads TMUX and TMUX_PANE of a caller's environment. They are
// inherited by processes that have left their pane, so they only count if they
// name this life of this server. TMUX is "path,pid,session"; the path may hold
// commas, so it is split from the right.
func helloPane(h *Hello, server state.Server) (controlmode.PaneID, bool) {
	if h.TMUX == "" || h.TMUXPane == "" || server.ID.PID == 0 {
		return 0, false
	}
	session := strings.LastIndexByte(h.TMUX, ',')
	if session < 0 {
		return 0, false
	}
	pid := strings.LastIndexByte(h.TMUX[:session], ',')
	if pid < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(h.TMUX[pid+1 : session])
	if err != nil || n != server.ID.PID || !sameSocket(h.TMUX[:pid], server.SocketPath) {
		return 0, false
	}
	id, err := controlmode.ParsePaneID(h.TMUXPane)
	return id, err == nil
}

// sameSocket compares socket paths, by device and inode where they are spelled
// differently.
func sameSocket(a, b string) bool {
	if a == b {
		return true
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA != nil || errB != nil {
		return false
	}
	s, okS := x.Sys().(*syscall.Stat_t)
	t, okT := y.Sys().(*syscall.Stat_t)
	return okS && okT && s.Dev == t.Dev && s.Ino == t.Ino
}

// isCaller tells whether the caller runs in the pane. A dead pane keeps the
// number of a process that is gone and that may be somebody else's by now.
func (v *views) isCaller(p *state.Pane) bool {
	if p.PID > 1 && !p.Dead && slices.Contains(v.ancestors, p.PID) {
		return true
	}
	return v.helloOK && v.hello == p.ID
}

// minBudget is where shrinking a view's strings stops: placements and fixed
// parts alone are far below the ceiling then.
const minBudget = 1 << 10

// shrink makes a view within smaller and smaller string budgets until both its
// halves fit. The first budget fits unless the strings are full of characters
// that JSON escapes.
func shrink(make func(budget int) view) view {
	for budget := stringBudget; ; budget /= 2 {
		if v := make(budget); v.fits() || budget <= minBudget {
			return v
		}
	}
}

// fit cuts strings to a common budget: short ones stay whole, the others get
// equal shares of what is left and keep their ends. It returns the bytes cut.
func fit(budget int, texts ...*string) int {
	total := 0
	for _, s := range texts {
		total += len(*s)
	}
	if total <= budget {
		return 0
	}
	slices.SortStableFunc(texts, func(a, b *string) int { return cmp.Compare(len(*a), len(*b)) })
	omitted := 0
	for i, s := range texts {
		kept := tail(*s, budget/(len(texts)-i))
		omitted += len(*s) - len(kept)
		budget -= len(kept)
		*s = kept
	}
	return omitted
}

// placed are placements that the caller may see, whatever model they are of.
func (v *views) placed(links []state.Link) []state.Link {
	if !v.policy.restricted() {
		return links
	}
	return state.LinksWithin(links, v.policy.sees)
}

// pane makes a PaneView.
func (v *views) pane(p *state.Pane) view {
	links := v.placed(p.Links)
	command, cwd, title, name := clean(p.Command), clean(p.Path), clean(p.Title), clean(p.WindowName)
	caller, attended := v.isCaller(p), v.model.Attended(p)
	return shrink(func(budget int) view {
		command, cwd, title, name := command, cwd, title, name
		omitted := fit(budget, &command, &cwd, &title, &name)
		o := object{b: make([]byte, 0, 512+len(command)+len(cwd)+len(title)+len(name))}
		o.open()
		o.bool("active", p.Active)
		o.string("command", command)
		o.string("cwd", cwd)
		o.bool("dead", p.Dead)
		o.int("height", p.Height)
		o.id("id", '%', uint32(p.ID))
		o.int("index", p.Index)
		o.bool("isAttended", attended)
		o.bool("isCallerPane", caller)
		o.metadata(omitted)
		o.string("title", title)
		o.int("width", p.Width)
		o.id("windowId", '@', uint32(p.Window))
		o.string("windowName", name)
		o.placements(links, false)
		o.close()
		return view{json: o.b, text: paneLine(p, links, command, cwd, title, caller, attended)}
	})
}

func paneLine(p *state.Pane, links []state.Link, command, cwd, title string, caller, attended bool) string {
	b := make([]byte, 0, 160)
	b = append(b, p.ID.String()...)
	b = append(b, ' ')
	b = appendPlaces(b, links)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(p.Index), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(p.Width), 10)
	b = append(b, 'x')
	b = strconv.AppendInt(b, int64(p.Height), 10)
	b = append(b, ' ')
	b = append(b, inline(command)...)
	if cwd != "" {
		b = append(b, " in "...)
		b = append(b, inline(cwd)...)
	}
	if title != "" {
		b = append(b, " \""...)
		b = append(b, inline(title)...)
		b = append(b, '"')
	}
	for _, mark := range []struct {
		on   bool
		text string
	}{
		{p.Active, " [active]"},
		{p.Dead, " [dead]"},
		{attended, " [a person is looking]"},
		{caller, " [your own pane]"},
	} {
		if mark.on {
			b = append(b, mark.text...)
		}
	}
	return string(b)
}

// window makes a WindowView.
func (v *views) window(w *state.Window) view {
	links, cleanName, cleanLayout := v.placed(w.Links), clean(w.Name), clean(w.Layout)
	return shrink(func(budget int) view {
		name, layout := cleanName, cleanLayout
		omitted := fit(budget, &name, &layout)
		o := object{b: make([]byte, 0, 384+len(name)+len(layout))}
		o.open()
		o.id("id", '@', uint32(w.ID))
		o.string("layout", layout)
		o.metadata(omitted)
		o.string("name", name)
		o.int("panes", w.PaneCount)
		o.bool("zoomed", w.Zoomed)
		o.placements(links, true)
		o.close()
		b := append([]byte(w.ID.String()), ' ')
		b = appendPlaces(b, links)
		b = fmt.Appendf(b, " %s, %s", inline(name), plural(w.PaneCount, "pane"))
		if w.Zoomed {
			b = append(b, " [zoomed]"...)
		}
		return view{json: o.b, text: string(b)}
	})
}

// session makes a SessionView.
func (v *views) session(s *state.Session) view {
	cleanName, people := clean(s.Name), v.model.People(s.ID)
	return shrink(func(budget int) view {
		name := cleanName
		omitted := fit(budget, &name)
		var o object
		o.open()
		o.int("attachedClients", people)
		o.id("id", '$', uint32(s.ID))
		o.metadata(omitted)
		o.string("name", name)
		o.int("windows", s.Windows)
		o.close()
		text := fmt.Sprintf("%s %s, %s", s.ID, inline(name), plural(s.Windows, "window"))
		if people > 0 {
			text += fmt.Sprintf(" [%s attached]", plural(people, "client"))
		}
		return view{json: o.b, text: text}
	})
}

// metadata writes the accounting of cut strings.
func (o *object) metadata(omitted int) {
	o.bool("metadataComplete", omitted == 0)
	o.int("omittedMetadataBytes", omitted)
}

// accountingRoom is what the accounting after the placements can take.
const accountingRoom = 128

// placements writes as many leading placements as keep the view within its
// ceiling, and their accounting. They are its last members: what else the view
// has is then known.
func (o *object) placements(links []state.Link, active bool) {
	o.key("placements")
	o.b = append(o.b, '[')
	kept := 0
	for i := range links {
		before := len(o.b)
		if kept > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendPlacement(o.b, &links[i], active)
		if len(o.b) > viewCeiling-accountingRoom {
			o.b = o.b[:before]
			break
		}
		kept++
	}
	o.b = append(o.b, ']')
	o.int("omittedPlacements", len(links)-kept)
	o.bool("placementsComplete", kept == len(links))
}

func appendPlacement(dst []byte, l *state.Link, active bool) []byte {
	one := object{b: dst}
	one.open()
	if active {
		one.bool("active", l.Active)
	}
	one.int("index", l.Index)
	one.id("sessionId", '$', uint32(l.Session))
	one.string("sessionName", clean(l.SessionName))
	one.close()
	return one.b
}

// textPlacements is how many placements a line of text names.
const textPlacements = 3

// appendPlaces names the placements of a window: main:0, or main:0=other:3.
func appendPlaces(dst []byte, links []state.Link) []byte {
	for i, l := range links {
		if i == textPlacements {
			dst = fmt.Appendf(dst, "(+%d)", len(links)-i)
			break
		}
		if i > 0 {
			dst = append(dst, '=')
		}
		dst = append(dst, shortName(l.SessionName)...)
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, int64(l.Index), 10)
	}
	return dst
}
