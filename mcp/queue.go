package mcp

import (
	"errors"
	"net"
	"runtime"
	"time"
)

// The outgoing side of a connection: a bounded queue of frames and, as long as
// it is not empty, exactly one goroutine that writes. An answer's own goroutine
// writes when nobody else does, which saves a switch on the way out and keeps
// an idle connection free of a writer.

const (
	// chunk is what one write deadline covers: a client that reads slowly but
	// steadily lives, one that does not read at all is closed.
	chunk = 256 << 10
	// gather is how much of several waiting frames goes out in one write.
	gather = 64 << 10
	// spare is room in the queue for notifications when answers fill it.
	spare = 1 << 20
)

// errBehind closes a client that lets notifications pile up.
var errBehind = errors.New("client reads too slowly")

// frame is one line to send, with its newline.
type frame struct {
	b    []byte
	call *pending // whose answer it is, if it is one
}

// enqueue sends f, now or when its turn comes. With wait it may block until
// there is room in the queue and, if nobody else is writing, until f is
// written: for answers. Without it the connection is closed instead when the
// client has fallen too far behind: for broadcasts, which must not wait for
// one client at the expense of others. An error means the connection is over.
func (c *conn) enqueue(f frame, wait bool) error {
	c.mu.Lock()
	for !c.closed && !c.roomLocked(len(f.b), wait) {
		if !wait {
			c.mu.Unlock()
			c.fail(errBehind)
			return errBehind
		}
		ch := c.changeLocked()
		c.mu.Unlock()
		<-ch // the writer makes room, or fails at its deadline
		c.mu.Lock()
	}
	if c.closed {
		c.doneLocked(f.call)
		c.mu.Unlock()
		return net.ErrClosed
	}
	first := c.pushLocked(f)
	more := c.pending > 1
	c.mu.Unlock()
	if !first {
		return nil
	}
	if !wait {
		go c.flush(false)
		return nil
	}
	if more { // what is ready with this answer leaves with it, in one write
		runtime.Gosched()
	}
	return c.flush(true)
}

// roomLocked reports whether n more bytes may be queued. One frame of any size
// always fits an empty queue.
func (c *conn) roomLocked(n int, wait bool) bool {
	limit := c.limits.queue
	if !wait {
		limit += spare
	}
	return c.queued == 0 || c.queued+n <= limit
}

// flush writes until the queue is empty. With once it hands over to a
// goroutine of its own after its first write, so that an answer's goroutine
// does not end up serving the others.
func (c *conn) flush(once bool) error {
	for first := true; ; first = false {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.writing = false
			c.changedLocked()
			c.mu.Unlock()
			return nil
		}
		if once && !first {
			c.mu.Unlock()
			go c.flush(false)
			return nil
		}
		frames := c.takeLocked()
		c.mu.Unlock()

		err := c.send(frames)

		c.mu.Lock()
		for _, f := range frames {
			c.queued -= len(f.b)
			c.doneLocked(f.call)
			if f.call != nil { // encoded for this answer alone
				spareFrame(f.b)
			}
		}
		if err != nil {
			c.writing = false
		}
		c.changedLocked()
		c.mu.Unlock()
		if err != nil {
			c.fail(err)
			return err
		}
	}
}

// takeLocked takes the first frame and those after it that go well with it.
func (c *conn) takeLocked() []frame {
	n, size := 1, len(c.queue[0].b)
	for n < len(c.queue) && size+len(c.queue[n].b) <= gather {
		size += len(c.queue[n].b)
		n++
	}
	frames := c.queue[:n:n]
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil // frees what the frames held
	}
	return frames
}

// send writes frames, each piece under a deadline of its own. Several frames have
// no more than gather bytes together, and are one piece.
func (c *conn) send(frames []frame) error {
	if len(frames) > 1 {
		all := make(net.Buffers, len(frames))
		for i, f := range frames {
			all[i] = f.b
		}
		if err := c.limitWrite(); err != nil {
			return err
		}
		_, err := all.WriteTo(c.nc)
		return err
	}
	for b := frames[0].b; len(b) > 0; {
		n := min(len(b), chunk)
		if err := c.limitWrite(); err != nil {
			return err
		}
		if _, err := c.nc.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// limitWrite gives the next write its deadline.
func (c *conn) limitWrite() error { return c.nc.SetWriteDeadline(time.Now().Add(c.limits.write)) }
