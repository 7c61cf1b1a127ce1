package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
)

// addFormat is the -o flag.
func addFormat(cmd *cobra.Command) *command.Format {
	f := new(command.Format)
	command.AddFormat(cmd.Flags(), f)
	return f
}

// A sizeFlag is a number of runs, flows or things: fewer than one would measure nothing, and is refused
// before a lab comes up for it.
type sizeFlag int

func addSize(flags *pflag.FlagSet, n *int, name, short string, value int, usage string) {
	*n = value
	flags.VarP((*sizeFlag)(n), name, short, usage)
}

// String, Set and Type make it a flag.
func (s *sizeFlag) String() string { return strconv.Itoa(int(*s)) }

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("want a whole number from 1 up")
	}
	*s = sizeFlag(n)
	return nil
}

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "int" }

// An extraFlag is a sizeFlag of what 0 leaves out.
type extraFlag int

func addExtra(flags *pflag.FlagSet, n *int, name string, value int, usage string) {
	*n = value
	flags.Var((*extraFlag)(n), name, usage+"; 0 leaves this out")
}

// String, Set and Type make it a flag.
func (e *extraFlag) String() string { return strconv.Itoa(int(*e)) }

// Set implements pflag.Value.
func (e *extraFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("want a whole number from 0 up")
	}
	*e = extraFlag(n)
	return nil
}

// Type implements pflag.Value.
func (e *extraFlag) Type() string { return "int" }

// A lengthFlag is how long something runs, with the least that shows anything.
type lengthFlag struct {
	d     *time.Duration
	least time.Duration
}

func addLength(flags *pflag.FlagSet, d *time.Duration, value, least time.Duration, usage string) {
	*d = value
	flags.Var(lengthFlag{d, least}, "duration", usage)
}

// String, Set and Type make it a flag.
func (l lengthFlag) String() string {
	if l.d == nil { // pflag asks a zero value for its default
		return ""
	}
	return l.d.String()
}

// Set implements pflag.Value.
func (l lengthFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < l.least {
		return fmt.Errorf("want a duration of at least %v", l.least)
	}
	*l.d = d
	return nil
}

// Type implements pflag.Value.
func (l lengthFlag) Type() string { return "duration" }
