package labapi

import (
	"net/http"
	"strconv"
)

// recordingType is the content type of pcap files.
const recordingType = "application/vnd.tcpdump.pcap"

// capture sends what crosses a link until the caller goes away.
func (s *Server) capture(w http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	to := &recording{w: w}
	err = l.Capture(r.Context(), r.PathValue("a"), r.PathValue("b"), to)
	if err != nil && to.begun {
		panic(http.ErrAbortHandler) // the recording ends in its midst, which the caller sees
	}
	return nil, engineFault(err)
}

// A recording is sent as it is written. Before the first bytes the request can still fail.
type recording struct {
	w     http.ResponseWriter
	begun bool
}

// Write sends at once.
func (c *recording) Write(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		c.w.Header().Set("Content-Type", recordingType)
		c.w.Header().Set("Cache-Control", "no-store")
	}
	n, err := c.w.Write(p)
	http.NewResponseController(c.w).Flush() //nolint:errcheck // the next write tells
	return n, err
}

// replay lets the frames of a recording arrive at the second node of the path as if the first had sent them.
func (s *Server) replay(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	speed := 1.0
	if text := r.URL.Query().Get("speed"); text != "" {
		if speed, err = strconv.ParseFloat(text, 64); err != nil || !(speed > 0 && speed <= 1e6) {
			return nil, bad("speed %q: expected how many times as fast as recorded, more than 0", text)
		}
	}
	a, b := r.PathValue("a"), r.PathValue("b")
	s.cfg.Log("lab %s: replay a recording into %s:%s", l.File.Name, b, a)
	result, err := l.Replay(r.Context(), b+":"+a, speed, r.Body)
	return result, engineFault(err)
}

func (s *Server) certificate(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	return l.Certificate(r.Context())
}
