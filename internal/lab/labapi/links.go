package labapi

import (
	"context"
	"slices"
	"strings"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// ListLinks are the emulated links of a lab, or those between two nodes.
func (s calls) ListLinks(_ context.Context, q *labv1.ListLinksRequest) (*labv1.ListLinksResponse, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	if q.A != "" || q.B != "" {
		return between(l, q.A, q.B)
	}
	return linksOf(l.Engine().Links())
}

func linksOf(all engine.Links, err error) (*labv1.ListLinksResponse, error) {
	if err != nil {
		return nil, err
	}
	return as(&labv1.ListLinksResponse{}, map[string]engine.Links{"links": all})
}

func between(l *lab.Lab, a, b string) (*labv1.ListLinksResponse, error) {
	all, err := l.Engine().Links()
	found := all.Between(a, b)
	if err == nil && len(found) == 0 {
		err = notFound("lab %s has no emulated link between %q and %q", l.File.Name, a, b)
	}
	return linksOf(found, err)
}

// SetLinks changes the emulated links between two nodes.
func (s calls) SetLinks(ctx context.Context, q *labv1.SetLinksRequest) (*labv1.ListLinksResponse, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	if _, err := between(l, q.A, q.B); err != nil {
		return nil, err
	}
	a := file.Action{Verb: "link", Node: q.A, Peer: q.B, OneWay: q.OneWay}
	if a.Set, err = pairs(q.Set); err != nil {
		return nil, err
	}
	if err := l.File.CheckAction(a); err != nil {
		return nil, bad("%w", err)
	}
	s.cfg.Log("lab %s: %s", l.File.Name, a)
	if err := l.Do(ctx, a); err != nil {
		return nil, bad("%w", err) // what is set now does not go with what is asked for
	}
	return between(l, q.A, q.B)
}

// pairs are the parameters in the order in which emu lists them, so that what a map loses does not matter.
func pairs(set map[string]string) (pairs []file.Pair, err error) {
	if len(set) == 0 {
		return nil, bad("nothing to set; expected parameters in \"set\", some of %s", strings.Join(emu.Keys(), ", "))
	}
	for key, value := range set {
		if value == "" || strings.Contains(value, " ") {
			return nil, bad("parameter %q: expected one word, found %.40q", key, value)
		}
		pairs = append(pairs, file.Pair{Key: key, Value: value})
	}
	slices.SortFunc(pairs, func(a, b file.Pair) int {
		return slices.Index(emu.Keys(), a.Key) - slices.Index(emu.Keys(), b.Key)
	})
	return pairs, nil
}
