package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tmux-mcpd/state"
)

// TestOracle lets a user do random things to tmux while readers read, and
// compares the model after each with what the tmux binary says.
//
// TMUX_MCPD_ORACLE_OPS is how many (300), TMUX_MCPD_ORACLE_SEED repeats a run.
func TestOracle(t *testing.T) {
	seed := number(t, "TMUX_MCPD_ORACLE_SEED", rand.Uint64())
	count := number(t, "TMUX_MCPD_ORACLE_OPS", 300)
	x := startTmux(t)
	m := x.mirror()
	u := &user{Rand: rand.New(rand.NewPCG(seed, 0)), x: x}
	var done []string
	defer func() {
		if t.Failed() {
			t.Logf("repeat with TMUX_MCPD_ORACLE_SEED=%d; the newest of %d operations:\n%s", seed, len(done),
				strings.Join(done[max(0, len(done)-8):], "\n"))
		}
	}()
	u.world = x.agree(m, u.foreign)
	readers := read3(t, m, seed)
	defer readers.stop()

	refused, restarts := 0, 0
	for range count {
		words := u.next()
		done = append(done, fmt.Sprintf("tmux %q", words))
		if _, err := x.try(append([]string{"-N"}, words...)...); err != nil {
			done[len(done)-1] += ": " + err.Error()
			refused++
		}
		u.world = x.agree(m, u.foreign)
		if u.world.Server.ID == (state.ServerID{}) {
			for _, p := range u.people {
				p.leave()
			}
			u.people = nil
			x.start("-s", u.name(), "-x", "80", "-y", "24", "exec cat")
			done = append(done, "a new server")
			restarts++
			u.world = x.agree(m, u.foreign)
		}
	}
	t.Logf("%d operations, %d refused by tmux, %d servers, %d reads meanwhile", count, refused, restarts+1, readers.reads.Load())
	if refused > int(count)*2/3 {
		t.Errorf("%d of %d operations refused: the test tests little", refused, count)
	}
}
