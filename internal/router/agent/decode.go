package agent

import (
	"errors"
	"fmt"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// maxErrors bounds what one report can say.
const maxErrors = 8

// Decode reads what Encode wrote. What cannot be read is left out, and the error names the first of it.
func Decode(m *apiv1.Rules) (r plan.Rules, err error) {
	var errs []error
	r.Routes = each(m.GetRoutes(), &errs, decodeRoute)
	r.Resolutions = each(m.GetResolutions(), &errs, decodeResolution)
	for _, x := range m.GetServices() {
		id := sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}
		r.Services = append(r.Services, plan.ServiceRule{Service: id, Instances: x.Instances, Forbidden: x.Forbidden, Gone: x.Gone})
	}
	for _, x := range m.GetProbes() {
		r.Probes = append(r.Probes, plan.Probe{Locator: sid.Locator(x.Locator), Port: x.Port, Gone: x.Gone})
	}
	for _, x := range m.GetRedirects() {
		r.Redirects = append(r.Redirects, plan.Redirect{From: sid.Locator(x.From), To: sid.Locator(x.To), Gone: x.Gone})
	}
	for _, x := range m.GetGone() {
		r.Gone = append(r.Gone, plan.Gone{Locator: sid.Locator(x.Locator), Back: x.Back})
	}
	for _, x := range m.GetSources() {
		r.Sources = append(r.Sources, plan.Source{Port: x.Port, Locator: sid.Locator(x.Locator), Gone: x.Gone})
	}
	return r, errors.Join(errs...)
}

func each[In, Out any](list []In, errs *[]error, f func(In) (Out, error)) (out []Out) {
	for _, x := range list {
		switch y, err := f(x); {
		case err == nil:
			out = append(out, y)
		case len(*errs) < maxErrors:
			*errs = append(*errs, err)
		}
	}
	return out
}

func decodeRoute(x *apiv1.Route) (r plan.Route, err error) {
	prefix, err := netip.ParsePrefix(x.Prefix)
	if err != nil || !prefix.Addr().Is6() || len(x.Mac) != 0 && len(x.Mac) != 6 {
		return r, fmt.Errorf("route %v: want an IPv6 prefix and a MAC address of 6 bytes or none", x)
	}
	r = plan.Route{Prefix: prefix.Masked(), Port: x.Port, Gone: x.Gone}
	copy(r.MAC[:], x.Mac)
	if x.Via == "" {
		return r, nil
	}
	via, err := netip.ParseAddr(x.Via)
	if err != nil || !via.Is6() {
		return r, fmt.Errorf("route %v: via is no IPv6 address", x)
	}
	r.Via = via.WithZone("")
	return r, nil
}

func decodeResolution(x *apiv1.Resolution) (r plan.Resolution, err error) {
	if x.Proto > 255 || x.Port > 65535 {
		return r, fmt.Errorf("resolution %v: protocol or port out of range", x)
	}
	r.Triple = sid.Triple{Service: sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}, Proto: sid.Proto(x.Proto), Port: uint16(x.Port)}
	for _, y := range x.Targets {
		r.Targets = append(r.Targets, resolve.Target{Locator: sid.Locator(y.Locator), Weight: y.Weight})
	}
	return r, nil
}
