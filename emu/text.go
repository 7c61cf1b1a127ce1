package emu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keys are the names of parameters as people write them, in the order in which they are shown.
var keys = []struct {
	name string
	read func(*Params, string) error
	show func(Params) string // "" for the value that is the default
}{
	{"rate", (*Params).setRate, func(p Params) string { return FormatRate(p.Rate) }},
	{"queue", (*Params).setQueue, func(p Params) string { return formatBytes(p.Queue) }},
	{"delay", func(p *Params, s string) error { return parseTime(&p.Delay, s) }, func(p Params) string { return formatTime(p.Delay) }},
	{"jitter", func(p *Params, s string) error { return parseTime(&p.Jitter, s) }, func(p Params) string { return formatTime(p.Jitter) }},
	{"unordered", func(p *Params, s string) error { return parseBool(&p.Unordered, s) }, func(p Params) string { return formatBool(p.Unordered) }},
	{"loss", func(p *Params, s string) error { return parseShare(&p.Loss, s) }, func(p Params) string { return formatShare(p.Loss) }},
	{"burst-loss", func(p *Params, s string) error { return parseShare(&p.BurstLoss, s) }, func(p Params) string { return formatShare(p.BurstLoss) }},
	{"burst", func(p *Params, s string) error { return parseBurst(&p.Burst, s) }, func(p Params) string { return formatNumber(p.Burst) }},
	{"duplicate", func(p *Params, s string) error { return parseShare(&p.Duplicate, s) }, func(p Params) string { return formatShare(p.Duplicate) }},
	{"reorder", func(p *Params, s string) error { return parseShare(&p.Reorder, s) }, func(p Params) string { return formatShare(p.Reorder) }},
	{"reorder-by", func(p *Params, s string) error { return parseTime(&p.ReorderBy, s) }, func(p Params) string { return formatTime(p.ReorderBy) }},
	{"seed", func(p *Params, s string) error { return parseSeed(&p.Seed, s) }, func(Params) string { return "" }},
}

// Keys are the names that Set knows.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// Set changes one parameter, written as people do: delay 20ms, loss 1%, rate 10Mbit, queue 64KB. The
// whole is for Validate to judge.
func (p *Params) Set(key, value string) error {
	for _, k := range keys {
		if k.name != key {
			continue
		}
		if err := k.read(p, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	return fmt.Errorf("unknown parameter %q of a link; expected one of %s", key, strings.Join(Keys(), ", "))
}

// String lists the parameters that are not their defaults, as pairs that Set reads; the seed is left
// out.
func (p Params) String() string {
	var words []string
	for _, k := range keys {
		if v := k.show(p); v != "" {
			words = append(words, k.name, v)
		}
	}
	return strings.Join(words, " ")
}

// setRate takes the queue along where there is to be no rate: nothing waits for none.
func (p *Params) setRate(s string) (err error) {
	if p.Rate, err = ParseRate(s); err == nil && p.Rate == 0 {
		p.Queue = 0
	}
	return err
}

// setQueue reads a size; none is what a link has that says nothing of it.
func (p *Params) setQueue(s string) (err error) {
	if strings.EqualFold(s, "none") {
		s = "0"
	}
	p.Queue, err = ParseBytes(s)
	return err
}

// units of rates, in bit/s.
var units = []struct {
	suffix string
	factor float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate reads a rate such as 1Gbit, 2.5mbit or 64kbit, in bit/s. "none" is no limit, 0.
func ParseRate(s string) (uint64, error) {
	lower := strings.TrimSuffix(strings.ToLower(s), "/s")
	if lower == "none" {
		return 0, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if rate := v * u.factor; err == nil && rate >= MinRate && rate <= MaxRate {
			return uint64(rate), nil
		}
		break
	}
	return 0, fmt.Errorf("expected a rate from 8kbit to 100Gbit, such as 10Mbit or 1Gbit, found %q", s)
}

// FormatRate writes a rate as ParseRate reads it, "" for no limit.
func FormatRate(rate uint64) string {
	if rate == 0 {
		return ""
	}
	for _, u := range units {
		if f := uint64(u.factor); rate%f == 0 || u.factor == 1 {
			return strconv.FormatUint(rate/f, 10) + strings.ToUpper(u.suffix[:1]) + u.suffix[1:]
		}
	}
	return ""
}

// sizes in bytes.
var sizes = []struct {
	suffix string
	factor float64
}{{"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}, {"", 1}}

// ParseBytes reads a size such as 64KB, 1.5MB or 3000.
func ParseBytes(s string) (uint64, error) {
	lower := strings.ToLower(s)
	for _, u := range sizes {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if v *= u.factor; err == nil && v >= 0 && v <= MaxQueue {
			return uint64(v), nil
		}
		break
	}
	return 0, fmt.Errorf("expected a size up to 1GB, such as 64KB, found %q", s)
}

func formatBytes(n uint64) string {
	if n == 0 {
		return ""
	}
	for _, u := range sizes {
		if f := uint64(u.factor); n%f == 0 {
			return strconv.FormatUint(n/f, 10) + strings.ToUpper(u.suffix)
		}
	}
	return ""
}

func parseTime(d *time.Duration, s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 || v > MaxDelay {
		return fmt.Errorf("expected a time from 0s to %v, such as 20ms, found %q", MaxDelay, s)
	}
	*d = v
	return nil
}

func formatTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func parseShare(p *float64, s string) error {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !percent || !(v >= 0 && v <= 100) {
		return fmt.Errorf("expected a share from 0%% to 100%%, such as 1%% or 0.01%%, found %q", s)
	}
	*p = v / 100
	return nil
}

func formatShare(p float64) string {
	if p == 0 {
		return ""
	}
	return strconv.FormatFloat(p*100, 'g', 15, 64) + "%"
}

func parseBurst(p *float64, s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 1 && v <= maxBurst) {
		return fmt.Errorf("expected a mean length from 1 to %g packets, found %q", float64(maxBurst), s)
	}
	*p = v
	return nil
}

func formatNumber(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func parseBool(p *bool, s string) error {
	if !slices.Contains([]string{"true", "false"}, s) {
		return fmt.Errorf("expected true or false, found %q", s)
	}
	*p = s == "true"
	return nil
}

func formatBool(b bool) string {
	if !b {
		return ""
	}
	return "true"
}

func parseSeed(p *uint64, s string) error {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return fmt.Errorf("expected a number from 0 to 2^64-1, found %q", s)
	}
	*p = v
	return nil
}
