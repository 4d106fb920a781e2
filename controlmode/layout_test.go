package controlmode_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tmux-mcpd/controlmode"
)

// Layouts that tmux printed: 3.3a to 3.8, and 3.7c with floating panes.
var layouts = []string{
	"b25d,80x24,0,0,0",
	"8205,80x24,0,0{40x24,0,0,0,39x24,41,0,1}",
	"d67e,80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2]}",
	"d778,80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2],40x6,4,2,3}<40x6,4,2,3>",
	"3a60,80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2],40x6,4,2,3,40x6,8,4,4}<40x6,8,4,4,40x6,4,2,3>",
}

func TestLayout(t *testing.T) {
	for _, s := range layouts {
		l, err := controlmode.ParseLayout(s)
		if err != nil || l.String() != s {
			t.Errorf("%s became %s, %v", s, l, err)
		}
	}
	l, _ := controlmode.ParseLayout(layouts[2])
	want := controlmode.Layout{Width: 80, Height: 24, Split: controlmode.LeftRight, Cells: []controlmode.Layout{
		{Width: 40, Height: 24, Pane: 0},
		{Width: 39, Height: 24, X: 41, Split: controlmode.TopBottom, Cells: []controlmode.Layout{
			{Width: 39, Height: 12, X: 41, Pane: 1}, {Width: 39, Height: 11, X: 41, Y: 13, Pane: 2},
		}},
	}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]controlmode.PaneID{0, 1, 2}, l.Panes()); diff != "" {
		t.Error(diff)
	}
}

// nested is a well formed layout of that depth.
func nested(depth int) controlmode.Layout {
	l := controlmode.Layout{Width: 1, Height: 1}
	for range depth {
		l = controlmode.Layout{Width: 1, Height: 1, Split: controlmode.TopBottom, Cells: []controlmode.Layout{l}}
	}
	return l
}

func TestLayoutRefused(t *testing.T) {
	if _, err := controlmode.ParseLayout(nested(200).String()); err != nil {
		t.Error(err)
	}
	bad := []string{"", "b25d", "b25d,", "b25e,80x24,0,0,0", "B25D,80x24,0,0,0", `{"V":2,"L":{"t":"p"}}`, nested(201).String(), nested(3000).String()}
	for _, body := range []string{
		"80x24,0,0", "80x24,0,0,", "80x24,0,0,x", "80,24,0,0,0", "80x24,0,0{}", "80x24,0,0{1x1,0,0,0", "80x24,0,0{1x1,0,0,0]", "80x24,0,0,0,",
		"080x24,0,0,0", "80x24,0,0,00", "80x24,0,0,4294967296", "9999999x24,0,0,0", "-1x24,0,0,0", "80x24,0,0,0<>", "80x24,0,0,0<1x1,0,0{1x1,0,0,1}>", "80x24,0,0,0\n",
	} {
		bad = append(bad, checksummed(body))
	}
	for _, s := range bad {
		if l, err := controlmode.ParseLayout(s); !errors.Is(err, controlmode.ErrLayout) {
			t.Errorf("%.60q: %v, %v", s, l, err)
		}
	}
}

func checksummed(body string) string {
	var sum uint16
	for i := 0; i < len(body); i++ {
		sum = sum>>1 | sum<<15
		sum += uint16(body[i])
	}
	return fmt.Sprintf("%04x,%s", sum, body)
}

func FuzzLayout(f *testing.F) {
	for _, s := range layouts {
		f.Add(strings.SplitN(s, ",", 2)[1])
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := checksummed(body)
		if l, err := controlmode.ParseLayout(s); err == nil && l.String() != s {
			t.Fatalf("%q became %q", s, l)
		}
	})
}

// What tmux prints is read, and tmux takes what we print.
func TestTmuxLayout(t *testing.T) {
	s := startServer(t)
	c := s.attach(t, controlmode.AttachConfig{})
	for i := range 6 {
		c.run(t, "split-window", "-d", []string{"-h", "-v"}[i%2], "-t", fmt.Sprintf("%%%d", i/2), "cat")
	}
	text := c.run(t, "display-message", "-p", "#{window_layout}")
	l, err := controlmode.ParseLayout(text)
	if err != nil || l.String() != text || len(l.Panes()) != 7 {
		t.Fatalf("%s became %s, %v", text, l, err)
	}
	c.run(t, "select-layout", "even-horizontal")
	c.run(t, "select-layout", "--", l.String())
	if got := c.run(t, "display-message", "-p", "#{window_layout}"); got != text {
		t.Errorf("layout %s, want %s", got, text)
	}
}
