package specs

import (
	"cmp"
	"fmt"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// usual is what a service's fields mean that nobody set, for people.
var usual = map[string]string{
	"failover": names.Reset, "drain": names.Wait, "ready": "listening", "datagrams": "bound", "weight": "100", "dscp": "0",
	"patience": "0s", "boost": "off", "servers": "any host", "allow": "everybody",
}

// Between is what differs between two versions of a service.
func Between(before, after names.Record) (list []*apiv1.FieldChange) {
	for _, f := range fields {
		if from, to := f.text(before), f.text(after); from != to {
			list = append(list, &apiv1.FieldChange{Field: f.name, From: from, To: to})
		}
	}
	return list
}

// Told says what changed in one line: "allow from everybody to c1".
func Told(list []*apiv1.FieldChange) string {
	parts := make([]string, len(list))
	for i, c := range list {
		name := usual[c.Field]
		parts[i] = fmt.Sprintf("%s from %s to %s", c.Field, cmp.Or(c.From, name, "none"), cmp.Or(c.To, name, "none"))
	}
	return strings.Join(parts, "; ")
}

// Rewritten is the event of another version of a service.
func Rewritten(kind, text string, before, after names.Record) *apiv1.Event {
	list := Between(before, after)
	if len(list) > 0 {
		text += ": " + events.Shortened(Told(list))
	}
	return events.Changed(events.New(kind, after.Name, text, "version", events.Number(after.Version)), list...)
}

// Created is the event of a new service, at its address.
func Created(r names.Record, address string) *apiv1.Event {
	list := Between(names.Record{}, r)
	if len(r.Access.Key) > 0 {
		list = append(list, &apiv1.FieldChange{Field: "key", To: names.FormatKey(r.Access.Key)})
	}
	return events.Changed(events.New("service.create", r.Name, "service created", "sid", r.ID.String(), "address", address,
		"version", events.Number(r.Version)), list...)
}

// Removed is the event of a service that goes: its values are those of before.
func Removed(r names.Record) *apiv1.Event {
	return events.Changed(events.New("service.remove", r.Name, "service removed", "sid", r.ID.String()), Between(r, names.Record{})...)
}

// marked is the event of a version of a service that files have made.
func marked(before, after names.Record, changed []*apiv1.FieldChange) *apiv1.Event {
	if len(changed) == 0 {
		return events.Changed(events.New("service.owner", after.Name, "whose files name it changed", "version", events.Number(after.Version)),
			&apiv1.FieldChange{Field: "owner", From: before.Owner(), To: after.Owner()})
	}
	kind := "service.policy"
	for _, f := range changed {
		if f.Field == "servers" || f.Field == "allow" {
			kind = "service.access"
		}
	}
	return Rewritten(kind, "changed by "+after.Owner()+"'s files", before, after)
}

// Override is the event of an operator's word about one host of a service, with its pairs of attributes.
func Override(kind, service, text string, before, after store.Override) *apiv1.Event {
	return events.Changed(events.New(kind, service, text, "host", after.Host, "weight", events.Number(after.Weight)), overrideChanges(before, after)...)
}

// overrideChanges is what an order changes about one host of a service.
func overrideChanges(before, after store.Override) (list []*apiv1.FieldChange) {
	if from, to := weightText(before), weightText(after); from != to {
		list = append(list, &apiv1.FieldChange{Field: "weights." + after.Host, From: from, To: to})
	}
	if from, to := drainText(before), drainText(after); from != to {
		list = append(list, &apiv1.FieldChange{Field: "drain." + after.Host, From: from, To: to})
	}
	return list
}

func drainText(o store.Override) string {
	if !o.Drain {
		return ""
	}
	return cmp.Or(o.Mode, "as the policy says")
}
