package obs

import (
	"encoding/json"
	"net/http"
	"sync"
)

// Health holds what a daemon is waiting for or cannot do. It is healthy while nothing stands against it.
type Health struct {
	mu    sync.Mutex
	wrong map[string]string // part -> what is wrong with it
}

// Set records the state of one part ("controller", "store"); nil means it is well.
func (h *Health) Set(part string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.wrong, part)
		return
	}
	if h.wrong == nil {
		h.wrong = map[string]string{}
	}
	h.wrong[part] = err.Error()
}

// ServeHTTP answers 200 {"healthy":true}, or 503 with what is wrong by part.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if len(h.wrong) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(struct { //nolint:errcheck // who asked went away
		Healthy bool              `json:"healthy"`
		Wrong   map[string]string `json:"wrong,omitempty"`
	}{len(h.wrong) == 0, h.wrong})
}
