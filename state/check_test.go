package state

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// twoSessions is a sound model with everything the invariants speak of: a
// window in two sessions, a group, a zoomed window, a dead pane, a mode, a
// person and a control client. Each call makes a fresh one, to be broken.
func twoSessions() *Model {
	shared := func() []Link {
		return []Link{{Session: 1, SessionName: "dev", Index: 0, Active: true}, {Session: 3, SessionName: "ops", Index: 4}}
	}
	group := func() []Link {
		return []Link{{Session: 3, SessionName: "ops", Index: 0, Active: true}, {Session: 5, SessionName: "ops2", Index: 0}}
	}
	tail := func() []Link {
		return []Link{{Session: 3, SessionName: "ops", Index: 7}, {Session: 5, SessionName: "ops2", Index: 7, Active: true}}
	}
	m := &Model{
		Have:   Full,
		Server: Server{ID: ServerID{PID: 42, StartTime: 1}, Version: "3.3a", SocketPath: "/s"},
		Sessions: []*Session{
			{ID: 1, Name: "dev", Windows: 1, Attached: 1},
			{ID: 3, Name: "ops", Windows: 3, Attached: 1, Group: "ops"},
			{ID: 5, Name: "ops2", Windows: 3, Group: "ops"},
		},
		Windows: []*Window{
			{ID: 0, Name: "edit", PaneCount: 2, Width: 80, Height: 24, ActivePane: 1, Zoomed: true, Links: shared()},
			{ID: 2, Name: "logs", PaneCount: 1, Width: 80, Height: 24, ActivePane: 4, Links: group()},
			{ID: 9, Name: "sh", PaneCount: 1, Width: 80, Height: 24, ActivePane: 7, Links: tail()},
		},
		Panes: []*Pane{
			{ID: 0, Window: 0, WindowName: "edit", Index: 0, Width: 80, Height: 12, Zoomed: true, PID: 10, InMode: 1, Mode: "copy-mode", Links: shared()},
			{ID: 1, Window: 0, WindowName: "edit", Index: 1, Width: 80, Height: 24, Active: true, Zoomed: true, PID: 11, Links: shared()},
			{ID: 4, Window: 2, WindowName: "logs", Width: 80, Height: 24, Active: true, Dead: true, DeadStatus: "3", Links: group()},
			{ID: 7, Window: 9, WindowName: "sh", Width: 80, Height: 24, Active: true, PID: 13, Links: tail()},
		},
		Clients: []*Client{
			{Name: "/dev/pts/3", PID: 100, Session: 1, Window: 0, Pane: 1, Zoomed: true},
			{Name: "client-101", PID: 101, Control: true, Own: true, Session: 3, Window: 2, Pane: 4},
		},
	}
	// The group's sessions share all windows, hence also the shared one.
	for _, links := range []*[]Link{&m.Windows[0].Links, &m.Panes[0].Links, &m.Panes[1].Links} {
		*links = append(*links, Link{Session: 5, SessionName: "ops2", Index: 4})
	}
	return m
}

func TestCheckSound(t *testing.T) {
	if err := Check(twoSessions()); err != nil {
		t.Error(err)
	}
	if err := Check(&Model{Have: Full}); err != nil {
		t.Errorf("no server: %v", err)
	}
	// A model without some tables is not blamed for what it cannot know.
	for have := Tables(0); have <= Full; have++ {
		m := twoSessions()
		m.Have = have
		if have&Sessions == 0 {
			m.Sessions = nil
		}
		if have&Windows == 0 {
			m.Windows = nil
		}
		if have&Panes == 0 {
			m.Panes = nil
		}
		if have&Clients == 0 {
			m.Clients = nil
		}
		if err := Check(m); err != nil {
			t.Errorf("tables %b: %v", have, err)
		}
	}
}

