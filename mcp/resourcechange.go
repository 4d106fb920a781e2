package mcp

import (
	"context"
	"slices"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

// changes tells when what somebody has subscribed to may have changed. It belongs
// to one goroutine.
type changes interface {
	// changed is called after a nudge. tell is whether to tell the subscriber; last
	// that there will be nothing more, because the object is gone.
	changed(ctx context.Context) (tell, last bool)
	close()
}

// Changes that lists show.
var (
	windowKinds = append(slices.Clone(sessionKinds), state.PaneCreated, state.PaneClosed, state.Resized, state.Selected)
	paneKinds   = slices.DeleteFunc(slices.Clone(eventKinds), func(k state.ChangeKind) bool { return k == state.Bell })
	// listKinds change which resources are listed, and by which place. A pane's
	// command is in its name, too, but is no reason to list them all again.
	listKinds = []state.ChangeKind{
		state.SessionCreated, state.SessionClosed, state.WindowCreated, state.WindowClosed, state.PaneCreated, state.PaneClosed,
		state.Moved, state.ServerGone,
	}
	screenKinds = []state.ChangeKind{state.Resized, state.PaneDied, state.PaneRespawned}
	// leaveKinds can take a pane out of somebody's sight.
	leaveKinds = []state.ChangeKind{state.SessionClosed, state.WindowClosed, state.PaneClosed, state.Moved}
)

// follower is what all kinds of changes have in common: it reads the journal on
// as its subscriber may see it.
type follower struct {
	table  *table
	caller *Caller
	policy *policy // when it was last looked at
	wake   chan struct{}
	seq    uint64
	due    bool // there is something that was not told yet
}

// follow begins to read the journal on. Close it.
func (t *table) follow(caller *Caller, wake chan struct{}, join func(chan struct{})) follower {
	f := follower{table: t, caller: caller, policy: t.policyOf(caller), wake: wake, seq: t.mirror.Journal().Seq()}
	join(wake)
	return f
}

func (f *follower) close() { f.table.mirror.Journal().Leave(f.wake) }

// call is a call of the subscriber's of now, through which everything that is
// told passes. Another policy since the last one is news.
func (f *follower) call() *call {
	if p := f.table.policyOf(f.caller); p != f.policy {
		f.policy, f.due = p, true
	}
	return &call{table: f.table, caller: f.caller, policy: f.policy}
}

// read calls see for every change since the last time that the subscriber may
// see. It reports whether changes are missing.
func (f *follower) read(c *call, see func(*state.Change)) {
	all, gap := f.table.mirror.Journal().Since(f.seq)
	if gap {
		f.due, f.seq = true, f.table.mirror.Journal().Seq()
	}
	for _, ch := range all {
		f.seq = ch.Seq
		if seen, ok := c.change(ch); ok {
			see(&seen)
		}
	}
}

// left tells whether an object is out of the subscriber's sight, if that has
// limits: a change of its session need not be one of its own. While tmux cannot be
// asked there is nothing to tell; the journal nudges when it can again.
func (f *follower) left(ctx context.Context, c *call, s *scope) (bool, error) {
	if !c.policy.restricted() || s.pane == nil && s.window == nil {
		return false, nil
	}
	m, err := c.policy.arrive(f.table.mirror, state.Panes).Model(ctx, state.Panes)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(m.Panes, func(p *state.Pane) bool {
		return s.pane != nil && p.ID == *s.pane || s.window != nil && p.Window == *s.window
	}), nil
}

// told takes what is due.
func (f *follower) told() bool {
	due := f.due
	f.due = false
	return due
}

// listingChanges tells when other resources are listed.
type listingChanges struct{ follower }

func (f *listingChanges) changed(context.Context) (tell, last bool) {
	c := f.call()
	panes := f.table.selects(f.caller, screenTool) // else what is listed is always the same
	f.read(c, func(ch *state.Change) {
		its := slices.Contains(listKinds, ch.Kind) || ch.Kind == state.Renamed && ch.Window == nil // a session's name is in places
		f.due = f.due || panes && its
	})
	return f.told(), false
}

// objectChanges tells when a list or an object has changed that tmux tells of.
type objectChanges struct {
	follower
	tool    string // without which the resource does not exist
	kinds   []state.ChangeKind
	scope   scope
	window  *controlmode.WindowID // of a pane
	endsBy  state.ChangeKind      // closes the object, "" for lists
	nothing bool                  // only a change of policy counts
}

func (f *objectChanges) changed(ctx context.Context) (tell, last bool) {
	c := f.call()
	if !f.table.selects(f.caller, f.tool) {
		return true, true
	}
	look := f.due // under another policy
	f.read(c, func(ch *state.Change) {
		look = look || f.endsBy != "" && slices.Contains(leaveKinds, ch.Kind)
		if f.nothing || !slices.Contains(f.kinds, ch.Kind) || !f.touches(ch) {
			return
		}
		f.due = true
		if f.window != nil && ch.Kind == state.Moved && ch.Pane != nil {
			f.window = ch.Window
		}
		last = last || f.endsBy != "" && (ch.Kind == state.ServerGone || ch.Kind == f.endsBy && f.of(ch))
	})
	if look && !last {
		var err error
		if last, err = f.left(ctx, c, &f.scope); err != nil {
			f.due = true
			return false, false
		}
	}
	return f.told() || last, last
}

// touches tells whether a change is of what is looked at.
func (f *objectChanges) touches(ch *state.Change) bool {
	switch {
	case ch.Kind == state.ServerGone || f.scope.of(ch):
		return true
	case f.window != nil && ch.Pane == nil:
		return ch.Window != nil && *ch.Window == *f.window // what is told of a pane's window
	case f.scope.window != nil && ch.Kind == state.Moved && ch.Pane != nil:
		return ch.Before == f.scope.window.String() // a pane that has left it
	}
	return false
}

// of tells whether a change is of the object itself, not of one within.
func (f *objectChanges) of(ch *state.Change) bool {
	switch {
	case f.scope.pane != nil:
		return ch.Pane != nil && *ch.Pane == *f.scope.pane
	case f.scope.window != nil:
		return ch.Window != nil && *ch.Window == *f.scope.window
	}
	return ch.Session != nil && f.scope.session != nil && *ch.Session == *f.scope.session
}

// screenChanges tells when a pane's screen may have changed, and keeps the pane
// watched.
type screenChanges struct {
	follower
	pane  controlmode.PaneID
	vigil *state.Vigil
}

func (f *screenChanges) close() {
	f.follower.close()
	f.vigil.Close()
}

func (f *screenChanges) changed(ctx context.Context) (tell, last bool) {
	c := f.call()
	if !f.table.selects(f.caller, screenTool) {
		return true, true
	}
	look := false
	f.read(c, func(ch *state.Change) {
		its := ch.Pane != nil && *ch.Pane == f.pane
		f.due = f.due || its && slices.Contains(screenKinds, ch.Kind)
		last = last || ch.Kind == state.ServerGone || its && ch.Kind == state.PaneClosed
		look = look || slices.Contains(leaveKinds, ch.Kind)
	})
	f.due = f.vigil.Moved() || f.due
	// What it prints after it has left the subscriber's sight is not told.
	if !last && (f.due || look) {
		var err error
		if last, err = f.left(ctx, c, &scope{pane: &f.pane}); err != nil {
			f.due = true
			return false, false
		}
	}
	return f.told() || last, last
}

// screenTool is the tool that tells what a pane shows.
const screenTool = "snapshot_pane"

// selects tells whether a caller may call a tool; any may read what no tool
// stands for.
func (t *table) selects(c *Caller, tool string) bool {
	_, sel, err := t.selectionOf(c)
	return err == nil && (tool == "" || sel.tools[tool] != nil)
}

// listFollower implements resourceful.
func (t *table) listFollower(caller *Caller, wake chan struct{}) changes {
	return &listingChanges{t.follow(caller, wake, t.mirror.Journal().Hear)}
}

// resourceFollower implements resourceful.
func (t *table) resourceFollower(ctx context.Context, caller *Caller, uri string, wake chan struct{}) (changes, error) {
	journal := t.mirror.Journal()
	if uri == capabilitiesURI {
		return &objectChanges{follower: t.follow(caller, wake, journal.Hear), nothing: true}, nil
	}
	c, a, end, err := t.openResource(ctx, caller, uri)
	if err != nil {
		return nil, err
	}
	defer end()
	f, err := c.changesOf(ctx, a, wake)
	if err != nil {
		res, err := t.failure(ctx, err)
		if err != nil {
			return nil, err
		}
		return nil, protocolError(res, uri)
	}
	return f, nil
}

// changesOf follows a resource that exists for the caller.
func (c *call) changesOf(ctx context.Context, a address, wake chan struct{}) (changes, error) {
	journal := c.table.mirror.Journal()
	if a.content() {
		f := &screenChanges{follower: c.table.follow(c.caller, wake, journal.Hear)}
		var err error
		if f.pane, err = c.paneID(ctx, a.id); err == nil {
			f.vigil, err = c.table.mirror.Vigil(ctx, f.pane, wake)
		}
		if err != nil {
			f.follower.close()
			return nil, c.missing(ctx, err, a.id)
		}
		return f, nil
	}
	f := &objectChanges{follower: c.table.follow(c.caller, wake, journal.Join), tool: a.tool, kinds: a.kinds}
	if f.kinds == nil {
		f.kinds = paneKinds
	}
	if err := f.aim(ctx, c, a); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// aim finds the object of an address.
func (f *objectChanges) aim(ctx context.Context, c *call, a address) error {
	switch a.variable() {
	case varSession:
		m, err := c.model(ctx, state.Sessions)
		if err != nil {
			return err
		}
		s, err := c.session(ctx, m, sessionNamed(m, a.id))
		if err != nil {
			return err
		}
		f.scope.session, f.endsBy = &s.ID, state.SessionClosed
	case varWindow:
		m, err := c.model(ctx, state.Windows)
		if err != nil {
			return err
		}
		w, err := c.window(ctx, m, a.id)
		if err != nil {
			return err
		}
		f.scope.window, f.endsBy = &w.ID, state.WindowClosed
	case varPane:
		_, p, err := c.pane(ctx, a.id)
		if err != nil {
			return err
		}
		f.scope.pane, f.window, f.endsBy = &p.ID, &p.Window, state.PaneClosed
	}
	return nil
}
