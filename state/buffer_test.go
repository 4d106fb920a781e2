package state

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLeftBuffers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	const hex = "-0123456789abcdef"
	row := func(ago int64, name string) string { return fmt.Sprintf("%d,%s|\n", now.Unix()-ago, name) }
	for name, c := range map[string]struct {
		rows string
		left []string
		wait time.Duration
	}{
		"none":              {"", nil, 0},
		"left":              {row(60, "tmux-mcpd-7"+hex), []string{"tmux-mcpd-7" + hex}, 0},
		"its daemon runs":   {row(60, "tmux-mcpd-8"+hex), nil, 0},
		"just added to":     {row(3, "tmux-mcpd-7"+hex) + row(60, "tmux-mcpd-9"+hex), []string{"tmux-mcpd-9" + hex}, 7 * time.Second},
		"a person's":        {row(60, "buffer0") + row(60, "notes"), nil, 0},
		"like ours":         {row(60, "tmux-mcpd-notes") + row(60, "tmux-mcpd-7") + row(60, "tmux-mcpd-7-0123"), nil, 0},
		"longer than ours":  {row(60, "tmux-mcpd-7"+hex+"0") + row(60, "my-tmux-mcpd-7"+hex), nil, 0},
		"no process's":      {row(60, "tmux-mcpd-0"+hex) + row(60, "tmux-mcpd--7"+hex) + row(60, "tmux-mcpd-99999999999999999999"+hex), nil, 0},
		"ours and a line":   {row(60, "tmux-mcpd-7"+hex+`\012x`), nil, 0},
		"set in the future": {row(-5, "tmux-mcpd-7"+hex), nil, 15 * time.Second},
	} {
		left, wait, err := leftBuffers([]byte(c.rows), now, func(pid int) bool { return pid == 8 })
		if err != nil || !slices.Equal(left, c.left) || wait != c.wait {
			t.Errorf("%s: %q, wait %v, %v; want %q, %v", name, left, wait, err, c.left, c.wait)
		}
	}
	if _, _, err := leftBuffers([]byte("x"), now, nil); err == nil {
		t.Error("what cannot be read is no list")
	}
	if n := BufferName(); !bufferRE.MatchString(n) || n == BufferName() {
		t.Errorf("%q", n)
	}
}

// TestLeftBuffersAreDeleted: what a daemon that was killed has left on the server
// goes when the next one attaches, and nothing else does.
func TestLeftBuffersAreDeleted(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	x := newTmux(t).start()
	const hex = "-0123456789abcdef"
	left := fmt.Sprintf("tmux-mcpd-%d%s", gone.Process.Pid, hex)
	keep := []string{
		"buffer0", "tmux-mcpd-notes", fmt.Sprintf("tmux-mcpd-%d%s", os.Getpid(), hex), left + "0", "it's " + left,
	}
	for _, name := range append(keep, left) {
		x.run("set-buffer", "-b", name, "text of "+name)
	}
	x.mirror()
	ctx, cancel := context.WithTimeout(context.Background(), bufferRest+patience)
	defer cancel()
	for slices.Contains(strings.Split(x.run("list-buffers", "-F", "#{buffer_name}"), "\n"), left) {
		if !pause(ctx, 100*time.Millisecond) {
			t.Fatal("still there")
		}
	}
	for _, name := range keep {
		if got := x.run("show-buffer", "-b", name); got != "text of "+name {
			t.Errorf("%s: %q", name, got)
		}
	}
}
