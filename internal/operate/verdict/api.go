package verdict

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
)

// stamp is a time as the API says it; "" where it is not known.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ToAPI is problems as the API says them.
func ToAPI(all []health.Problem) (list []*apiv1.Problem) {
	for _, p := range all {
		list = append(list, &apiv1.Problem{
			Severity: p.Severity.String(), Kind: string(p.Kind), What: p.What, Where: p.Where,
			Since: stamp(p.Since), Next: p.Next, Count: uint32(p.Count),
		})
	}
	return list
}

// Worst is the severity of the worst of them.
func Worst(all []*apiv1.Problem) (worst health.Severity) {
	for _, p := range all {
		worst = max(worst, health.ParseSeverity(p.Severity))
	}
	return worst
}

// Merge puts the problems that several daemons found together, the worst first. What two of them say of one thing is
// told once: the first one's word counts.
func Merge(lists ...[]*apiv1.Problem) (all []*apiv1.Problem) {
	seen := map[key]bool{}
	for _, severity := range []health.Severity{health.Critical, health.Warning} {
		for _, list := range lists {
			for _, p := range list {
				k := key{health.Kind(p.Kind), p.Where}
				if health.ParseSeverity(p.Severity) == severity && !seen[k] {
					seen[k] = true
					all = append(all, p)
				}
			}
		}
	}
	return all
}
