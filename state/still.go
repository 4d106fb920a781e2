package state

import "time"

// sure is what was found out when a pane was last asked about on the client that
// receives its output: the pane was alive, in the client's session, and its
// transcript agreed with its grid.
type sure struct {
	s      *stream
	told   uint64 // notifications that s had had
	offset int64  // of the log
	pid    int    // of the pane's process
}

// assure notes what a pane's answer has told.
func (o *Output) assure(k sure) {
	o.mu.Lock()
	o.sure = k
	o.mu.Unlock()
}

// still tells whether nothing has come since, and the pane's process.
func (o *Output) still(s *stream) (pid int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.sure
	return k.pid, k.s == s && k.told == s.told.Load() && k.offset == o.ring.end && k.pid == o.pid && o.open && o.held < 0 && !o.stale
}

// sleepPatience is how long a server may take to finish what it is about: less than
// it takes to ask it.
const sleepPatience = 40 * time.Microsecond

// watchSleep begins to look at the server's process, until the client has ended.
func (s *stream) watchSleep() {
	s.sleep.Store(watchSleep(s.server.ID.PID, s.proc.Terminal()))
	select {
	case <-s.ended:
		s.sleep.Load().close()
	default:
	}
}

// still tells, without asking tmux, whether asking would find nothing that the log
// does not have already. The server sleeps, so it has written all that it has read
// from panes; what it has written has been read and handled, and held neither
// output of the pane nor any notification, as there is one of whatever makes the
// client lose the pane or gives it another size; and the pane's process has not
// ended. What is left is a history that was cleared, which hides nothing from a
// reader, and a pane given another process while the old one lives on: that is
// found out when the new one prints.
//
// false may also mean that it cannot be told: not on Linux, with a Pipe, or if tmux
// is in another process namespace.
func (s *stream) still(out *Output) bool {
	if _, ok := out.still(s); !ok || !s.sleep.Load().await(sleepPatience) || !s.proc.Drained() {
		return false
	}
	pid, ok := out.still(s) // what was told until then
	return ok && processRuns(pid)
}
