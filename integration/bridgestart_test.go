package integration

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkBridgeStart is how long a client waits from the start of the bridge to
// the answer to initialize, with a daemon that runs, beside a program of Go that
// does nothing else. Medians. The aim is less than 25 ms or twice the other's,
// and less than 10 MiB resident.
//
//	go test -run xxx -bench BridgeStart -benchtime 100x ./integration
func BenchmarkBridgeStart(b *testing.B) {
	noop := filepath.Join(b.TempDir(), "noop")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", noop, "./testdata/noop").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	x := newTmux(b)
	x.start("-s", "main", "cat")
	d := x.daemonOf(program(b, false))
	d.dial().ok(nil, "list_panes", nil)
	var bridges, bare []time.Duration
	most := 0
	for b.Loop() {
		bridge := exec.Command(d.cmd.Path, "stdio", "--no-start")
		bridge.Env = d.env
		took, rss := answered(b, bridge)
		bridges, most = append(bridges, took), max(most, rss)
		took, _ = answered(b, exec.Command(noop))
		bare = append(bare, took)
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds()) / 1000
	}
	ours, theirs := median(bridges), median(bare)
	b.ReportMetric(ours, "ms-bridge")
	b.ReportMetric(theirs, "ms-noop")
	b.ReportMetric(ours/theirs, "x-noop")
	b.ReportMetric(float64(most)/1024, "MiB-bridge")
	b.ReportMetric(0, "ns/op")
}

// answered starts a server, says initialize and waits for its answer, then lets
// it end. It tells how long that took to the answer, and what it then had
// resident, in KiB.
func answered(b *testing.B, cmd *exec.Cmd) (took time.Duration, rss int) {
	b.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n"); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took = time.Since(begin)
	if err != nil || !strings.Contains(line, `"result"`) {
		b.Fatalf("%q, %v", line, err)
	}
	rss = residentOf(b, cmd.Process.Pid).rss
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return took, rss
}
