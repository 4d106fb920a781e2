package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"

	"go.uber.org/zap"

	"tmux-mcpd/mcp"
	"tmux-mcpd/state"
)

// serveDebug serves what a developer of the daemon wants to look at, over HTTP on
// a socket that only this user can reach: pprof below /debug/pprof/, the model
// at /model, its check at /check, the last bytes to and from tmux at /recorder.
// Text of panes is in none of them, names and titles are. end stops it.
func serveDebug(path string, mirror *state.Mirror, log *zap.Logger) (end func(), err error) {
	ln, err := mcp.Listen(path)
	if err != nil {
		return nil, fmt.Errorf("debug socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /model", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, mirror.Model()) })
	mux.HandleFunc("GET /check", func(w http.ResponseWriter, req *http.Request) {
		v, err := mirror.Verify(req.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		writeJSON(w, v)
	})
	mux.HandleFunc("GET /recorder", func(w http.ResponseWriter, _ *http.Request) {
		all := mirror.Recordings()
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(w, "== %s\n%s\n", name, all[name])
		}
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := srv.Serve(ownOnly{ln}); !errors.Is(err, http.ErrServerClosed) {
			log.Error("debug socket", zap.Error(err))
		}
	}()
	log.Info("debug socket", zap.String("socket", ln.Path()))
	return func() {
		_ = srv.Close()
		<-ended
		_ = ln.Close()
	}, nil
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked has gone
}

// ownOnly accepts connections of this user.
type ownOnly struct{ *mcp.Listener }

func (l ownOnly) Accept() (net.Conn, error) { return l.AcceptOwn() }
func (l ownOnly) Addr() net.Addr            { return &net.UnixAddr{Name: l.Path(), Net: "unix"} }
