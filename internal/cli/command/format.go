package command

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A Format is what a command prints: "table" for people, "json" for programs.
type Format string

// AddFormat is the -o flag.
func AddFormat(flags *pflag.FlagSet, o *Format) {
	*o = "table"
	flags.VarP(o, "output", "o", "what to print: table or json")
}

// String makes it a flag, with Set, which refuses other formats at once, and Type.
func (o *Format) String() string { return string(*o) }

// Set implements pflag.Value.
func (o *Format) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("want table or json")
	}
	*o = Format(s)
	return nil
}

// Type implements pflag.Value.
func (o *Format) Type() string { return "format" }

// JSON says that programs read it.
func (o *Format) JSON() bool { return *o == "json" }
