package main

import (
	"errors"
	"fmt"

	"tmux-mcpd/mcp"
)

// Exit codes. They are part of the command line's contract: scripts and service
// managers tell by them what a restart can mend. exitTexts documents them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNoTmux      = 3
	exitOldTmux     = 4
	exitPathTooLong = 5
	exitDirectory   = 6
	exitUnreachable = 7
	exitToolError   = 8
	exitNotSocket   = 9
	exitStartTmux   = 10
	exitManager     = 11
	exitUnhealthy   = 12
)

// exitTexts is what `help` prints about the codes, in order.
var exitTexts = []struct {
	code int
	text string
}{
	{exitOK, "done; for serve also: another daemon serves this socket already"},
	{exitFailure, "any other failure; the line on stderr says which"},
	{exitUsage, "unknown command, flag or value; conflicting variables"},
	{exitNoTmux, "the tmux binary was not found or cannot be run"},
	{exitOldTmux, "tmux is older than 3.2a"},
	{exitPathTooLong, "the socket path does not fit a socket address"},
	{exitDirectory, "the socket's directory belongs to somebody else or others may write to it"},
	{exitUnreachable, "no daemon can be reached, or it went away"},
	{exitToolError, "the tool reported an error (call)"},
	{exitNotSocket, "something that is not a socket is in the socket's place"},
	{exitStartTmux, "the dedicated tmux server could not be started"},
	{exitManager, "the service manager cannot be reached or refuses (install, uninstall)"},
	{exitUnhealthy, "something does not work (doctor)"},
}

// codedError is an error that decides the exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// coded gives an error an exit code; errors of package mcp have theirs already.
func coded(code int, format string, args ...any) error {
	return &codedError{code, fmt.Errorf(format, args...)}
}

// exitCode maps what a command returned to what the process exits with.
func exitCode(err error) int {
	var c *codedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, mcp.ErrPathTooLong):
		return exitPathTooLong
	case errors.Is(err, mcp.ErrForeignDirectory), errors.Is(err, mcp.ErrOpenDirectory):
		return exitDirectory
	case errors.Is(err, mcp.ErrNotSocket):
		return exitNotSocket
	}
	return exitFailure
}
