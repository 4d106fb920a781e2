package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DefaultSocketPath is the one rule for the daemon's socket that every command
// follows, so that daemon and bridges meet whatever environment they were
// started from (ssh, cron, su, a container).
//
// The directory is $XDG_RUNTIME_DIR/tmux-mcpd; with that variable unset or
// naming a directory that is not uid's, /run/user/UID/tmux-mcpd if that is
// uid's; else /tmp/tmux-mcpd-UID. The file is default.sock for the default
// tmux server, else the first 12 hex digits of the SHA-256 of tmuxSocketAbs,
// the absolute path of the tmux socket, and ".sock": short whatever tmux calls
// its socket.
//
// env looks up environment variables (os.Getenv in production). Nothing is
// created. The error is ErrPathTooLong, or says that tmuxSocketAbs is not an
// absolute path.
func DefaultSocketPath(env func(string) string, uid int, tmuxSocketAbs string, isDefaultServer bool) (string, error) {
	return socketPath(env, uid, tmuxSocketAbs, isDefaultServer, ownedDirectory)
}

// socketPath is DefaultSocketPath with the file system's answer replaceable.
func socketPath(env func(string) string, uid int, tmuxSocketAbs string, isDefaultServer bool, owned func(dir string, uid int) bool) (string, error) {
	file := "default.sock"
	if !isDefaultServer {
		if !filepath.IsAbs(tmuxSocketAbs) {
			return "", fmt.Errorf("tmux socket path %q is not absolute", tmuxSocketAbs)
		}
		sum := sha256.Sum256([]byte(tmuxSocketAbs))
		file = hex.EncodeToString(sum[:])[:12] + ".sock"
	}
	dir := "/tmp/tmux-mcpd-" + strconv.Itoa(uid)
	if run := runtimeDirectory(env, uid, owned); run != "" {
		dir = filepath.Join(run, "tmux-mcpd")
	}
	path := filepath.Join(dir, file)
	if len(path) > maxSocketPath {
		return "", tooLong(path)
	}
	return path, nil
}

// RuntimeDirectory is the user's runtime directory by the same rule, "" if there
// is none.
func RuntimeDirectory(env func(string) string, uid int) string {
	return runtimeDirectory(env, uid, ownedDirectory)
}

func runtimeDirectory(env func(string) string, uid int, owned func(dir string, uid int) bool) string {
	// A relative XDG_RUNTIME_DIR is invalid by the base directory
	// specification and would give every working directory its own daemon.
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && owned(dir, uid) {
		return dir
	}
	// "su" keeps the other user's variable, ssh and cron set none: the
	// directory logind made for uid is then still the one a desktop uses.
	if dir := filepath.Join("/run/user", strconv.Itoa(uid)); owned(dir, uid) {
		return dir
	}
	return ""
}

// ownedDirectory reports whether dir exists and belongs to uid.
func ownedDirectory(dir string, uid int) bool {
	fi, err := os.Stat(dir)
	if err != nil || !fi.IsDir() {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
