package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
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

func TestAwaitIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		busyUntil := start.Add(7 * time.Minute)
		if !awaitIdle(ctx, 10*time.Minute, func() bool { return time.Now().After(busyUntil) }) {
			t.Fatal("ended without idling")
		}
		if d := time.Since(start); d < 17*time.Minute || d > 18*time.Minute {
			t.Errorf("idle for 10 min from minute 7 on was noticed after %v", d)
		}
		// A visit starts the time anew.
		visit := time.Now().Add(9 * time.Minute)
		start = time.Now()
		awaitIdle(ctx, 10*time.Minute, func() bool { d := time.Since(visit); return d < 0 || d > time.Minute })
		if d := time.Since(start); d < 19*time.Minute {
			t.Errorf("a visit in minute 9 did not count: ended after %v", d)
		}
		// Without a limit, never.
		time.AfterFunc(time.Hour, cancel)
		if awaitIdle(ctx, 0, func() bool { return true }) {
			t.Error("ended without a limit")
		}
	})
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
