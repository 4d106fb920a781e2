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
//   - mirror_test.go: a daemon's Mirror, readers, the comparison with tmux.
//   - listing_test.go: the oracle, everything tmux knows asked another way.
//   - ops_test.go, oracle_test.go: random operations, the model compared after
//     each. TMUX_MCPD_ORACLE_OPS is how many (300; 2,000 for a long run),
//     TMUX_MCPD_ORACLE_SEED repeats a run.
//   - current_test.go: reads show what a change has just done (P1).
//     TMUX_MCPD_P1_ROUNDS is how many changes (200; 20,000 for a long run).
//   - fault_test.go: tmux stopped, killed, restarted; sessions and panes that go
//     away under us.
//   - attach_test.go: clients come and go. TMUX_MCPD_ATTACHES is how many times
//     (40; 500 for a long run).
//   - output_test.go: what programs print, and what they must not suffer.
//   - releases_test.go: a compact set on the other releases in .cache/tmux.
//   - unharmed_test.go: attaching, reading and detaching leave no trace (P6).
//   - daemon_test.go: the program itself, built once per run and with the race
//     detector if the tests are, on a private tmux and a private socket; an MCP
//     client by hand; bridges.
//   - daemon_current_test.go: P1 through the program: what the tmux binary has
//     done, every tool, connection and batch shows.
//   - stress_test.go: P2 through the program: a counter at full speed. For both,
//     TMUX_MCPD_ROUNDS is how many rounds (200; 1,000 for a long run).
//   - daemon_fault_test.go: tmux killed and stopped during calls.
//   - daemon_unharmed_test.go: P6 through the program.
//   - memory_test.go: what the program and its bridges have resident (P10).
//   - foreign_test.go, foreign/: MCP clients of other people, by node. Their
//     packages are installed into .cache once; skipped without node or npm.
//   - subscribed_test.go: what a client follows, over restarts of the program.
//   - systemd_test.go, systemdlife_test.go, systemdrig_test.go: the installed
//     service under a real systemd, by .ci/tools/systemd only, which has an
//     account for it (TMUX_MCPD_TEST_SYSTEMD).
//   - structure_test.go: the source itself: imports, documents, format.
//
// # Rules
//
// No test sleeps. What a test waits for is a reply, a closed channel, or a
// condition asked of tmux again and again (until), each with a deadline.
package integration
