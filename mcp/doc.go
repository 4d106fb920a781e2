// Package mcp serves the daemon's tools to MCP clients over Unix sockets.
//
// It has two halves. The tool table (the registry) knows what tools exist, what
// their arguments mean and how tmux's state answers them. The connection side
// knows sockets, JSON-RPC and the protocol; it calls a tool and carries the
// answer. The seam between them is in seam.go.
//
// # The way of a message
//
//	socket -> conn.Read: line, envelope, id rules, limits -> SDK session
//	      -> middleware: recover, shutdown, version -> registry.call
//	registry.call -> encoded frame -> conn.Write -> queue -> socket
//
// Every accepted connection is one conn (our sdk.Transport and sdk.Connection)
// and one MCP session of the SDK. An idle session costs two goroutines: one
// reads, one waits for the end. Whoever has something to send writes it, one at
// a time; what cannot be written at once waits in a bounded queue.
//
// Resources are what tools tell under an address (resource.go): they are read by
// the tools' own functions, so that policy and redaction have one place. A
// subscription (resourcesub.go) is a goroutine more, which waits for changes
// (resourcechange.go) and, with its update, for a client that keeps up (offer.go):
// never the SDK's broadcasts, which write to one client after the other.
//
// # Promises
//
//   - A bad line is answered and the session lives: malformed JSON and bad
//     UTF-8 with -32700, a message that is no request, an odd id, a batch, a
//     too long or too deep message with -32600. The id is null where it cannot
//     be told, and left out where it is itself too long.
//   - An id is a string or an integer in plain digits within 2^53 of zero, and
//     comes back exactly as it was spelled. An id in flight is not taken twice.
//   - At most MaxInFlight calls run for one connection; more get -32000.
//   - A cancelled call is cancelled at once and never answered.
//   - A client that only ends its sending half gets its answers first; one that
//     is gone has its calls cancelled at once.
//   - A client that does not read is closed. No other client waits for it.
//   - Whatever types into panes or ends them goes through call.guard: two looks
//     with the same signature, the second in the line of the write; one queue
//     for each pane (turns); nothing is written twice.
//   - A panic in a tool is an internal error for its caller and a stack in the
//     log; the session and the daemon live.
//   - Shutdown answers or fails every accepted call, and cuts no line short for
//     a client that reads.
//
// # Non-promises
//
// Answers come in the order the calls end, not in the order they were made. The
// peer's pid may be of a process that has ended since: it finds a pane, it
// permits nothing. Permission is the socket's: its directory, mode and uid.
//
// # Limits
//
// One message in: 16 MiB, nested 1,000 deep; request id 512 KiB; 64 calls in
// flight, 64 subscriptions and 8 MiB of waiting output per connection; 256
// connections. All but
// the depth and the id can be set in Config.
package mcp
