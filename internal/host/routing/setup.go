package routing

import (
	"errors"
	"fmt"
	"slices"
)

// An Item is one thing in the kernel that must be there: an address, a route or a rule.
type Item struct {
	name    string // for people; two of the same name are the same
	key     string // what adding it replaces
	present func(*view) (bool, error)
	add     func() error
	remove  func() error
	again   bool // added anew whenever another one was

	refreshed bool // by Refresh
}

// A Setup keeps items in a network namespace in place: the calling thread's.
type Setup struct{ items []Item }

// Want replaces the items: the new ones are put in place, then those that are not wanted any more are
// removed, so that there is no moment without a route.
func (k *Setup) Want(items []Item) error {
	before := k.items
	k.items = items
	_, err := k.Restore()
	for _, old := range slices.Backward(before) {
		if !slices.ContainsFunc(items, func(i Item) bool { return i.key == old.key }) {
			old.remove() //nolint:errcheck // with the interface it went by itself
		}
	}
	return err
}

// Restore puts back what is missing and names it.
func (k *Setup) Restore() (missing []string, err error) {
	var now view
	changed := false // what could not be added changes nothing, and must not wake us again
	for _, i := range k.items {
		ok, e := i.present(&now)
		if e == nil && !ok {
			missing = append(missing, i.name)
			e = i.add()
			changed = changed || e == nil
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", i.name, e))
		}
	}
	for _, i := range k.items {
		if i.again && changed {
			err = errors.Join(err, i.add())
		}
	}
	return missing, err
}

// Refresh makes sockets that send nowhere look for a route at their next packet.
func (k *Setup) Refresh() error {
	var errs []error
	for _, i := range k.items {
		if i.refreshed {
			errs = append(errs, i.add())
		}
	}
	return errors.Join(errs...)
}

// Remove takes all items back, the last first.
func (k *Setup) Remove() {
	for _, i := range slices.Backward(k.items) {
		i.remove() //nolint:errcheck // it may be gone, by somebody else's hand
	}
	k.items = nil
}
