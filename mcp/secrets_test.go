package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"tmux-mcpd/state"
)

// outlets are the ways by which text reaches somebody. Each makes the daemon tell
// of planted secrets in every manner it can, and gives what was told. A new way
// belongs into this list.
var outlets = []struct {
	name  string
	tells func(*secrets) []string
	// never: it does not tell of what panes show, with or without redaction.
	never bool
}{
	{name: "reads", tells: (*secrets).reads},
	{name: "pages of a capture", tells: (*secrets).captures},
	{name: "deltas as it is printed", tells: (*secrets).deltas},
	{name: "pages of a delta", tells: (*secrets).deltaPages},
	{name: "waits", tells: (*secrets).waits},
	{name: "answers of runs", tells: (*secrets).runAnswers},
	{name: "pages of a run", tells: (*secrets).runPages},
	{name: "pages with an own pattern", tells: (*secrets).ownPages},
	{name: "output cut off", tells: (*secrets).runsCutOff},
	{name: "changes", tells: (*secrets).changes},
	{name: "errors", tells: (*secrets).errorTexts},
	{name: "commands of runs in lists", tells: (*secrets).runLists, never: true},
	{name: "log and audit", tells: (*secrets).logs, never: true},
}

// secrets is a tmux full of them.
type secrets struct {
	*rig
	raw, folded string // files of all that is planted; folded to the width of a pane
	own         string // a file of ownSecret, as folded
	shell       string // a pane
}

// ownSecret is matched by a pattern of the operator's: what may be its beginning
// nobody can tell.
var ownSecret = plant{"nothing", "471147-908172-635411"}

const ownPattern = `\b[0-9]{6}-[0-9]{6}-[0-9]{6}\b`

const secretWidth = 50

