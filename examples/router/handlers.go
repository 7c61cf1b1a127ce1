package main

import (
	"maps"
	"strconv"

	"scaffold.dev/scaffold/emu"
)

// Handlers implements emu.Handled: what `scaffold lab node r1 get rate` shows and `... set rate 2Mbit` changes. Those
// of the Forwarder are among them.
func (p *policer) Handlers(r *emu.Router) map[string]emu.Handler {
	all := map[string]emu.Handler{
		"rate": {
			Get: func() (string, error) { return emu.FormatRate(p.rate), nil },
			Set: func(v string) (err error) { return set(&p.rate, v, emu.ParseRate) },
			Doc: "what a sender may send, such as 10Mbit",
		},
		"burst": {
			Get: func() (string, error) { return strconv.FormatUint(p.burst, 10), nil },
			Set: func(v string) (err error) { return set(&p.burst, v, emu.ParseBytes) },
			Doc: "bytes that a sender may send at once, such as 64KB",
		},
		"senders": {
			Get: func() (string, error) { return strconv.Itoa(len(p.buckets)), nil },
			Doc: "how many have sent something",
		},
		"policed": {
			Get: func() (string, error) { return strconv.FormatUint(p.policed, 10), nil },
			Doc: "packets dropped because their sender sent too much",
		},
	}
	maps.Copy(all, p.Forwarder.Handlers(r))
	return all
}

// set replaces a value if the text is one.
func set(value *uint64, text string, parse func(string) (uint64, error)) error {
	v, err := parse(text)
	if err == nil {
		*value = v
	}
	return err
}
