package agent

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
)

// Encode is the message that carries the rules.
func Encode(r plan.Rules, generation uint64) *apiv1.Rules {
	out := &apiv1.Rules{Generation: generation}
	for _, x := range r.Routes {
		out.Routes = append(out.Routes, encodeRoute(x))
	}
	for _, x := range r.Services {
		out.Services = append(out.Services, &apiv1.ServiceRule{
			Ss: x.Service.SS, Suffix: uint64(x.Service.Suffix), Gone: x.Gone, Instances: x.Instances, Forbidden: x.Forbidden,
		})
	}
	for _, x := range r.Resolutions {
		out.Resolutions = append(out.Resolutions, encodeResolution(x))
	}
	for _, x := range r.Probes {
		out.Probes = append(out.Probes, &apiv1.Probe{Locator: uint64(x.Locator), Port: x.Port, Gone: x.Gone})
	}
	for _, x := range r.Redirects {
		out.Redirects = append(out.Redirects, &apiv1.Redirect{From: uint64(x.From), To: uint64(x.To), Gone: x.Gone})
	}
	for _, x := range r.Gone {
		out.Gone = append(out.Gone, &apiv1.Gone{Locator: uint64(x.Locator), Back: x.Back})
	}
	for _, x := range r.Sources {
		out.Sources = append(out.Sources, &apiv1.Source{Port: x.Port, Locator: uint64(x.Locator), Gone: x.Gone})
	}
	return out
}

func encodeRoute(r plan.Route) *apiv1.Route {
	out := &apiv1.Route{Prefix: r.Prefix.String(), Port: r.Port, Gone: r.Gone}
	if r.Via.IsValid() {
		out.Via = r.Via.String()
	}
	if r.MAC != [6]byte{} {
		out.Mac = r.MAC[:]
	}
	return out
}

func encodeResolution(r plan.Resolution) *apiv1.Resolution {
	out := &apiv1.Resolution{
		Ss: r.Triple.Service.SS, Suffix: uint64(r.Triple.Service.Suffix), Proto: uint32(r.Triple.Proto), Port: uint32(r.Triple.Port),
		Targets: make([]*apiv1.Target, 0, len(r.Targets)),
	}
	for _, t := range r.Targets {
		out.Targets = append(out.Targets, &apiv1.Target{Locator: uint64(t.Locator), Weight: t.Weight})
	}
	return out
}
