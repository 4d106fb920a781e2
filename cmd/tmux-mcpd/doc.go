// Command tmux-mcpd is a daemon that stays attached to a tmux server and
// serves MCP tools from it over a Unix socket, and the small programs around
// it: the bridge that MCP clients launch, one call from the shell, the status.
//
// This package holds the command line and the wiring, nothing else. Flags and
// environment become a config (settings.go, config.go), commands are one table
// (main.go), the daemon is put together in run (run.go) and nowhere else. What
// a command exits with is decided in one place (exit.go).
//
// The bridge (bridge.go, connect.go) is started for every MCP client and lives
// as long as that client: it forwards bytes, decodes nothing, keeps no state,
// and ends within a second when its client does, in whatever way.
package main
