package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
)

// speaks settles which version the stream of a host or router has (docs/protocol.md §8).
func speaks(who string, theirs *apiv1.Versions) (uint32, error) {
	return versions.Agent().Agree("this controller", who, versions.Told(theirs.GetFrom(), theirs.GetTo()))
}

func ownVersions() *apiv1.Versions {
	r := versions.Agent()
	return &apiv1.Versions{From: r.From, To: r.To}
}
