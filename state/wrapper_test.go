package state

import (
	"errors"
	"strings"
	"testing"
)

// TestWrapTexts: the texts are those that were measured in every shell.
func TestWrapTexts(t *testing.T) {
	const id, path = "1a2b3c4d", "/run/user/1000/tmcp/1a2b3c4d"
	const marks = `printf '\033]133;`
	posix := func(printf, outer, inner string) string {
		return `{ _t1a2b3c4d="$? $-";\set +ex;} 2>/dev/null;` + outer + `\trap : 2 3 15;(` + inner + printf + ` '\033]133;C;aid=1a2b3c4d\007';` +
			`case "$_t1a2b3c4d" in *' '*x*) \set -x;;esac;case "$_t1a2b3c4d" in *' '*e*) \set -e;;*) (\exit "${_t1a2b3c4d%% *}");;esac;` +
			`\eval 'echo '\''hi'\''` + "\n" + `');_t1a2b3c4d=$?;{ ` + printf + ` '%s\n' "$_t1a2b3c4d" >|` + path + `.s;} 2>/dev/null;` +
			printf + ` '\033]133;D;%s;aid=1a2b3c4d\007' "$_t1a2b3c4d";\exit "$_t1a2b3c4d"` + "\n"
	}
	plain := posix(`\command printf`, ``, `\trap - 2 3 15;`)
	tests := []struct {
		shell            Shell
		line, file, more string
	}{
		{ShellBash, ` (\. ` + path + `)`, posix(`\builtin printf`, `\trap - DEBUG;`, `\trap - 2 3 15;`), ``},
		{ShellZsh, ` (\. ` + path + `)`, posix(`\builtin printf`, `\trap - DEBUG ZERR;`, `\trap '\exit 130' 2;\trap - 3 15;`), ``},
		{ShellDash, ` (\. ` + path + `)`, plain, ``},
		{ShellAsh, ` (\. ` + path + `)`, plain, ``},
		{ShellKsh, ` (\. ` + path + `)`, plain, ``},
		{ShellMksh, ` (\. ` + path + `)`, plain, ``},
		{
			ShellFish, ` begin;sh ` + path + `;end`,
			`trap : 2 3 15;(trap - 2 3 15;exec fish -c 'builtin printf "\033]133;C;aid=1a2b3c4d\007";source ` + path + `.c');s=$?;` +
				`{ printf '%s\n' "$s" >|` + path + `.s;} 2>/dev/null;printf '\033]133;D;%s;aid=1a2b3c4d\007' "$s";exit "$s"` + "\n",
			"echo 'hi'\n",
		},
	}
	for _, tt := range tests {
		st, err := wrap(tt.shell, id, path, "echo 'hi'", false)
		if err != nil || st.line != tt.line || st.file != tt.file || st.more != tt.more {
			t.Errorf("%s: %+v, %v\nwant %q\n%q\n%q", tt.shell, st, err, tt.line, tt.file, tt.more)
		}
		if strings.Contains(st.line, "\x1b") || strings.Contains(st.file, "\x1b") || strings.Contains(st.file, "\a") {
			t.Errorf("%s: a raw mark, which an echo would show", tt.shell)
		}
		if tt.shell != ShellFish && (len(st.line) != len(path)+6 || strings.Count(st.file, "\n") != 2) {
			t.Errorf("%s: %q, %q", tt.shell, st.line, st.file)
		}
		same, err := wrap(tt.shell, id, path, "echo 'hi'", true)
		if err != nil || same.more != "echo 'hi'\n" || !strings.HasPrefix(same.line, " ") || strings.Count(same.file, marks) < 2 {
			t.Errorf("%s, in the shell itself: %+v, %v", tt.shell, same, err)
		}
	}
}

func TestWrapRefuses(t *testing.T) {
	if _, err := wrap(ShellBash, "1a2b3c4d", "/run/x", "echo \x00", false); !errors.Is(err, errNUL) {
		t.Errorf("NUL: %v", err)
	}
	for _, path := range []string{"", "x", "/a b", "/a'b", "/a$(x)", "/a\nb", "/ä"} {
		if _, err := wrap(ShellBash, "1a2b3c4d", path, "echo", false); err == nil {
			t.Errorf("path %q was taken", path)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for in, want := range map[int]int{0: 0, 7: 7, 130: 130, 255: 255, 256: 256, 265: 137, 258: 130} {
		if got := statusOf(in); got != want {
			t.Errorf("statusOf(%d) = %d, want %d", in, got, want)
		}
	}
}

// FuzzWrap: whatever the command is, the shell reads it back as it was: the text
// between eval and the end of the subshell is one word, and that is the command.
func FuzzWrap(f *testing.F) {
	for _, seed := range []string{"", "true", "echo 'a'", "'", "''", `'\''`, "a\nb", "\\", `"$x"`, "');exit 0;('", "\n'\n", "é'\xff", "#'\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		for _, s := range []Shell{ShellBash, ShellZsh, ShellDash, ShellAsh, ShellKsh, ShellMksh, ShellFish} {
			st, err := wrap(s, "1a2b3c4d", "/run/1a2b3c4d", command, false)
			if strings.Contains(command, "\x00") {
				if !errors.Is(err, errNUL) {
					t.Fatalf("%s: %v", s, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			if s == ShellFish {
				if st.more != command+"\n" || strings.Contains(st.line+st.file, command) && len(command) > 40 {
					t.Fatalf("fish: %+v", st)
				}
				continue
			}
			_, text, ok := strings.Cut(st.file, `\eval `)
			word, rest := shellWord(text)
			if !ok || word != command+"\n" || !strings.HasPrefix(rest, ");_t1a2b3c4d=$?;") {
				t.Fatalf("%s: the word is %q and %q follows", s, word, rest)
			}
			if strings.Count(st.file[:len(st.file)-len(text)], "\n") > 0 || strings.Count(rest, "\n") != 1 {
				t.Fatalf("%s: more than one logical line: %q", s, st.file)
			}
		}
	})
}

// shellWord reads one word as a shell like sh does: single quotes, and
// backslashes outside of them.
func shellWord(s string) (word, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return b.String(), ""
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '\\':
			i++
			if i < len(s) {
				b.WriteByte(s[i])
			}
		default:
			return b.String(), s[i:]
		}
	}
	return b.String(), ""
}
