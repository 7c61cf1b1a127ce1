package labapi

import (
	"net/http"

	"scaffold.dev/scaffold/internal/lab"
)

// Ran is the last line of a run.
type Ran struct {
	Result *lab.Result `json:"result"`
	Failed bool        `json:"failed"` // a step, a measurement or a series failed; the result says which
}

func ran(lines *stream, r *lab.Result, err error) (any, error) {
	if r == nil || err != nil {
		return lines.end(nil, err)
	}
	return lines.end(Ran{r, r.Failed()}, nil)
}

// run brings a lab up, goes through its timeline and takes it down, as `scaffold lab run` does. It is gone, too,
// when the caller goes away.
func (s *Server) run(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := receiveFile(r)
	if err != nil {
		return nil, err
	}
	s.cfg.Log("lab %s: run", f.Name)
	lines := newStream(w)
	result, err := lab.Run(r.Context(), f, s.options(lines.logf))
	return ran(lines, result, err)
}

// play goes through the timeline of a lab that is up.
func (s *Server) play(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := receive(r, &struct{}{}); err != nil {
		return nil, err
	}
	lines := newStream(w)
	l, err := s.openLogged(r, lines.logf)
	if err != nil {
		return nil, err
	}
	s.cfg.Log("lab %s: run its timeline", l.File.Name)
	result, err := l.Play(r.Context())
	return ran(lines, result, err)
}
