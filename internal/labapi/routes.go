package labapi

import (
	"net/http"
)

// An answer is what a request gives, to be written as JSON; nil for what was written already.
type answer func(w http.ResponseWriter, r *http.Request) (any, error)

func (s *Server) routes() {
	for pattern, do := range map[string]answer{
		"GET /v1":               s.about,
		"POST /v1/check":        s.check,
		"POST /v1/runs":         s.run,
		"POST /v1/figures":      s.figure,
		"GET /v1/labs":          s.list,
		"POST /v1/labs":         s.raise,
		"DELETE /v1/labs":       s.dropAll,
		"GET /v1/labs/{lab}":    s.status,
		"DELETE /v1/labs/{lab}": s.drop,

		"GET /v1/labs/{lab}/topology":                            s.topology,
		"GET /v1/labs/{lab}/traffic":                             s.traffic,
		"GET /v1/labs/{lab}/links":                               s.links,
		"GET /v1/labs/{lab}/links/{a}/{b}":                       s.linksBetween,
		"PUT /v1/labs/{lab}/links/{a}/{b}":                       s.setLinks,
		"GET /v1/labs/{lab}/links/{a}/{b}/pcap":                  s.capture,
		"POST /v1/labs/{lab}/links/{a}/{b}/replay":               s.replay,
		"GET /v1/labs/{lab}/certificate":                         s.certificate,
		"POST /v1/labs/{lab}/actions":                            s.act,
		"POST /v1/labs/{lab}/run":                                s.play,
		"GET /v1/labs/{lab}/routers":                             s.routers,
		"GET /v1/labs/{lab}/routers/{router}":                    s.router,
		"PUT /v1/labs/{lab}/routers/{router}/program":            s.swap,
		"GET /v1/labs/{lab}/routers/{router}/handlers":           s.handlers,
		"GET /v1/labs/{lab}/routers/{router}/handlers/{handler}": s.getHandler,
		"PUT /v1/labs/{lab}/routers/{router}/handlers/{handler}": s.setHandler,

		"POST /v1/labs/{lab}/nodes/{node}/exec":          s.exec,
		"GET /v1/labs/{lab}/nodes/{node}/logs/{program}": s.log,
		"POST /v1/labs/{lab}/nodes/{node}/signal":        s.signal,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := do(w, r)
			switch {
			case err != nil:
				fail(w, err)
			case result != nil:
				send(w, http.StatusOK, result)
			}
		})
	}
}

// route finds what answers. A path that is unknown, or takes other methods, is an error as all others are.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	said := &verdict{header: w.Header(), status: http.StatusNotFound}
	handler.ServeHTTP(said, r)
	if allowed := w.Header().Get("Allow"); said.status == http.StatusMethodNotAllowed {
		fail(w, refuse(said.status, "%s %s: this path takes %s", r.Method, r.URL.Path, allowed))
		return
	}
	fail(w, notFound("%s: there is no such path; docs/lab-api.md lists them", r.URL.Path))
}

// A verdict is what the multiplexer says of a request that nothing answers: headers and a status.
type verdict struct {
	header http.Header
	status int
}

// Header, Write and WriteHeader make it an http.ResponseWriter.
func (v *verdict) Header() http.Header { return v.header }

// Write leaves out the text.
func (v *verdict) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader notes the status.
func (v *verdict) WriteHeader(status int) { v.status = status }
