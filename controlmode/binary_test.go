package controlmode_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tmux-mcpd/controlmode"
)

// script writes an executable that stands for tmux.
func script(t *testing.T, text string) controlmode.Binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tmux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return controlmode.Binary{Path: path}
}

func TestBinaryOutput(t *testing.T) {
	list := controlmode.Cmd("list-sessions")
	out, err := script(t, `printf '%s\n' "$@"`).Output(t.Context(), list, controlmode.Cmd("display-message", "-p", "a;", `\;`, ";"))
	if want := "-N\n-u\nlist-sessions\n;\ndisplay-message\n-p\na\\;\n\\\\;\n\\;\n"; err != nil || string(out) != want {
		t.Errorf("arguments %q, %v", out, err)
	}
	if _, err := (controlmode.Binary{Path: "/nonexistent/tmux"}).Output(t.Context(), list); !errors.Is(err, controlmode.ErrNoBinary) {
		t.Errorf("no binary: %v", err)
	}
	limited := script(t, `head -c 100000 /dev/zero`)
	limited.Limit = 99999
	if _, err := limited.Output(t.Context(), list); !errors.Is(err, controlmode.ErrOutputLimit) {
		t.Errorf("too much: %v", err)
	}
	limited.Limit++
	if out, err := limited.Output(t.Context(), list); err != nil || len(out) != 100000 {
		t.Errorf("just enough: %d, %v", len(out), err)
	}
	stuck := script(t, "exec sleep 60")
	stuck.Timeout = 50 * time.Millisecond
	if _, err := stuck.Output(t.Context(), list); !errors.Is(err, controlmode.ErrTimeout) {
		t.Errorf("stuck: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stuck.Output(ctx, list); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for text, want := range map[string]error{
		"no server running on /tmp/tmux-0/default":               controlmode.ErrNoServer,
		"error connecting to /tmp/x (No such file or directory)": controlmode.ErrNoServer,
		"error connecting to /tmp/x (Connection refused)":        controlmode.ErrNoServer,
		"no sessions": controlmode.ErrNoSessions,
	} {
		_, err := script(t, "echo '"+text+"' >&2; exit 1").Output(t.Context(), list)
		var cerr *controlmode.CommandError
		if !errors.Is(err, want) || !errors.As(err, &cerr) || cerr.Text != text {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err = script(t, "echo 'error connecting to /tmp/x (Permission denied)' >&2; exit 1").Output(t.Context(), list)
	var cerr *controlmode.CommandError
	if !errors.As(err, &cerr) || errors.Is(err, controlmode.ErrNoServer) {
		t.Errorf("permission denied: %v", err)
	}
	if _, err := script(t, "exit 3").Output(t.Context(), list); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("silent failure: %v", err)
	}
	for _, bad := range []controlmode.Command{{}, controlmode.Cmd(""), controlmode.Cmd("a", "b\x00")} {
		if _, err := stuck.Output(t.Context(), bad); !errors.Is(err, controlmode.ErrEmpty) && !errors.Is(err, controlmode.ErrNUL) {
			t.Errorf("%q: %v", bad.Words(), err)
		}
	}
}

// What the process inherits: no terminal, no server chosen by TMUX, UTF-8.
func TestBinaryEnvironment(t *testing.T) {
	for _, tt := range []struct{ all, ctype, lang, want string }{
		{"", "", "de_DE.UTF-8", "LANG=de_DE.UTF-8"},
		{"", "en_US.utf8", "C", "LC_CTYPE=en_US.utf8"},
		{"C", "en_US.utf8", "de_DE.UTF-8", "LC_ALL=C.UTF-8"},
		{"", "", "POSIX", "LC_ALL=C.UTF-8"},
		{"", "", "", "LC_ALL=C.UTF-8"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Setenv("LC_ALL", tt.all)
			t.Setenv("LC_CTYPE", tt.ctype)
			t.Setenv("LANG", tt.lang)
			t.Setenv("TMUX", "/tmp/tmux-0/default,1,0")
			t.Setenv("TMUX_PANE", "%1")
			t.Setenv("TERM", "no-such-terminal")
			t.Setenv("SECRET", "x")
			t.Setenv("TMUX_TMPDIR", "/tmp")
			out, err := script(t, "env; pwd").Output(t.Context(), controlmode.Cmd("x"))
			if err != nil {
				t.Fatal(err)
			}
			env := "\n" + string(out)
			for _, not := range []string{"\nTMUX=", "\nTMUX_PANE=", "\nTERM=", "\nSECRET="} {
				if strings.Contains(env, not) {
					t.Errorf("%q in %s", not, env)
				}
			}
			for _, want := range []string{"\nTMUX_TMPDIR=/tmp\n", "\nPATH=", "\n" + tt.want + "\n"} {
				if !strings.Contains(env, want) {
					t.Errorf("%q not in %s", want, env)
				}
			}
			if !strings.HasSuffix(env, "\n/\n") {
				t.Errorf("working directory in %s", env)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	v, err := script(t, "echo tmux 3.3a").Version(t.Context())
	if err != nil || v.String() != "3.3a" || v.Major != 3 || v.Minor != 3 || v.Letter != 'a' {
		t.Fatalf("%+v, %v", v, err)
	}
	order := []string{"1.8", "2.9a", "3.1c", "3.2", "tmux 3.2a", "3.3-rc", "3.3", "3.3a", "tmux next-3.4", "3.4", "3.5a", "3.6b", "3.7", "3.7c", "next-3.8", "3.8", "3.8a", "3.10", "4.0"}
	for i, a := range order {
		for j, b := range order {
			va, err := controlmode.ParseVersion(a)
			if err != nil {
				t.Fatal(err)
			}
			vb, _ := controlmode.ParseVersion(b)
			if c := va.Compare(vb); (c < 0) != (i < j) || (c > 0) != (i > j) {
				t.Errorf("%s compared with %s: %d", a, b, c)
			}
			if va.AtLeast(b) != (i >= j) {
				t.Errorf("%s at least %s: %v", a, b, va.AtLeast(b))
			}
		}
	}
	for _, s := range []string{"tmux master", "tmux openbsd-7.4", "master"} {
		if v, err := controlmode.ParseVersion(s); err != nil || !v.AtLeast("3.2a") || v.AtLeast("3.3") {
			t.Errorf("%s: %+v, %v", s, v, err)
		}
	}
	for _, s := range []string{"", "tmux", "tmux x", "screen 4.0", "3", "3.", ".3", "a3.3", "3.3A"} {
		if v, err := controlmode.ParseVersion(s); err == nil {
			t.Errorf("%q: %+v", s, v)
		}
	}
}
