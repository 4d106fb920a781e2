package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// sizeTools are the manage tools for sizes and layouts, and for options.
func sizeTools(changes func(name, title, doc string, params []param, out map[string]schema) tool) []*tool {
	option := func(row tool) tool {
		row.effects = []string{effectChange}
		return row
	}
	sync := option(changes("set_synchronize_panes", "Synchronize the panes of a window",
		"Turns on or off that what is typed into one pane of a window goes to all of them. A pane's own setting still wins.",
		[]param{windowParam("windowId", true), enabledParam("Whether input goes to all panes.")},
		map[string]schema{"enabled": booleanOut(), "windowId": patternOut(windowPattern)}))
	sync.toolset, sync.amplifies = execute, true
	size := func(name, doc string) param {
		return param{name: name, kind: kindInteger, positive: true, doc: doc}
	}
	return []*tool{
		define(changes("resize_pane", "Resize a pane",
			"Sets the size of a pane, moves one of its borders, or toggles its zoom. A zoomed window is unzoomed by the first two.",
			[]param{
				paneParam(true), size("width", "Columns."), size("height", "Rows."),
				{name: "direction", enum: directions, doc: "Move the border on this side, or the one on the other side where this has none."},
				size("amount", "By how many cells, with direction. Default 1."),
				{name: "zoom", kind: kindBoolean, doc: "true toggles the zoom of the pane, and nothing else counts; false does nothing."},
			}, map[string]schema{"pane": paneViewOut()}), resizePane),
		define(changes("resize_window", "Resize a window",
			"Sets the size of a window. tmux then keeps it at that size; a person who attaches may change it.",
			[]param{windowParam("windowId", true), size("width", "Columns."), size("height", "Rows.")},
			map[string]schema{"window": windowViewOut()}), resizeWindow),
		define(changes("select_layout", "Arrange the panes of a window",
			"Arranges the panes of a window by a named layout, or by the layout string that a window had.",
			[]param{windowParam("windowId", true), {
				name: "layout", required: true,
				doc: "One of " + strings.Join(layouts[:5], ", ") + "; or a layout string as in a window's layout.",
			}}, map[string]schema{"window": windowViewOut()}), selectLayout),
		define(option(changes("set_history_limit", "Set the history limit",
			"Sets for the whole server how many lines of history panes keep. Panes that exist are not affected.",
			[]param{{name: "lines", kind: kindInteger, required: true, highest: 2_000_000, doc: "Lines of history of a new pane."}},
			map[string]schema{"lines": integerOut()})), setHistoryLimit),
		define(option(changes("set_mouse_enabled", "Set the mouse option",
			"Turns tmux's mouse support on or off for the whole server.",
			[]param{enabledParam("Whether tmux uses the mouse.")}, map[string]schema{"enabled": booleanOut()})), setMouseEnabled),
		define(sync, setSynchronizePanes),
	}
}

func enabledParam(doc string) param {
	return param{name: "enabled", kind: kindBoolean, required: true, doc: doc}
}

var (
	directions = []string{"up", "down", "left", "right"}
	// layouts are tmux's named layouts; the last two came with 3.5.
	layouts = []string{
		"even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled",
		"main-horizontal-mirrored", "main-vertical-mirrored",
	}
)

type resizePaneArgs struct {
	paneArgs
	Width     *int64  `arg:"width"`
	Height    *int64  `arg:"height"`
	Direction *string `arg:"direction"`
	Amount    *int64  `arg:"amount"`
	Zoom      bool    `arg:"zoom"`
}

// words are the arguments of resize-pane, none if there is nothing to do.
func (a resizePaneArgs) words() []string {
	if a.Zoom {
		return []string{"-Z"}
	}
	words := sizeWords(a.Width, a.Height)
	if a.Direction != nil {
		words = append(words, map[string]string{"up": "-U", "down": "-D", "left": "-L", "right": "-R"}[*a.Direction])
	}
	return words
}

func sizeWords(width, height *int64) (words []string) {
	if width != nil {
		words = append(words, "-x", strconv.FormatInt(*width, 10))
	}
	if height != nil {
		words = append(words, "-y", strconv.FormatInt(*height, 10))
	}
	return words
}

func resizePane(ctx context.Context, c *call, a resizePaneArgs) (*toolResult, error) {
	words := a.words()
	if a.Amount != nil && a.Direction == nil && !a.Zoom {
		return nil, &problem{reason: "amount is given without direction", hint: "Give direction: " + strings.Join(directions, ", ") + "."}
	}
	if words == nil {
		_, p, err := c.pane(ctx, a.PaneID)
		if err != nil {
			return nil, err
		}
		return c.changedPane(ctx, p.ID, func(*state.Pane) notices {
			return notices{"[nothing was to be changed: give width, height, direction or zoom]"}
		})
	}
	p, err := c.writePane(ctx, a.PaneID, func(p *state.Pane) []controlmode.Command {
		words := append(words, "-t", p.ID.String())
		if a.Amount != nil && !a.Zoom {
			words = append(words, strconv.FormatInt(*a.Amount, 10))
		}
		return []controlmode.Command{controlmode.Cmd("resize-pane", words...)}
	})
	if err != nil {
		return nil, err
	}
	return c.changedPane(ctx, p.ID, func(p *state.Pane) (n notices) {
		if !a.Zoom && a.Direction == nil {
			n = otherSize(a.Width, a.Height, p.Width, p.Height)
		}
		return n
	})
}

// otherSize remarks that something did not get the size asked for.
func otherSize(width, height *int64, w, h int) (n notices) {
	n.add(width != nil && *width != int64(w) || height != nil && *height != int64(h), "tmux made it %d columns by %d rows", w, h)
	return n
}

