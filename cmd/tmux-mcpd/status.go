package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"tmux-mcpd/mcp"
	"tmux-mcpd/state"
)

// statusMethod is the daemon's own method behind the status command.
const statusMethod = "tmux-mcpd/status"

// checkMethod is the one behind status --check.
const checkMethod = "tmux-mcpd/check"

const (
	statusTimeout = 5 * time.Second  // bounds the status command
	checkTimeout  = 30 * time.Second // bounds its check
)

// status is what the status command shows, and with --json prints. Times are
// RFC 3339, sizes bytes.
type statusReport struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Socket  string    `json:"socket"`
	Started time.Time `json:"started"`
	Log     *string   `json:"log"` // its file, "" for standard error; nil of an older daemon
	Memory  memory    `json:"memory"`
	Tmux    tmuxState `json:"tmux"`
	Clients clients   `json:"clients"`
}

type memory struct {
	Resident   int64  `json:"resident"` // 0 if unknown
	Heap       uint64 `json:"heap"`
	Goroutines int    `json:"goroutines"`
}

type tmuxState struct {
	Socket       string    `json:"socket"`
	Attached     bool      `json:"attached"`
	Since        time.Time `json:"since"`
	Reason       string    `json:"reason"`
	Version      string    `json:"version"`
	PID          int       `json:"pid"`
	Refreshes    uint64    `json:"refreshes"`
	Streams      int       `json:"streams"`
	WatchedPanes int       `json:"watchedPanes"`
	Waits        int       `json:"waits"`
	Channels     int       `json:"channels"`
	Runs         int       `json:"runs"`
	LagMs        float64   `json:"lagMs"` // how long tmux held the newest output
	LogBytes     int64     `json:"logBytes"`
	Unknown      uint64    `json:"unknownNotifications"`
	LastError    string    `json:"lastError"`
}

type clients struct {
	Connections []connection `json:"connections"`
	InFlight    int          `json:"inFlight"`
	Calls       uint64       `json:"calls"`
	Panics      uint64       `json:"panics"`
	Tools       []toolCalls  `json:"tools"`
}

// toolCalls are the calls of a tool since the start, waits included.
type toolCalls struct {
	Tool     string  `json:"tool"`
	Count    uint64  `json:"count"`
	MedianMs float64 `json:"medianMs"`
	P99Ms    float64 `json:"p99Ms"`
}

type connection struct {
	ID       uint64    `json:"id"`
	PID      int       `json:"pid"`
	UID      int       `json:"uid"`
	Bridge   string    `json:"bridge"` // its version, "" for a raw client
	Since    time.Time `json:"since"`
	InFlight int       `json:"inFlight"`
}

// reportStatus puts the daemon's state into words.
func reportStatus(c *config, started time.Time, m state.Status, s mcp.Status) statusReport {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r := statusReport{
		Version: versionText(), PID: os.Getpid(), Socket: c.main.path, Started: started, Log: &c.logFile,
		Memory: memory{Resident: resident(), Heap: mem.HeapAlloc, Goroutines: runtime.NumGoroutine()},
		Tmux: tmuxState{
			Socket: c.tmuxSocket, Attached: m.Attached, Since: m.Since, Reason: m.Reason,
			Version: m.Server.Version, PID: m.Server.ID.PID, Refreshes: m.Refreshes, Streams: m.StreamsOpen,
			WatchedPanes: m.WatchedPanes, Waits: m.Followers, Channels: m.Channels, Runs: m.Runs, LagMs: millisOf(m.Lag), LogBytes: m.LogBytes, Unknown: m.Unknown, LastError: m.LastError,
		},
		Clients: clients{Connections: []connection{}, InFlight: s.InFlight, Calls: s.Calls, Panics: s.Panics, Tools: []toolCalls{}},
	}
	for _, l := range s.Latencies {
		r.Clients.Tools = append(r.Clients.Tools, toolCalls{l.Tool, l.Count, millisOf(l.Median), millisOf(l.P99)})
	}
	for _, cs := range s.Connections {
		r.Clients.Connections = append(r.Clients.Connections, connection{cs.Conn, cs.PID, cs.UID, cs.Bridge, cs.Since, cs.InFlight})
	}
	return r
}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// resident is this process's resident memory in bytes, 0 where /proc does not
// tell (macOS).
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// status asks the daemon and prints its answer.
func status(ctx context.Context, in *invocation) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	in.cfg.noStart = true
	if in.cfg.watchStatus {
		return watchStatus(ctx, in)
	}
	err := showStatus(ctx, in, in.stdout)
	if err == nil && in.cfg.check {
		err = showCheck(ctx, in)
	}
	return err
}

// showStatus asks once.
func showStatus(ctx context.Context, in *invocation, w io.Writer) error {
	raw, err := askMethod(ctx, in.cfg, statusMethod, statusTimeout)
	if err != nil {
		return err
	}
	if in.cfg.json {
		_, err = w.Write(append(raw, '\n'))
		return err
	}
	var r statusReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return coded(exitUnreachable, "the daemon's status cannot be read: %w", err)
	}
	return r.write(w, time.Now())
}

