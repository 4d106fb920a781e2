package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// version is set by the Makefile; builds by go install have it in their build
// information instead.
var version string

// versionText is the version this program tells about itself.
var versionText = sync.OnceValue(func() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
})

func printVersion(_ context.Context, in *invocation) error {
	_, err := fmt.Fprintf(in.stdout, "tmux-mcpd %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
