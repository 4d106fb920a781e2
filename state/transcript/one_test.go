package transcript

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestOne(t *testing.T) {
	s := os.Getenv("ONE")
	if s == "" {
		t.Skip()
	}
	u, err := strconv.Unquote(s)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	var w, h int
	fmt.Sscanf(os.Getenv("SIZE"), "%dx%d", &w, &h)
	_ = strings.Join
	compare(t, r, w, h, []byte(u))
	t.Logf("%+v", r.show(t, w, h, []byte(u)))
}
func TestTwo(t *testing.T) {
	for _, s := range []string{"\x1b[4h\tX", "\tX", "\x1b[4h\t\x1bMX", "\x1b[4h\t\x1bMX\r\ni"} {
		x := render(13, 5, Profile36, []byte(s))
		t.Logf("%q %+q", s, x.Rows)
	}
}
func TestThree(t *testing.T) {
	tr := New(4, 2, 100, Profile33)
	var j join1
	at := int64(0)
	for i := 0; i < 14; i++ {
		write(tr, "a")
		d := tr.Since(at, SinceOptions{})
		at = d.Offset
		j.add(d)
		t.Logf("%d %+v", i, d)
		write(tr, "\r\n")
		write(tr, "a\u6f22")
		d = tr.Since(at, SinceOptions{})
		at = d.Offset
		j.add(d)
		t.Logf("%d %+v", i, d)
		write(tr, "\r\n")
	}
	t.Logf("%q", j.text)
}
func TestFour(t *testing.T) {
	tr := New(4, 2, 100, Profile33)
	raw := strings.Repeat("a\r\n", 15) + "a\u6f22\r\na\r\na\r\n"
	write(tr, raw[:44])
	d := tr.Since(0, SinceOptions{})
	t.Logf("%q", d.Text)
	for i := range tr.rowCount() {
		v := tr.view(i)
		t.Logf("%d %+v", i, v)
	}
	write(tr, raw[44:54])
	write(tr, raw[54:])
	d = tr.Since(44, SinceOptions{})
	t.Logf("%+v", d)
	for i := range tr.rowCount() {
		v := tr.view(i)
		t.Logf("%d %+v", i, v)
	}
}
