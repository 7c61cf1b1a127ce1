package obs

import (
	"net/http"
	"net/http/pprof"
)

// Handler serves /metrics, /healthz and, where profiles is set, /debug/pprof/. Profiles tell much of
// a process: serve them on a Unix socket or loopback only.
func Handler(m *Metrics, h *Health, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.Handle("GET /healthz", h)
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}
