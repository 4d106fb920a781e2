package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tmux-mcpd/controlmode"
)

var (
	// ErrChanged: what a Preflight found does not hold any more. Nothing was run.
	ErrChanged = errors.New("changed between the checks and the write; nothing was done")
	// ErrUnknown accompanies another error: tmux may have run the request or not,
	// and nobody can tell. It must not be sent again.
	ErrUnknown = errors.New("unknown whether tmux ran it")
)

// Scope is what a write is about: a pane with the window around it, a window, or
// a session.
type Scope struct {
	list   []string // arguments of list-panes
	target string   // for formats
	kind   string
	whole  bool // formats are to visit every window of the session
}

// PaneScope is a pane. The other panes of its window are looked at, too: input
// may reach them.
func PaneScope(id controlmode.PaneID) Scope {
	return Scope{list: []string{"-t", id.String()}, target: id.String(), kind: "pane"}
}

// WindowScope is every pane of a window.
func WindowScope(id controlmode.WindowID) Scope {
	return Scope{list: []string{"-t", id.String()}, target: id.String(), kind: "window"}
}

// SessionScope is every pane of a session.
func SessionScope(id controlmode.SessionID) Scope {
	return Scope{list: []string{"-s", "-t", id.String()}, target: id.String() + ":", kind: "session", whole: true}
}

// Signature says how much of a scope must stay as a Preflight found it.
type Signature string

// The signatures: for input everything that decides whether, and where, it is
// received; for an end of panes only which processes they are and who looks.
const (
	InputSignature Signature = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_in_mode} #{pane_input_off} " +
		"#{pane_synchronized} #{pane_active} "
	EndSignature Signature = "#{pane_id} #{pane_pid} #{pane_active} "
)

// format gives one line for the scope: for every window who looks at it and the
// signature of its panes. It holds words only, nothing that users or programs
// name.
//
// Input reaches no pane but its target unless that one is synchronised, so the
// others are left out then: tmux takes as long for each pane as for a send-keys.
func (s Signature) format(whole bool) string {
	switch {
	case whole:
		return "#{W:" + windowWords + "#{P:" + string(s) + "}}"
	case s == InputSignature:
		return windowWords + "#{?pane_synchronized,#{P:" + string(s) + "}," + string(s) + "}"
	}
	return windowWords + "#{P:" + string(s) + "}"
}

const windowWords = "#{window_id} #{window_zoomed_flag} #{window_active_clients_list} "

// alone is what format comes to for a pane that is not synchronised, which is
// part of it. tmux takes a third less time for it.
func (s Signature) alone() string { return windowWords + string(s) }

// Preflight is a look at what a write is about, before the write.
type Preflight struct {
	// Model has the panes of the scope's windows, each with what lookListing asks
	// and no placements, and all clients.
	Model *Model

	scope     Scope
	signature Signature
	format    string
	found     string // what the format gave
	// ours are the clients of ours that found names. It names clients only, and
	// the name of one that is gone can be a person's the next moment.
	ours []*controlmode.Process
}

// lookListing is what guards decide on. Much of what else there is to a pane is
// dear: for its command and path tmux reads /proc.
var lookListing = newListing([]string{
	"pane_id", "window_id", "pane_pid", "pane_active", "window_zoomed_flag", "pane_dead", "pane_dead_status", "pane_dead_signal",
	"pane_dead_time", "pane_in_mode", "pane_input_off", "pane_synchronized",
}, []string{"pane_tty", "pane_mode"})

// readLook reads rows of lookListing.
func readLook(body []byte) ([]*Pane, error) {
	byID := map[controlmode.PaneID]*Pane{}
	err := lookListing.each(body, func(r *row) {
		id := controlmode.PaneID(r.id(0, '%'))
		byID[id] = &Pane{
			ID: id, Window: controlmode.WindowID(r.id(1, '@')), PID: r.num(2), Active: r.flag(3), Zoomed: r.flag(4), Dead: r.flag(5),
			DeadStatus: string(r.words[6]), DeadSignal: string(r.words[7]), DeadTime: r.num64(8), InMode: r.num(9), InputOff: r.flag(10),
			Synced: r.flag(11), TTY: r.text(0), Mode: r.text(1),
		}
	})
	return sortPanes(byID), err
}