type resizeWindowArgs struct {
	windowArgs
	Width  *int64 `arg:"width"`
	Height *int64 `arg:"height"`
}

func resizeWindow(ctx context.Context, c *call, a resizeWindowArgs) (*toolResult, error) {
	words := sizeWords(a.Width, a.Height)
	if words == nil {
		return nil, &problem{reason: "neither width nor height is given", hint: "Give one of them or both."}
	}
	w, err := c.writeWindow(ctx, a.WindowID, func(id string) []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("resize-window", append(words, "-t", id)...)}
	})
	if err != nil {
		return nil, err
	}
	return c.changedWindow(ctx, w.ID, func(_ *state.Model, w *state.Window) notices {
		return otherSize(a.Width, a.Height, w.Width, w.Height)
	})
}

type layoutArgs struct {
	windowArgs
	Layout string `arg:"layout"`
}

func selectLayout(ctx context.Context, c *call, a layoutArgs) (*toolResult, error) {
	asked, err := controlmode.ParseLayout(a.Layout)
	named := slices.Contains(layouts, a.Layout)
	if err != nil && !named {
		// tmux would take the start of a name for the name.
		return nil, &problem{
			reason: fmt.Sprintf("%s is not a layout", quote(a.Layout)),
			hint:   "Give one of " + strings.Join(layouts[:5], ", ") + ", or the layout of a window as get_window_info shows it.",
		}
	}
	w, err := c.writeWindow(ctx, a.WindowID, func(id string) []controlmode.Command {
		return []controlmode.Command{controlmode.Cmd("select-layout", "-t", id, "--", a.Layout)}
	})
	if err != nil {
		return nil, err
	}
	return c.changedWindow(ctx, w.ID, func(_ *state.Model, w *state.Window) (n notices) {
		now, err := controlmode.ParseLayout(w.Layout)
		n.add(!named && (err != nil || !sameCells(asked, now)), "tmux took the layout and arranged the panes otherwise; compare window.layout")
		return n
	})
}

// sameCells compares layouts without the ids of panes: tmux puts the panes of the
// window into the cells in order.
func sameCells(a, b controlmode.Layout) bool {
	if a.Width != b.Width || a.Height != b.Height || a.X != b.X || a.Y != b.Y || a.Split != b.Split {
		return false
	}
	return slices.EqualFunc(a.Cells, b.Cells, sameCells)
}

type historyLimitArgs struct {
	Lines int64 `arg:"lines"`
}

func setHistoryLimit(ctx context.Context, c *call, a historyLimitArgs) (*toolResult, error) {
	if err := c.beyond("the global option history-limit"); err != nil {
		return nil, err
	}
	set, err := c.setOption(ctx, write{look: "show_option"}, "history-limit", strconv.FormatInt(a.Lines, 10), "-g")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(set)
	if err != nil {
		return nil, fmt.Errorf("history-limit is %s: %w", quote(set), err)
	}
	var o object
	o.open()
	o.int("lines", n)
	o.close()
	return &toolResult{Text: fmt.Sprintf("new panes keep %s of history", plural(n, "line")), Structured: o.b}, nil
}

// setOption sets an option and reads it back, at one instant.
func (c *call) setOption(ctx context.Context, w write, name, value string, flags ...string) (string, error) {
	w.commands = []controlmode.Command{
		controlmode.Cmd("set-option", append(slices.Clone(flags), name, value)...),
		controlmode.Cmd("show-options", append(append([]string{"-v"}, flags...), name)...),
	}
	bodies, err := c.write(ctx, w)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(bodies[1], "\n"), nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type enabledArgs struct {
	Enabled bool `arg:"enabled"`
}

func setMouseEnabled(ctx context.Context, c *call, a enabledArgs) (*toolResult, error) {
	if err := c.beyond("the global option mouse"); err != nil {
		return nil, err
	}
	set, err := c.setOption(ctx, write{look: "show_option"}, "mouse", onOff(a.Enabled), "-g")
	if err != nil {
		return nil, err
	}
	var o object
	o.open()
	o.bool("enabled", set == "on")
	o.close()
	return &toolResult{Text: "mouse is " + inline(set), Structured: o.b}, nil
}

type synchronizeArgs struct {
	windowArgs
	enabledArgs
}

func setSynchronizePanes(ctx context.Context, c *call, a synchronizeArgs) (*toolResult, error) {
	m, err := c.model(ctx, state.Windows)
	if err != nil {
		return nil, err
	}
	w, err := c.window(ctx, m, a.WindowID)
	if err != nil {
		return nil, err
	}
	set, err := c.setOption(ctx, write{
		life: m.Server.ID, look: "show_option", extent: extent{windows: []controlmode.WindowID{w.ID}},
	}, "synchronize-panes", onOff(a.Enabled), "-w", "-t", w.ID.String())
	if err != nil {
		return nil, err
	}
	if m, err = c.after(ctx, state.Panes, "show_option"); err != nil {
		return nil, err
	}
	var others []string
	for _, p := range m.Panes {
		if p.Window == w.ID && p.Synced != a.Enabled {
			others = append(others, p.ID.String())
		}
	}
	var o object
	o.open()
	o.bool("enabled", set == "on")
	o.id("windowId", '@', uint32(w.ID))
	o.close()
	text := fmt.Sprintf("synchronize-panes of window %s is %s", w.ID, inline(set))
	if others != nil {
		text += "; by their own setting it is " + onOff(!a.Enabled) + " in " + strings.Join(others, ", ")
	}
	return &toolResult{Text: text, Structured: o.b}, nil
}
