package controlmode_test

import (
	"testing"

	"tmux-mcpd/controlmode"
)

func TestIDs(t *testing.T) {
	if id, err := controlmode.ParseSessionID("$3"); err != nil || id != 3 || id.String() != "$3" {
		t.Error(id, err)
	}
	if id, err := controlmode.ParseWindowID("@0"); err != nil || id != 0 || id.String() != "@0" {
		t.Error(id, err)
	}
	if id, err := controlmode.ParsePaneID("%4294967295"); err != nil || id != 1<<32-1 || id.String() != "%4294967295" {
		t.Error(id, err)
	}
	for _, bad := range []string{"", "%", "1", "$1", "@1", "%x", "%1 ", "%1x", "%-1", "%+1", " %1", "%%1", "%4294967296", "%00000000001", "%\u0661"} {
		if id, err := controlmode.ParsePaneID(bad); err == nil {
			t.Errorf("%q is %v", bad, id)
		}
	}
}
