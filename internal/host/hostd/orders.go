package hostd

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/mobility"
	"scaffold.dev/scaffold/sid"
)

// order does what the controller says.
func (d *daemon) order(o *apiv1.HostOrder) {
	switch o := o.Order.(type) {
	case *apiv1.HostOrder_Services:
		for _, p := range o.Services.Entries {
			d.serving.Policy(p)
		}
	case *apiv1.HostOrder_RegistrationRefused:
		d.serving.Refuse(o.RegistrationRefused)
	case *apiv1.HostOrder_Gone:
		d.sessions.Accused(accusationOf(o.Gone))
	case *apiv1.HostOrder_Drain:
		d.sessions.Order(o.Drain)
	case *apiv1.HostOrder_Attached:
		d.joining.Attached(o.Attached)
	case *apiv1.HostOrder_Credential:
		d.renewed(o.Credential)
	case *apiv1.HostOrder_Revoked:
		d.places.Revoked(o.Revoked.List, false)
	case *apiv1.HostOrder_NetworkKeys:
		d.places.NetworkKeys(o.NetworkKeys.Keys)
	}
}

func accusationOf(g *apiv1.LocatorsGone) (a mobility.Accusation) {
	for _, l := range g.Locators {
		a.Locators = append(a.Locators, sid.Locator(l))
	}
	for _, s := range g.Services {
		a.Services = append(a.Services, sid.ServiceID{SS: s.Ss, Suffix: sid.Suffix(s.Suffix)})
	}
	return a
}
