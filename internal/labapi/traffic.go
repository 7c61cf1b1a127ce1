package labapi

import (
	"net/http"
	"time"

	"scaffold.dev/scaffold/internal/lab"
)

// Traffic is what the links of a lab carry.
type Traffic struct {
	At    float64           `json:"at_s"`  // when the counters were read: seconds since 1970
	Links []lab.LinkTraffic `json:"links"` // in the order of the topology's
}

// traffic gives counters: who asks twice has rates.
func (s *Server) traffic(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	links, err := l.Traffic()
	if err != nil {
		return nil, err
	}
	return Traffic{float64(at.UnixMicro()) / 1e6, links}, nil
}
