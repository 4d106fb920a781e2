package state

// ring holds the newest bytes of a stream. Its capacity is a power of two, so
// that an offset's place is a mask away.
type ring struct {
	buf        []byte
	start, end int64 // offsets of the oldest byte held and after the newest
}

const minRing = 4 << 10

// append adds bytes and returns by how many bytes the ring grew, at most to the
// budget.
func (r *ring) append(b []byte, budget int) (grew int) {
	grew = r.grow(len(b), budget)
	if n := len(b) - len(r.buf); n > 0 { // only the newest fit
		r.end += int64(n)
		b = b[n:]
	}
	at := int(r.end & int64(len(r.buf)-1))
	n := copy(r.buf[at:], b)
	copy(r.buf, b[n:])
	r.end += int64(len(b))
	r.start = max(r.start, r.end-int64(len(r.buf)))
	return grew
}

func (r *ring) grow(n, budget int) int {
	old, held := len(r.buf), int(r.end-r.start)
	if old > 0 && (old >= budget || held+n <= old) {
		return 0
	}
	size := max(old, minRing)
	for size < held+n && size*2 <= budget {
		size *= 2
	}
	if size == old {
		return 0
	}
	buf := make([]byte, size)
	for off := r.start; off < r.end; {
		src := r.buf[off&int64(old-1):]
		src = src[:min(int64(len(src)), r.end-off)]
		off += int64(copy(buf[off&int64(size-1):], src))
	}
	r.buf = buf
	return size - old
}

// drop forgets everything and returns how much memory that gave back.
func (r *ring) drop() int {
	n := len(r.buf)
	r.buf, r.start = nil, r.end
	return n
}

// copy copies the bytes from an offset held to another.
func (r *ring) copy(from, to int64) []byte {
	if from >= to {
		return nil
	}
	b := make([]byte, 0, to-from)
	mask := int64(len(r.buf) - 1)
	for from < to {
		src := r.buf[from&mask:]
		src = src[:min(int64(len(src)), to-from)]
		b = append(b, src...)
		from += int64(len(src))
	}
	return b
}
