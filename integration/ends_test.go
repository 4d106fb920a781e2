package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkBridgeEnd is how long a bridge that is connected lives on after its
// client has gone, in each way a client can go: the slowest of all rounds, in
// milliseconds. The aim is less than 1,000.
//
//	go test -run xxx -bench BridgeEnd -benchtime 10x ./integration
func BenchmarkBridgeEnd(b *testing.B) {
	x := newTmux(b)
	x.start("-s", "main", "cat")
	d := x.daemonOf(program(b, false))
	signalled := func(sig os.Signal) func(*endingBridge) {
		return func(e *endingBridge) { e.signal(sig) }
	}
	for _, way := range []struct {
		name string
		goes func(*endingBridge)
	}{
		{"input-ends", func(e *endingBridge) { e.in.Close() }},
		{"client-killed", func(e *endingBridge) { e.parent.Process.Kill() }}, // somebody else holds its pipes
		{"SIGTERM", signalled(syscall.SIGTERM)},
		{"SIGINT", signalled(os.Interrupt)},
		{"SIGHUP", signalled(syscall.SIGHUP)},
		{"output-closed", func(e *endingBridge) {
			e.out.Close()
			io.WriteString(e.in, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			slowest := time.Duration(0)
			for b.Loop() {
				e := startEndingBridge(b, d)
				begin := time.Now()
				way.goes(e)
				e.gone()
				slowest = max(slowest, time.Since(begin))
				e.release()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
		})
	}
}

// endingBridge is a bridge whose parent, a shell, stands for its client. The ends
// of its pipes are held here.
type endingBridge struct {
	b       testing.TB
	parent  *exec.Cmd
	pid     int
	in, out *os.File
	life    *os.File // the bridge's standard error: it ends with the bridge
	hold    *os.File // the parent reads it
}

func startEndingBridge(b testing.TB, d *daemon) *endingBridge {
	b.Helper()
	e := &endingBridge{b: b}
	inR, inW := pipe(b)
	outR, outW := pipe(b)
	errR, errW := pipe(b)
	holdR, holdW := pipe(b)
	e.in, e.out, e.life, e.hold = inW, outR, errR, holdW
	e.parent = exec.Command("sh", "-c", `"$0" stdio --no-start <&3 >&4 2>&5 & echo $!; exec 3<&- 4>&- 5>&-; read x <&6`, d.cmd.Path)
	e.parent.Env = d.env
	e.parent.ExtraFiles = []*os.File{inR, outW, errW, holdR}
	told, err := e.parent.StdoutPipe()
	if err == nil {
		err = e.parent.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range []*os.File{inR, outW, errW, holdR} {
		f.Close()
	}
	line, err := bufio.NewReader(told).ReadString('\n')
	if _, scanned := fmt.Sscan(line, &e.pid); err != nil || scanned != nil {
		b.Fatalf("%q, %v", line, err)
	}
	io.WriteString(e.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n")
	if line, err := bufio.NewReader(e.out).ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
		b.Fatalf("%q, %v", line, err)
	}
	return e
}

func (e *endingBridge) signal(sig os.Signal) {
	if p, err := os.FindProcess(e.pid); err != nil || p.Signal(sig) != nil {
		e.b.Fatalf("no bridge with pid %d", e.pid)
	}
}

// gone waits for the bridge's end.
func (e *endingBridge) gone() {
	e.b.Helper()
	if err := e.life.SetReadDeadline(time.Now().Add(patience)); err != nil {
		e.b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, e.life); err != nil {
		e.b.Fatalf("the bridge lives on: %v", err)
	}
}

// release ends what is left of a round.
func (e *endingBridge) release() {
	e.hold.Close()
	e.in.Close()
	e.out.Close()
	e.life.Close()
	e.parent.Wait()
}

// BenchmarkShutdown is how long a daemon takes to end in order with eight clients
// that have calls and waits under way: the slowest of all rounds, in milliseconds.
// The aim is less than 5,000. Each accepted call is answered, or its client told.
//
//	go test -run xxx -bench Shutdown -benchtime 5x ./integration
func BenchmarkShutdown(b *testing.B) {
	x := newTmux(b)
	x.start("-s", "main", "cat")
	slowest := time.Duration(0)
	for b.Loop() {
		d := x.daemonOf(program(b, false))
		var clients []*caller
		for range 8 {
			c := d.dial()
			c.ok(nil, "capture_since", args{"paneId": "%0"})
			clients = append(clients, c)
		}
		const each = 3
		for _, c := range clients {
			c.begin("wait_for_text", args{"paneId": "%0", "patterns": []string{"never"}, "timeoutMs": 55_000})
			c.begin("capture_since", args{"paneId": "%0", "waitMs": 20_000})
			c.begin("list_panes", args{})
		}
		begin := time.Now()
		d.stop()
		slowest = max(slowest, time.Since(begin))
		for i, c := range clients {
			answers := 0
			for {
				line, err := c.in.ReadString('\n')
				if err != nil {
					break
				}
				if strings.Contains(line, `"id":`) {
					answers++
				}
			}
			if answers != each {
				b.Errorf("client %d: %d of %d calls were answered", i, answers, each)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
}
