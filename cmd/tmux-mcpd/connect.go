package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"tmux-mcpd/mcp"
)

const (
	// dialTimeout bounds one attempt to connect; a daemon accepts at once.
	dialTimeout = 2 * time.Second
	// startTimeout bounds the start of a daemon, the loser of a race included.
	startTimeout = 10 * time.Second
	// dialPause is between attempts while a daemon is starting.
	dialPause = 10 * time.Millisecond
)

// connect reaches the daemon of c and, unless c.noStart, starts one if there is
// none. It blocks at most startTimeout and a few seconds.
func connect(ctx context.Context, c *config) (*net.UnixConn, error) {
	conn, err := dial(ctx, c.main.path)
	if err == nil {
		return conn, nil
	}
	if !absent(err) {
		return nil, err
	}
	if c.noStart {
		return nil, coded(exitUnreachable, "no daemon serves %s; start one with: tmux-mcpd serve", c.main.path)
	}
	if err := launch(ctx, c); err != nil {
		return nil, err
	}
	if conn, err = dial(ctx, c.main.path); err != nil {
		return nil, coded(exitUnreachable, "the daemon was started but cannot be reached: %w", err)
	}
	return conn, nil
}

// dial connects to a daemon's socket. Before that it checks that nobody else
// can have put a socket there: what we send may be confidential, and what comes
// back is believed.
func dial(ctx context.Context, path string) (*net.UnixConn, error) {
	if err := mcp.CheckSocketPath(path); errors.Is(err, fs.ErrNotExist) {
		return nil, coded(exitUnreachable, "no daemon can be reached: %w", err)
	} else if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		// Linux says EAGAIN when more clients than the backlog holds are
		// waiting to be accepted.
		if !errors.Is(err, syscall.EAGAIN) || !pause(ctx, dialPause) {
			return nil, coded(exitUnreachable, "no daemon can be reached: %w", err)
		}
	}
}

// absent tells an error of dial that starting a daemon can mend.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// pause waits for d, or less if ctx ends; it tells whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// launch starts a daemon in the background through a process in between
// (serve --detach), which waits until the daemon is ready and then ends. So the
// daemon is nobody's child: clients that end a process together with its
// descendants, as several do with their bridges, do not end the daemon of all.
func launch(ctx context.Context, c *config) error {
	prog, err := self()
	if err != nil {
		return err
	}
	args := append(c.serveArgs(), "--detach")
	if c.idleExitSet {
		args = append(args, "--idle-exit", c.idleExit.String())
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout+2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, prog, args...)
	cmd.Env = daemonEnv(os.Environ())
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(stderr.String()), "tmux-mcpd: ")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > exitFailure && text != "" {
		return coded(exit.ExitCode(), "starting the daemon: %s", text)
	}
	if text != "" {
		err = fmt.Errorf("%s (%w)", text, err)
	}
	return coded(exitUnreachable, "starting the daemon: %w", err)
}

// kept are the variables a daemon started on demand needs: to find programs and
// its files, and for the panes of a tmux server it may start. Everything else
// is the business of one client and would outlive it: credentials, TMUX of one
// pane, the selection of tools and the limits of answers, which a bridge sends
// for itself.
var kept = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"TMUX_TMPDIR", "DBUS_SESSION_BUS_ADDRESS", "LIBTMUX_SOCKET", "LIBTMUX_SOCKET_PATH",
	"LIBTMUX_TMUX_BIN", "LIBTMUX_TMUX_CONFIG", "LIBTMUX_MCP_COMMAND_TIMEOUT_MS",
}

// keptPrefixes are families of such variables.
var keptPrefixes = []string{"LC_", "XDG_", "TMUX_MCPD_"}

func daemonEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if keepVariable(name) {
			out = append(out, kv)
		}
	}
	return out
}

func keepVariable(name string) bool {
	for _, k := range kept {
		if name == k {
			return true
		}
	}
	for _, p := range keptPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
