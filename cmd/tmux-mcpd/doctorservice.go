package main

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"tmux-mcpd/controlmode"
)

// service tells whether the service, where one is installed, waits for clients.
// After some failed starts in a row systemd gives its socket up, too (252:
// service-start-limit-hit): clients then start a daemon of their own, and nobody
// would notice.
func (x *examination) service(ctx context.Context) finding {
	s, err := ownService(x.in.cfg)
	if err != nil {
		return failed(err, "")
	}
	if !s.installed() {
		return finding{Outcome: skipped, Text: "not installed; the first client starts the daemon"}
	}
	if s.state == nil {
		return finding{Outcome: fine, Text: s.units[0].path}
	}
	said, err := askManager(ctx, s.state...)
	if err == nil {
		return finding{Outcome: fine, Text: s.name + " is " + said}
	}
	if said == "" {
		said = err.Error()
	}
	return finding{
		Outcome: unsure, Text: "installed, and its socket is " + printable(said) + ": clients start a daemon of their own",
		Remedy: "see tmux-mcpd logs; then: systemctl --user reset-failed '" + s.name + ".*'; systemctl --user restart " + s.name + ".socket",
	}
}

// controlGroup finds a tmux server that would be ended together with a service or
// a login: what runs in a control group ends with it.
func (x *examination) controlGroup(ctx context.Context) finding {
	if runtime.GOOS != "linux" || x.outcome("tmux server") != fine {
		return finding{Outcome: skipped, Text: "only where a tmux server runs on Linux"}
	}
	out, err := x.binary().Output(ctx, controlmode.Cmd("display-message", "-p", "#{pid}"))
	if err != nil {
		return failed(err, "")
	}
	raw, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(out)), "cgroup"))
	if err != nil {
		return finding{Outcome: skipped, Text: err.Error()}
	}
	return judgeGroup(string(raw), lingers())
}

// lingers tells whether systemd keeps this user's services when nobody is logged
// in (loginctl enable-linger).
func lingers() bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join("/var/lib/systemd/linger", u.Username))
	return err == nil
}

// groupOf finds systemd's control group in the text of /proc/PID/cgroup: that of
// the unified hierarchy, unless systemd keeps one by name and leaves that empty.
func groupOf(text string) (group string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		hierarchy, path, _ := strings.Cut(rest, ":")
		if len(path) > 1 && (hierarchy == "" || hierarchy == "name=systemd" && group == "") {
			group = path
		}
	}
	return group
}

// judgeGroup judges the text of /proc/PID/cgroup.
func judgeGroup(text string, lingers bool) finding {
	// What ends a process is the innermost unit it is in; a unit may have groups
	// of its own below.
	units := slices.DeleteFunc(strings.Split(groupOf(text), "/"), func(name string) bool {
		return !strings.HasSuffix(name, ".service") && !strings.HasSuffix(name, ".scope")
	})
	if len(units) == 0 {
		return finding{Outcome: fine, Text: "in no service's"}
	}
	last := units[len(units)-1]
	switch {
	case strings.HasPrefix(last, serviceName) && strings.HasSuffix(last, ".service"):
		return finding{
			Outcome: broken, Text: "the tmux server runs inside the daemon's own service (" + last + ")",
			Remedy: "start tmux from a terminal, or let create_session start it where systemd-run works; " +
				"meanwhile KillMode=process in the unit spares it, but tmux 3.8 ends its panes with the unit, whose limits hold for all",
		}
	case strings.HasSuffix(last, ".service") && !strings.HasPrefix(last, "user@"):
		return finding{
			Outcome: unsure, Text: "the tmux server ends with the service " + last,
			Remedy: "start tmux outside of it: systemd-run --user --scope tmux",
		}
	case strings.HasPrefix(last, "session-"):
		return finding{Outcome: fine, Text: "in the login session " + last + "; where KillUserProcesses=yes it ends with that login"}
	case strings.HasPrefix(units[0], "user@") && !lingers:
		return finding{Outcome: fine, Text: "in " + last + "; it ends with your last login, unless: loginctl enable-linger"}
	}
	return finding{Outcome: fine, Text: "in " + last}
}
