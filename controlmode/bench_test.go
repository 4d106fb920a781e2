package controlmode_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"tmux-mcpd/controlmode"
)

// Round trips to a real tmux: one command, with a fence, and 16 captures asked
// for at once.
func BenchmarkDo(b *testing.B) {
	for _, tr := range transports {
		s := startServer(b)
		c := s.attach(b, controlmode.AttachConfig{Transport: tr, Flags: []string{"ignore-size", "no-output"}})
		ask := one("display-message", "-p", "#{pane_id}")
		fenced := ask
		fenced.Fence = true
		b.Run(fmt.Sprintf("%s/one", tr), func(b *testing.B) { doLoop(b, c, ask, 1) })
		b.Run(fmt.Sprintf("%s/fenced", tr), func(b *testing.B) { doLoop(b, c, fenced, 1) })
		b.Run(fmt.Sprintf("%s/16 captures", tr), func(b *testing.B) { doLoop(b, c, one("capture-pane", "-p"), 16) })
	}
}

func doLoop(b *testing.B, c *control, req controlmode.Request, parallel int) {
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for range parallel {
			wg.Go(func() {
				if _, err := c.Do(context.Background(), req); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// The client's own cost of a flood: reading, recording, parsing, delivering.
func BenchmarkClientFlood(b *testing.B) {
	data := flood(1 << 20)
	near, far := net.Pipe()
	got := make(chan struct{}, 1)
	c := controlmode.NewClient(near, controlmode.Options{Event: func(ev controlmode.Event) {
		if _, ok := ev.(controlmode.SessionsChanged); ok {
			got <- struct{}{}
		}
	}})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	io.WriteString(far, "%begin 1 2 0\n%end 1 2 0\n%session-changed $0 x\n")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := far.Write(data); err != nil {
			b.Fatal(err)
		}
		io.WriteString(far, "%sessions-changed\n")
		<-got
	}
	c.Close()
	if err := <-ended; err != nil && !errors.Is(err, os.ErrClosed) {
		b.Fatal(err)
	}
}
