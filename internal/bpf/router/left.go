package router

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// What becomes of packets to locators that their hosts have left, or where they do not answer.

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

// silentFor is how long a host is believed to be silent without RenewSilent: several turns of a daemon that is busy.
const silentFor = 5 * time.Second

// SetSilent says that the host at a locator does not answer this router's probes: first packets for it go to others, where
// there are any, until it is said that it answers, or RenewSilent has not been called for a few seconds: whoever probes is
// away then, and does not see the host come back. It is not taken over from an earlier process, whose findings are old.
func (r *Resolver) SetSilent(l sid.Locator, silent bool) error {
	if r.silent[l] == silent {
		return nil
	}
	r.writes++
	if !silent {
		delete(r.silent, l)
		if err := r.objs.Silent.Delete(uint64(l)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("locator %v answers again: %w", l, err)
		}
		return nil
	}
	if err := r.objs.Silent.Put(uint64(l), silentUntil()); err != nil {
		return fmt.Errorf("locator %v does not answer: %w", l, full(err))
	}
	r.silent[l] = true
	return nil
}

// RenewSilent says that hosts that are silent are so still. Call it every second.
func (r *Resolver) RenewSilent() error {
	var errs []error
	for l := range r.silent {
		errs = append(errs, r.objs.Silent.Put(uint64(l), silentUntil()))
	}
	return errors.Join(errs...)
}

func silentUntil() uint64 { return ktime.Now() + uint64(silentFor) }

// sweepSilent forgets what an earlier process found.
func (r *Resolver) sweepSilent() error {
	r.silent = map[sid.Locator]bool{}
	var l, until uint64
	var found []uint64
	it := r.objs.Silent.Iterate()
	for it.Next(&l, &until) {
		found = append(found, l)
	}
	errs := []error{it.Err()}
	for _, l := range found {
		errs = append(errs, r.objs.Silent.Delete(l))
	}
	return errors.Join(errs...)
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
	return errors.Join(it.Err(), gone.Err(), r.sweepSilent())
}
