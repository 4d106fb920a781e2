package mcp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkClients is the same number of calls made by 8 clients and by 64, with
// ten in flight for each client. The clients are a process of their own, so that
// the daemon shares neither memory nor collector nor scheduler with them, and read
// by hand what they are answered, which costs each call the same.
//
// An operation is four times 1,280 calls, of 8, 64, 64 and 8 clients: both meet the
// same machine. More clients must not mean fewer calls: ratio is what 64 get done
// by what 8 get done in the same time, the median of the operations. All figures
// are medians. cpu-ratio compares the processor time that the daemon alone takes for
// a call; a machine that others use disturbs it less.
//
//	go test -run xxx -bench Clients -benchtime 50x ./mcp
func BenchmarkClients(b *testing.B) {
	const calls = 1_280
	others := startClients(b, benchServe(b, newServer(Config{}, &noop{screenResult(2_000)})))
	var ratios []float64
	took, cpu := map[int][]float64{}, map[int][]float64{}
	others.call(8, calls) // connects
	others.call(64, calls)
	for b.Loop() {
		sum := map[int]float64{}
		for _, n := range []int{8, 64, 64, 8} {
			before := processorTime()
			d := others.call(n, calls).Seconds()
			cpu[n] = append(cpu[n], (processorTime() - before).Seconds())
			took[n] = append(took[n], d)
			sum[n] += d
		}
		ratios = append(ratios, sum[8]/sum[64])
	}
	b.ReportMetric(calls/median(took[8]), "calls/s-of-8")
	b.ReportMetric(calls/median(took[64]), "calls/s-of-64")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(1e6*median(cpu[64])/calls, "cpu-us")
	b.ReportMetric(median(cpu[8])/median(cpu[64]), "cpu-ratio")
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clientsEnv names the daemon's socket to this test binary when it is the clients
// of BenchmarkClients.
const clientsEnv = "TMUX_MCPD_TEST_CLIENTS"

// clients are the process of the clients, told on its standard input what to do.
type clients struct {
	*testing.B
	in  io.Writer
	out *bufio.Reader
}

func startClients(b *testing.B, path string) *clients {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), clientsEnv+"="+path)
	cmd.Stderr = os.Stderr
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
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return &clients{B: b, in: in, out: bufio.NewReader(out)}
}

// call has n clients make calls together, and gives the time they took.
func (c *clients) call(n, calls int) time.Duration {
	if _, err := fmt.Fprintln(c.in, n, calls); err != nil {
		c.Fatal(err)
	}
	var took time.Duration
	if _, err := fmt.Fscanln(c.out, &took); err != nil {
		c.Fatal(err)
	}
	return took
}

func init() { instead = append(instead, beClients) }

// beClients is the process of the clients. They stay connected.
func beClients() {
	path := os.Getenv(clientsEnv)
	if path == "" {
		return
	}
	conns := map[int][]*bareClient{}
	for {
		var n, calls int
		if _, err := fmt.Scanln(&n, &calls); err != nil {
			os.Exit(0) // the benchmark has ended
		}
		for len(conns[n]) < n {
			conns[n] = append(conns[n], dialBare(path))
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for _, c := range conns[n] {
			wg.Go(func() {
				for range calls / n / bareInFlight {
					c.burst()
				}
			})
		}
		wg.Wait()
		fmt.Println(int64(time.Since(begin)))
	}
}

// bareInFlight is how many calls a client makes at a time.
const bareInFlight = 10

// bareClient only counts the lines and bytes of its answers.
type bareClient struct {
	*net.UnixConn
	raw    syscall.RawConn
	calls  []byte // as many as are made at a time
	answer int    // bytes of their answers
}

// bareBuffers are what clients read into, one at a time: with one for each the
// many would spend their time on the cold memory of their own.
var bareBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func dialBare(path string) *bareClient {
	nc, err := net.Dial("unix", path)
	check(err)
	c := &bareClient{UnixConn: nc.(*net.UnixConn)}
	c.raw, err = c.SyscallConn()
	check(err)
	_, err = io.WriteString(c, initialize+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	check(err)
	c.read(1)
	var lines strings.Builder
	for i := range bareInFlight { // ids of one length
		fmt.Fprintln(&lines, callLine(fmt.Sprint(i), "noop", `{"paneId":"%1"}`))
	}
	c.calls = []byte(lines.String())
	_, err = c.Write(c.calls)
	check(err)
	c.answer = c.read(bareInFlight)
	if c.answer < bareInFlight*2_000 {
		check(fmt.Errorf("%d bytes are no answers", c.answer))
	}
	return c
}

// burst makes calls at once and reads their answers, in whatever order.
func (c *bareClient) burst() {
	_, err := c.Write(c.calls)
	check(err)
	if n := c.read(bareInFlight); n != c.answer {
		check(fmt.Errorf("answers of %d bytes, not %d", n, c.answer))
	}
}

// read reads some lines, to the end of the last, and gives their length in bytes.
func (c *bareClient) read(lines int) (size int) {
	err := c.raw.Read(func(fd uintptr) bool {
		buf := bareBuffers.Get().(*[64 << 10]byte)
		defer bareBuffers.Put(buf)
		for lines > 0 {
			n, err := unix.Read(int(fd), buf[:])
			if err == unix.EAGAIN {
				return false // and is called again when there is more
			}
			if err == nil && n == 0 {
				err = io.ErrUnexpectedEOF
			}
			check(err)
			size += n
			lines -= bytes.Count(buf[:n], []byte("\n"))
		}
		return true
	})
	check(err)
	return size
}

// check ends the process of the clients, and with it the benchmark, at an error.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
