package topo

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDistancesAreThoseOfTheGlobe(t *testing.T) {
	for _, c := range []struct {
		what string
		a, b Position
		km   float64
	}{
		{"London to Paris", Position{Lat: 51.5074, Lon: -0.1278}, Position{Lat: 48.8566, Lon: 2.3522}, 343.6},
		{"over the date line", Position{Lat: 0, Lon: 179}, Position{Lat: 0, Lon: -179}, 222.4},
		{"pole to pole", Position{Lat: 90}, Position{Lat: -90, Lon: 77}, math.Pi * earth},
		{"in a plane", Position{X: -3, Flat: true}, Position{Y: 4, Flat: true}, 5},
	} {
		if km, ok := Distance(c.a, c.b); !ok || math.Abs(km-c.km) > 0.1 {
			t.Errorf("%s: %v km, want %v", c.what, km, c.km)
		}
	}
	if _, ok := Distance(Position{}, Position{Flat: true}); ok {
		t.Error("the globe and a plane have a distance")
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	place := rapid.Custom(func(t *rapid.T) Position {
		return Position{Lat: rapid.Float64Range(-90, 90).Draw(t, "lat"), Lon: rapid.Float64Range(-180, 180).Draw(t, "lon")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := place.Draw(t, "a"), place.Draw(t, "b"), place.Draw(t, "c")
		ab, _ := Distance(a, b)
		ba, _ := Distance(b, a)
		bc, _ := Distance(b, c)
		ac, _ := Distance(a, c)
		same, _ := Distance(a, a)
		const inexact = 1e-3 // km; near the antipode the arc is steep in the chord
		if ab != ba || same != 0 || ac > ab+bc+inexact || ab > math.Pi*earth+inexact || math.IsNaN(ab) {
			t.Fatalf("%v, %v, %v and %v", ab, ba, bc, ac)
		}
	})
}

func TestADelayIsSaidOrFollowsFromTheLength(t *testing.T) {
	g := &Graph{Nodes: []Node{{At: &Position{Flat: true}}, {At: &Position{X: 300, Y: 400, Flat: true}}, {}}}
	ms := time.Millisecond
	for _, c := range []struct {
		link Link
		want [2]time.Duration
		ok   bool
	}{
		{Link{Ends: [2]int{0, 1}}, [2]time.Duration{2500 * time.Microsecond, 2500 * time.Microsecond}, true},
		{Link{Ends: [2]int{0, 1}, Length: 1000}, [2]time.Duration{5 * ms, 5 * ms}, true},
		{Link{Ends: [2]int{0, 1}, Length: 1000, Ways: [2]Way{{Delay: ms}, {}}}, [2]time.Duration{ms, 5 * ms}, true},
		{Link{Ends: [2]int{0, 2}}, [2]time.Duration{}, false},
		{Link{Ends: [2]int{0, 2}, Ways: [2]Way{{Delay: ms}, {}}}, [2]time.Duration{}, false},
		{Link{Ends: [2]int{0, 2}, Ways: [2]Way{{Delay: ms}, {Delay: 2 * ms}}}, [2]time.Duration{ms, 2 * ms}, true},
	} {
		if got, ok := g.Delays(c.link); got != c.want || ok != c.ok {
			t.Errorf("%+v: %v, %v; want %v, %v", c.link, got, ok, c.want, c.ok)
		}
	}
}
