package router

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// What becomes of packets to locators that their hosts have left.

// SetRedirect sends packets for the locator from on to the locator to.
func (r *Resolver) SetRedirect(from, to sid.Locator) error {
	if old, ok := r.redirects[from]; ok && old == to {
		return nil
	}
	r.writes++
	if err := r.objs.Redirects.Put(uint64(from), uint64(to)); err != nil {
		return fmt.Errorf("redirect of %v: %w", from, full(err))
	}
	r.redirects[from] = to
	return nil
}

// RemoveRedirect undoes SetRedirect.
func (r *Resolver) RemoveRedirect(from sid.Locator) error {
	if _, ok := r.redirects[from]; !ok {
		return nil
	}
	r.writes++
	if err := r.objs.Redirects.Delete(uint64(from)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("redirect of %v: %w", from, err)
	}
	delete(r.redirects, from)
	return nil
}

// Redirects lists the locators that are redirected, as a snapshot.
func (r *Resolver) Redirects() iter.Seq[sid.Locator] {
	return slices.Values(slices.Collect(maps.Keys(r.redirects)))
}

// SetGone tells who sends to the locator that nobody is there, by FAIL; false takes it back. A redirect of the
// locator goes before it.
func (r *Resolver) SetGone(l sid.Locator, gone bool) error {
	if r.gone[l] == gone {
		return nil
	}
	r.writes++
	if !gone {
		delete(r.gone, l)
		if err := r.objs.Gone.Delete(uint64(l)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("locator %v is in use again: %w", l, err)
		}
		return nil
	}
	if err := r.objs.Gone.Put(uint64(l), uint8(1)); err != nil {
		return fmt.Errorf("locator %v is gone: %w", l, full(err))
	}
	r.gone[l] = true
	return nil
}

// Gone lists the locators that are told as gone, as a snapshot.
func (r *Resolver) Gone() iter.Seq[sid.Locator] {
	return slices.Values(slices.Collect(maps.Keys(r.gone)))
}

func (r *Resolver) readLeft() error {
	r.redirects, r.gone = map[sid.Locator]sid.Locator{}, map[sid.Locator]bool{}
	var from, to uint64
	it := r.objs.Redirects.Iterate()
	for it.Next(&from, &to) {
		r.redirects[sid.Locator(from)] = sid.Locator(to)
	}
	var l uint64
	var one uint8
	gone := r.objs.Gone.Iterate()
	for gone.Next(&l, &one) {
		r.gone[sid.Locator(l)] = true
	}
	return errors.Join(it.Err(), gone.Err())
}
