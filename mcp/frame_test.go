package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestLargeFramesAreNotMixed: frames are used again, and yet every client gets
// its own answers, whole, also beside calls that are cancelled.
func TestLargeFramesAreNotMixed(t *testing.T) {
	d := startDaemon(t, Config{})
	const clients, calls = 4, 12
	var wg sync.WaitGroup
	for client := range clients {
		w := d.open(t)
		wg.Go(func() {
			var lines []string
			for i := range calls {
				text, _ := json.Marshal(map[string]string{"text": strings.Repeat(fmt.Sprintf("%d/%d \"\n", client, i), 8_000)})
				lines = append(lines, callLine(fmt.Sprint(i), "echo", string(text)))
				if i%4 == 3 {
					lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
				}
			}
			go w.Write([]byte(strings.Join(lines, "\n") + "\n" + `{"jsonrpc":"2.0","id":"end","method":"ping"}` + "\n"))
			seen := map[string]bool{}
			for len(seen) < calls-calls/4 || !seen["end"] {
				b, err := w.r.ReadBytes('\n')
				var m struct {
					ID     any
					Result struct{ Content []struct{ Text string } }
				}
				if err == nil {
					err = json.Unmarshal(b, &m)
				}
				if err != nil {
					t.Errorf("client %d: %v: %.80q", client, err, b)
					return
				}
				id := fmt.Sprint(m.ID)
				seen[id] = true
				if id == "end" {
					continue
				}
				if want := strings.Repeat(fmt.Sprintf("%d/%s \"\n", client, id), 8_000); len(m.Result.Content) != 1 || m.Result.Content[0].Text != want {
					t.Errorf("client %d: the answer to %s is another one, or broken", client, id)
				}
			}
		})
	}
	wg.Wait()
}
