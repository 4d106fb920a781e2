package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// followPoll is how often logs -f looks for more.
const followPoll = 200 * time.Millisecond

// maxLogLine bounds a line of a log.
const maxLogLine = 1 << 20

// logs prints the daemon's log for a person: of its file, or of the journal where
// the service manager keeps it.
func logs(ctx context.Context, in *invocation) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	path := logPath(ctx, in.cfg)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return journal(ctx, in)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return followFile(ctx, in, path, f)
}

// logPath is the file that the daemon logs to, "" if it is none. One that runs
// says it. Of none that runs, the service's log is the journal; the file may be
// left from the time before.
func logPath(ctx context.Context, c *config) string {
	if c.logFile != "" {
		return c.logFile
	}
	asked, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if r, err := askDaemon(asked, c); err == nil && r.Log != nil {
		return *r.Log
	}
	if s, err := ownService(c); err == nil && s.replaces && s.installed() {
		return ""
	}
	return c.stateFile(".log")
}

// journal has journalctl print what the service has logged.
func journal(ctx context.Context, in *invocation) error {
	if _, err := exec.LookPath("journalctl"); err != nil {
		return coded(exitFailure, "there is no log of a daemon on %s (one started by hand logs to its standard error)", in.cfg.main.path)
	}
	args := []string{"--user", "--unit", serviceNameFor(in.cfg), "--output", "cat", "--no-pager", "--lines", fmt.Sprint(in.cfg.lines)}
	if in.cfg.follow {
		args = append(args, "--follow")
	}
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = in.stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &lineReader{src: out, max: maxLogLine}
	for {
		line, err := r.next()
		if len(line) > 0 {
			if err := in.printLog(line); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return coded(exitFailure, "journalctl: %w", err)
	}
	return nil
}

// followFile prints the last lines of a log file, and with -f what is appended,
// also after the file has been replaced by a new one.
func followFile(ctx context.Context, in *invocation, path string, f *os.File) error {
	old, err := lastLines(f, in.cfg.lines)
	if err != nil {
		return err
	}
	for _, line := range old {
		if err := in.printLog(line); err != nil {
			return err
		}
	}
	var rest []byte
	buf := make([]byte, chunk)
	for in.cfg.follow && pause(ctx, followPoll) {
		for {
			n, err := f.Read(buf)
			rest = append(rest, buf[:n]...)
			if n == 0 || err != nil {
				break
			}
		}
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			rest = after
			if err := in.printLog(line); err != nil {
				return err
			}
		}
		if next, err := os.Open(path); err == nil {
			if sameFile(f, next) {
				next.Close()
				continue
			}
			f.Close()
			*f = *next // the caller closes what is read last
			rest = nil
		}
	}
	return nil
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// lastLines reads the last n lines of a file, and leaves it at its end.
func lastLines(f *os.File, n int) ([][]byte, error) {
	const most = 4 << 20
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, fi.Size()-most)
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	if len(b) == 0 {
		return nil, nil
	}
	lines := bytes.Split(b, []byte("\n"))
	return lines[max(0, len(lines)-n):], nil
}

// printLog prints one line of the log, readable or with --json as it is.
func (in *invocation) printLog(line []byte) error {
	text := string(line)
	if !in.cfg.json {
		text = readable(line)
	}
	_, err := io.WriteString(in.stdout, text+"\n")
	return err
}

// logMembers are told apart from the rest of a line.
var logMembers = []string{"time", "level", "logger", "msg"}

// readable puts a JSON line of the log into words: time, level, message, and the
// rest as name=value. What is no such line is printed as it is, without control
// characters.
func readable(line []byte) string {
	members := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&members) != nil {
		return printable(string(line))
	}
	word := func(name string) string { s, _ := members[name].(string); return s }
	at := word("time")
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = t.Local().Format("2006-01-02 15:04:05.000")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s ", at, strings.ToUpper(word("level")))
	if from := word("logger"); from != "" {
		b.WriteString(from + ": ")
	}
	b.WriteString(word("msg"))
	names := make([]string, 0, len(members))
	for name := range members {
		if !slices.Contains(logMembers, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := fmt.Sprint(members[name])
		if strings.ContainsAny(value, " \t\n\"") || value == "" {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&b, " %s=%s", name, value)
	}
	return printable(b.String())
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
