package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"tmux-mcpd/controlmode"
)

const (
	// doctorTimeout bounds each check.
	doctorTimeout = 15 * time.Second
	// attachPatience is how long a daemon may take to attach to a tmux that is there:
	// an attempt that gets no answer takes 5 s, and another one may follow.
	attachPatience = 8 * time.Second
)

// The outcomes of a check.
const (
	fine    = "ok"
	unsure  = "warn"
	broken  = "FAIL"
	skipped = "skip"
)

// finding is what one check says.
type finding struct {
	Check   string `json:"check"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy,omitempty"`
}

// examination is one run of doctor.
type examination struct {
	in       *invocation
	findings []finding
	report   func(finding)
}

// doctor proves the chain from the tmux binary to a client's configuration, a
// line for each link. It changes nothing of the user's tmux: input is tried on a
// tmux server of its own.
func doctor(ctx context.Context, in *invocation) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	x := &examination{in: in}
	x.report = func(f finding) {
		if in.cfg.json {
			return
		}
		fmt.Fprintf(in.stdout, "%-4s  %-14s %s\n", f.Outcome, f.Check, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(in.stdout, "      %-14s -> %s\n", "", f.Remedy)
		}
	}
	for _, check := range []struct {
		name string
		run  func(context.Context) finding
	}{
		{"tmux", x.tmux},
		{"tmux server", x.server},
		{"control group", x.controlGroup},
		{"service", x.service},
		{"socket", x.socket},
		{"daemon", x.daemon},
		{"exact read", x.exactRead},
		{"input", x.input},
		{"bridge", x.bridge},
	} {
		x.check(ctx, check.name, check.run)
	}
	for _, c := range mcpClients() {
		x.check(ctx, c.title, func(context.Context) finding { return x.client(c) })
	}
	if in.cfg.json {
		b, err := json.Marshal(x.findings)
		if err != nil {
			return err
		}
		fmt.Fprintln(in.stdout, string(b))
	}
	bad := 0
	for _, f := range x.findings {
		if f.Outcome == broken {
			bad++
		}
	}
	if bad > 0 {
		return coded(exitUnhealthy, "%d of %d checks failed", bad, len(x.findings))
	}
	return nil
}

func (x *examination) check(ctx context.Context, name string, run func(context.Context) finding) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	f := run(ctx)
	f.Check = name
	x.findings = append(x.findings, f)
	x.report(f)
}

// failed is a finding for an error.
func failed(err error, remedy string) finding {
	return finding{Outcome: broken, Text: printable(err.Error()), Remedy: remedy}
}

// outcome is how an earlier check went.
func (x *examination) outcome(name string) string {
	for _, f := range x.findings {
		if f.Check == name {
			return f.Outcome
		}
	}
	return ""
}

func (x *examination) tmux(ctx context.Context) finding {
	version, err := checkTmux(ctx, x.in.cfg)
	if err != nil {
		return failed(err, "install tmux, or name the binary with --tmux-bin")
	}
	f := finding{Outcome: fine, Text: version}
	if v, err := controlmode.ParseVersion(version); err == nil && !v.AtLeast("3.7") {
		f.Text += "; releases before 3.7 can end when sessions come or go just as a control client attaches, and before 3.8 " +
			"when a pane that floods is respawned: see the README"
	}
	return f
}

// binary asks the user's tmux server by processes that never start one.
func (x *examination) binary() controlmode.Binary {
	return controlmode.Binary{Path: x.in.cfg.tmuxBin, Socket: controlmode.Socket{Path: x.in.cfg.tmuxSocket}, Timeout: tmuxTimeout}
}

func (x *examination) server(ctx context.Context) finding {
	if x.outcome("tmux") == broken {
		return finding{Outcome: skipped, Text: "there is no tmux to ask"}
	}
	out, err := x.binary().Output(ctx, controlmode.Cmd("display-message", "-p", "#{pid} #{version}"))
	switch {
	case errors.Is(err, controlmode.ErrNoServer):
		return finding{Outcome: unsure, Text: "none runs on " + x.in.cfg.tmuxSocket + "; the daemon attaches when one does"}
	case errors.Is(err, controlmode.ErrTimeout):
		return failed(err, "the server takes connections and does not answer: a stopped or spinning tmux")
	case err != nil:
		return failed(err, "")
	}
	pid, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	return finding{Outcome: fine, Text: fmt.Sprintf("tmux %s, pid %s, on %s", version, pid, x.in.cfg.tmuxSocket)}
}

func (x *examination) socket(ctx context.Context) finding {
	path := x.in.cfg.main.path
	conn, err := connect(ctx, x.in.cfg)
	if err != nil {
		remedy := "see tmux-mcpd logs"
		switch exitCode(err) {
		case exitDirectory:
			remedy = "remove the directory, or set XDG_RUNTIME_DIR to one that is yours alone"
		case exitPathTooLong:
			remedy = "choose a shorter path with --listen"
		}
		return failed(err, remedy)
	}
	conn.Close()
	return finding{Outcome: fine, Text: path}
}

func (x *examination) daemon(ctx context.Context) finding {
	if x.outcome("socket") != fine {
		return finding{Outcome: skipped, Text: "it cannot be reached"}
	}
	r, err := askDaemon(ctx, x.in.cfg)
	// One that has just been started may still be attaching.
	for end := time.Now().Add(attachPatience); err == nil && !r.Tmux.Attached && x.outcome("tmux server") == fine &&
		time.Now().Before(end) && pause(ctx, 5*dialPause); {
		r, err = askDaemon(ctx, x.in.cfg)
	}
	if err != nil {
		return failed(err, "end it with tmux-mcpd stop and start it again")
	}
	f := finding{Outcome: fine, Text: fmt.Sprintf("version %s, pid %d, up %s", r.Version, r.PID, age(time.Now(), r.Started))}
	switch {
	case r.Version != versionText():
		f.Outcome, f.Remedy = unsure, "this program is version "+versionText()+"; tmux-mcpd stop ends the running one, clients start the new one"
	case r.Tmux.Attached:
		f.Text += ", attached"
	case x.outcome("tmux server") == fine:
		f.Outcome, f.Text = broken, f.Text+", not attached: "+r.Tmux.Reason
		f.Remedy = "see tmux-mcpd logs"
	}
	return f
}

