package transcript
import ("testing";"os";"strconv";"fmt";"strings")
func TestOne(t *testing.T) {
	s := os.Getenv("ONE"); if s == "" { t.Skip() }
	u, err := strconv.Unquote(s); if err != nil { t.Fatal(err) }
	r := newRig(t)
	var w,h int
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
