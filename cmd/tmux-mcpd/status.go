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

	"tmux-mcpd/mcp"
	"tmux-mcpd/state"
)

// statusMethod is the daemon's own method behind the status command.
const statusMethod = "tmux-mcpd/status"

// statusTimeout bounds the status command.
const statusTimeout = 5 * time.Second

// status is what the status command shows, and with --json prints. Times are
// RFC 3339, sizes bytes.
type statusReport struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Socket  string    `json:"socket"`
	Started time.Time `json:"started"`
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
	LogBytes     int64     `json:"logBytes"`
	Unknown      uint64    `json:"unknownNotifications"`
	LastError    string    `json:"lastError"`
}

type clients struct {
	Connections []connection `json:"connections"`
	InFlight    int          `json:"inFlight"`
	Calls       uint64       `json:"calls"`
	Panics      uint64       `json:"panics"`
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
		Version: versionText(), PID: os.Getpid(), Socket: c.main.path, Started: started,
		Memory: memory{Resident: resident(), Heap: mem.HeapAlloc, Goroutines: runtime.NumGoroutine()},
		Tmux: tmuxState{
			Socket: c.tmuxSocket, Attached: m.Attached, Since: m.Since, Reason: m.Reason,
			Version: m.Server.Version, PID: m.Server.ID.PID, Refreshes: m.Refreshes, Streams: m.StreamsOpen,
			WatchedPanes: m.WatchedPanes, LogBytes: m.LogBytes, Unknown: m.Unknown, LastError: m.LastError,
		},
		Clients: clients{Connections: []connection{}, InFlight: s.InFlight, Calls: s.Calls, Panics: s.Panics},
	}
	for _, cs := range s.Connections {
		r.Clients.Connections = append(r.Clients.Connections, connection{cs.Conn, cs.PID, cs.UID, cs.Bridge, cs.Since, cs.InFlight})
	}
	return r
}

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
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	in.cfg.noStart = true
	cl, err := openClient(ctx, in.cfg)
	if err != nil {
		return err
	}
	defer cl.close()
	raw, err := cl.request(ctx, statusMethod, map[string]any{})
	var rpc *rpcError
	if errors.As(err, &rpc) {
		return coded(exitUnreachable, "the daemon does not tell its status: %w", err)
	}
	if err != nil {
		return err
	}
	if in.cfg.json {
		_, err = in.stdout.Write(append(raw, '\n'))
		return err
	}
	var r statusReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return coded(exitUnreachable, "the daemon's status cannot be read: %w", err)
	}
	return r.write(in.stdout, time.Now())
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
	fmt.Fprintf(&b, "clients   %d connected, %d requests in flight, %d calls so far\n", len(r.Clients.Connections), r.Clients.InFlight, r.Clients.Calls)
	for _, c := range r.Clients.Connections {
		kind := "raw"
		if c.Bridge != "" {
			kind = "tmux-mcpd " + c.Bridge
		}
		fmt.Fprintf(&b, "  %-7d pid %d, %s, for %s\n", c.ID, c.PID, kind, age(now, c.Since))
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
