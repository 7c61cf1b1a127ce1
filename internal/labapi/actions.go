package labapi

import (
	"net/http"
	"time"

	"scaffold.dev/scaffold/internal/lab"
)

// An ActionRequest is one action as a timeline writes it.
type ActionRequest struct {
	Do string `json:"do"` // such as "cut s1 r1"
}

// Acted says what an action did.
type Acted struct {
	Do     string  `json:"do"`               // as the lab understood it
	Output string  `json:"output,omitempty"` // of exec, both its outputs
	Took   float64 `json:"took_s"`           // seconds
}

func (s *Server) act(_ http.ResponseWriter, r *http.Request) (any, error) {
	var q ActionRequest
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	a, err := lab.ParseAction(q.Do)
	if err == nil {
		err = l.File.CheckAction(a)
	}
	if err != nil {
		return nil, bad("%w", err)
	}
	s.cfg.Log("lab %s: %s", l.File.Name, a)
	did, began := Acted{Do: a.String()}, time.Now()
	if a.Verb == "exec" {
		var out []byte
		out, err = l.Output(r.Context(), a.Node, a.Argv...)
		did.Output = string(out)
	} else {
		err = l.Do(r.Context(), a)
	}
	did.Took = time.Since(began).Seconds()
	return did, err
}