// newSecrets plants: window name, title, option, hook and environment of session
// main have one each, and pane %0 shows all.
func newSecrets(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{rig: newRig(t, nil)}
	var text, folded, own strings.Builder
	for n := 32; n < secretWidth; n += 3 {
		row := strings.Repeat("a", n-1) + " " + ownSecret.secret
		fmt.Fprintf(&own, "%s\n%s\n", row[:secretWidth], row[secretWidth:])
	}
	for _, p := range planted {
		line := fmt.Sprintf("padding that lets the row wrap: "+p.around+"\n", p.secret)
		text.WriteString(line)
		for row := range strings.Lines(line) {
			for ; len(row) > secretWidth; row = row[secretWidth:] {
				folded.WriteString(row[:secretWidth] + "\n")
			}
			folded.WriteString(row)
		}
	}
	dir := shortDir(t)
	s.raw, s.folded, s.own = filepath.Join(dir, "raw"), filepath.Join(dir, "folded"), filepath.Join(dir, "own")
	for name, what := range map[string]*strings.Builder{s.raw: &text, s.folded: &folded, s.own: &own} {
		if err := os.WriteFile(name, []byte(what.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func(i int) string { return fmt.Sprintf(planted[i].around, planted[i].secret) }
	s.tmux("new-session", "-d", "-s", "main", "-n", said(0), "-x", fmt.Sprint(secretWidth), "-y", "30", "-e", "SOME_TOKEN="+planted[2].secret,
		fmt.Sprintf("stty -echo; cat %s; %s -S %s wait-for -S shown; exec cat", s.raw, s.bin, s.sock), ";",
		"set-option", "-g", "allow-rename", "off", ";", "set-option", "-g", "automatic-rename", "off", ";",
		"set-option", "-g", "default-size", fmt.Sprintf("%dx30", secretWidth), ";",
		"select-pane", "-t", "main:", "-T", said(1), ";", "set-option", "-t", "main", "@hostile", said(3), ";",
		"set-hook", "-t", "main", "client-attached", "display-message '"+said(4)+"'", ";", "set-environment", "-g", "OTHER_TOKEN", planted[2].secret)
	s.tmux("wait-for", "shown")
	return s
}

// under makes the rig's caller one of a socket that redacts, or not.
func (s *secrets) under(redact bool) {
	p, err := newPolicy(s.table, PolicyConfig{Redact: redact, Patterns: []string{ownPattern}})
	if err != nil {
		s.Fatal(err)
	}
	s.caller = &Caller{policy: p}
}

// told is an answer as it is on the wire. What was taken out of it must be counted
// in it.
func (s *secrets) told(name string, a args) string {
	s.Helper()
	frame := string(s.frameOf(name, a))
	if strings.Contains(frame, redacted) && !strings.Contains(frame, `"`+metaRedacted+`":`) && name != batchName {
		s.Errorf("%s %v does not count what it took out:\n%.500s", name, a, frame)
	}
	return frame
}

// TestNoSecretLeaves: secrets in every place that the daemon reads come back in
// no way. Without redaction each of these ways tells them.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	s := newSecrets(t)
	s.shell = s.shellPane(plainBash)
	pieces := piecesOf(append(slices.Clone(planted), ownSecret))
	for _, o := range outlets {
		t.Run(o.name, func(t *testing.T) {
			rig := *s.rig
			rig.TB = t
			s := &secrets{&rig, s.raw, s.folded, s.own, s.shell}
			s.under(true)
			all := o.tells(s)
			for _, text := range all {
				if f, p := pieces.in(text); p != nil {
					t.Errorf("%q of %q is told:\n%.1500s", f, p.around, text)
				}
			}
			if !o.never && !strings.Contains(strings.Join(all, ""), redacted) {
				t.Errorf("nothing was taken out of %d texts", len(all))
			}
			s.under(false)
			if _, leaks := pieces.in(strings.Join(o.tells(s), "\n")); (leaks != nil) == o.never {
				t.Errorf("without redaction there are secrets in it: %v", leaks != nil)
			}
		})
	}
}

// pieces are all fragments of secrets that must not be seen.
type pieces map[string]*plant

func piecesOf(plants []plant) pieces {
	all := pieces{}
	for i, p := range plants {
		for secret := strings.ReplaceAll(p.secret, "\n", ""); len(secret) > fragment; secret = secret[1:] {
			all[secret[:fragment+1]] = &plants[i]
		}
	}
	return all
}

// in finds one in a text, as shows does.
func (all pieces) in(text string) (string, *plant) {
	for flat := unbroken.Replace(text); len(flat) > fragment; flat = flat[1:] {
		if p := all[flat[:fragment+1]]; p != nil {
			return flat[:fragment+1], p
		}
	}
	return "", nil
}

func (s *secrets) reads() (all []string) {
	calls := callsOf("%0", "@0", "main", "nothing")
	calls["snapshot_pane"] = append(calls["snapshot_pane"], args{"paneId": "%0", "history": true})
	for i := range planted {
		start := strings.ReplaceAll(planted[i].secret, "\n", "")[:4]
		calls["search_panes"] = append(calls["search_panes"], args{"pattern": start, "scrollbackLines": 100})
	}
	calls["show_environment"] = append(calls["show_environment"], args{"session": "main"}, nil)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if s.table.byName[name] != nil && s.table.byName[name].toolset == inspect {
			for _, a := range calls[name] {
				all = append(all, s.told(name, a))
			}
		}
	}
	return all
}

func (s *secrets) captures() (all []string) {
	asked := []args{{"history": true}, {"history": true, "joinWrapped": true}}
	for first := -30; first < 30; first += 5 {
		for _, n := range []int{0, 4} {
			asked = append(asked, args{"start": first, "end": first + n})
		}
	}
	for _, a := range asked {
		a["paneId"] = "%0"
		all = append(all, s.told("capture_pane", a))
	}
	return all
}

// printing makes a new pane that prints lines of its standard input's.
func (s *secrets) printing() (pane string, cursor any) {
	s.Helper()
	pane = s.printed("printing", "x", "-t", "main:")
	return pane, s.ok("capture_since", args{"paneId": pane})["cursor"]
}

// shownIn prints a file in a new pane and waits until it is there; cursor is
// before it.
func (s *secrets) shownIn(file string) (pane string, cursor any) {
	s.Helper()
	name := filepath.Base(file)
	pane = s.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", fmt.Sprintf("stty -echo; %s -S %s wait-for start; cat %s; %s -S %s wait-for -S %s; exec cat",
		s.bin, s.sock, file, s.bin, s.sock, name))
	cursor = s.ok("capture_since", args{"paneId": pane})["cursor"]
	s.tmux("wait-for", "-S", "start")
	s.tmux("wait-for", name)
	return pane, cursor
}

func (s *secrets) deltas() (all []string) {
	pane, cursor := s.printing()
	var text strings.Builder
	read := func(wait int) {
		in := s.ok("capture_since", args{"paneId": pane, "cursor": cursor, "waitMs": wait})
		cursor = in["cursor"]
		text.WriteString(in["text"].(string))
	}
	line := fmt.Sprintf(planted[1].around, planted[1].secret)
	for _, piece := range []string{line[:9], line[9:20], line[20:30], line[30:] + "\n"} {
		s.tmux("send-keys", "-l", "-t", pane, piece) // cat gets it with the newline
		read(0)
	}
	s.until(func() bool { read(1000); return strings.Contains(text.String(), "end") })
	if s.caller.policy.now.Load().redact != nil {
		s.refused("capture_since", args{"paneId": pane, "cursor": cursor, "raw": true}, "raw is not available")
	}
	return []string{text.String()}
}

