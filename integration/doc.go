// Package integration holds the tests that need a real tmux. It has no code of
// its own beside them.
//
// # Running
//
// go test -race ./integration runs with tmux from PATH; TMUX_MCPD_TEST_TMUX
// names another binary. .ci/tools/test-tmux runs the tests once for each
// release that .ci/tools/tmuxes could get.
//
// Every test has tmux servers of its own, on a socket in a folder of its own
// and without configuration. The user's server is never spoken to. Each server
// is ended through its socket when its test ends, and the test fails if the
// server process, its folder, or a child process of the test outlives it.
//
// # Files
//
//   - tmux_test.go: a private tmux, the second control client, leak checks.
//   - person_test.go: a person at a terminal: a tmux client on a pty.
//   - rig_test.go: the tests of the above.
//
// # Rules
//
// No test sleeps. What a test waits for is a reply, a closed channel, or a
// condition asked of tmux again and again (until), each with a deadline.
package integration
