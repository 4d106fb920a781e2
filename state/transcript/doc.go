// Package transcript renders the bytes that a tmux pane prints into the rows
// that tmux shows, and tells readers what is new since an offset.
//
// It is its own parser and row grid because nothing else agrees with tmux:
// clearing the screen scrolls it into history, any scroll region scrolls into
// history, the wrap flag outlives overwriting, and the column after the last
// one is a real cursor position. The rules are tmux's source, in its order of
// doing things (input.c, screen-write.c, grid.c, grid-view.c, screen.c); a
// [Profile] chosen from the version holds what differs between releases.
//
// # Promises
//
//   - The rows are tmux's, history and joined lines included: TestAgree compares
//     recordings of real programs and random streams with tmux itself.
//   - Any bytes are accepted in any chunks. Nothing panics, and memory is bounded
//     by the screen's size, the history limit and fixed caps. A byte costs
//     constant time; parameters are clamped to the screen.
//   - Offsets count the pane's bytes. [Transcript.Since] gives every logical line
//     whose text has changed after an offset, in its last state, once; paging
//     with [SinceOptions.Oldest] loses and repeats nothing.
//   - Text given out is valid UTF-8 without controls but LF and TAB. Line drawing
//     is box characters there; [Transcript.Rows] and its kin, which are for
//     comparing, have tmux's letters.
//   - A [Transcript.Reseed] keeps readers' offsets.
//
// # Not promised
//
//   - Colours are followed only as far as rows depend on them, images not at all:
//     a tmux built with sixel support moves the cursor for one, an audit finds it.
//   - Resizing is tmux's business: seed again. So is anything that the captures
//     cannot tell, see [Seed].
//   - Widths are those of one C library (glibc 2.36, see width_table.go). tmux on
//     another may give a new character another width.
//   - A line that was erased or pushed off the alternate screen is not told.
//   - Below 3.4 a zero width joiner at the end of tmux's read is forgotten, and
//     the reads are not known; a chunk's end is taken for one.
//
// # How it is laid out
//
// parser.go, csi.go, sgr.go and marks.go read bytes; print.go, combine.go,
// screen.go and grid.go do what they say to rows (row.go, cell.go) and history
// (history.go). view.go, partial.go and delta.go tell readers; seed.go, reseed.go
// and orphan.go start from what tmux shows; audit.go compares with it.
//
// # Who may call
//
// A Transcript has no lock and no goroutine: its owner calls Write for each
// chunk of output and readers call the rest under the same lock. No call blocks.
//
// # Checking against tmux
//
//	go test ./state/transcript                           # a few hundred streams, tmux in PATH
//	TRANSCRIPT_AGREE=400 go test -timeout 30m -run Agree # all recordings, 1,200 fresh random streams
//	TMUX_MCPD_TEST_TMUX=/path/to/tmux go test -run Agree # another tmux
//	go run ./state/transcript/internal/record            # record the programs anew
package transcript