// Preflight looks at a scope, all in one instant. ErrNotFound, ErrNoServer.
func (m *Mirror) Preflight(ctx context.Context, s Scope, sig Signature) (*Preflight, error) {
	p := &Preflight{scope: s, signature: sig, format: sig.format(s.whole)}
	asked := time.Now()
	server, blocks, err := m.query(ctx, controlmode.Request{Commands: []controlmode.Command{
		controlmode.Cmd("list-panes", append(s.list[:len(s.list):len(s.list)], "-F", lookListing.format)...),
		clientsCmd,
		controlmode.Cmd("display-message", "-p", "-t", s.target, p.format),
	}, Fence: true})
	if err != nil {
		return nil, s.missing(err)
	}
	p.Model = &Model{Asked: asked, Have: Panes | Clients, Server: server}
	if p.Model.Panes, err = readLook(blocks[0].Body); err != nil {
		return nil, fmt.Errorf("panes: %w", err)
	}
	if p.Model.Clients, err = readClients(blocks[1].Body, m.isOwn); err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	p.ours = m.processes(p.Model)
	p.found = strings.TrimSuffix(string(blocks[2].Body), "\n")
	if !strings.HasPrefix(p.found, "@") || strings.ContainsFunc(p.found, notInSignature) {
		return nil, fmt.Errorf("preflight: unreadable signature of %s %s", s.kind, s.target)
	}
	if sig == InputSignature && !p.synced() {
		p.format = sig.alone()
	}
	return p, nil
}

// synced tells whether input to the pane that was looked at reaches others.
func (p *Preflight) synced() bool {
	for _, pane := range p.Model.Panes {
		if pane.ID.String() == p.scope.target {
			return pane.Synced
		}
	}
	return true
}

// notInSignature tells characters that words and client names do not hold.
func notInSignature(r rune) bool {
	return r <= ' ' && r != ' ' || r > '~' || strings.ContainsRune(`#{}"\`, r)
}

// missing turns tmux's complaint about the target into ErrNotFound.
func (s Scope) missing(err error) error {
	var refused *controlmode.CommandError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Text, "can't find ") {
		return fmt.Errorf("%s %s: %w", s.kind, strings.TrimSuffix(s.target, ":"), ErrNotFound)
	}
	return err
}

// stopWord is no tmux command. if-shell that is to run it fails at once, and a
// command that fails ends its line: tmux runs nothing of what follows (3.3a to
// 3.8; cmd-if-shell.c returns CMD_RETURN_ERROR when the text does not parse).
const stopWord = "changed-since-preflight"

// unchanged is the second look: a command that fails, and ends its line, unless
// the scope is as it was found. It is evaluated in the same instant as the
// commands after it.
//
// A target that is gone does not fail: tmux then looks at another one, whose
// signature differs.
func (p *Preflight) unchanged() controlmode.Command {
	found := strings.ReplaceAll(p.found, ",", "#,")
	return controlmode.Cmd("if-shell", "-F", "-t", p.scope.target, "#{!=:"+p.format+","+found+"}", stopWord)
}

// Write runs commands on the structure client in one line, after a second look
// in the same line. The commands run all or not at all but for a failure of one
// of them, which is returned as *controlmode.CommandError: those before it have
// run. ErrUnknown: nobody can tell. Any other error, ErrChanged among them: none
// has run. It is never repeated.
func (m *Mirror) Write(ctx context.Context, p *Preflight, cmds ...controlmode.Command) error {
	req := p.line(cmds)
	if long(req) && errors.Is(req.Check(), controlmode.ErrTooLong) {
		// Too many panes for one line: the second look is a request of its own.
		if err := m.lookAgain(ctx, p); err != nil {
			return err
		}
		req.Commands = req.Commands[1:]
	}
	reply, err := m.DoOn(ctx, p.Model.Server.ID, req)
	return m.written(p, req, reply, err)
}

// line is a request that looks again and then writes.
func (p *Preflight) line(cmds []controlmode.Command) controlmode.Request {
	return controlmode.Request{Commands: append([]controlmode.Command{p.unchanged()}, cmds...), Fence: true}
}

// long tells whether a line may be too long, without encoding it: no byte takes
// more than four.
func long(req controlmode.Request) bool {
	n := 0
	for _, c := range req.Commands {
		for _, w := range c.Words() {
			n += len(w) + 1
		}
	}
	return n >= controlmode.MaxLine/4-64
}

// written says what became of a line that looks again and then writes.
func (m *Mirror) written(p *Preflight, req controlmode.Request, reply controlmode.Reply, err error) error {
	switch {
	case errors.Is(err, ErrOtherServer):
		return ErrChanged
	case errors.Is(err, controlmode.ErrNotSent):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	err = reply.Err(req)
	var refused *controlmode.CommandError
	if errors.As(err, &refused) && refused.Words[0] == "if-shell" && strings.HasSuffix(refused.Text, stopWord) {
		return ErrChanged
	}
	if err == nil {
		m.recall.keep(p)
	}
	return err
}

// lookAgain is the second look as a request of its own.
func (m *Mirror) lookAgain(ctx context.Context, p *Preflight) error {
	server, blocks, err := m.query(ctx, controlmode.Request{Commands: []controlmode.Command{
		controlmode.Cmd("display-message", "-p", "-t", p.scope.target, p.format),
	}, Fence: true})
	if err == nil && (server.ID != p.Model.Server.ID || strings.TrimSuffix(string(blocks[0].Body), "\n") != p.found) {
		err = ErrChanged
	}
	return err
}
