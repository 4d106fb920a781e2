package controlmode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Errors of starting tmux that callers branch on.
var (
	// ErrNoBinary: there is no tmux binary.
	ErrNoBinary = errors.New("no tmux binary found")
	// ErrNoServer: no tmux server is running on the socket.
	ErrNoServer = errors.New("no tmux server is running")
	// ErrNoSessions: the tmux server has no session to attach to.
	ErrNoSessions = errors.New("the tmux server has no sessions")
	// ErrOutputLimit: a tmux process printed more than Binary.Limit.
	ErrOutputLimit = errors.New("tmux printed more than the limit")
)

const (
	maxStderr     = 8 << 10
	defaultOutput = 64 << 20
)

// Binary runs tmux commands as processes of their own: for the time when no
// control client can be had, and for looking before attaching. Only Start starts
// a tmux server. Any goroutine may use it.
type Binary struct {
	Path    string // "" for tmux from PATH
	Socket  Socket
	Timeout time.Duration // per process, 0 for 10 s
	Limit   int           // bytes of standard output, 0 for 64 MiB
}

// Output runs the commands in one tmux process and returns what it prints. It
// blocks until the process has ended, at most Timeout. Arguments are literal,
// as in a Request. Errors: ErrNoBinary, ErrNoServer, ErrNoSessions, ErrTimeout,
// ErrOutputLimit, ErrEmpty, ErrNUL, the error of ctx, or a *CommandError with tmux's words.
func (b Binary) Output(ctx context.Context, cmds ...Command) ([]byte, error) {
	words, err := commandArgs(cmds)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-N", "-u"}, b.Socket.Args()...)
	return b.run(ctx, launch{words: cmds[0].words, args: append(args, words...), env: environment(os.Environ())})
}

// commandArgs are the commands as arguments of a tmux process.
func commandArgs(cmds []Command) (args []string, err error) {
	if len(cmds) == 0 {
		return nil, ErrEmpty
	}
	for i, cmd := range cmds {
		if len(cmd.words) == 0 || cmd.words[0] == "" {
			return nil, ErrEmpty
		}
		if i > 0 {
			args = append(args, ";")
		}
		for _, w := range cmd.words {
			if strings.IndexByte(w, 0) >= 0 {
				return nil, fmt.Errorf("%s: %w", cmd.words[0], ErrNUL)
			}
			args = append(args, argvWord(w))
		}
	}
	return args, nil
}

// Version asks the binary for its version. The server may have another one.
func (b Binary) Version(ctx context.Context) (Version, error) {
	out, err := b.run(ctx, launch{words: []string{"tmux -V"}, args: []string{"-V"}, env: environment(os.Environ())})
	if err != nil {
		return Version{}, err
	}
	return ParseVersion(strings.TrimSpace(string(out)))
}

// launch is one run of a tmux process.
type launch struct {
	words  []string // of the command, for errors
	args   []string
	env    []string
	prefix []string // a program with arguments that runs it
}

func (b Binary) run(ctx context.Context, l launch) ([]byte, error) {
	path, err := lookBinary(b.Path)
	if err != nil {
		return nil, err
	}
	timeout := b.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
	defer cancel()
	out := bounded{limit: b.Limit}
	if out.limit <= 0 {
		out.limit = defaultOutput
	}
	errs := bounded{limit: maxStderr}
	line := append(append(slices.Clone(l.prefix), path), l.args...)
	cmd := exec.CommandContext(limited, line[0], line[1:]...)
	cmd.Env, cmd.Dir = l.env, "/"
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case err != nil && limited.Err() != nil:
		return nil, fmt.Errorf("%s: %w", l.words[0], context.Cause(limited))
	case err != nil:
		return nil, failure(l.words, errs.kept.String(), err)
	case out.dropped > 0:
		return nil, fmt.Errorf("%s: %w", l.words[0], ErrOutputLimit)
	}
	return out.kept.Bytes(), nil
}

// argvWord protects a word given to tmux as a process argument: there the only
// special thing is a ';' at its end, which ends the command (tmux 3.2a to 3.8,
// cmd-parse.y cmd_parse_from_arguments).
func argvWord(w string) string {
	if front, ok := strings.CutSuffix(w, ";"); ok {
		return front + `\;`
	}
	return w
}

// lookBinary finds the binary; the result is absolute, as children run in /.
func lookBinary(path string) (string, error) {
	if path == "" {
		path = "tmux"
	}
	found, err := exec.LookPath(path)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return filepath.Abs(found)
}

// failure makes an error of what a tmux process said before it ended badly.
func failure(words []string, stderr string, err error) error {
	text := strings.TrimSpace(stderr)
	if text == "" {
		return fmt.Errorf("%s: %w", words[0], err)
	}
	return refusal(words, text)
}

// refusal is a *CommandError, behind a sentinel where tmux's words have one.
func refusal(words []string, text string) error {
	err := &CommandError{Words: words, Text: text}
	if known := classify(text); known != nil {
		return fmt.Errorf("%w: %w", known, err)
	}
	return err
}

// classify finds the sentinel for what tmux says, nil for none. The texts are
// those of client.c and cmd-find.c, the same from 3.2a to 3.8.
func classify(text string) error {
	switch {
	case strings.HasPrefix(text, "no server running on "), text == "server exited unexpectedly":
		return ErrNoServer
	case strings.HasPrefix(text, "error connecting to ") &&
		(strings.HasSuffix(text, "(No such file or directory)") || strings.HasSuffix(text, "(Connection refused)")):
		return ErrNoServer
	case text == "no sessions":
		return ErrNoSessions
	}
	return nil
}

// environment is what a tmux process of ours gets: enough to find the server
// and to speak UTF-8. TERM is left out, as tmux refuses an unknown one even for a
// control client on a pty; TMUX, as it would choose a server.
func environment(from []string) []string {
	var env []string
	locale := map[string]string{}
	for _, kv := range from {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMUX_TMPDIR", "TMPDIR":
			env = append(env, kv)
		case "LC_ALL", "LC_CTYPE", "LANG":
			locale[name] = value
		}
	}
	// The first of these that is set and not empty decides (POSIX, XBD 8.2).
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := locale[name]; value != "" {
			lower := strings.ToLower(value)
			if strings.Contains(lower, "utf-8") || strings.Contains(lower, "utf8") {
				return append(env, name+"="+value)
			}
			break
		}
	}
	if runtime.GOOS == "darwin" {
		return append(env, "LC_ALL=en_US.UTF-8")
	}
	return append(env, "LC_ALL=C.UTF-8")
}

// bounded is a buffer that drops what is beyond its limit. (The buffer is not
// embedded: its ReadFrom would get round the limit.)
type bounded struct {
	kept    bytes.Buffer
	limit   int
	dropped int64
}

// Write never fails, so that the process that writes is not stopped.
func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if room := b.limit - b.kept.Len(); len(p) > room {
		b.dropped += int64(len(p) - room)
		p = p[:room]
	}
	b.kept.Write(p)
	return n, nil
}
