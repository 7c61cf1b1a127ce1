package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// A numberFlag is a whole number with its limits.
type numberFlag struct {
	n         *uint32
	low, high uint32
}

// AddNumber adds a flag for a whole number from low to high.
func AddNumber(flags *pflag.FlagSet, n *uint32, name string, value, low, high uint32, usage string) {
	*n = value
	flags.Var(numberFlag{n, low, high}, name, usage)
}

// String, Set and Type make it a flag.
func (f numberFlag) String() string {
	if f.n == nil { // pflag asks a zero value for its default
		return ""
	}
	return strconv.FormatUint(uint64(*f.n), 10)
}

// Set implements pflag.Value.
func (f numberFlag) Set(text string) error {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil || v < uint64(f.low) || v > uint64(f.high) {
		return fmt.Errorf("want a whole number from %d to %d", f.low, f.high)
	}
	*f.n = uint32(v)
	return nil
}

// Type implements pflag.Value.
func (f numberFlag) Type() string { return "uint32" }
