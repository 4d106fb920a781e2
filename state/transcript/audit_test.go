package transcript

import (
	"strings"
	"testing"
)

func TestAudit(t *testing.T) {
	tr := New(10, 3, 100, Profile33)
	write(tr, "one\r\ntwo\r\nthree\r\nfour")
	right := Observed{CursorX: 4, CursorY: 2, HistorySize: 1, Screen: []string{"two", "three ", "four"}}
	if err := tr.Audit(right); err != nil {
		t.Error(err)
	}
	right.Screen = nil
	if err := tr.Audit(right); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]Observed{
		"cursor":    {CursorX: 3, CursorY: 2, HistorySize: 1},
		"history":   {CursorX: 4, CursorY: 2, HistorySize: 2},
		"alternate": {CursorX: 4, CursorY: 2, HistorySize: 1, Alternate: true},
		"row 1":     {CursorX: 4, CursorY: 2, HistorySize: 1, Screen: []string{"two", "secret", "four"}},
		"row 2":     {CursorX: 4, CursorY: 2, HistorySize: 1, Screen: []string{"two", "three"}},
		"4 rows":    {CursorX: 4, CursorY: 2, HistorySize: 1, Screen: make([]string, 4)},
	} {
		err := tr.Audit(o)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
