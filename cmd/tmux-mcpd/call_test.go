package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestCallArguments(t *testing.T) {
	tests := []struct {
		words []string
		stdin string
		want  string
	}{
		{nil, "", `{}`},
		{[]string{`{"a":1,"b":[2]}`}, "", `{"a":1,"b":[2]}`},
		{[]string{"paneId=%3", "maxLines=5", "join=true", "start=-10", "none=null"}, "", `{"join":true,"maxLines":5,"none":null,"paneId":"%3","start":-10}`},
		{[]string{`text="5"`, "equation=a=b", "empty=", "ids=[1,2]", `o={"x":1}`}, "", `{"empty":"","equation":"a=b","ids":[1,2],"o":{"x":1},"text":"5"}`},
		{[]string{"-", "b=2"}, `{"a":1,"b":1}` + "\n", `{"a":1,"b":2}`},
		{[]string{`{"a":1}`, `{"a":2}`}, "", `{"a":2}`},
		{[]string{"big=9007199254740993"}, "", `{"big":9007199254740993}`},
	}
	for _, tt := range tests {
		args, err := callArguments(tt.words, strings.NewReader(tt.stdin))
		if err != nil {
			t.Errorf("%q: %v", tt.words, err)
			continue
		}
		got, err := json.Marshal(args)
		if err != nil || string(got) != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.words, got, err, tt.want)
		}
	}
	for _, word := range []string{"word", "=x", "{bad", `["a"]`, "-"} {
		if args, err := callArguments([]string{word}, strings.NewReader("5")); err == nil {
			t.Errorf("%q was accepted as %v", word, args)
		}
	}
}

func TestCommandTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 30 * time.Second, "5000": 5 * time.Second, "0": 30 * time.Second, "-1": 30 * time.Second, "x": 30 * time.Second,
		"9999999999": maxCommandTimeout, "99999999999999999999": maxCommandTimeout,
	} {
		c, _, err := parse("serve", nil, vars(envCommandTimeout+"="+text))
		if err != nil || c.commandTimeout != want {
			t.Errorf("%q: %v, want %v (%v)", text, c.commandTimeout, want, err)
		}
	}
}
