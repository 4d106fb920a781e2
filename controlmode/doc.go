// Package controlmode speaks tmux's control mode: it starts a control client,
// turns what tmux writes into events, and runs commands whose answers cannot
// be mixed up. It knows bytes and tmux's words, and nothing of what they mean
// for a model of sessions, windows and panes.
//
//	bytes -> Parser -> Event -> Client -> Options.Event   output, notifications
//	                                   -> Do              answers
//	Do -> queue -> writer -> tmux
//
// # The stream
//
// Facts below hold for tmux 3.2a to 3.8 unless a version is named.
//
//	stream       = { notification | block | stray }
//	notification = "%" word { " " field } LF
//	block        = "%begin " guard LF { line LF } ( "%end " | "%error " ) guard LF
//	guard        = time " " number " " flags
//
// A line has no upper length inside blocks; outside, %output lines stay below
// 11 kB and others are as long as their free text. Bounds: Parser.MaxBody and
// MaxLine; what is cut off is counted.
//
// Inside a block only the guard that repeats the text of its %begin is not
// body. Programs in panes can print anything, also guards and notifications,
// and a capture brings it into a block. There is one exception on tmux's side:
// up to 3.7c, refresh-client -A writes %pause and %continue inside its own
// block. The Client takes them from there, the Parser does not know commands.
//
// %output data has the bytes 0x00 to 0x1f and the backslash as three octal
// digits, everything else raw (control.c control_append_data). It is cut at
// arbitrary bytes: it must not be decoded as text line by line.
//
// Lines outside blocks that do not begin with % (Stray) are late output of
// run-shell, errors of sourced files, or the rest of a subscription's value
// with a newline. Unknown notifications are events, not errors.
//
// # Requests
//
// A request is one line of commands joined with ";". tmux runs them without
// reading panes or other clients in between, so they describe one instant, and
// answers each with a block of its own with flags 1. A command that fails
// drops the rest of its line; a line that cannot be parsed gives one block,
// with %error. Blocks with flags 0 (the attach command's own, hooks, commands
// of others) are never answers. Answers come in the order of the lines, so the
// Client keeps a queue of what it sent, and nothing else can move it.
//
// What a queue cannot see is a command alias of the user that stands for more
// or fewer commands, and text that guesses the guard of its own block. A
// Request with Fence ends with display-message -p NONCE and is complete only
// with that text. Its answer is refused with ErrBlocks if the blocks do not
// match the commands, and a notification where tmux has none to write (between
// commands that change nothing) ends the connection before it is delivered.
// Use it for everything that can show text of panes.
//
// Nothing is sent before the attach command's block has ended: before 3.4 tmux
// ran such commands too early.
//
// # Arguments
//
// There are three layers, each with one encoder. Command.AppendLine and
// Binary.Output give tmux's command parser, or its argument vector, exactly the
// bytes of a word (NUL excepted). LiteralFormat protects text from format
// expansion, LiteralTimeFormat also from strftime, in the arguments that tmux
// expands. Keys (send-keys) are the caller's business.
//
// A line is at most MaxLine bytes: tmux parses 0.6 s per megabyte, during which
// the server does nothing else (3.3a).
//
// # Who may call, who ends what
//
// Client.Run has three goroutines: the reader, which calls Options.Event and
// Request.Begin; the writer, apart because a write blocks as long as tmux is
// stopped; and one that waits for ctx. Process.Run adds the reaper of the child
// and its guard. All have ended when Run returns. Do, Close, Stats, Dump, Exit
// may be called by any goroutine at any time. No lock is held across I/O or a
// callback, but for Begin's own, which keeps Begin from running after Do.
//
// A request that misses its deadline ends the connection: nothing can unblock a
// queue of tmux from inside. So does every violation of the protocol; Dump
// then shows the last bytes of both directions, with text masked.
//
// # What this package does not do
//
// It never starts a tmux server (tmux -N) but in Binary.Start, sends refresh-client -C (which
// would resize windows), retries a command, or attaches again. It does not use
// -CC, whose stream is framed by terminal escapes.
package controlmode
