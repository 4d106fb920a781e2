//go:build !race

package integration

// raced: the tests run without the race detector, and so does the daemon.
const raced = false
