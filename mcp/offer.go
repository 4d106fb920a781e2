package mcp

import (
	"context"
	"net"
	"syscall"
	"time"
)

const (
	// offerRoom is how much may wait in the queue for another update to join it.
	offerRoom = 16 << 10
	// unreadMost is how much of the socket's buffer may be taken by what the
	// client has not read for another update to be sent: less than the kernel has
	// room for, so that a client that has stopped reading is never closed for
	// updates, for which a later one can stand.
	unreadMost = 64 << 10
	// unreadPoll is how often a client that does not read is looked at.
	unreadPoll = 500 * time.Millisecond
)

// offer sends an update as soon as the client keeps up with what it is sent. It
// blocks until then and queues no more than offerRoom, whoever offers. It
// reports false if there is nobody to tell any more: the connection, ctx, or the
// request that the update belongs to is over.
func (c *conn) offer(ctx context.Context, b []byte, of *pending) bool {
	for {
		if unread(c.nc) > unreadMost {
			select {
			case <-time.After(unreadPoll):
				if c.isClosed() {
					return false
				}
				continue
			case <-ctx.Done():
				return false
			}
		}
		c.mu.Lock()
		switch {
		case c.closed || ctx.Err() != nil || of != nil && of.cancelled:
			c.mu.Unlock()
			return false
		case c.queued+len(b) <= offerRoom:
			if c.pushLocked(frame{b: b}) {
				go c.flush(false)
			}
			c.mu.Unlock()
			return true
		}
		ch := c.changeLocked()
		c.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return false
		}
	}
}

// pushLocked queues a frame and reports whether the caller has to flush.
func (c *conn) pushLocked(f frame) (flush bool) {
	c.queue = append(c.queue, f)
	c.queued += len(f.b)
	flush = !c.writing
	c.writing = true
	return flush
}

// unread is unreadBy for a connection, 0 for what is no socket.
func unread(nc net.Conn) (n int) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n = unreadBy(int(fd)) }) // of a closed one: 0
	return n
}
