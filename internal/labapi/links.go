package labapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab"
)

func (s *Server) links(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	links, err := l.Emulated()
	if links == nil {
		links = lab.EmulatedLinks{}
	}
	return links, err
}

func (s *Server) linksBetween(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	return between(l, r)
}

func between(l *lab.Lab, r *http.Request) (lab.EmulatedLinks, error) {
	all, err := l.Emulated()
	if err != nil {
		return nil, err
	}
	a, b := r.PathValue("a"), r.PathValue("b")
	found := all.Between(a, b)
	if len(found) == 0 {
		return nil, notFound("lab %s has no emulated link between %q and %q", l.File.Name, a, b)
	}
	return found, nil
}

// A LinkRequest changes the emulated links between two nodes.
type LinkRequest struct {
	// Set has parameters by name, as docs/emu.md lists them: text such as "20ms" or "1%", or a plain number or
	// boolean where the parameter is one.
	Set    map[string]json.RawMessage `json:"set"`
	OneWay bool                       `json:"one_way"` // only from the first node of the path to the second
}

func (s *Server) setLinks(_ http.ResponseWriter, r *http.Request) (any, error) {
	var q LinkRequest
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	a := lab.Action{Verb: "link", Node: r.PathValue("a"), Peer: r.PathValue("b"), OneWay: q.OneWay}
	if _, err := between(l, r); err != nil {
		return nil, err
	}
	if a.Set, err = q.pairs(); err == nil {
		err = l.File.CheckAction(a)
	}
	if err != nil {
		return nil, bad("%w", err)
	}
	s.cfg.Log("lab %s: %s", l.File.Name, a)
	if err := l.Do(r.Context(), a); err != nil {
		return nil, bad("%w", err) // what is set now does not go with what is asked for
	}
	return between(l, r)
}

// pairs are the parameters in the order in which emu lists them, so that what a map loses does not matter.
func (q LinkRequest) pairs() (pairs []lab.Pair, err error) {
	if len(q.Set) == 0 {
		return nil, bad("nothing to set; expected parameters in \"set\", some of %s", strings.Join(emu.Keys(), ", "))
	}
	for key, raw := range q.Set {
		value := strings.TrimSpace(string(raw))
		if strings.HasPrefix(value, `"`) {
			err = json.Unmarshal(raw, &value)
		}
		if err != nil || value == "" || strings.ContainsAny(value, " {[") || value == "null" {
			return nil, bad("parameter %q: expected text, a number or a boolean, found %.40s", key, raw)
		}
		pairs = append(pairs, lab.Pair{Key: key, Value: value})
	}
	slices.SortFunc(pairs, func(a, b lab.Pair) int {
		return slices.Index(emu.Keys(), a.Key) - slices.Index(emu.Keys(), b.Key)
	})
	return pairs, nil
}
