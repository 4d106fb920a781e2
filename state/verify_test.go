package state

import "testing"

func TestVerify(t *testing.T) {
	x := newTmux(t).start()
	x.run("new-session", "-d", "-s", "#{pane_id} é", "cat")
	m := x.mirror()
	v, err := m.Verify(within(t))
	if err != nil || len(v.Problems) > 0 || v.Sessions != 2 || v.Windows != 2 || v.Panes != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	// What another server lists is not what this Mirror has.
	other := New(Config{Bin: x.bin, Socket: newTmux(t).start().socket()})
	v, err = m.verify(within(t), other.byProcess)
	if err != nil || len(v.Problems) == 0 {
		t.Errorf("a difference is not seen: %+v, %v", v, err)
	}
	x.stop()
	if v, err := m.Verify(within(t)); err != nil || v.Sessions != 0 || len(v.Problems) > 0 {
		t.Errorf("without a server: %+v, %v", v, err)
	}
}