func (s *secrets) deltaPages() []string {
	return append(s.deltaPagesOf([]int{1}, s.folded), s.deltaPagesOf([]int{3}, s.raw)...)
}

func (s *secrets) ownPages() []string {
	return append(s.deltaPagesOf([]int{1}, s.own), s.runPagesOf([]int{1}, s.own)...)
}

func (s *secrets) deltaPagesOf(limits []int, files ...string) (all []string) {
	for _, file := range files {
		pane, start := s.shownIn(file)
		for _, lines := range limits {
			for cursor, more := start, true; more; {
				a := args{"paneId": pane, "cursor": cursor, "order": "oldest", "maxLines": lines}
				in := s.ok("capture_since", a)
				cursor, more = in["cursor"], in["more"] == true
				all = append(all, in["text"].(string))
			}
			all = append(all, s.told("capture_since", args{"paneId": pane, "cursor": start, "maxLines": lines}))
		}
		all = append(all, s.told("capture_since", args{"paneId": pane, "cursor": start, "maxBytes": 300}))
	}
	return all
}

func (s *secrets) waits() (all []string) {
	pane, cursor := s.shownIn(s.raw)
	for more := true; more; { // the next line is what a wait for anything shows
		all = append(all, s.told("wait_for_text", args{"paneId": pane, "cursor": cursor, "timeoutMs": 1}),
			s.told("wait_for", args{"conditions": []args{{"kind": "output", "paneId": pane, "cursor": cursor}}, "maxLines": 1, "timeoutMs": 1}))
		in := s.ok("capture_since", args{"paneId": pane, "cursor": cursor, "order": "oldest", "maxLines": 1})
		cursor, more = in["cursor"], in["more"] == true
	}
	for _, file := range []string{s.raw, s.folded} {
		pane, cursor := s.shownIn(file)
		last := strings.Split(planted[len(planted)-1].secret, "\n")
		for i, pattern := range []string{"padding", "ghp_", last[len(last)-1][:4]} {
			lines := 1 + 50*(i%2)
			all = append(all,
				s.told("wait_for_text", args{"paneId": pane, "cursor": cursor, "patterns": []string{pattern}, "maxLines": lines, "timeoutMs": 1}),
				s.told("wait_for_text", args{"paneId": pane, "patterns": []string{pattern}, "includeScreen": true, "maxLines": lines, "timeoutMs": 1}),
				s.told("wait_for", args{"conditions": []args{{"kind": "text", "paneId": pane, "cursor": cursor, "pattern": pattern}}, "maxLines": lines, "timeoutMs": 1}))
		}
		all = append(all,
			s.told("wait_for_text", args{"paneId": pane, "cursor": cursor, "timeoutMs": 1}),
			s.told("wait_for_text", args{"paneId": pane, "timeoutMs": 1}))
	}
	return all
}

// ran runs a command and gives the run's id.
func (s *secrets) ran(command string) string {
	s.Helper()
	return s.runs(s.shell, command)["runId"].(string)
}

func (s *secrets) runAnswers() (all []string) {
	for _, file := range []string{s.raw, s.folded} {
		for _, lines := range []int{1, 4, 100} {
			all = append(all, s.told("run_shell_command", args{"paneId": s.shell, "command": "cat " + file, "maxLines": lines}))
		}
	}
	return all
}

func (s *secrets) runPages() []string {
	return append(s.runPagesOf([]int{1}, s.folded), s.runPagesOf([]int{3, 100}, s.raw)...)
}

func (s *secrets) runPagesOf(limits []int, files ...string) (all []string) {
	for _, file := range files {
		id := s.ran("cat " + file)
		start := s.ok("get_run", args{"runId": id})["run"].(map[string]any)["cursor"]
		for _, lines := range limits {
			all = append(all, s.told("get_run", args{"runId": id, "maxLines": lines}))
			for cursor := start; ; {
				in := s.ok("get_run", args{"runId": id, "cursor": cursor, "maxLines": lines})
				if cursor = in["cursor"]; in["output"] == "" {
					break
				}
				all = append(all, in["output"].(string))
			}
		}
	}
	return all
}

// runsCutOff: what may be the beginning of a secret is one, though no more comes.
func (s *secrets) runsCutOff() (all []string) {
	for _, n := range []int{45, 100, 480, 900, 1300} {
		all = append(all, s.told("get_run", args{"runId": s.ran(fmt.Sprintf("head -c %d %s", n, s.raw))}))
	}
	return all
}

