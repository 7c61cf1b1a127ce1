package labapi

import (
	"context"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// Act carries out one action as a timeline writes it.
func (s calls) Act(ctx context.Context, q *labv1.ActRequest) (*labv1.Acted, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	a, err := file.ParseAction(q.Do)
	if err == nil {
		err = l.File.CheckAction(a)
	}
	if err != nil {
		return nil, bad("%w", err)
	}
	s.cfg.Log("lab %s: %s", l.File.Name, a)
	did, began := &labv1.Acted{Do: a.String()}, time.Now()
	if a.Verb == "exec" {
		var out []byte
		out, err = l.Output(ctx, a.Node, a.Argv...)
		did.Output = valid(string(out))
	} else {
		err = l.Do(ctx, a)
	}
	did.TookS = time.Since(began).Seconds()
	return did, err
}
