package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tmux-mcpd/controlmode"
	"tmux-mcpd/state"
)

func testCall(t testing.TB, env map[string]string) *call {
	t.Helper()
	tab := testTable(t, env)
	caller := &Caller{}
	p := tab.policyOf(caller)
	sel, err := p.picks.of(caller)
	if err != nil {
		t.Fatal(err)
	}
	return &call{table: tab, caller: caller, policy: p, sel: sel, arrival: p.arrive(tab.mirror, 0)}
}

func TestPaneView(t *testing.T) {
	c := testCall(t, nil)
	p := &state.Pane{
		ID: 3, Window: 2, WindowName: "w", Index: 1, Width: 80, Height: 24, Active: true, PID: 42,
		Command: "bash", Path: "/home/me", Title: "evil\x1b]0;x\x07\n title",
		Links: []state.Link{{Session: 0, SessionName: "main", Index: 4}, {Session: 10, SessionName: "b\tx", Index: 0}},
	}
	m := &state.Model{Panes: []*state.Pane{p}, Clients: []*state.Client{{Window: 2, Pane: 9}}}
	c.caller.Ancestors = []int{100, 42, 1}
	v := c.views(m).pane(p)
	want := `{"active":true,"command":"bash","cwd":"/home/me","dead":false,"height":24,"id":"%3","index":1,` +
		`"isAttended":true,"isCallerPane":true,"metadataComplete":true,"omittedMetadataBytes":0,` +
		`"title":"evil\\x1b]0;x\\x07\n title","width":80,"windowId":"@2","windowName":"w",` +
		`"placements":[{"index":4,"sessionId":"$0","sessionName":"main"},{"index":0,"sessionId":"$10","sessionName":"b\tx"}],` +
		`"omittedPlacements":0,"placementsComplete":true}`
	if string(v.json) != want {
		t.Errorf("%s\nwant\n%s", v.json, want)
	}
	line := `%3 main:4=b\tx:0.1 80x24 bash in /home/me "evil\x1b]0;x\x07\n title" [active] [a person is looking] [your own pane]`
	if v.text != line {
		t.Errorf("%s\nwant\n%s", v.text, line)
	}
	m.Clients[0].Zoomed = true // on pane %9
	p.Dead = true
	v = c.views(m).pane(p)
	if s := string(v.json); !strings.Contains(s, `"isAttended":false`) || !strings.Contains(s, `"isCallerPane":false`) {
		t.Errorf("zoomed elsewhere and dead: %s", s)
	}
}

// TestViewsAreValid: whatever tmux holds, every view is valid JSON of the
// advertised shape within its ceilings, and its text is one clean line.
func TestViewsAreValid(t *testing.T) {
	c := testCall(t, nil)
	paneOut, windowOut, sessionOut := validator(t, paneViewOut().raw()), validator(t, windowViewOut().raw()), validator(t, sessionViewOut().raw())
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return hostileText().Draw(t, name) }
		links := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) state.Link {
			return state.Link{
				Session: controlmode.SessionID(rapid.Uint32().Draw(t, "s")), SessionName: hostileText().Draw(t, "n"),
				Index: rapid.IntRange(0, 1<<31).Draw(t, "i"),
			}
		}), 1, 5).Draw(t, "links")
		m := &state.Model{}
		v := c.views(m)
		for _, x := range []struct {
			view   view
			schema interface{ Validate(any) error }
		}{
			{v.pane(&state.Pane{ID: 1, Command: text("c"), Path: text("p"), Title: text("t"), WindowName: text("w"), Links: links}), paneOut},
			{v.window(&state.Window{ID: 1, Name: text("n"), Layout: text("l"), Links: links, Zoomed: true}), windowOut},
			{v.session(&state.Session{ID: 1, Name: text("s")}), sessionOut},
		} {
			var got any
			if err := json.Unmarshal(x.view.json, &got); err != nil {
				t.Fatalf("%v: %s", err, x.view.json)
			}
			if err := x.schema.Validate(got); err != nil {
				t.Fatalf("%v: %s", err, x.view.json)
			}
			if x.view.text != inline(x.view.text) {
				t.Fatalf("not one line: %q", x.view.text)
			}
		}
	})
}

