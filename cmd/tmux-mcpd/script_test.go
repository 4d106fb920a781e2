package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar, each in a place of its own. Beside
// the usual commands there are:
//
//	exits CODE PROGRAM [ARG...]   runs a program and wants that exit code
//	chown UID PATH                as root only; conditions: [root], and [PROGRAM] for one that is there
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for name, sub := range map[string]string{"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "TMUX_TMPDIR": "tmux", "HOME": "home"} {
				dir := filepath.Join(e.WorkDir, sub)
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
				e.Setenv(name, dir)
			}
			e.Setenv("UID", strconv.Itoa(os.Getuid()))
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Defer(func() { clearPlace(t, e.WorkDir) })
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			if _, err := exec.LookPath(cond); err == nil || cond == "curl" {
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
				}
				err := ts.Exec(args[1], args[2:]...)
				code := 0
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if strconv.Itoa(code) != args[0] {
					ts.Fatalf("exit code %d, want %s", code, args[0])
				}
			},
			"chown": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: chown UID PATH")
				}
				uid, err := strconv.Atoi(args[0])
				ts.Check(err)
				ts.Check(os.Chown(ts.MkAbs(args[1]), uid, -1))
			},
		},
	})
}
