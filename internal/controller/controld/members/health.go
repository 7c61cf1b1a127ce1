package members

import (
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/core/health"
)

// Credentials are those of members that this version gave, the one that ends first first.
func (x *Members) Credentials() (list []health.Credential) {
	for _, m := range x.members {
		if m.Issued > 0 { // others have none that this version gave
			list = append(list, health.Credential{Role: m.Role, Name: m.Name, Until: time.Unix(m.Issued, 0).Add(x.cfg.CredentialFor), For: x.cfg.CredentialFor})
		}
	}
	slices.SortFunc(list, func(a, b health.Credential) int { return a.Until.Compare(b.Until) })
	return list
}

// Former is the network's second key, if it has one.
func (x *Members) Former() (f health.Former) {
	if x.gate == nil || len(x.second.Seed) == 0 {
		return f
	}
	f = health.Former{ID: pinOfSeed(x.second.Seed), Since: time.Unix(x.second.Since, 0), Next: x.second.Next}
	state := x.authorityState()
	f.By = state.Unheard
	for _, m := range state.Behind {
		if !f.Next {
			f.By = append(f.By, m.Role+" "+m.Name)
		}
	}
	return f
}
