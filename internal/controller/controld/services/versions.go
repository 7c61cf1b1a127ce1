package services

import (
	"fmt"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/core/names"
)

// unchanged refuses to replace what the caller has not seen, and says who changed what since he looked.
func (x *Services) unchanged(r names.Record, version uint64, replace bool, what string) error {
	switch {
	case replace && version == 0, version == r.Version:
		return nil
	case version == 0:
		return fmt.Errorf("%w: service %s: %s would be replaced whole, and nobody says which version he has read: give the version that GetService tells (it is %d now), or replace to have it whatever is there; scaffold of this version does, upgrade what asked", orders.ErrConflict, r.Name, what, r.Version)
	case version > r.Version:
		return fmt.Errorf("%w: service %s is of version %d, and %d was read: it was removed and made anew, or a backup was put in: read it again", orders.ErrChanged, r.Name, r.Version, version)
	}
	return fmt.Errorf("%w: service %s is of version %d by now, and %d was read: %s: read it again (`scaffold service show %s`), then decide", orders.ErrChanged, r.Name, r.Version, version, x.sinceVersion(r, version), r.Name)
}

// sinceVersion tells who changed a service after a version of it, as far as the history has it.
func (x *Services) sinceVersion(r names.Record, version uint64) string {
	var parts []string
	for _, e := range x.cfg.History.Last(events.Remembered, func(e *apiv1.Event) bool {
		return e.Subject == r.Name && e.By != nil && !e.Refused && e.UnixMs >= r.Created
	}) {
		var v uint64
		if _, err := fmt.Sscan(e.Attrs["version"], &v); err != nil || v <= version {
			continue
		}
		what := specs.Told(e.Changes)
		if what == "" {
			what = e.Text
		}
		parts = append(parts, fmt.Sprintf("%s changed %s at %s", events.ActorText(e.By), what, e.Time))
	}
	if len(parts) == 0 {
		return "the history does not go back that far"
	}
	return strings.Join(parts, "; ")
}

// LastOrder says who changed a service last.
func (x *Services) LastOrder(name string) string {
	list := x.cfg.History.Last(1, func(e *apiv1.Event) bool { return e.Subject == name && e.By != nil && !e.Refused })
	if len(list) == 0 {
		return "the files are other ones"
	}
	return fmt.Sprintf("%s was the last to change it, at %s (%s)", events.ActorText(list[0].By), list[0].Time, list[0].Text)
}
