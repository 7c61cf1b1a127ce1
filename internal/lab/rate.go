package lab

import "scaffold.dev/scaffold/emu"

// minRate is the least that a token bucket can hold, in bit/s.
const minRate = emu.MinRate

// ParseRate reads a rate such as 1Gbit, 2.5mbit or 64kbit, in bit/s.
func ParseRate(s string) (uint64, error) { return emu.ParseRate(s) }
