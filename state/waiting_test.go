package state

import (
	"strings"
	"testing"
)

// Terminal settings as recorded from the programs named, Linux 6.18.
var (
	cooked   = termios{canonical: true, echo: true, signals: true, newline: true, quoteKey: true, output: true}
	hidden   = termios{canonical: true, signals: true, newline: true, quoteKey: true, output: true}
	readline = termios{signals: true, output: true}
	zle      = termios{signals: true, newline: true, output: true}
	raw      = termios{quoteKey: true, output: true}
	relay    = termios{quoteKey: true}
)

const polling = polls + ".constprop.0"

// proc makes a process of group 100.
func proc(pid, parent int, exe, blocked string, args ...string) process {
	return process{
		pid: pid, parent: parent, group: 100, terminal: 0x8801, foreground: 100, state: 'S', started: uint64(pid),
		comm: exe[strings.LastIndexByte(exe, '/')+1:], exe: exe, args: args, blocked: blocked,
	}
}

func running(p process) process {
	p.state, p.blocked = 'R', ""
	return p
}

func TestClassify(t *testing.T) {
	bash := proc(100, 1, "/usr/bin/bash", polling, "-bash")
	tests := []struct {
		name  string
		term  termios
		group []process
		alt   bool
		want  WaitingFor
		shell Shell
	}{
		{"bash prompt", readline, []process{bash}, false, WaitsPrompt, ShellBash},
		{"bash prompt after a program that left the output raw", termios{signals: true}, []process{bash}, false, WaitsPrompt, ShellBash},
		{"bash runs its rc file", cooked, []process{running(bash)}, false, WaitsBusy, ""},
		{"bash builtin loop", cooked, []process{running(bash)}, false, WaitsBusy, ""},
		{"bash read", cooked, []process{proc(100, 1, "/usr/bin/bash", "wait_woken", "bash")}, false, WaitsLine, ""},
		{"bash read -s", hidden, []process{proc(100, 1, "/usr/bin/bash", "wait_woken", "bash")}, false, WaitsPassword, ""},
		{"bash script with read -e", readline, []process{proc(100, 1, "/usr/bin/bash", polling, "bash", "./ask.sh")}, false, WaitsLine, ""},
		{"bash -c with read -e", readline, []process{proc(100, 1, "/usr/bin/bash", polling, "bash", "-c", "read -e x")}, false, WaitsLine, ""},
		{
			"bash read -n1",
			termios{echo: true, signals: true, newline: true, quoteKey: true, output: true},
			[]process{proc(100, 1, "/usr/bin/bash", "wait_woken", "bash")},
			false, WaitsLine, "",
		},
		{
			"bash read -sn1: zsh's bits but for one",
			termios{signals: true, newline: true, quoteKey: true, output: true},
			[]process{proc(100, 1, "/usr/bin/bash", "wait_woken", "bash")},
			false, WaitsLine, "",
		},
		{"zsh prompt", zle, []process{proc(100, 1, "/usr/bin/zsh", "wait_woken", "zsh")}, false, WaitsPrompt, ShellZsh},
		{"zsh after an upgrade", zle, []process{proc(100, 1, "/usr/bin/zsh-5.9 (deleted)", "wait_woken", "zsh")}, false, WaitsPrompt, ShellZsh},
		{"less: zsh's bits", zle, []process{proc(100, 1, "/usr/bin/less", "wait_woken", "less")}, true, WaitsFullscreen, ""},
		{"fish prompt", termios{signals: true, quoteKey: true, output: true}, []process{proc(100, 1, "/usr/bin/fish", polling, "fish")}, false, WaitsPrompt, ShellFish},
		{"ksh93 prompt", termios{output: true}, []process{proc(100, 1, "/usr/bin/ksh93", polling, "ksh")}, false, WaitsPrompt, ShellKsh},
		{"ksh93 read in a subshell", termios{output: true}, []process{func() process {
			p := proc(100, 1, "/usr/bin/ksh93", polling, "ksh")
			p.copied = true
			return p
		}()}, false, WaitsLine, ""},
		{"mksh prompt", termios{output: true}, []process{proc(100, 1, "/usr/bin/mksh", "wait_woken", "mksh")}, false, WaitsPrompt, ShellMksh},
		{
			"ash prompt",
			termios{newline: true, quoteKey: true, output: true},
			[]process{proc(100, 1, "/usr/bin/busybox", polling, "busybox", "ash", "-i")},
			false, WaitsPrompt, ShellAsh,
		},
		{
			"busybox top: ash's bits and executable",
			termios{newline: true, quoteKey: true, output: true},
			[]process{proc(100, 1, "/usr/bin/busybox", polling, "busybox", "top")},
			false, WaitsFullscreen, "",
		},
		{"ash read", cooked, []process{proc(100, 1, "/usr/bin/busybox", polling, "busybox", "ash")}, false, WaitsLine, ""},
		{"dash prompt", cooked, []process{proc(100, 1, "/usr/bin/dash", "wait_woken", "sh", "-i")}, false, WaitsPrompt, ShellDash},
		{"dash busy", cooked, []process{running(proc(100, 1, "/usr/bin/dash", "", "dash"))}, false, WaitsBusy, ""},
		{"dash waits for a child", cooked, []process{proc(100, 1, "/usr/bin/dash", "do_wait", "dash")}, false, WaitsBusy, ""},
		{"dash script that reads", cooked, []process{proc(100, 1, "/usr/bin/dash", "wait_woken", "sh", "/tmp/x")}, false, WaitsLine, ""},
		{"dash of another user: no arguments refused, function hidden", cooked, []process{proc(100, 1, "/usr/bin/dash", "", "dash")}, false, WaitsPrompt, ShellDash},
		{"cat", cooked, []process{proc(100, 1, "/usr/bin/cat", "wait_woken", "cat")}, false, WaitsLine, ""},
		{"sleep", cooked, []process{proc(100, 1, "/usr/bin/sleep", "hrtimer_nanosleep", "sleep", "9")}, false, WaitsBusy, ""},
		{
			"cat in a pipeline whose leader has ended", cooked,
			[]process{proc(101, 90, "/usr/bin/cat", "wait_woken", "cat"), proc(102, 90, "/usr/bin/sort", "pipe_read", "sort")},
			false, WaitsLine, "",
		},
		{"sudo asks", hidden, []process{proc(100, 1, "/usr/bin/sudo", "wait_woken", "sudo", "-s")}, false, WaitsPassword, ""},
		{
			"su asks in a child", hidden,
			[]process{proc(100, 1, "/usr/bin/su", "do_wait", "su"), proc(101, 100, "/usr/bin/su", "", "su")},
			false, WaitsPassword, "",
		},
		{"python", readline, []process{proc(100, 1, "/usr/bin/python3.11", polling, "python3")}, false, WaitsLine, ""},
		{
			"python started by a script", readline,
			[]process{proc(100, 1, "/usr/bin/bash", "do_wait", "bash", "./x"), proc(101, 100, "/usr/bin/python3.11", polling, "python3")},
			false, WaitsLine, "",
		},
		{
			"python in a run's subshell", readline,
			[]process{proc(100, 1, "/usr/bin/bash", "do_wait", "-bash"), proc(101, 100, "/usr/bin/python3.11", polling, "python3")},
			false, WaitsLine, "",
		},
		{"vim", raw, []process{proc(100, 1, "/usr/bin/vim.basic", polling, "vim")}, true, WaitsFullscreen, ""},
		{"script", relay, []process{proc(100, 1, "/usr/bin/script", polling, "script")}, false, WaitsUnknown, ""},
		{"ssh", relay, []process{proc(100, 1, "/usr/bin/ssh", polling, "ssh", "host")}, false, WaitsUnknown, ""},
		{"exec -a bash", readline, []process{proc(100, 1, "/usr/bin/python3.11", polling, "bash")}, false, WaitsLine, ""},
		{"stopped group", cooked, []process{{pid: 100, group: 100, state: 'T', comm: "vi", exe: "/usr/bin/vi"}}, false, WaitsBusy, ""},
		{"leader has just ended", cooked, nil, false, WaitsBusy, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := classify(&sample{tty: "/dev/pts/1", term: tt.term, group: tt.group, leader: 100, alternate: tt.alt})
			if w.For != tt.want || w.Shell != tt.shell {
				t.Errorf("classify = %s %q (%s), want %s %q", w.For, w.Shell, w.Evidence, tt.want, tt.shell)
			}
			if w.Evidence == "" || strings.ContainsAny(w.Evidence, "\n\x1b") {
				t.Errorf("evidence %q", w.Evidence)
			}
		})
	}
}