// TestCheckBroken breaks each invariant and demands that its number is called,
// and that every invariant is broken by some case.
func TestCheckBroken(t *testing.T) {
	tests := []struct {
		n    int
		what string
		do   func(m *Model)
	}{
		{1, "sessions swapped", func(m *Model) { m.Sessions[0], m.Sessions[1] = m.Sessions[1], m.Sessions[0] }},
		{1, "window twice", func(m *Model) { m.Windows = append(m.Windows, m.Windows[2]) }},
		{1, "pane twice", func(m *Model) { m.Panes = append(m.Panes, m.Panes[3]) }},
		{1, "client twice", func(m *Model) { m.Clients[1].Name = m.Clients[0].Name }},
		{2, "rows of no server", func(m *Model) { m.Server.ID = ServerID{} }},
		{3, "clients not asked for", func(m *Model) { m.Have &^= Clients }},
		{4, "window without link", func(m *Model) { m.Windows[2].Links = nil }},
		{4, "links swapped", func(m *Model) { l := m.Windows[0].Links; l[0], l[1] = l[1], l[0] }},
		{4, "link twice", func(m *Model) { l := m.Panes[0].Links; l[1] = l[0] }},
		{5, "link into nowhere", func(m *Model) { m.Windows[0].Links[0].Session = 0 }},
		{5, "link by an old name", func(m *Model) { m.Sessions[0].Name = "new" }},
		{6, "wrong count of windows", func(m *Model) { m.Sessions[0].Windows = 2 }},
		{6, "no current window", func(m *Model) { m.Windows[0].Links[0].Active = false }},
		{6, "two current windows", func(m *Model) { m.Windows[0].Links[1].Active = true }},
		{6, "two windows at one index", func(m *Model) { m.Windows[2].Links[0].Index = 0 }},
		{7, "pane in nowhere", func(m *Model) { m.Panes[3].Window = 8 }},
		{7, "pane with old window name", func(m *Model) { m.Panes[3].WindowName = "old" }},
		{7, "pane not zoomed", func(m *Model) { m.Panes[0].Zoomed = false }},
		{7, "pane elsewhere", func(m *Model) { m.Panes[0].Links[0].Index = 1 }},
		{8, "wrong count of panes", func(m *Model) { m.Windows[1].PaneCount = 2 }},
		{8, "two active panes", func(m *Model) { m.Panes[0].Active = true }},
		{8, "no active pane", func(m *Model) { m.Panes[2].Active = false }},
		{8, "active pane of another window", func(m *Model) { m.Windows[1].ActivePane = 7 }},
		{9, "one index twice", func(m *Model) { m.Panes[1].Index = 0 }},
		{9, "no width", func(m *Model) { m.Panes[1].Width = 0 }},
		{10, "group out of step", func(m *Model) { m.Windows[2].Links = m.Windows[2].Links[1:] }},
		{11, "client in nowhere", func(m *Model) { m.Clients[0].Session = 2 }},
		{11, "client on no window", func(m *Model) { m.Clients[0].Window = 1 }},
		{11, "client on a window in the back", func(m *Model) { m.Clients[1].Window, m.Clients[1].Pane = 9, 7 }},
		{11, "client zoom", func(m *Model) { m.Clients[0].Zoomed = false }},
		{11, "client on a pane elsewhere", func(m *Model) { m.Clients[0].Pane = 7 }},
		{12, "status of the living", func(m *Model) { m.Panes[0].DeadStatus = "0" }},
		{12, "signal of the living", func(m *Model) { m.Panes[0].DeadSignal = "9" }},
		{13, "mode without count", func(m *Model) { m.Panes[0].InMode = 0 }},
		{13, "count without mode", func(m *Model) { m.Panes[1].InMode = 1 }},
		{14, "one name twice", func(m *Model) { m.Sessions[0].Name = "ops" }},
	}
	broken := map[int]bool{}
	for _, tt := range tests {
		m := twoSessions()
		tt.do(m)
		err := Check(m)
		called := map[int]bool{}
		for _, line := range invariantErrors(err) {
			called[line.N] = true
		}
		if !called[tt.n] {
			t.Errorf("%s: want invariant %d, got: %v", tt.what, tt.n, err)
		}
		broken[tt.n] = true
	}
	for i, says := range Invariants() {
		if !broken[i+1] {
			t.Errorf("no case breaks invariant %d: %s", i+1, says)
		}
	}
}

func invariantErrors(err error) []*InvariantError {
	var all []*InvariantError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			var inv *InvariantError
			if errors.As(e, &inv) {
				all = append(all, inv)
			}
		}
	}
	return all
}

func TestDiff(t *testing.T) {
	if d := Diff(twoSessions(), twoSessions()); d != "" {
		t.Errorf("equal models differ:\n%s", d)
	}
	late := twoSessions()
	late.Rev, late.Asked = 7, time.Unix(1, 0)
	if d := Diff(twoSessions(), late); d != "" {
		t.Errorf("rev and time of asking are compared:\n%s", d)
	}

	got := twoSessions()
	got.Server.Version = "3.8"
	got.Sessions[0].Name = "dev "
	got.Windows = got.Windows[:2]
	got.Panes[0].Links[0].Index = 2
	got.Clients = append(got.Clients, &Client{Name: "x"})
	want := `server Version: want "3.3a", got "3.8"
session $1 Name: want "dev", got "dev "
window @9: missing
pane %0 Links: want [{Session:$1 SessionName:dev Index:0 Active:true} {Session:$3 SessionName:ops Index:4 Active:false} {Session:$5 SessionName:ops2 Index:4 Active:false}], got [{Session:$1 SessionName:dev Index:2 Active:true} {Session:$3 SessionName:ops Index:4 Active:false} {Session:$5 SessionName:ops2 Index:4 Active:false}]
client x: not expected: {Name:x PID:0 Control:false Own:false Flags: Session:$0 Window:@0 Pane:%0 Zoomed:false}
`
	if d := Diff(twoSessions(), got); d != want {
		t.Errorf("got:\n%swant:\n%s", d, want)
	}
	if d := Diff(twoSessions(), got, "Server.Version", "Session.Name", "Pane.Links"); strings.Count(d, "\n") != 2 {
		t.Errorf("ignored fields are compared:\n%s", d)
	}
}

// TestDiffEveryField changes each field of each row in turn: a field of the
// model that Diff overlooks would blind every test that compares with it.
func TestDiffEveryField(t *testing.T) {
	rows := map[string]func(m *Model) reflect.Value{
		"Server":  func(m *Model) reflect.Value { return reflect.ValueOf(&m.Server).Elem() },
		"Session": func(m *Model) reflect.Value { return reflect.ValueOf(m.Sessions[0]).Elem() },
		"Window":  func(m *Model) reflect.Value { return reflect.ValueOf(m.Windows[0]).Elem() },
		"Pane":    func(m *Model) reflect.Value { return reflect.ValueOf(m.Panes[0]).Elem() },
		"Client":  func(m *Model) reflect.Value { return reflect.ValueOf(m.Clients[0]).Elem() },
	}
	for kind, row := range rows {
		for i := range row(twoSessions()).NumField() {
			m := twoSessions()
			change(t, row(m).Field(i))
			name := kind + "." + row(m).Type().Field(i).Name
			if Diff(twoSessions(), m) == "" {
				t.Errorf("a change of %s is not seen", name)
			}
		}
	}
}

func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Slice, reflect.Struct:
		if v.Kind() == reflect.Slice {
			v = v.Index(0)
		}
		change(t, v.Field(v.NumField()-1))
	default:
		t.Fatalf("a field of kind %v: teach change about it", v.Kind())
	}
}
