// Command noop answers the first line of its standard input as an MCP server
// answers initialize, and ends with its input. It is what the bridge's start is
// compared with: a process of Go that does nothing else.
package main

import (
	"bufio"
	"io"
	"os"
)

const answer = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"noop","version":"1"}}}` + "\n"

func main() {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadBytes('\n'); err != nil {
		os.Exit(1)
	}
	_, _ = io.WriteString(os.Stdout, answer) // whoever does not read it sees no end either
	_, _ = io.Copy(io.Discard, in)
}