// TestClassifyWithoutTerminal: what cannot be read is unknown, not ready.
func TestClassifyWithoutTerminal(t *testing.T) {
	if w := classify(&sample{problem: "refused"}); w.For != WaitsUnknown || w.Evidence != "refused" {
		t.Errorf("classify = %+v", w)
	}
	if w := classify(&sample{starting: true}); w.For != WaitsBusy {
		t.Errorf("classify = %+v", w)
	}
	if w := classify(&sample{gone: true}); w.For != WaitsDead {
		t.Errorf("classify = %+v", w)
	}
}

func TestShellOf(t *testing.T) {
	tests := []struct {
		exe, comm string
		args      []string
		want      Shell
	}{
		{"/usr/bin/bash", "bash", nil, ShellBash},
		{"/opt/bash-5.3/bin/bash-5.3", "x", nil, ShellBash},
		{"", "bash", nil, ShellBash},
		{"", "zsh-5.9", nil, ShellZsh},
		{"/usr/bin/ksh93", "ksh", nil, ShellKsh},
		{"/bin/ksh", "ksh", nil, ShellKsh},
		{"/bin/mksh", "sh", nil, ShellMksh},
		{"/usr/bin/fish", "bash", nil, ShellFish},
		{"/bin/busybox", "sh", []string{"-sh"}, ShellAsh},
		{"/bin/busybox", "busybox", []string{"busybox", "sh"}, ShellAsh},
		{"/bin/busybox", "busybox", []string{"busybox", "vi"}, ""},
		{"/bin/busybox", "busybox", nil, ""},
		{"/usr/bin/python3.11", "bash", nil, ""},
		{"/usr/bin/bashful", "bashful", nil, ""},
		{"/usr/bin/nu", "nu", nil, ""},
		{"/usr/bin/tcsh", "tcsh", nil, ""},
		{"/usr/bin/7", "7", nil, ""},
	}
	for _, tt := range tests {
		if got := shellOf(&process{exe: tt.exe, comm: tt.comm, args: tt.args}); got != tt.want {
			t.Errorf("shellOf(%s %s %q) = %q, want %q", tt.exe, tt.comm, tt.args, got, tt.want)
		}
	}
}

