package store

import "scaffold.dev/scaffold/sid"

// Served says since when a service has had an instance: one that never had any is not missed. It is no part of the
// service's record, which operators change meanwhile.
type Served struct {
	Service sid.ServiceID `json:"service"`
	Since   int64         `json:"since"` // seconds since 1970
}

// PutServed stores it.
func PutServed(s Served) Change { return Change{"served/" + s.Service.String(), s} }

// DeleteServed forgets it.
func DeleteServed(id sid.ServiceID) Change { return Change{"served/" + id.String(), nil} }
