//go:build race

package integration

// raced: the tests run with the race detector, so the daemon is built with it.
const raced = true
