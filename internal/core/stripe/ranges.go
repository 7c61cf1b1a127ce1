package stripe

import (
	"slices"
	"sort"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// ranges are what arrived beyond a gap: ascending, with gaps between them.
type ranges []frame.Range

// missing appends to gaps the parts of r that are not there yet.
func (rs ranges) missing(r frame.Range, gaps []frame.Range) []frame.Range {
	for i := rs.find(r.From); i < len(rs) && rs[i].From < r.To; i++ {
		if r.From < rs[i].From {
			gaps = append(gaps, frame.Range{From: r.From, To: rs[i].From})
		}
		r.From = max(r.From, rs[i].To)
	}
	if r.From < r.To {
		gaps = append(gaps, r)
	}
	return gaps
}

// find is the index of the first range that ends behind an offset.
func (rs ranges) find(offset uint64) int {
	return sort.Search(len(rs), func(i int) bool { return rs[i].To > offset })
}

// add joins r to what is there.
func (rs ranges) add(r frame.Range) ranges {
	from := sort.Search(len(rs), func(i int) bool { return rs[i].To >= r.From })
	to := from
	for ; to < len(rs) && rs[to].From <= r.To; to++ {
		r.From, r.To = min(r.From, rs[to].From), max(r.To, rs[to].To)
	}
	if from == to {
		return slices.Insert(rs, from, r)
	}
	rs[from] = r
	return slices.Delete(rs, from+1, to)
}

// joined takes off the front what follows an offset without a gap, and returns the offset behind it.
func (rs ranges) joined(offset uint64) (ranges, uint64) {
	n := 0
	for ; n < len(rs) && rs[n].From <= offset; n++ {
		offset = max(offset, rs[n].To)
	}
	if n == 0 {
		return rs, offset
	}
	return slices.Delete(rs, 0, n), offset
}