// askMethod asks a running daemon one of its own methods.
func askMethod(ctx context.Context, c *config, method string, limit time.Duration) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl, err := openClient(ctx, c)
	if err != nil {
		return nil, err
	}
	defer cl.close()
	raw, err := cl.request(ctx, method, map[string]any{})
	var rpc *rpcError
	if errors.As(err, &rpc) {
		return nil, coded(exitUnreachable, "the daemon does not tell: %w", err)
	}
	return raw, err
}

// watchStatus shows the status every second until it is interrupted. A daemon
// that is away for the moment is said to be.
func watchStatus(ctx context.Context, in *invocation) error {
	clear := ""
	if term.IsTerminal(int(in.stdout.Fd())) && !in.cfg.json {
		clear = "\x1b[H\x1b[2J"
	}
	for {
		var b strings.Builder
		if err := showStatus(ctx, in, &b); err != nil && ctx.Err() == nil {
			fmt.Fprintf(&b, "%v\n", err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if _, err := io.WriteString(in.stdout, clear+b.String()); err != nil {
			return err
		}
		if !pause(ctx, time.Second) {
			return nil
		}
	}
}

// showCheck has the daemon compare itself with tmux.
func showCheck(ctx context.Context, in *invocation) error {
	raw, err := askMethod(ctx, in.cfg, checkMethod, checkTimeout)
	if err != nil {
		return err
	}
	var v state.Verification
	if err := json.Unmarshal(raw, &v); err != nil {
		return coded(exitUnreachable, "the daemon's check cannot be read: %w", err)
	}
	if in.cfg.json {
		_, err = in.stdout.Write(append(raw, '\n'))
	} else {
		fmt.Fprintf(in.stdout, "check     %d sessions, %d windows, %d panes compared with tmux: ", v.Sessions, v.Windows, v.Panes)
		if len(v.Problems) == 0 {
			fmt.Fprintln(in.stdout, "the same")
		} else {
			fmt.Fprintf(in.stdout, "%d differences\n", len(v.Problems))
			for _, p := range v.Problems {
				fmt.Fprintf(in.stdout, "  %s\n", printable(p))
			}
		}
	}
	if err == nil && len(v.Problems) > 0 {
		err = coded(exitUnhealthy, "what the daemon knows differs from what tmux says; please report it")
	}
	return err
}

// write prints the report for a person.
func (r *statusReport) write(w io.Writer, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "tmux-mcpd %s, pid %d, up %s\n", r.Version, r.PID, age(now, r.Started))
	fmt.Fprintf(&b, "socket    %s\n", r.Socket)
	t := &r.Tmux
	if t.Attached {
		fmt.Fprintf(&b, "tmux      %s, pid %d, on %s, attached for %s\n", t.Version, t.PID, t.Socket, age(now, t.Since))
	} else {
		fmt.Fprintf(&b, "tmux      not attached to %s for %s: %s\n", t.Socket, age(now, t.Since), t.Reason)
	}
	fmt.Fprintf(&b, "watching  %d panes, %d stream clients, %s of output\n", t.WatchedPanes, t.Streams, size(t.LogBytes))
	fmt.Fprintf(&b, "waiting   %d waits for output, %d for channels, %d runs; newest output held by tmux for %.1f ms\n", t.Waits, t.Channels, t.Runs, t.LagMs)
	fmt.Fprintf(&b, "clients   %d connected, %d requests in flight, %d calls so far\n", len(r.Clients.Connections), r.Clients.InFlight, r.Clients.Calls)
	for _, c := range r.Clients.Connections {
		kind := "raw"
		if c.Bridge != "" {
			kind = "tmux-mcpd " + c.Bridge
		}
		fmt.Fprintf(&b, "  %-7d pid %d, %s, for %s\n", c.ID, c.PID, kind, age(now, c.Since))
	}
	for _, c := range r.Clients.Tools {
		fmt.Fprintf(&b, "  %-24s %8d calls, median %.1f ms, 99%% within %.1f ms\n", c.Tool, c.Count, c.MedianMs, c.P99Ms)
	}
	fmt.Fprintf(&b, "memory    %s resident, %s heap, %d goroutines\n", size(r.Memory.Resident), size(int64(r.Memory.Heap)), r.Memory.Goroutines)
	if t.LastError != "" {
		fmt.Fprintf(&b, "last error  %s\n", t.LastError)
	}
	if r.Clients.Panics > 0 {
		fmt.Fprintf(&b, "panics    %d (see the log)\n", r.Clients.Panics)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func age(now, then time.Time) string {
	if then.IsZero() {
		return "an unknown time"
	}
	return now.Sub(then).Round(time.Second).String()
}

// size writes bytes as a person reads them.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), "KiB"
	if n >= 1<<20 {
		v, unit = float64(n)/(1<<20), "MiB"
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
