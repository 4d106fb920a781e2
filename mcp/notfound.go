package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// maxAlternatives is how many existing objects a not-found error lists.
const maxAlternatives = 12

// alternative is an existing object that an error may offer instead.
type alternative struct {
	text     string
	distance int // from what was asked for
}

// notFound makes the error for an object that does not exist. lister is the
// tool that shows all of them.
func (t *table) notFound(what string, m *state.Model, all []alternative, plural, lister string) error {
	if m.Server.ID == (state.ServerID{}) {
		p := t.noServer()
		return &problem{reason: what + " does not exist: " + p.reason, hint: p.hint, absent: true}
	}
	p := &problem{reason: what + " does not exist on this tmux server", absent: true}
	if len(all) == 0 {
		p.hint = fmt.Sprintf("The server has no %s.", strings.ToLower(plural))
		if t.byName["create_session"] != nil {
			p.hint += " create_session makes a session."
		}
		return p
	}
	slices.SortStableFunc(all, func(a, b alternative) int { return cmp.Compare(a.distance, b.distance) })
	shown := all[:min(len(all), maxAlternatives)]
	texts := make([]string, len(shown))
	for i, a := range shown {
		texts[i] = a.text
	}
	p.hint = plural + ": " + strings.Join(texts, ", ")
	if more := len(all) - len(shown); more > 0 {
		p.hint += fmt.Sprintf(" and %d more; %s shows all of them", more, lister)
	}
	return p
}

func (c *call) noPane(ctx context.Context, id string) error {
	m, err := c.model(ctx, state.Panes)
	if err != nil {
		return err
	}
	n, _ := controlmode.ParsePaneID(id)
	all := make([]alternative, len(m.Panes))
	for i, p := range m.Panes {
		place := ""
		if len(p.Links) > 0 {
			place = shortName(p.Links[0].SessionName) + ":"
		}
		all[i] = alternative{
			text:     fmt.Sprintf("%s (%s%s %s)", p.ID, place, shortName(p.WindowName), shortName(p.Command)),
			distance: apart(uint32(p.ID), uint32(n)),
		}
	}
	return c.table.notFound("pane "+inline(id), m, all, "Panes", "list_panes")
}

func (c *call) noWindow(ctx context.Context, id string) error {
	m, err := c.model(ctx, state.Windows)
	if err != nil {
		return err
	}
	n, _ := controlmode.ParseWindowID(id)
	all := make([]alternative, len(m.Windows))
	for i, w := range m.Windows {
		place := ""
		if len(w.Links) > 0 {
			place = shortName(w.Links[0].SessionName) + ":"
		}
		all[i] = alternative{
			text:     fmt.Sprintf("%s (%s%s)", w.ID, place, shortName(w.Name)),
			distance: apart(uint32(w.ID), uint32(n)),
		}
	}
	return c.table.notFound("window "+inline(id), m, all, "Windows", "list_windows")
}

func (c *call) noSession(ctx context.Context, asked string) error {
	m, err := c.model(ctx, state.Sessions)
	if err != nil {
		return err
	}
	all := make([]alternative, len(m.Sessions))
	for i, s := range m.Sessions {
		d := likeness(asked, s.Name)
		if n, err := controlmode.ParseSessionID(asked); err == nil {
			d = apart(uint32(s.ID), uint32(n))
		}
		all[i] = alternative{text: fmt.Sprintf("%s (%s)", s.ID, shortName(s.Name)), distance: d}
	}
	return c.table.notFound("session "+quote(asked), m, all, "Sessions", "list_sessions")
}

// shortName shows a name inside an error.
func shortName(s string) string { return abridged(inline(s), 40) }

func apart(a, b uint32) int {
	if a > b {
		return int(a - b)
	}
	return int(b - a)
}

// likeness orders names by how near they are to what was asked for: first those
// that contain it or are contained in it, then by edit distance.
func likeness(asked, name string) int {
	a, n := strings.ToLower(asked), strings.ToLower(name)
	if a == n {
		return 0
	}
	d := editDistance(a, n)
	if a != "" && n != "" && (strings.Contains(n, a) || strings.Contains(a, n)) {
		return d
	}
	return d + 1000
}

// nearestName is the known name that was probably meant, "" if none is near.
func nearestName(name string, known []string) string {
	slices.Sort(known)
	best, bestDistance := "", max(2, len(name)/3)+1
	plain := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, k := range known {
		if d := editDistance(plain, strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Nearest is the known name that was probably meant, "" if none is near.
func Nearest(name string, known []string) string { return nearestName(name, known) }

// maxCompared bounds the work of one comparison: names of a caller may be long.
const maxCompared = 200

// editDistance counts inserted, removed, changed and swapped bytes that turn a
// into b (optimal string alignment), over the first maxCompared bytes.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	var rows [3][maxCompared + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
