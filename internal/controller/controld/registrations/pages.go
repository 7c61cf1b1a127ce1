package registrations

import "slices"

// pageSize is how many instances a record has: etcd takes none of more than 1.5 MiB, which is what these have with the
// longest names and a permit each, and a change of one instance writes its page alone.
const pageSize = 256

// A page is a record of what a host serves. Its number is its place in the list, and 1.
type page struct {
	count int  // instances
	there bool // it is in the store, or will be in a moment
	dirty bool // and is not what it should be
}

// pages are those of a host.
type pages []page

// at is a page by its number.
func (p *pages) at(number int) *page {
	if number > len(*p) {
		*p = append(*p, make([]page, number-len(*p))...)
	}
	return &(*p)[number-1]
}

// room is a page that has room for one more.
func (p *pages) room() int {
	if i := slices.IndexFunc(*p, func(x page) bool { return x.count < pageSize }); i >= 0 {
		return i + 1
	}
	return len(*p) + 1
}

// count changes how many instances are on a page, or what they are.
func (p *pages) change(number, by int) {
	x := p.at(number)
	x.count, x.dirty = x.count+by, true
}

// doubt has pages written anew, or removed, whose content may be another one in the store.
func (p pages) doubt(which func(page) bool) (any bool) {
	for i := range p {
		if p[i].there && which(p[i]) {
			p[i].dirty, any = true, true
		}
	}
	return any
}
