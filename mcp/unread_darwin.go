package mcp

// unreadBy would be how many bytes the peer of a socket has not read yet. macOS
// puts what is sent into the receiver's buffer at once and does not say: there a
// client that does not read is noticed when that buffer is full.
func unreadBy(int) int { return 0 }
