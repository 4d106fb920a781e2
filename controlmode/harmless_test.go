package controlmode_test

import (
	"slices"
	"sync"
	"testing"

	"tmux-mcpd/controlmode"
)

// Every item of ours that changes nothing is told by the time of its answer, one
// that changes something is not, and tmux counts on by one for each command.
func TestTmuxHarmlessItems(t *testing.T) {
	s := startServer(t)
	var mu sync.Mutex
	var told []uint64
	c := s.attach(t, controlmode.AttachConfig{Flags: []string{"ignore-size"}, Options: controlmode.Options{
		Harmless: func(n uint64) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, n)
		},
	}})
	last := uint64(0)
	for _, test := range []struct {
		words    []string
		harmless bool
	}{
		{[]string{"display-message", "-p", "x"}, true},
		{[]string{"list-panes", "-a"}, true},
		{[]string{"capture-pane", "-p"}, true},
		{[]string{"show-options", "-g"}, true},
		{[]string{"send-keys", "-l", "--", "text"}, true},
		{[]string{"send-keys", "Enter"}, true},
		{[]string{"refresh-client", "-B", "n:%*:#{pane_id}"}, true},
		{[]string{"send-keys", "-R"}, false},
		{[]string{"send-keys", "-t", ":", "-X", "cancel"}, false},
		{[]string{"rename-window", "x"}, false},
		{[]string{"set-option", "-g", "@x", "y"}, false},
		{[]string{"run-shell", "-b", "true"}, false},
		{[]string{"split-window", "-d", "cat"}, false},
		{[]string{"display-message", "-p", "x"}, true},
	} {
		req := one(test.words...)
		req.Fence = true
		reply, err := c.Do(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		n := reply.Blocks[0].Guard.Number
		mu.Lock()
		if slices.Contains(told, n) != test.harmless {
			t.Errorf("%q: told %v", test.words, !test.harmless)
		}
		failed := reply.Blocks[0].Error // tmux then drops the fence
		if !failed && !slices.Contains(told, n+1) {
			t.Errorf("%q: the fence is not told", test.words)
		}
		mu.Unlock()
		if test.harmless && last != 0 && n != last+1 {
			t.Errorf("%q: item %d after %d", test.words, n, last)
		}
		if last = n + 1; !test.harmless {
			last = 0
		}
	}
}
