package mcp

import (
	"testing"

	"tmux-mcpd/state"
)

// FuzzHostileNames: whatever names, titles, commands and paths hold, every listing,
// every view of one thing, every not-found error and every remark is one line of
// JSON in UTF-8 without control characters but LF and TAB.
func FuzzHostileNames(f *testing.F) {
	for _, b := range hostileBytes(f) {
		s := string(b[:min(len(b), 4096)])
		f.Add(s, s, s)
	}
	f.Add("", "\x00\x1b]0;x\x07\x9b", "/a\n%end 1 2 1")
	f.Add("\xff\xfe\xed\xa0\x80", "\u2028\u2029\u0085", "\u202e\u200b\U000e0041")
	tab := testTable(f, nil)
	caller := &Caller{}
	sel, err := tab.policyOf(caller).picks.of(caller)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, title, path string) {
		c := &call{table: tab, caller: caller, policy: tab.policyOf(caller), sel: sel}
		links := []state.Link{{Session: 1, SessionName: name, Index: 2, Active: true}, {Session: 2, SessionName: title}}
		m := &state.Model{
			Have: state.Full, Server: state.Server{ID: state.ServerID{PID: 1, StartTime: 1}, Version: name, SocketPath: path},
			Sessions: []*state.Session{{ID: 1, Name: name, Group: title, Windows: 1}},
			Windows:  []*state.Window{{ID: 1, Name: name, Layout: title, PaneCount: 1, Links: links}},
			Panes: []*state.Pane{{
				ID: 1, Window: 1, WindowName: name, Title: title, Command: name, Path: path, Mode: title, TTY: path, DeadSignal: name,
				Dead: true, Links: links,
			}},
			Clients: []*state.Client{{Name: name, Flags: title, Session: 1, Window: 1, Pane: 1}},
		}
		v := c.views(m)
		var remarks notices
		remarks = append(remarks, storedAs("name", title, name)...)
		answers := map[string]*toolResult{
			"sessions": c.list("sessions", m, 1, func(int) view { return v.session(m.Sessions[0]) }),
			"windows":  c.list("windows", m, 1, func(int) view { return v.window(m.Windows[0]) }),
			"panes":    c.list("panes", m, 1, func(int) view { return v.pane(m.Panes[0]) }),
			"session":  one("session", v.session(m.Sessions[0])),
			"window":   one("window", v.window(m.Windows[0])),
			"pane":     one("pane", v.pane(m.Panes[0])),
			"remark":   errorResult(remarks.over(placementsText(m.Windows[0]))),
			"attended": errorResult(v.whose(m.Panes[0], true).Error()),
			"dead":     errorResult(receives(m.Panes[0]).Error()),
			"absent":   errorResult(tab.notFound("session "+quote(name), m, []alternative{{text: shortName(title)}}, "Sessions", "list_sessions").Error()),
			"lost":     errorResult(lost(m, &state.Model{}, "")),
			"state":    withState(&toolResult{Text: waitingText(state.Waiting{Evidence: name})}, state.Waiting{Evidence: title}),
		}
		for what, res := range answers {
			checkWire(t, what, mustEncode(t, flagged(res)))
		}
	})
}
