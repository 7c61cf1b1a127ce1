package topo

import (
	"fmt"
	"math"
	"time"
)

// A Position is a place on the globe or, where Flat, in a plane.
type Position struct {
	Lat, Lon float64 // degrees to the north and to the east
	X, Y     float64 // km, of a flat position
	Flat     bool
}

// Light in glass fibre needs 5 µs for a kilometre; earth is the mean radius of the Earth in km.
const (
	perKM = 5 * time.Microsecond
	earth = 6371.0
)

// maxFlat bounds coordinates and lengths, in km: far beyond any cable, and exact in a float64.
const maxFlat = 1e6

// check refuses what is no place.
func (p Position) check() error {
	within := func(what string, v, most float64) error {
		if !(math.Abs(v) <= most) { // also not a number
			return fmt.Errorf("%s %v: expected -%g to %g", what, v, most, most)
		}
		return nil
	}
	if p.Flat {
		if err := within("x", p.X, maxFlat); err != nil {
			return err
		}
		return within("y", p.Y, maxFlat)
	}
	if err := within("latitude", p.Lat, 90); err != nil {
		return err
	}
	return within("longitude", p.Lon, 180)
}

// space gives the position as a point in space, in km: the square of the distance of two such points
// grows as their distance on the globe does.
func (p Position) space() [3]float64 {
	if p.Flat {
		return [3]float64{p.X, p.Y, 0}
	}
	sinLat, cosLat := math.Sincos(p.Lat * math.Pi / 180)
	sinLon, cosLon := math.Sincos(p.Lon * math.Pi / 180)
	return [3]float64{earth * cosLat * cosLon, earth * cosLat * sinLon, earth * sinLat}
}

// Distance is the length of the great circle between two places, or of the straight line in a plane, in
// km. A place on the globe and one in a plane have none.
func Distance(a, b Position) (km float64, ok bool) {
	switch p, q := a.space(), b.space(); {
	case a.Flat != b.Flat:
		return 0, false
	case a.Flat:
		return math.Sqrt(square(p, q)), true
	default:
		return 2 * earth * math.Asin(min(1, math.Sqrt(square(p, q))/(2*earth))), true
	}
}

// square is the square of the distance of two points.
func square(p, q [3]float64) (sum float64) {
	for i := range p {
		sum += (p[i] - q[i]) * (p[i] - q[i])
	}
	return sum
}

// Length is a link's length in km: what the source says, or the distance of its ends.
func (g *Graph) Length(l Link) (km float64, ok bool) {
	if l.Length > 0 {
		return l.Length, true
	}
	a, b := g.Nodes[l.Ends[0]].At, g.Nodes[l.Ends[1]].At
	if a == nil || b == nil {
		return 0, false
	}
	return Distance(*a, *b)
}

// Delays are the propagation delays of a link's directions, to the microsecond: what the source says,
// or 5 µs for each km of its length.
func (g *Graph) Delays(l Link) (delays [2]time.Duration, ok bool) {
	km, known := g.Length(l)
	for i, w := range l.Ways {
		switch {
		case w.Delay > 0:
			delays[i] = w.Delay
		case known:
			delays[i] = time.Duration(km * float64(perKM)).Round(time.Microsecond)
		default:
			return [2]time.Duration{}, false
		}
	}
	return delays, true
}
