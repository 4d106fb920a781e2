// Package state gives meaning and time to what control mode says: the model of
// one tmux server, and a byte log of every watched pane.
//
// # Connections
//
// A Mirror holds one structure client per tmux server, attached with no-output:
// it asks for listings and captures and hears what changes. For each session
// with a watched pane there is one stream client more, attached with
// pause-after: it delivers output, and it answers the captures that must fit an
// offset exactly. A pane has one owner among the stream clients, the session
// with the lowest id that its window is linked into. Panes nobody watches are
// paused on it.
//
// # Reads
//
// Every read goes through an Arrival and is answered by a refresh that started
// after it was made (promise P1). Refreshes run one at a time; reads that come
// meanwhile share the next. A read asks for the tables it needs and gets a view
// of its own; a full refresh is also published as the newest Model. A model is
// immutable: any goroutine may keep and read it for ever.
//
// Two kinds of reads can do without a refresh where it can be proved that one would
// find nothing new: Since, while the server sleeps (still.go), and the places and
// grids of a search, while tmux has run nothing but harmless commands of ours
// (unchanged.go).
//
// Notifications are hints. They never change the model by themselves: tmux up
// to 3.7c confuses some, and is silent about other changes. A hint leads, after
// a few milliseconds, to a full refresh; a slow period does the same for what
// tmux says nothing about.
//
// # Output
//
// An Output is a ring of the newest bytes of a watched pane with absolute
// offsets. Offsets grow as long as the daemon watches the pane; the stream is
// divided into epochs, and between two epochs bytes may be missing, for a named
// reason (GapReason). A Cursor names an epoch and an offset. Reading does not
// consume: a cursor can be read from again, by anybody, until its bytes have
// left the ring, and then the answer says how many were missed (P3).
//
// # Writes
//
// A write that depends on what tmux is like goes through Preflight and Write:
// the line of the write begins with a command that fails, and ends the line,
// unless all that the Preflight saw is so still.
//
// # Runs
//
// A run is a command that was typed into a pane's own shell and is followed to
// its end (design, promise P5). The command is staged in a private file; the
// line that is typed names the file (wrapper.go). Two marks in the pane's output
// tell its start and its end with the exit status, and a file tells the status
// too, for when the mark is lost (runfiles.go). A tap on the pane's Output finds
// the marks in the raw bytes and keeps what lies between (tap.go); one goroutine
// per run decides which mark to believe and sees what prints none: a stopped
// command, a killed one, a pane that has gone (runend.go). Whoever is about to
// type asks what the pane waits for (waiting.go, ready.go).
//
// # Commands
//
// A command is what the marks of a pane's shell told (OSC 133; command.go): the
// transcript tells each mark as it renders it, with the command line as the rows
// show it, and the log of the pane's Output makes records of them. What they
// printed is rendered from the bytes between, as for runs. Marks are anybody's
// word: a run is one of the commands, known by the place of its start mark, and
// what it is the run decides (Mirror.ofRun).
//
// # Invariants
//
//  1. At most one refresh is under way, and only it publishes models.
//  2. A model is of one instant: all its tables were answered by one line.
//  3. Only the reader goroutine of a pane's owner appends to its Output.
//  4. What is watched changes only in the hands of whoever holds the turn.
//  5. No lock is held while tmux is asked, and none while taking another, but
//     watches.mu, under which an Output's or a stream's may be taken, and runs.mu,
//     under which a run's may, and under that an Output's.
//  6. A write to tmux is never repeated; a read may be, on a new attachment.
//
// # Who may call
//
// All methods of Mirror and Arrival may be called by any goroutine while
// Mirror.Run runs. They block until tmux has answered, the request's deadline
// (Config.Timeout), or the context's end.
package state
