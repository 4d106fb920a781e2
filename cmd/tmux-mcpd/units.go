package main

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// socketUnit has systemd open the socket, so that clients can connect before the
// daemon runs, and while it is being restarted.
func socketUnit(path string) string {
	return `# ` + ours + `
[Unit]
Description=Socket of tmux-mcpd

[Socket]
ListenStream=` + escapePercent(path) + `
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`
}

// serviceUnit is the daemon. KillMode=process: a tmux server that the daemon has
// started lives on when the daemon ends, should it ever be in the same control
// group. Only what binds the control group is set: anything a child inherits
// (NoNewPrivileges, system call filters, private mounts, resource limits, umask)
// would be inherited by such a tmux server too, and make sudo fail in its panes.
func serviceUnit(name string, args []string) string {
	return `# ` + ours + `
[Unit]
Description=tmux for MCP clients
Requires=` + name + `.socket
After=` + name + `.socket
# Not more than 5 starts in 30 s.
StartLimitIntervalSec=30
StartLimitBurst=5

[Service]
Type=notify
ExecStart=` + execLine(args) + `
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
TimeoutStopSec=7
Restart=on-failure
RestartSec=500ms
WatchdogSec=30
MemoryHigh=512M
MemoryMax=1G
TasksMax=256

[Install]
WantedBy=default.target
`
}

func escapePercent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// execLine quotes words for ExecStart (systemd.service(5)).
func execLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(w)
		if i > 0 { // the program's path is not searched for variables, nor for $$
			w = strings.ReplaceAll(w, "$", "$$")
		}
		if w == "" || strings.ContainsAny(w, " \t'\";") {
			w = `"` + w + `"`
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// plist is a launchd agent that runs whenever the user is logged in.
func plist(label string, args []string, log string) string {
	var b strings.Builder
	text := func(s string) string {
		var e bytes.Buffer
		_ = xml.EscapeText(&e, []byte(s)) // a Buffer takes everything
		return "<string>" + e.String() + "</string>"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ` + ours + ` -->
<plist version="1.0">
<dict>
	<key>Label</key>
	` + text(label) + `
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range args {
		b.WriteString("\t\t" + text(a) + "\n")
	}
	b.WriteString(`	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>AbandonProcessGroup</key>
	<true/>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>StandardErrorPath</key>
	` + text(log) + `
</dict>
</plist>
`)
	return b.String()
}
