package state

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Diff tells how two models differ, one difference a line, "" for not at all.
// a is called want and b got. Rev and Asked are no part of a comparison;
// neither are the fields named in ignore, spelt as "Session.Activity".
func Diff(a, b *Model, ignore ...string) string {
	d := differ{ignore: ignore}
	if a.Have != b.Have {
		d.line("tables", a.Have, b.Have)
	}
	d.fields("server", "Server", reflect.ValueOf(a.Server), reflect.ValueOf(b.Server))
	diffRows(&d, "session", a.Sessions, b.Sessions, func(s *Session) string { return s.ID.String() })
	diffRows(&d, "window", a.Windows, b.Windows, func(w *Window) string { return w.ID.String() })
	diffRows(&d, "pane", a.Panes, b.Panes, func(p *Pane) string { return p.ID.String() })
	diffRows(&d, "client", a.Clients, b.Clients, func(c *Client) string { return c.Name })
	return d.out.String()
}

type differ struct {
	ignore []string
	out    strings.Builder
}

func (d *differ) line(what string, want, got any) {
	fmt.Fprintf(&d.out, "%s: want %+v, got %+v\n", what, want, got)
}

// fields compares two structs field by field through reflection, so that a
// field added to the model is compared from its first day.
func (d *differ) fields(what, kind string, a, b reflect.Value) {
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		if slices.Contains(d.ignore, kind+"."+name) {
			continue
		}
		av, bv := a.Field(i).Interface(), b.Field(i).Interface()
		// No links and an empty list of them are one thing.
		if al, ok := av.([]Link); ok && len(al) == 0 && len(bv.([]Link)) == 0 {
			continue
		}
		if !reflect.DeepEqual(av, bv) {
			d.line(what+" "+name, quoted(av), quoted(bv))
		}
	}
}

// quoted makes invisible differences of texts visible.
func quoted(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return v
}

func diffRows[T any](d *differ, kind string, a, b []*T, name func(*T) string) {
	got := make(map[string]*T, len(b))
	for _, r := range b {
		got[name(r)] = r
	}
	for _, r := range a {
		other, ok := got[name(r)]
		if !ok {
			fmt.Fprintf(&d.out, "%s %s: missing\n", kind, name(r))
			continue
		}
		delete(got, name(r))
		v := reflect.ValueOf(r).Elem()
		d.fields(kind+" "+name(r), v.Type().Name(), v, reflect.ValueOf(other).Elem())
	}
	for _, r := range slices.SortedFunc(maps.Values(got), func(a, b *T) int { return cmp.Compare(name(a), name(b)) }) {
		fmt.Fprintf(&d.out, "%s %s: not expected: %+v\n", kind, name(r), *r)
	}
}