func TestFit(t *testing.T) {
	a, b, c := "ab", strings.Repeat("é", 50), strings.Repeat("x", 30)
	omitted := fit(42, &a, &b, &c)
	if a != "ab" || len(b) != 20 || len(c) != 20 || omitted != 80+10 {
		t.Errorf("%q %d %d omitted %d", a, len(b), len(c), omitted)
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "texts")
		budget := rapid.IntRange(0, 40).Draw(t, "budget")
		got := append([]string(nil), texts...)
		pointers := make([]*string, len(got))
		for i := range got {
			pointers[i] = &got[i]
		}
		omitted := fit(budget, pointers...)
		before, after := 0, 0
		for i := range texts {
			before, after = before+len(texts[i]), after+len(got[i])
			if !strings.HasSuffix(texts[i], got[i]) || !utf8.ValidString(got[i]) {
				t.Fatalf("%q became %q", texts[i], got[i])
			}
		}
		if after > max(budget, 0) && before > budget || before-after != omitted {
			t.Fatalf("budget %d: %q became %q, omitted %d", budget, texts, got, omitted)
		}
	})
}

// TestViewCeilings: strings that JSON escapes and very many placements stay
// within the ceilings, and what was left out is counted.
func TestViewCeilings(t *testing.T) {
	c := testCall(t, nil)
	v := c.views(&state.Model{})
	type accounting struct {
		Title                string `json:"title"`
		Command              string `json:"command"`
		MetadataComplete     bool   `json:"metadataComplete"`
		OmittedMetadataBytes int    `json:"omittedMetadataBytes"`
		OmittedPlacements    int    `json:"omittedPlacements"`
		Placements           []any  `json:"placements"`
		PlacementsComplete   bool   `json:"placementsComplete"`
	}
	see := func(p *state.Pane) (a accounting) {
		t.Helper()
		view := v.pane(p)
		if !view.fits() {
			t.Fatalf("%d and %d bytes", len(view.json), len(view.text))
		}
		if err := json.Unmarshal(view.json, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	title := strings.Repeat("a", stringBudget)
	a := see(&state.Pane{Title: title, Command: "sh"})
	if a.Command != "sh" || a.OmittedMetadataBytes != 2 || a.MetadataComplete || len(a.Title) != stringBudget-2 {
		t.Errorf("long title: omitted %d", a.OmittedMetadataBytes)
	}
	a = see(&state.Pane{Title: strings.Repeat(`"`, 2_000_000)})
	if a.OmittedMetadataBytes+len(a.Title) != 2_000_000 || a.MetadataComplete {
		t.Errorf("quotes: kept %d, omitted %d", len(a.Title), a.OmittedMetadataBytes)
	}
	links := make([]state.Link, 30_000)
	for i := range links {
		links[i] = state.Link{Session: controlmode.SessionID(i), SessionName: "name", Index: i}
	}
	a = see(&state.Pane{Title: "t", Links: links})
	if a.PlacementsComplete || len(a.Placements)+a.OmittedPlacements != len(links) || len(a.Placements) < 15_000 {
		t.Errorf("placements: kept %d, omitted %d", len(a.Placements), a.OmittedPlacements)
	}
	// One more would not have fitted.
	view := v.pane(&state.Pane{Title: "t", Links: links})
	if room := viewCeiling - len(view.json); room > accountingRoom+64 {
		t.Errorf("%d bytes were left", room)
	}
}

// TestListLimits: rows come from the head until a limit ends the list.
func TestListLimits(t *testing.T) {
	c := testCall(t, map[string]string{envMaxLines: "7"})
	m := &state.Model{Server: state.Server{ID: state.ServerID{PID: 1, StartTime: 1}}}
	row := func(size int) func(int) view {
		return func(i int) view {
			return view{json: fmt.Appendf(nil, `{"n":"%s"}`, strings.Repeat("x", size)), text: strings.Repeat("y", size)}
		}
	}
	type list struct {
		Complete       bool  `json:"complete"`
		OmittedEntries int   `json:"omittedEntries"`
		Rows           []any `json:"rows"`
	}
	for _, x := range []struct{ n, size, shown int }{
		{0, 1, 0}, {7, 1, 7}, {8, 1, 7}, {200, 1, 7}, {4, 400_000, 2}, {2, 1_000_000, 0},
	} {
		res := c.list("rows", m, x.n, row(x.size))
		var got list
		if err := json.Unmarshal(res.Structured, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Rows) != x.shown || got.OmittedEntries != x.n-x.shown || got.Complete != (x.n == x.shown) || got.Rows == nil {
			t.Errorf("%d rows of %d: shown %d, omitted %d", x.n, x.size, len(got.Rows), got.OmittedEntries)
		}
		if len(res.Structured) > viewCeiling {
			t.Errorf("%d bytes", len(res.Structured))
		}
		if x.n > x.shown && !strings.HasSuffix(res.Text, fmt.Sprintf("[%d more rows not shown]", x.n-x.shown)) {
			t.Errorf("no notice: %.80s", res.Text)
		}
	}
}

// TestListFillsItsCeiling: the row that does not fit is the first that would
// pass the ceiling, counted to the byte.
func TestListFillsItsCeiling(t *testing.T) {
	c := testCall(t, nil)
	m := &state.Model{Server: state.Server{ID: state.ServerID{PID: 1, StartTime: 1}}}
	for over := range 3 {
		frame := len(`{"complete":false,"omittedEntries":0,"rows":[]}`) + 2 // two rows and their commas
		half := (viewCeiling - frame) / 2
		sizes := []int{half, viewCeiling - frame - half + over}
		res := c.list("rows", m, 2, func(i int) view {
			return view{json: []byte(`"` + strings.Repeat("x", sizes[i]-2) + `"`)}
		})
		var got struct{ Rows []string }
		if err := json.Unmarshal(res.Structured, &got); err != nil {
			t.Fatal(err)
		}
		if want := 2 - min(over, 1); len(got.Rows) != want {
			t.Errorf("%d bytes over: %d rows in %d bytes", over, len(got.Rows), len(res.Structured))
		}
	}
}

func TestHelloPane(t *testing.T) {
	dir := t.TempDir()
	sock := filepath.Join(dir, "a,b")
	if err := os.WriteFile(sock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(sock, link); err != nil {
		t.Fatal(err)
	}
	server := state.Server{ID: state.ServerID{PID: 123, StartTime: 5}, SocketPath: sock}
	for _, c := range []struct {
		tmux, pane string
		want       bool
	}{
		{sock + ",123,7", "%17", true},
		{link + ",123,7", "%17", true},
		{sock + ",124,7", "%17", false},
		{dir + ",123,7", "%17", false},
		{sock + ",123,7", "17", false},
		{sock + ",123,7", "", false},
		{"", "%17", false},
		{sock, "%17", false},
		{"123,7", "%17", false},
		{"x,123,7", "%17", false},
	} {
		id, ok := helloPane(&Hello{TMUX: c.tmux, TMUXPane: c.pane}, server)
		if ok != c.want || ok && id != 17 {
			t.Errorf("%q %q: %v %v", c.tmux, c.pane, id, ok)
		}
	}
	if _, ok := helloPane(&Hello{TMUX: sock + ",0,7", TMUXPane: "%17"}, state.Server{SocketPath: sock}); ok {
		t.Error("believed without a server")
	}
}

func BenchmarkListPanes(b *testing.B) {
	c := testCall(b, nil)
	m := &state.Model{Server: state.Server{ID: state.ServerID{PID: 1, StartTime: 1}}}
	for i := range 30 {
		m.Panes = append(m.Panes, &state.Pane{
			ID: controlmode.PaneID(i), Command: "bash", Path: "/home/user/src/project",
			Title: "user@host: ~/src", WindowName: "work", Width: 80, Height: 24,
			Links: []state.Link{{SessionName: "main", Index: i}},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		v := c.views(m)
		c.list("panes", m, len(m.Panes), func(i int) view { return v.pane(m.Panes[i]) })
	}
}