func TestInteractive(t *testing.T) {
	tests := []struct {
		shell Shell
		args  string
		want  bool
	}{
		{ShellBash, "-bash", true},
		{ShellBash, "bash --norc -i", true},
		{ShellBash, "bash --rcfile /x -i", true},
		{ShellBash, "bash --init-file=/x", true},
		{ShellBash, "bash -o vi -O extglob", true},
		{ShellBash, "bash -x script", false},
		{ShellBash, "bash -lc true", false},
		{ShellBash, "bash -s a b", true},
		{ShellBash, "bash +o posix", true},
		{ShellBash, "bash --", true},
		{ShellBash, "bash - script", false},
		{ShellZsh, "zsh -f -o ksharrays", true},
		{ShellFish, "fish -C true", true},
		{ShellFish, "fish --init-command true", true},
		{ShellFish, "fish --no-config", true},
		{ShellFish, "fish --command=true", false},
		{ShellFish, "fish -c true", false},
		{ShellAsh, "busybox ash", true},
		{ShellAsh, "busybox ash /x", false},
		{ShellDash, "sh /usr/bin/which", false},
		{ShellDash, "", true},
	}
	for _, tt := range tests {
		if got := interactive(tt.shell, strings.Fields(tt.args)); got != tt.want {
			t.Errorf("interactive(%s, %q) = %t", tt.shell, tt.args, got)
		}
	}
}
