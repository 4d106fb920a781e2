package mcp

import (
	"encoding/json"
	"fmt"
	"testing"
)

// FuzzPlainMembers: what the short way reads, the general one reads alike.
func FuzzPlainMembers(f *testing.F) {
	for _, s := range []string{
		`{}`, `{ }`, `{"a":1}`, `{"a":"b","c":true}`, ` {"a" : null , "b" : 12 } `, `{"a":01}`, `{"a":-1}`, `{"a":1.5}`, `{"a":1,}`, `{,"a":1}`,
		`{"a":"\u0041"}`, `{"a":[1]}`, `{"a":{"b":1}}`, `{"a":"x"`, `{"a":"x"}}`, `{"a":1 "b":2}`, `{"a" 1}`, `{"":""}`, "{\"a\":\"\xff\"}",
		"{\"\u00e9\":\"\u6f22\"}", `{"a":1,"a":2}`, `{"a":truex}`, `{"a":"x\n"}`, `{"a":nul}`, "{\"a\":\"\n\"}", `{"a":12345678901234567890}`, `{"a":}`, `{"a":1}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		members, ok := plainMembers(object, nil)
		if !ok {
			return
		}
		var got, want []string
		for _, m := range members {
			got = append(got, fmt.Sprintf("%q %q", m.name, m.raw))
		}
		err := anyMember(object, func(name string, raw json.RawMessage) { want = append(want, fmt.Sprintf("%q %q", name, raw)) })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %q, want %q %v", object, got, want, err)
		}
		for _, m := range members {
			if n := plainString(m.raw); n > 0 {
				var s string
				if err := json.Unmarshal(m.raw, &s); err != nil || s != string(m.raw[1:n-1]) {
					t.Errorf("%q is %q, %v", m.raw, s, err)
				}
			}
		}
	})
}

// Most calls are read the short way.
func TestPlainMembers(t *testing.T) {
	for object, want := range map[string]int{
		`{}`: 0, `{"paneId":"%1","cursor":"ltxc1.0.1","maxLines":200,"raw":false}`: 4, ` {"a" : "b" , "c":null}`: 2,
		`{"a":[]}`: -1, `{"a":"\n"}`: -1, `{"a":1.0}`: -1, `{"a":1`: -1, `{"a":1}}`: -1, `{"a":1,}`: -1,
	} {
		b := skipBlanks([]byte(object))
		members, ok := plainMembers(b, nil)
		if ok != (want >= 0) || ok && len(members) != want {
			t.Errorf("%s: %v %v", object, members, ok)
		}
	}
}
