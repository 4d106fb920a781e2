package controlmode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

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

// The parser on what tmux itself sent while a pane printed text as fast as it
// could: MB/s of encoded input, and how many times faster that is than tmux
// delivered it (to a reader that does nothing but keep it) in the same run.
func BenchmarkParserRecorded(b *testing.B) {
	s := startServer(b, "new-session", "-d", "-s", "main", "-x", "100", "-y", "30",
		"while :; do seq -f 'a line of text with its number %.0f, \033[32mgreen\033[m, and \303\244\303\266\303\274' 1 100000; done")
	cmd := exec.Command(s.Path, "-u", "-C", "-S", s.Socket.Path, "attach-session", "-f", "ignore-size")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 8<<20)
	if _, err := io.ReadFull(out, data[:1<<16]); err != nil { // past the attach and the seq's start
		b.Fatal(err)
	}
	begin := time.Now()
	if _, err := io.ReadFull(out, data); err != nil {
		b.Fatal(err)
	}
	delivered := float64(len(data)) / time.Since(begin).Seconds()
	in.Close()
	s.ask(b, "kill-server")
	io.Copy(io.Discard, out)
	cmd.Wait()
	// Whole lines: the cut begins and ends in the middle of one.
	data = data[bytes.IndexByte(data, '\n')+1 : bytes.LastIndexByte(data, '\n')+1]
	output := 0
	var p controlmode.Parser
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for c := range slices.Chunk(data, 64<<10) {
			if err := p.Feed(c, func(ev controlmode.Event) {
				if _, ok := ev.(*controlmode.Output); ok {
					output++
				}
			}); err != nil {
				b.Fatal(err)
			}
		}
	}
	if output == 0 {
		b.Fatal("nothing that a pane printed was recorded")
	}
	parsed := float64(len(data)) * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(delivered/1e6, "tmux-MB/s")
	b.ReportMetric(parsed/delivered, "times-tmux")
}
