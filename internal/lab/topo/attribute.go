package topo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// An attribute is what a file says of a node or a link, whatever the format.
type attribute struct {
	key, value string
	line       int
}

// fold makes one of the ways in which people write a key: LinkSpeedRaw, link_speed_raw.
func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
}

// number reads a decimal number that is not below least.
func number(text string, least float64) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("expected a number, found %q", cut(text))
	}
	if v < least {
		return 0, fmt.Errorf("expected a number from %g, found %q", least, cut(text))
	}
	return v, nil
}

// length reads a length in km.
func length(text string) (float64, error) {
	km, err := number(strings.TrimSuffix(strings.TrimSpace(text), "km"), 0)
	if err == nil && km > maxFlat {
		err = fmt.Errorf("expected at most %g km, found %q", float64(maxFlat), cut(text))
	}
	return km, err
}

// delay reads a time such as 5ms or 5 ms; a number alone is in milliseconds.
func delay(text string) (time.Duration, error) {
	text = strings.ReplaceAll(text, " ", "")
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "ms"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("expected a time such as 5ms, or a number of milliseconds, found %q", cut(text))
	}
	return d, nil
}

// units are what a rate's first letter multiplies it by.
var units = map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9, 't': 1e12}

// rate reads a rate such as 10Gbit, 10 Gbps or 10G; a number alone is in bit/s.
func rate(text string) (uint64, error) {
	word := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	for _, unit := range []string{"bit/s", "bits", "bit", "bps", "b/s"} {
		if short, ok := strings.CutSuffix(word, unit); ok {
			word = short
			break
		}
	}
	times := 1.0
	if n := len(word); n > 0 && units[word[n-1]] > 0 {
		times, word = units[word[n-1]], word[:n-1]
	}
	v, err := number(word, 0)
	if err != nil || v*times > 1e15 || v > 0 && v*times < 1 {
		return 0, fmt.Errorf("expected a rate such as 10Gbit, or a number of bit/s, found %q", cut(text))
	}
	return uint64(v * times), nil
}

// place gathers what a node's attributes say of its position.
type place struct {
	lat, lon, x, y *float64
}

func (p place) position() (*Position, error) {
	switch {
	case (p.lat == nil) != (p.lon == nil):
		return nil, fmt.Errorf("latitude and longitude go together; one is missing")
	case (p.x == nil) != (p.y == nil):
		return nil, fmt.Errorf("x_km and y_km go together; one is missing")
	case p.lat != nil && p.x != nil:
		return nil, fmt.Errorf("a place on the globe and one in a plane; expected one of them")
	case p.lat != nil:
		return &Position{Lat: *p.lat, Lon: *p.lon}, Position{Lat: *p.lat, Lon: *p.lon}.check()
	case p.x != nil:
		return &Position{X: *p.x, Y: *p.y, Flat: true}, Position{X: *p.x, Y: *p.y, Flat: true}.check()
	}
	return nil, nil
}

// describe reads the attributes of a node: its label and position. Names of drawing coordinates (x, y,
// pos, graphics) are none of them: their unit is nobody's.
func describe(attributes []attribute) (label string, at *Position, err error) {
	var p place
	var name string
	coordinates := map[string]**float64{"latitude": &p.lat, "lat": &p.lat, "longitude": &p.lon, "lon": &p.lon, "lng": &p.lon, "xkm": &p.x, "ykm": &p.y}
	line := 0
	for _, a := range attributes {
		key := fold(a.key)
		if to := coordinates[key]; to != nil {
			v, err := number(a.value, math.Inf(-1))
			if err != nil {
				return "", nil, mistake(a.line, "%s: %v", a.key, err)
			}
			*to, line = &v, a.line
		}
		switch key {
		case "label":
			label = a.value
		case "name":
			name = a.value
		}
	}
	if at, err = p.position(); err != nil {
		return "", nil, mistake(line, "%v", err)
	}
	if strings.TrimSpace(label) == "" {
		label = name
	}
	return label, at, nil
}

// measure reads the attributes of a link in one direction.
func measure(attributes []attribute) (l Link, err error) {
	var w Way
	for _, a := range attributes {
		switch fold(a.key) {
		case "length", "lengthkm", "dist", "distance":
			l.Length, err = length(a.value)
		case "delay", "latency":
			w.Delay, err = delay(a.value)
		case "linkspeedraw", "rate", "bandwidth":
			w.Rate, err = rate(a.value)
		case "weight", "cost", "metric":
			w.Weight, err = number(a.value, 0)
		case "relation":
			l.Relation = Relation(a.value)
			if l.Relation != Provider && l.Relation != Peer {
				err = fmt.Errorf("expected %s or %s, found %q", Provider, Peer, cut(a.value))
			}
		}
		if err != nil {
			return Link{}, mistake(a.line, "%s: %v", a.key, err)
		}
	}
	l.Ways = [2]Way{w, w}
	return l, nil
}
