package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lineReader reads lines of bounded length. It is for the commands that look
// into messages; the bridge forwards without looking.
type lineReader struct {
	src io.Reader
	max int // bytes of a line at most

	buf *bufio.Reader
}

// errLongLine is a line longer than the reader's bound.
var errLongLine = errors.New("line too long")

// next returns the next line without its newline. With an error there can be a
// last line that had none. It blocks as the source does.
func (r *lineReader) next() ([]byte, error) {
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(r.src, chunk)
	}
	var line []byte
	for {
		part, err := r.buf.ReadSlice('\n')
		if len(line)+len(part) > r.max {
			return nil, fmt.Errorf("%w: more than %d bytes", errLongLine, r.max)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err // nil unless something stood after the last newline
		}
	}
}