func (s *secrets) changes() (all []string) {
	cursor := s.ok("what_changed", nil)["cursor"]
	said := fmt.Sprintf(planted[3].around, planted[3].secret)
	pane := s.printed("changing", "x", "-t", "main:")
	s.ok("what_changed", nil) // the pane is known before its title changes
	s.tmux("rename-window", "-t", pane, said, ";", "select-pane", "-t", pane, "-T", said)
	s.until(func() bool {
		all = append(all, s.told("what_changed", args{"cursor": cursor, "kinds": []string{"title_changed", "renamed"}, "waitMs": 1000}))
		return strings.Contains(all[len(all)-1], "title_changed")
	})
	s.tmux("kill-pane", "-t", pane)
	return append(all, s.told("what_changed", args{"cursor": cursor}))
}

// errorTexts list names of what there is, cut short.
func (s *secrets) errorTexts() (all []string) {
	for i, p := range planted {
		if strings.Contains(p.secret, "\n") {
			continue
		}
		name := strings.Repeat("w", i%20) + " " + strings.ReplaceAll(fmt.Sprintf(p.around, p.secret), "#", "##")
		s.tmux("new-window", "-d", "-t", "main:", "-n", name, "cat")
		last := s.tmux("display-message", "-p", "-t", "main:{end}", "#{window_id} #{pane_id}")
		window, pane, _ := strings.Cut(last, " ")
		all = append(all, s.told("get_pane_info", args{"paneId": pane + "9"}), s.told("get_window_info", args{"windowId": window + "9"}),
			s.told("rename_window", args{"windowId": window + "9", "name": "x"}))
		s.tmux("kill-window", "-t", window)
	}
	return all
}

// runLists: commands are what clients say, and are not told to others.
func (s *secrets) runLists() []string {
	id := s.ran(": " + planted[1].secret)
	return []string{s.told("list_runs", nil), s.told("get_run", args{"runId": id})}
}

// logs of a daemon at its most talkative hold nothing of arguments and answers,
// whether clients are told of them or not.
func (s *secrets) logs() []string {
	core, logs := observer.New(zapcore.DebugLevel)
	d := startServer(s.TB, Config{Log: zap.New(core), Audit: zap.New(core)}, s.table)
	w := d.open(s.TB)
	said := fmt.Sprintf(planted[1].around, planted[1].secret)
	calls := callsOf("%0", "@0", "main", said)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if s.table.byName[name] == nil || name == "respawn_pane" {
			continue
		}
		for _, a := range calls[name] {
			raw, err := json.Marshal(a)
			if err != nil {
				s.Fatal(err)
			}
			w.call(n, name, string(raw))
			w.next()
			n++
		}
	}
	waitFor(s.TB, "the records", func() bool { return logs.FilterMessage("call").Len() >= 2*n })
	var all []string
	for _, e := range append(logs.All(), s.rig.logs.All()...) {
		all = append(all, fmt.Sprint(e.Message, e.ContextMap()))
	}
	return all
}

// Reports of progress are of single lines: what may go on, or is a part of more,
// is taken out of them as well.
func TestNoSecretInProgress(t *testing.T) {
	t.Parallel()
	s := newSecrets(t)
	s.under(true)
	var mu sync.Mutex
	var all []string
	c := &call{table: s.table, caller: s.caller, policy: s.caller.policy.now.Load()}
	c.arrival = c.policy.arrive(s.table.mirror, 0)
	tell := c.policy.progress(func(m string) { mu.Lock(); all = append(all, m); mu.Unlock() })
	for _, p := range planted {
		line := fmt.Sprintf(p.around, p.secret)
		for n := range len(line) + 1 {
			tell(line[:n][strings.LastIndexByte(line[:n], '\n')+1:])
		}
	}
	for _, m := range all {
		for _, p := range planted[:len(planted)-1] { // lines of a key alone: see redactLine
			if f := shows(m, p.secret); f != "" {
				t.Errorf("%q of %q: %s", f, p.around, m)
			}
		}
	}
	pane, cursor := s.shownIn(s.raw)
	id, _ := c.paneID(t.Context(), pane)
	from, err := c.cursor(t.Context(), id, cursor.(string))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.raw)
	if err != nil {
		t.Fatal(err)
	}
	read := func(opt state.SinceOptions) (*state.Since, error) {
		return s.table.mirror.Since(context.Background(), id, from, opt)
	}
	kept := 0
	for line := range strings.Lines(string(b)) {
		got := c.redactLine(strings.TrimSuffix(line, "\n"), from, read)
		if got != redacted {
			kept++
		}
		for _, p := range planted {
			if f := shows(got, p.secret); f != "" {
				t.Errorf("%q of %q: %s", f, p.around, got)
			}
		}
	}
	if kept < len(planted) {
		t.Errorf("only of %d lines anything is told", kept)
	}
}
