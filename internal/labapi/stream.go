package labapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// A stream answers with lines of JSON, each an object, as things happen. The status is sent with the first line:
// what fails before that fails as other requests do.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
}

// linesType is the content type of lines of JSON.
const linesType = "application/x-ndjson"

func newStream(w http.ResponseWriter) *stream { return &stream{w: w} }

// Progress is a line that says what goes on, for people.
type Progress struct {
	Progress string `json:"progress"`
}

// logf is where a lab tells its progress.
func (s *stream) logf(format string, args ...any) {
	s.line(Progress{fmt.Sprintf(format, args...)})
}

// line sends one line at once.
func (s *stream) line(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("labapi: %T cannot be written as JSON: %v", v, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", linesType)
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.WriteHeader(http.StatusOK)
	}
	s.w.Write(append(text, '\n'))           //nolint:errcheck // the other side went away: its context ends
	http.NewResponseController(s.w).Flush() //nolint:errcheck // as above
}

// end is the last line, or the answer of a request that failed before the first one.
func (s *stream) end(last any, err error) (any, error) {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	switch {
	case err != nil && !begun:
		return nil, err
	case err != nil:
		s.line(fault(err))
	default:
		s.line(last)
	}
	return nil, nil
}
