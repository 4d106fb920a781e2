package state

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/controlmode"
)

// BufferPrefix begins the names of our paste buffers, so that a person knows
// whose they are.
const BufferPrefix = "tmux-mcpd-"

// BufferName is a new name for a paste buffer. Whoever uses it deletes the buffer;
// if this daemon is killed before that, the next one does.
func BufferName() string {
	var salt [8]byte
	rand.Read(salt[:])
	return fmt.Sprintf("%s%d-%s", BufferPrefix, os.Getpid(), hex.EncodeToString(salt[:]))
}

var (
	bufferRE      = regexp.MustCompile(`^` + BufferPrefix + `([1-9][0-9]{0,9})-[0-9a-f]{16}$`)
	bufferListing = newListing([]string{"buffer_created"}, []string{"buffer_name"})
)

// bufferRest is how long nothing was added to a buffer that counts as left. The
// daemon that fills it may be where its process cannot be seen from here (another
// container on the same socket), and it adds the next piece at once.
const bufferRest = 10 * time.Second

// leftBuffers are the buffers in the answer to bufferListing that a daemon has
// left behind which runs no more. Nobody else's are: they have other names. wait
// is how long until the next one counts as left, 0 for none.
func leftBuffers(body []byte, now time.Time, runs func(pid int) bool) (left []string, wait time.Duration, err error) {
	err = bufferListing.each(body, func(r *row) {
		name := bufferRE.FindStringSubmatch(r.text(0))
		if name == nil {
			return
		}
		if pid, err := strconv.Atoi(name[1]); err != nil || runs(pid) {
			return
		}
		if rest := time.Unix(r.num64(0), 0).Add(bufferRest).Sub(now); rest > 0 {
			wait = max(wait, rest)
			return
		}
		left = append(left, name[0])
	})
	return left, wait, err
}

// deleteLeftBuffers deletes the paste buffers that an earlier daemon, killed amid a
// paste, has left on the server. It returns when there are none or proc ends.
func (m *Mirror) deleteLeftBuffers(ctx context.Context, proc *controlmode.Process, life ServerID) {
	for {
		req := controlmode.Request{Commands: []controlmode.Command{controlmode.Cmd("list-buffers", "-F", bufferListing.format)}, Fence: true}
		reply, err := proc.Do(ctx, req)
		if err != nil || reply.Err(req) != nil {
			return // the end of the client tells why
		}
		left, wait, err := leftBuffers(reply.Blocks[0].Body, time.Now(), func(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH })
		if err != nil {
			m.log.Error("paste buffers", zap.Error(err))
			return
		}
		for _, name := range left {
			m.log.Info("delete a paste buffer of an earlier life", zap.String("buffer", name))
			// Somebody may have deleted it meanwhile, which is an error that changes nothing.
			if _, err := m.DoOn(ctx, life, controlmode.Request{
				Commands: []controlmode.Command{controlmode.Cmd("delete-buffer", "-b", name)}, Fence: true,
			}); err != nil {
				return
			}
		}
		if wait == 0 {
			return
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-proc.Done():
		case <-ctx.Done():
		}
		again.Stop()
	}
}
