package store

import (
	"encoding/json"
	"fmt"
)

// An Entry is a part of the network's history, as the controller wrote it: events in JSON, in order. What somebody
// ordered is an entry by itself, so that it is written with what it changed; what merely happened is gathered.
type Entry struct {
	First  uint64            `json:"first"` // number of the first event
	Events []json.RawMessage `json:"events"`
}

// PutOrdered stores what somebody ordered.
func PutOrdered(e Entry) Change { return Change{orderedKey(e.First), e} }

// DeleteOrdered forgets it.
func DeleteOrdered(first uint64) Change { return Change{orderedKey(first), nil} }

// PutHappened stores what happened.
func PutHappened(e Entry) Change { return Change{happenedKey(e.First), e} }

// DeleteHappened forgets it.
func DeleteHappened(first uint64) Change { return Change{happenedKey(first), nil} }

func orderedKey(first uint64) string  { return fmt.Sprintf("ordered/%016x", first) }
func happenedKey(first uint64) string { return fmt.Sprintf("happened/%016x", first) }

// readEntry adds one to a list. One that cannot be read is left out: the network is not to stop for its history.
func readEntry(list []Entry, value []byte) []Entry {
	var e Entry
	if json.Unmarshal(value, &e) != nil {
		return list
	}
	return append(list, e)
}