// exactRead compares what the daemon lists with what tmux lists.
func (x *examination) exactRead(ctx context.Context) finding {
	if x.outcome("daemon") != fine || x.outcome("tmux server") != fine {
		return finding{Outcome: skipped, Text: "needs a daemon and a tmux server"}
	}
	cl, err := openClient(ctx, x.in.cfg)
	if err != nil {
		return failed(err, "")
	}
	defer cl.close()
	for try := 0; ; try++ {
		out, err := x.binary().Output(ctx, controlmode.Cmd("list-panes", "-a", "-F", "#{pane_id}"))
		if err != nil {
			return failed(err, "")
		}
		want := unique(strings.Fields(string(out)))
		var got struct {
			Panes []struct {
				ID string `json:"id"`
			} `json:"panes"`
			OmittedEntries int `json:"omittedEntries"`
		}
		begin := time.Now()
		if err := cl.tool(ctx, &got, "list_panes", map[string]any{}); err != nil {
			return failed(err, "")
		}
		took := time.Since(begin)
		ids := make([]string, 0, len(got.Panes))
		for _, p := range got.Panes {
			ids = append(ids, p.ID)
		}
		ids = unique(ids)
		same := slices.Equal(ids, want) || got.OmittedEntries > 0 && len(ids)+got.OmittedEntries == len(want)
		switch {
		case same:
			return finding{Outcome: fine, Text: fmt.Sprintf("%d panes, as tmux lists them, in %v", len(want), took.Round(10*time.Microsecond))}
		case try == 3: // somebody may be making and closing panes
			return finding{Outcome: broken, Text: fmt.Sprintf("the daemon lists %q, tmux %q", ids, want), Remedy: "please report this"}
		}
	}
}

func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// input types into a pane of a tmux server that exists for this check only, by
// way of a daemon and a bridge of its own, and reads the echo.
func (x *examination) input(ctx context.Context) finding {
	if x.outcome("tmux") == broken {
		return finding{Outcome: skipped, Text: "there is no tmux"}
	}
	f, err := tryInput(ctx, x.in.cfg)
	if err != nil {
		return failed(err, "")
	}
	return f
}

// bridge measures how fast a client gets its first answer.
func (x *examination) bridge(ctx context.Context) finding {
	if x.outcome("socket") != fine {
		return finding{Outcome: skipped, Text: "the daemon cannot be reached"}
	}
	e, err := bridgeEntry(x.in.cfg)
	if err != nil {
		return failed(err, "")
	}
	begin := time.Now()
	cl, end, err := bridgeClient(ctx, e.Command, append(e.Args, "--no-start"), os.Environ())
	if err != nil {
		return failed(err, "")
	}
	took := time.Since(begin)
	if err := errors.Join(cl.close(), end()); err != nil {
		return failed(err, "")
	}
	return finding{Outcome: fine, Text: fmt.Sprintf("initialize answered %v after its start", took.Round(time.Millisecond))}
}

// client looks for the daemon in the configuration of an MCP client.
func (x *examination) client(c mcpClient) finding {
	path := c.path(os.LookupEnv)
	text, err := os.ReadFile(path)
	if err != nil {
		return finding{Outcome: skipped, Text: "not used here"}
	}
	add := "tmux-mcpd setup " + c.name
	e, err := readEntry(path, text)
	switch {
	case err != nil:
		return failed(fmt.Errorf("%s: %w", path, err), "")
	case e == nil:
		return finding{Outcome: unsure, Text: path + " has no entry " + entryName, Remedy: add}
	}
	prog, err := exec.LookPath(e.Command)
	if err != nil {
		return failed(fmt.Errorf("%s starts %s, which cannot be run: %w", path, e.Command, err), add)
	}
	return finding{Outcome: fine, Text: path + " starts " + prog}
}

// tool calls a tool and reads its structured answer.
func (cl *client) tool(ctx context.Context, into any, name string, args map[string]any) error {
	raw, err := cl.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var answer toolAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if answer.IsError {
		text := ""
		if len(answer.Content) > 0 {
			text = answer.Content[0].Text
		}
		return fmt.Errorf("%s: %s", name, text)
	}
	return json.Unmarshal(answer.Structured, into)
}

// askDaemon asks a daemon for its status. It starts none.
func askDaemon(ctx context.Context, c *config) (*statusReport, error) {
	conn, err := dial(ctx, c.main.path)
	if err != nil {
		return nil, err
	}
	cl, err := newClient(ctx, conn, c)
	if err != nil {
		return nil, err
	}
	defer cl.close()
	raw, err := cl.request(ctx, statusMethod, map[string]any{})
	r := new(statusReport)
	if err == nil {
		err = json.Unmarshal(raw, r)
	}
	return r, err
}

// pipes are a process's standard streams as one.
type pipes struct {
	in  *os.File // its standard input
	out *os.File // its standard output
}

func (p pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

func (p pipes) SetDeadline(t time.Time) error {
	return errors.Join(p.in.SetDeadline(t), p.out.SetDeadline(t))
}

var _ io.ReadWriteCloser = pipes{}
